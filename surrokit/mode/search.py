"""Searches for a mode, what lies at the bottom, and Laplace's approximation."""

from __future__ import annotations

import numpy as np

from surrokit.coordinates.transforms import Scaled
from surrokit.errors import EvaluationError, TargetError
from surrokit.limits import SEARCHING, stage
from surrokit.mode.by_values import find_by_values
from surrokit.mode.descent import TOLERANCE, Mode, Scales, Until, descend
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential, with_gradient
from surrokit.targets.bounds import describe_position, labels_on_line, transform_of
from surrokit.types import FloatArray

MANY = 200
"""Dimensions up to which directions of several numbers are looked for."""

# --- what no distribution may have ---


def demand_bottom(potential: Potential, found: Mode) -> None:
    """Raise if a search fell and fell, as on a potential whose sign is turned.

    Raises
    ------
    TargetError
        If that is very far down and very far away, and the search has not converged there.
    """
    with np.errstate(all="ignore"):
        where = transform_of(potential).to_bounded(found.position)
    far = np.abs(found.position).max() > 1e4 or np.abs(where).max() > 1e30
    if found.converged or not (found.value < -1e8 and far):
        return
    raise TargetError(
        f"the target has no least potential: it falls to {found.value:.3g} at "
        f"{describe_position(potential, found.position)}, and on; check its sign "
        "(surrokit.potential takes U = -log density, or log_density=...), and if that is right "
        "declare bounds or priors, as no distribution has such a density"
    )


def demand_walls(
    potential: Potential, found: Mode, gradients: FloatArray | None = None, *, beside: int = 0
) -> int:
    """Raise if the potential is the same at any distance in a direction; return the values taken.

    Those are looked along in which second derivatives vanish. Where there are none it is those that
    neither the ``gradients (n, dim)`` of a search have, which lie in the few directions it went,
    nor some ``beside`` the mode: each is taken where the others have none yet. Two values are
    evaluated far away.

    Raises
    ------
    TargetError
        If there is no wall either way, so that no distribution has such a density.
    """
    if not found.converged or len(found.position) > MANY:
        return 0
    if found.hessian is not None:
        sizes, ways = np.linalg.eigh(found.hessian)
        # what may be rounding is no curvature
        unseen = ways[:, sizes <= max(1e-12 * float(sizes[-1]), 1e-5)]
    elif gradients is not None:
        unseen = _unseen(potential, found, gradients, beside)
    else:
        return 0
    taken = 0
    for direction in simplified(potential, unseen, 1e-3):
        # not so far where coefficients are rounded, or as a logarithm
        most = 1e30 if np.count_nonzero(direction) == 1 else 1e12
        for far in (most, 600.0):
            ends = found.position + np.outer([far, -far], direction)
            with np.errstate(all="ignore"):
                there, back = transform_of(potential).to_bounded(ends)
            if not (np.isfinite([there, back]).all() and np.abs(there - back).max() >= most):
                continue
            taken += len(ends)
            if _are_level(potential, ends, found):
                raise TargetError(
                    f"the target is the same at any distance along {name_of(potential, direction)},"
                    " and no distribution has such a density; declare bounds or a prior, or leave "
                    "a parameter out"
                )
            break
    return taken


def _unseen(potential: Potential, found: Mode, rows: FloatArray, most: int) -> FloatArray:
    """Return an orthonormal basis (dim, k) of the directions that no gradient has."""
    rng = np.random.default_rng(0)  # its own, so that the run's goes on as it would have
    before = most + 1
    while True:
        _, sizes, ways = np.linalg.svd(rows, full_matrices=True)
        unseen = ways[np.sum(sizes > 1e-10 * sizes.max(initial=0.0)) :].T
        if not unseen.size or unseen.shape[1] >= before:
            return np.asarray(unseen[:, : unseen.shape[1] if before <= most else 0])
        before = unseen.shape[1]
        way = unseen @ rng.standard_normal(before)
        position = found.position + way / np.linalg.norm(way)
        try:
            with np.errstate(all="ignore"):
                beside = with_gradient(potential).value_and_gradient(position[None])[1]
        except EvaluationError:
            return unseen[:, :0]
        if not np.isfinite(beside).all():
            return unseen[:, :0]
        rows = np.vstack([rows, beside])


def simplified(potential: Potential, basis: FloatArray, off: float) -> FloatArray:
    """Return another basis (k, dim), each of which has zeros where all others have a one.

    Directions that models hold undetermined have simple coefficients as a rule, such as a sum or a
    difference, while those that are estimated hold errors that grow with the distance. They become
    simple ones that are no more than so much ``off``.
    """
    if not basis.size:
        return basis.T
    from scipy.linalg import qr

    scaling = _scaling(potential)
    line = basis if scaling is None else scaling @ basis
    pivots = qr(line.T, mode="r", pivoting=True)[1][: line.shape[1]]
    ways = np.linalg.solve(line[pivots].T, line.T)
    ways = ways / np.abs(ways).max(axis=1, keepdims=True)
    simple = np.round(12.0 * ways) / 12.0
    ways = np.where(np.abs(simple - ways).max(axis=1, keepdims=True) > off, ways, simple)
    return np.asarray(ways if scaling is None else np.linalg.solve(scaling, ways.T).T)


def _are_level(potential: Potential, ends: FloatArray, found: Mode) -> bool:
    """Return whether the potential is the same at ends (n, dim) of a line as at the mode."""
    with np.errstate(all="ignore"):
        try:
            values = potential.value(ends)
        except EvaluationError:
            return False
        return bool((np.abs(values - found.value) <= 0.01).all())


def _scaling(potential: Potential) -> FloatArray | None:
    transform = transform_of(potential)
    return transform.scaling.matrix if isinstance(transform, Scaled) else None


def name_of(potential: Potential, direction: FloatArray) -> str:
    """Return a direction (dim,) in words, such as ``a + 0.5 b``."""
    line, labels, scaling = direction, labels_on_line(potential), _scaling(potential)
    if scaling is not None:
        line, labels = scaling @ line, [each.removesuffix(" (scaled)") for each in labels]
    line = line / np.abs(line).max()
    shown = np.flatnonzero(np.abs(line) > 1e-3)
    words = ""
    for i in shown:
        size = abs(line[i])
        factor = "" if abs(size - 1.0) < 1e-3 else f"{size:.3g} "
        sign = "-" if line[i] * line[shown[0]] < 0 else "+"
        words += f" {sign} {factor}{labels[i]}" if words else f"{factor}{labels[i]}"
    return words


def laplace_acceptance(
    target: Potential, mode: Mode, rng: np.random.Generator, n: int = 40
) -> float | None:
    """Return the mean acceptance of moves between independent draws of N(mode, H^-1).

    The mean is over all pairs of ``n`` draws, at which the target is evaluated. A few draws miss
    tails that are heavier than the approximation's, so a figure that is not near 1 is too high.
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


MOST_DIM = 60
"""Numbers in a position up to which there is a matrix of second differences, of dim^2 / 2 values
and a few."""


def goes_by_values(potential: Potential) -> bool:
    """Return whether a search goes by values, as gradients are made of them."""
    return calls_per_gradient(potential) > 1 and potential.dim <= MOST_DIM


@stage(SEARCHING)
def find_mode(
    potential: Potential,
    start: FloatArray,
    *,
    max_calls: int = 200,
    tolerance: float = TOLERANCE,
    until: Until | None = None,
    scales: Scales | None = None,
) -> Mode:
    """Find the position of least potential near a start.

    The search steps back from a position that cannot be evaluated or whose potential is not
    finite. One search sees one mode.

    Parameters
    ----------
    potential
        One with capability ``gradient``.
    start : ndarray of shape (dim,)
        A position where potential and gradient are finite.
    max_calls
        Evaluations, or as many values as these cost, after which the best position so far is
        returned.
    tolerance
        Nats; the search ends where a Newton step would gain less, or iterations of L-BFGS do. By
        values it ends by :data:`~surrokit.mode.descent.TOLERANCE`.
    until
        Called with each finite position (dim,) that is evaluated, the potential and its gradient
        there; the search ends where it returns True.
    scales
        What is known of the covariance of the mass; a search by gradients alone goes in coordinates
        in which that is the identity. Where there are matrices, or the search goes by values, it is
        not needed.

    Returns
    -------
    Mode
        The best position seen, converged or not.

    Raises
    ------
    CapabilityError
        If the potential has no gradient.
    NumericalError
        If the potential or its gradient is not finite at the start.
    ShapeError
        If ``start`` is not one position.
    """
    if goes_by_values(potential):
        return find_by_values(potential, start, max_calls=max_calls, until=until)
    return descend(
        potential, start, max_calls=max_calls, tolerance=tolerance, until=until, scales=scales
    )
