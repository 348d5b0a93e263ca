"""Bounds of the third derivatives of a user's terms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import unmasked
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Ball
from surrokit.types import FloatArray, IntArray
from surrokit_problems.rows.own.row_data import RowData, Rows

BoundFunction: TypeAlias = Callable[[Rows, FloatArray, FloatArray, float], Any]
"""Of m rows, a factor, a centre and a radius: bounds in that ball, shape (m,)."""

RowBound: TypeAlias = npt.ArrayLike | BoundFunction
"""A number, one for each row, or a function."""


class RowBounds(Protocol):
    """Bounds in the form that potentials use."""

    @property
    def local(self) -> bool:
        """Whether they hold in balls alone."""

    def of(self, factor: FloatArray, data: RowData, ball: Ball | None) -> FloatArray:
        """Return psi, shape (n_rows,)."""

    def select(self, rows: IntArray) -> RowBounds:
        """Return the bounds of some rows."""


@attrs.frozen(eq=False)
class NumberBounds:
    """Numbers that hold everywhere, along directions of length 1.

    Parameters
    ----------
    numbers : ndarray of shape (n_rows,)
        One for each row.
    """

    numbers: FloatArray

    @property
    def local(self) -> bool:
        """False."""
        return False

    def of(
        self,
        factor: FloatArray,
        data: RowData,  # noqa: ARG002
        ball: Ball | None,  # noqa: ARG002
    ) -> FloatArray:
        """Return numbers |L|^3 / 6, shape (n_rows,), with |L| the largest stretch of the factor."""
        return np.asarray(self.numbers / 6.0 * float(np.linalg.norm(factor, 2)) ** 3)

    def select(self, rows: IntArray) -> NumberBounds:
        """Return the bounds of some rows."""
        return NumberBounds(self.numbers[rows])


@attrs.frozen(eq=False)
class FunctionBounds:
    """Bounds that a function gives for a ball.

    Parameters
    ----------
    function
        As :func:`~surrokit_problems.rows.own.potential.own_rows` takes it.
    """

    function: BoundFunction

    @property
    def local(self) -> bool:
        """True."""
        return True

    def of(self, factor: FloatArray, data: RowData, ball: Ball | None) -> FloatArray:
        """Return a sixth of the function's bounds, shape (n_rows,)."""
        assert ball is not None
        found = self.function(data.given, factor.copy(), ball.centre.copy(), ball.radius)
        numbers = np.asarray(unmasked(found), dtype=np.float64)
        if numbers.shape != (len(data),):
            raise ShapeError(
                f"bound must return shape ({len(data)},), one number for each row, got "
                f"{numbers.shape}"
            )
        if not (numbers >= 0.0).all():
            raise ConfigurationError(
                "bound must return numbers that are not negative, got "
                f"{numbers[~(numbers >= 0.0)][0]}; give the largest absolute third derivative"
            )
        return numbers / 6.0

    def select(self, rows: IntArray) -> FunctionBounds:  # noqa: ARG002
        """Return the same: the function is asked for the rows there are."""
        return self


def bound_of(given: RowBound | None, n_rows: int) -> RowBounds | None:
    """Return bounds as a user gave them.

    Raises
    ------
    ConfigurationError
        If a number is negative or not finite.
    ShapeError
        If there is not one number, or one for each row.
    """
    if given is None:
        return None
    if callable(given):
        return FunctionBounds(given)
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape not in ((), (n_rows,)):
        raise ShapeError(
            f"bound must be one number, {n_rows} of them, or a function, got shape {numbers.shape}"
        )
    if not ((numbers >= 0.0) & (numbers < np.inf)).all():
        raise ConfigurationError(
            "bound must not be negative, and be finite, got others; give the largest absolute "
            "third derivative, or leave bound out"
        )
    return NumberBounds(np.broadcast_to(numbers, (n_rows,)).copy())
