"""Gradients of targets that have none, as differences of their values."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import FORWARD, GRADIENT, ROWS
from surrokit.contracts.counting import Count, with_count
from surrokit.contracts.potential import InitialPotential, Potential
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import Transform
from surrokit.errors import ConfigurationError, EvaluationError
from surrokit.shapes import check_positions
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


@attrs.frozen(eq=False)
class Differences:
    """A potential whose gradient is made of central differences of its values.

    A gradient pays for 2 dim + 1 values, and counts as so many. Draws stay exact, since acceptance
    goes by values alone.

    Parameters
    ----------
    inner
        The potential, in the sampling coordinates.

    Raises
    ------
    ConfigurationError
        If it has a gradient.
    """

    inner: Potential

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
    def transform(self) -> Transform:
        """The map to the user's coordinates."""
        return transform_of(self.inner)

    @property
    def calls_per_gradient(self) -> int:
        """Values that a gradient pays for."""
        return 2 * self.dim + 1

    def with_count(self, count: Count) -> Differences:
        """Return a copy that counts the values it pays for."""
        return Differences(with_count(self.inner, count))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.inner.value(positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and differences, shape (n, dim).

        Where one of the two neighbours is not finite, the difference is that to the other one; it
        is NaN where neither is.

        Raises
        ------
        EvaluationError
            If the potential raised at some positions, or beside them.
        """
        q = check_positions(positions, self.dim)
        dim = self.dim
        moves = (STEP * (1.0 + np.abs(q)))[:, None, :] * np.eye(dim)
        rows = np.concatenate([q[:, None, :], q[:, None, :] + moves, q[:, None, :] - moves], axis=1)
        values, causes = self._values(rows)
        gradients = _slopes(rows, values)
        if causes:
            raise EvaluationError(causes, (values[:, 0], gradients))
        return values[:, 0], gradients

    def _values(self, rows: FloatArray) -> tuple[FloatArray, dict[int, Exception]]:
        """Return U (n, k) at ``rows (n, k, dim)``, and one of what the k raised."""
        n, k = rows.shape[:2]
        try:
            return self.inner.value(rows.reshape(n * k, -1)).reshape(n, k), {}
        except EvaluationError as error:
            values = error.results[0] if error.results else np.full(n * k, np.nan)
            return values.reshape(n, k), {row // k: cause for row, cause in error.causes.items()}

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return the inner potential's own starting positions, shape (n, dim)."""
        inner: InitialPotential = self.inner  # type: ignore[assignment]
        return inner.initial(rng, n)


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
