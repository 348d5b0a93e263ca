"""Draws from the Gaussian of figure 3, and what is seen of its potential there."""

from __future__ import annotations

import numpy as np

import surrokit as sk
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.types import FloatArray

DIM = 32
"""Numbers in a position."""

LONG, SHORT = 1.0, 0.1
"""Standard deviations along (1, ..., 1) and across it."""


def square_root() -> FloatArray:
    """Return the symmetric square root of the covariance, shape (DIM, DIM)."""
    root: FloatArray = SHORT * np.eye(DIM) + np.full((DIM, DIM), (LONG - SHORT) / DIM)
    return root


def exact_evaluations(target: Potential, n: int, rng: np.random.Generator) -> sk.Evaluations:
    """Return the exact potential and its gradient at n independent draws from the target.

    The same generator gives the beginning of a longer list for a smaller n.
    """
    positions = rng.standard_normal((n, DIM)) @ square_root()
    values, gradients = with_gradient(target).value_and_gradient(positions)
    return sk.Evaluations(positions=positions, values=values, gradients=gradients)


def noisy_evaluations(
    target: Potential, n: int, noise_sd: float, rng: np.random.Generator, *, gradients: bool
) -> sk.Evaluations:
    """Return what is seen at n independent draws from the target.

    Parameters
    ----------
    target
        The Gaussian.
    n
        How many; fewer are the beginning of more.
    noise_sd
        Standard deviation of the noise of each value, and of each number of a gradient.
    rng
        Draws positions and noise.
    gradients
        Whether gradients are seen.
    """
    for_positions, for_values, for_gradients = rng.spawn(3)
    exact = exact_evaluations(target, n, for_positions)
    assert exact.gradients is not None
    return sk.Evaluations(
        positions=exact.positions,
        values=exact.values + noise_sd * for_values.standard_normal(n),
        gradients=exact.gradients + noise_sd * for_gradients.standard_normal((n, DIM))
        if gradients
        else None,
    )
