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

_BEYOND = 1e30  # distance from 0 on the line or in the user's coordinates, where nothing ends
_SHOWN = 1e-3  # of the largest coefficient, below which another one is left out of a name


def simplified(potential: Potential, direction: FloatArray) -> FloatArray | None:
    """Return a direction (dim,) of simple coefficients near one; None where there is none.

    Those that models hold undetermined are simple as a rule, such as a sum or a difference, while
    those that are estimated hold errors that grow with the distance. Simple ones are halves, thirds
    and quarters of the largest.
    """
    line = _on_line(potential, direction)
    simple = np.round(12.0 * line) / 12.0
    if np.abs(simple - line).max() > 0.02:
        return None
    transform = transform_of(potential)
    if not isinstance(transform, Scaled):
        return np.asarray(simple)
    return np.asarray(np.linalg.solve(transform.scaling.matrix, simple))


def name_of(potential: Potential, direction: FloatArray) -> str:
    """Return a direction (dim,) in words, such as ``a + 0.5 b``."""
    line, labels = _on_line(potential, direction), labels_on_line(potential)
    if isinstance(transform_of(potential), Scaled):
        labels = [label.removesuffix(" (scaled)") for label in labels]
    words = ""
    for i in np.flatnonzero(np.abs(line) > _SHOWN):
        size = abs(line[i])
        factor = "" if abs(size - 1.0) < _SHOWN else f"{size:.3g} "
        sign = "-" if line[i] < 0 else "+"
        words += f" {sign} {factor}{labels[i]}" if words else f"{factor}{labels[i]}"
    return words


def _on_line(potential: Potential, direction: FloatArray) -> FloatArray:
    """Return a direction on the line, its largest coefficient 1, and its first one positive."""
    transform = transform_of(potential)
    line = transform.scaling.matrix @ direction if isinstance(transform, Scaled) else direction
    line = line / np.abs(line).max()
    first = line[np.flatnonzero(np.abs(line) > _SHOWN)[0]]
    return np.asarray(line * np.sign(first))


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
    far = np.abs(found.position).max() > 1e4 or np.abs(where).max() > _BEYOND
    if found.converged or not (found.value < -1e8 and far):
        return
    raise TargetError(
        f"the target has no least potential: it falls to {found.value:.3g} at "
        f"{describe_position(potential, found.position)}, and on; check its sign "
        "(surrokit.potential takes U = -log density, or log_density=...), and if that is right "
        "declare bounds or priors, as no distribution has such a density"
    )


def demand_walls(potential: Potential, found: Mode) -> int:
    """Raise if the potential is the same at any distance in a direction; return the values taken.

    Directions are those of single parameters, and such in which several change together. Two values
    are evaluated for each unbounded one along which second derivatives vanish, or four.

    Raises
    ------
    TargetError
        If there is no wall either way, so that no distribution has such a density.
    """
    if found.hessian is None or not found.converged:
        return 0
    taken, curvatures = 0, np.abs(found.hessian).max(axis=1)
    for i in np.flatnonzero(curvatures <= _level(curvatures.max())):
        ends = _far_ends(potential, found.position, int(i))
        if ends is None:
            continue
        taken += len(ends)
        if _are_level(potential, ends, found):
            far = "" if np.abs(ends).max() >= _BEYOND else " of its logarithm"
            raise TargetError(
                f"the target does not depend on {labels_on_line(potential)[i]}: it is the same at "
                f"any distance{far}, and no distribution has such a density; declare bounds or a "
                "prior for it, or leave it out"
            )
    if not np.isfinite(found.hessian).all() or len(found.hessian) > MANY:
        return taken
    sizes, directions = np.linalg.eigh(found.hessian)
    level = directions.T[sizes <= _level(sizes[-1])]
    # those of single numbers have been looked along
    return taken + _demand_walls_along(potential, found, level[np.abs(level).max(axis=1) < 0.999])


def demand_walls_by_gradients(
    potential: Potential, found: Mode, gradients: FloatArray, *, most: int
) -> None:
    """Raise if the potential is the same at any distance in a direction that no gradient has.

    The gradients of a search lie in the few directions it went, so that each further one, beside
    the mode, is taken where the others say nothing yet. Where it has no component there either,
    values far away decide.

    The search saw ``gradients (n, dim)`` on its way. Where more directions than ``most`` further
    gradients are left, nothing is known.

    Raises
    ------
    TargetError
        If there is no wall either way, so that no distribution has such a density.
    """
    if len(found.position) > MANY:
        return
    rng = np.random.default_rng(0)  # its own, so that the run's goes on as it would have
    unseen = _unseen(gradients)
    if unseen.shape[1] > most:
        return
    while unseen.size:
        way = unseen @ rng.standard_normal(unseen.shape[1])
        position = found.position + way / np.linalg.norm(way)
        try:
            with np.errstate(all="ignore"):
                beside = with_gradient(potential).value_and_gradient(position[None])[1]
        except EvaluationError:
            return
        if not np.isfinite(beside).all():
            return
        gradients = np.vstack([gradients, beside])
        before, unseen = unseen.shape[1], _unseen(gradients)
        if unseen.shape[1] >= before:
            _demand_walls_along(potential, found, _sparse(unseen).T)
            return


def _demand_walls_along(potential: Potential, found: Mode, directions: FloatArray) -> int:
    """Raise if there is no wall either way along some directions (k, dim); return values taken.

    One of simple coefficients near each of them is looked along before it.
    """
    taken, most = 0, 1e12  # not farther, as coefficients are rounded
    for near in directions:
        simple = simplified(potential, near)
        for direction in [near] if simple is None else [simple, near]:
            ends = found.position + np.outer([most, -most], direction)
            with np.errstate(all="ignore"):
                there = transform_of(potential).to_bounded(ends)
            if not np.isfinite(there).all() or np.abs(there[0] - there[1]).max() < most:
                continue
            taken += len(ends)
            if _are_level(potential, ends, found):
                raise TargetError(
                    "the target is the same at any distance along "
                    f"{name_of(potential, direction)}, and no distribution has such a density. "
                    "Declare bounds or priors for these, or leave one out"
                )
    return taken


def _level(largest: float) -> float:
    """Return the curvature below which it is looked along; what may be rounding is none."""
    return max(1e-12 * largest, 1e-5)


def _are_level(potential: Potential, ends: FloatArray, found: Mode) -> bool:
    """Return whether the potential is the same at ends (n, dim) of a line as at the mode."""
    with np.errstate(all="ignore"):
        try:
            values = potential.value(ends)
        except EvaluationError:
            return False
        return bool((np.abs(values - found.value) <= 0.01).all())


def _unseen(gradients: FloatArray) -> FloatArray:
    """Return an orthonormal basis (dim, k) of the directions that no gradient (n, dim) has."""
    _, sizes, directions = np.linalg.svd(gradients, full_matrices=True)
    return np.asarray(directions[np.sum(sizes > 1e-10 * sizes.max(initial=0.0)) :].T)


def _sparse(basis: FloatArray) -> FloatArray:
    """Return another basis (dim, k), each column of which has zeros where all others have a one."""
    from scipy.linalg import qr

    pivots = qr(basis.T, mode="r", pivoting=True)[1][: basis.shape[1]]
    return np.asarray(np.linalg.solve(basis[pivots].T, basis.T).T)


def _far_ends(potential: Potential, position: FloatArray, i: int) -> FloatArray | None:
    """Return the two ends (2, dim) of the line through a number of a position; None if bounded.

    A number with one bound is a logarithm on the line, and goes as far as it can be a number.
    """
    for far in (_BEYOND, 600.0):
        ends = position + np.outer([far, -far], np.eye(len(position))[i])
        with np.errstate(all="ignore"):
            there, back = transform_of(potential).to_bounded(ends)
        if np.isfinite(there).all() and np.abs(there - back).max() >= _BEYOND:
            return np.asarray(ends)
    return None


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
