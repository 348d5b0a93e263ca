"""Gradients of targets that have none, as differences of their values."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import FORWARD, GRADIENT, ROWS
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.potential import InitialPotential, Potential
from surrokit.coordinates.blocks import CoordinateMap
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError
from surrokit.limits.penalties import without_cliffs
from surrokit.model.model import Wrapper
from surrokit.shapes import check_positions
from surrokit.shown.target import ShownTarget
from surrokit.targets.bounds import parameters_of, transform_of
from surrokit.types import Capabilities, FloatArray

MOST_DIM = 30
"""Numbers in a position up to which differences are taken where nobody asks for them.

With 20 correlated numbers, values alone pay for a random walk that does not arrive, and twice as
many values in differences for a surrogate of acceptance 1."""

LEAST_GRADIENTS = 100
"""Gradients that a run's calls must pay for if differences are to be taken: half of them find the
mode and a surrogate."""

STEP = 1e-4
"""Step to either side, and part of the number that is added. It is longer than is best for values
that are exact to the last digit: those of a solver are not, and central differences of what is
nearly quadratic hardly depend on it."""

SHORT_STEP = 1e-5
"""The same, for differences to one side where no curvature is known."""

RISE = 1e-5
"""Nats by which curvature alone should change U over a step, where curvature is known: a step of
0.0045 conditional standard deviations, over which higher orders do not count."""

LONGEST = 10.0
"""Usual steps that a difference to one side takes at most: the curvature may be another one."""

_ROUNDING = 1e-8  # of U, what is safely above rounding and small errors of solvers
_SHORTEST, _LONGEST = 1e-3, 1e4  # of the usual step


@attrs.frozen(eq=False)
class Differences(Wrapper, ShownTarget):
    """A potential whose gradient is made of differences of its values.

    A gradient by central differences pays for 2 dim + 1 values, one to one side for dim + 1. Draws
    stay exact, since acceptance goes by values alone.

    Parameters
    ----------
    inner
        The potential, in the sampling coordinates.
    to_one_side
        Whether differences are to one side.
    curvatures : ndarray of shape (dim,), optional
        About the second derivatives along each coordinate. Differences to one side are corrected by
        them, and their steps are chosen by them.

    Raises
    ------
    ConfigurationError
        If it has a gradient.
    """

    inner: Potential
    to_one_side: bool = False
    curvatures: FloatArray | None = None

    def __attrs_post_init__(self) -> None:
        if GRADIENT in self.inner.capabilities:
            raise ConfigurationError(
                "the target has a gradient, so there is nothing to make of differences; leave "
                "gradient='differences' out"
            )

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """Those of the inner potential, and a gradient."""
        return self.inner.capabilities | {GRADIENT}

    @property
    def parameters(self) -> Parameters:
        """Names, shapes and bounds."""
        return parameters_of(self.inner)

    @property
    def transform(self) -> CoordinateMap:
        """The map to the user's coordinates."""
        return transform_of(self.inner)

    @property
    def calls_per_gradient(self) -> int:
        """Values that a gradient pays for."""
        return (1 if self.to_one_side else 2) * self.dim + 1

    def one_sided(self, curvatures: FloatArray | None) -> Differences:
        """Return a copy with differences to one side; see the parameter ``curvatures``."""
        return attrs.evolve(self, to_one_side=True, curvatures=curvatures)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.inner.value(positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and differences, shape (n, dim).

        Where one of the two neighbours is not finite, the difference is that to the other one; it
        is NaN where neither is.
        """
        q = check_positions(positions, self.dim)
        rows = q[:, None, :] + self._moves(q)
        values = self._values(rows)
        if not self.to_one_side:
            return values[:, 0], _slopes(rows, values)
        rows, values = self._turn_back(rows, values)
        return values[:, 0], _slopes_to_one_side(rows, values, self.curvatures)

    def _moves(self, positions: FloatArray) -> FloatArray:
        """Return moves (n, k, dim) from ``positions (n, dim)``, the first of them none."""
        n, dim = positions.shape
        none = np.zeros((n, 1, dim))
        if not self.to_one_side:
            ahead = (STEP * (1.0 + np.abs(positions)))[:, None, :] * np.eye(dim)
            return np.concatenate([none, ahead, -ahead], axis=1)
        longest = LONGEST * STEP * (1.0 + np.abs(positions))
        steps = np.minimum(steps_by(self.curvatures, positions), longest)
        ahead = steps[:, None, :] * np.eye(dim)
        return np.concatenate([none, ahead], axis=1)

    def _turn_back(self, rows: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows and values with the neighbours that failed on the other side."""
        failed = np.isfinite(values[:, :1]) & ~np.isfinite(values[:, 1:])
        which, along = np.nonzero(failed)
        if not len(which):
            return rows, values
        rows, values = rows.copy(), values.copy()
        rows[which, 1 + along] = 2.0 * rows[which, 0] - rows[which, 1 + along]
        values[which, 1 + along] = self._values(rows[which, 1 + along][:, None, :])[:, 0]
        return rows, values

    def _values(self, rows: FloatArray) -> FloatArray:
        """Return U (n, k) at ``rows (n, k, dim)``."""
        n, k = rows.shape[:2]
        values = self.inner.value(rows.reshape(n * k, -1).copy())
        return without_cliffs(values.reshape(n, k))

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return the inner potential's own starting positions, shape (n, dim)."""
        inner: InitialPotential = self.inner  # type: ignore[assignment]
        return inner.initial(rng, n)


def steps_by(
    curvatures: FloatArray | None, positions: FloatArray, size: FloatArray | float = 0.0
) -> FloatArray:
    """Return steps of differences along each coordinate, shape (n, dim).

    Parameters
    ----------
    curvatures : ndarray of shape (dim,), optional
        About the second derivatives along each coordinate.
    positions : ndarray of shape (n, dim)
        Where.
    size
        |U| there, of which a part may be rounding.
    """
    usual = STEP * (1.0 + np.abs(positions))
    if curvatures is None:
        return np.asarray(usual * (SHORT_STEP / STEP))
    steepness = np.maximum(np.abs(curvatures), np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):  # the longest step is all the same
        steps = np.sqrt(2.0 * (RISE + _ROUNDING * np.abs(size)) / steepness)
    return np.asarray(np.clip(steps, _SHORTEST * usual, _LONGEST * usual))


def _slopes_to_one_side(
    rows: FloatArray, values: FloatArray, curvatures: FloatArray | None
) -> FloatArray:
    """Return differences (n, dim) of ``values (n, dim + 1)``, NaN where one is not finite."""
    steps = np.einsum("nii->ni", rows[:, 1:]) - rows[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = (values[:, 1:] - values[:, :1]) / steps
    if curvatures is not None:
        slopes -= 0.5 * steps * curvatures
    return np.where(np.isfinite(slopes), slopes, np.nan)


def _slopes(rows: FloatArray, values: FloatArray) -> FloatArray:
    """Return differences (n, dim) of ``values (n, 2 dim + 1)`` between what is finite."""
    dim = rows.shape[2]
    # as numbers round
    at, ahead, behind = rows[:, 0], rows[:, 1 : dim + 1], rows[:, dim + 1 :]
    ahead, behind = np.einsum("nii->ni", ahead), np.einsum("nii->ni", behind)
    value, up, down = values[:, :1], values[:, 1 : dim + 1], values[:, dim + 1 :]
    has_up, has_down = np.isfinite(up), np.isfinite(down)
    with np.errstate(invalid="ignore", divide="ignore"):
        rise = np.where(has_up, up, value) - np.where(has_down, down, value)
        return np.asarray(rise / (np.where(has_up, ahead, at) - np.where(has_down, behind, at)))


def with_slopes(rows: Evaluations) -> Evaluations:
    """Return the positions of which a batch of values holds neighbours, with gradients of these.

    A batch that was evaluated for something else is returned as it is.

    Parameters
    ----------
    rows
        Values of one batch, in its order.
    """
    n, dim = rows.positions.shape
    for k in (2 * dim + 1, dim + 1):
        if not n or n % k:
            continue
        blocks, values = rows.positions.reshape(-1, k, dim), rows.values.reshape(-1, k)
        moves = np.abs(blocks[:, 1:] - blocks[:, :1]).reshape(len(blocks), -1, dim, dim)
        along = np.einsum("nsii->nsi", moves)
        longest = 2.0 * LONGEST * STEP * (1.0 + np.abs(blocks[:, 0]))
        one_by_one = moves.sum(axis=3) - along <= 1e-3 * along
        if one_by_one.all() and (along > 0.0).all() and (along <= longest[:, None]).all():
            central = k > dim + 1
            slopes = (
                _slopes(blocks, values) if central else _slopes_to_one_side(blocks, values, None)
            )
            return Evaluations(positions=blocks[:, 0], values=values[:, 0], gradients=slopes)
    return rows


def suits_differences(potential: Potential, max_calls: int | None = None) -> bool:
    """Return whether differences are worth their values.

    They are for values alone, in few dimensions, where enough gradients can be paid for.

    Parameters
    ----------
    potential
        The target.
    max_calls
        Exact calls that a run may make; None for no limit.
    """
    if potential.capabilities & {GRADIENT, FORWARD, ROWS} or potential.dim > MOST_DIM:
        return False
    return max_calls is None or max_calls >= LEAST_GRADIENTS * (2 * potential.dim + 1)
