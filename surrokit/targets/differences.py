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

MOST_DIM = 12
"""Numbers in a position up to which differences are taken where nobody asks for them."""

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

    def with_count(self, count: Count) -> Differences:
        """Return a copy that counts the values it pays for."""
        return Differences(with_count(self.inner, count))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.inner.value(positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and differences, shape (n, dim); NaN beside what is not finite.

        Raises
        ------
        EvaluationError
            If the potential raised at some positions, or beside them.
        """
        q = check_positions(positions, self.dim)
        n, dim = q.shape
        steps = STEP * (1.0 + np.abs(q))
        moves = steps[:, None, :] * np.eye(dim)
        ahead, behind = q[:, None, :] + moves, q[:, None, :] - moves
        rows = np.concatenate([q[:, None, :], ahead, behind], axis=1)
        taken = np.einsum("nii->ni", ahead) - np.einsum("nii->ni", behind)  # as numbers round
        causes: dict[int, Exception] = {}
        try:
            values = self.inner.value(rows.reshape(-1, dim))
        except EvaluationError as error:
            causes = {row // (2 * dim + 1): cause for row, cause in error.causes.items()}
            if not error.results:
                raise EvaluationError(causes, (), n=n) from error
            values = error.results[0]
        values = values.reshape(n, 2 * dim + 1)
        with np.errstate(invalid="ignore"):
            gradients = (values[:, 1 : dim + 1] - values[:, dim + 1 :]) / taken
        if causes:
            raise EvaluationError(causes, (values[:, 0], gradients))
        return values[:, 0], gradients

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return the inner potential's own starting positions, shape (n, dim)."""
        inner: InitialPotential = self.inner  # type: ignore[assignment]
        return inner.initial(rng, n)


def suits_differences(potential: Potential) -> bool:
    """Return whether differences are worth their values: values alone, and few dimensions."""
    offered = potential.capabilities & {GRADIENT, FORWARD, ROWS}
    return not offered and potential.dim <= MOST_DIM
