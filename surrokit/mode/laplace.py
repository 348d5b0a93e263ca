"""The acceptance of independent draws of the normal approximation at a mode."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.mode.mode import Mode

N_DRAWS = 40
"""Number of draws that are evaluated."""


def laplace_acceptance(
    target: Potential, mode: Mode, rng: np.random.Generator, n: int = N_DRAWS
) -> float | None:
    """Return the mean acceptance of moves between independent draws of N(mode, H^-1).

    The mean is over all pairs of ``n`` draws. A few draws miss tails that are heavier than the
    approximation's, so a figure that is not near 1 is too high.

    Parameters
    ----------
    target
        The exact potential, evaluated at ``n`` positions.
    mode
        Its mode, with second derivatives.
    rng
        Generator.
    n
        Number of draws, at least 2.

    Returns
    -------
    float or None
        None where no positive definite matrix of second derivatives is known.
    """
    if mode.hessian is None:
        return None
    try:
        factor = np.linalg.cholesky(mode.hessian)
    except np.linalg.LinAlgError:
        return None
    z = rng.standard_normal((n, len(factor)))
    # H = C C^T, so that h = q - mode solves C^T h = z
    values = target.value(mode.position + np.linalg.solve(factor.T, z.T).T)
    with np.errstate(invalid="ignore"):
        excess = 0.5 * np.square(z).sum(axis=1) - values
        accepted = np.exp(np.minimum(excess[None, :] - excess[:, None], 0.0))
    accepted[~np.isfinite(accepted)] = 0.0
    np.fill_diagonal(accepted, 0.0)
    return float(accepted.sum() / (n * (n - 1)))
