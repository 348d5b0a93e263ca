"""Positions at which a target failed: told at once, or once it is known where the draws are.

In the search for a step size, on paths that diverge, and wherever else things are tried out,
positions come up that are thousands of standard deviations away. A sound model may overflow there
to NaN; that is rejected and counted, but no cause for alarm. The same among the draws is. So what
may be overflow waits while nothing is known of the draws, and later where it is far from them.
"""

from __future__ import annotations

import warnings

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.errors import EvaluationWarning
from surrokit.targets.bounds import describe_position
from surrokit.types import BoolArray, FloatArray

MOST_NUMBERS = 10**7
"""Failures that wait are told all the same when their positions hold so many numbers."""

_AROUND = 1.0  # widths of the draws, in each coordinate, by which a failure may lie outside


class FailureLog:
    """Tells of failures, once.

    Attributes
    ----------
    waits
        Whether failures that may be overflow wait for :meth:`settle`, unless they lie where draws
        are expected.
    """

    def __init__(self) -> None:
        self.waits = False
        self._told = False
        self._expected: _Box | None = None
        self._waiting: list[tuple[str, FloatArray]] = []

    def failed(self, what: str, positions: FloatArray, *, overflow: bool) -> None:
        """Take in failures, and tell of them unless they wait.

        Parameters
        ----------
        what
            What the target did.
        positions : ndarray of shape (k, dim)
            Where, in the sampling coordinates; further columns do not matter.
        overflow
            Whether it may be mere overflow, as NaN may.
        """
        if self._told:
            return
        expected = self._expected is not None and self._expected.holds(positions).any()
        if self.waits and overflow and not expected:
            self._waiting.append((what, positions.copy()))
            if sum(array.size for _, array in self._waiting) <= MOST_NUMBERS:
                return
        self._tell(
            f"the target {what}; such positions are rejected and counted, and further failures are "
            'not reported. Pass on_error="raise" to stop instead'
        )

    def draws_begin(self, before: FloatArray) -> None:
        """Expect draws where the chains have been lately; tell of all failures if nowhere.

        Parameters
        ----------
        before : ndarray of shape (m, dim)
            In the sampling coordinates.
        """
        self._expected = _Box.around(before)
        self.waits = self._expected is not None

    def settle(self, draws: FloatArray, before: FloatArray, target: Potential) -> None:
        """Tell of failures that waited, if they lie where draws are, or where chains have been.

        Parameters
        ----------
        draws : ndarray of shape (n, dim)
            In the sampling coordinates. Where they have no width in some coordinate, they are
            taken to be where they were expected; if that was nowhere, every failure counts.
        before : ndarray of shape (m, dim)
            Where chains were in the warm-up.
        target
            Names the parameters.
        """
        waiting, self._waiting, self.waits = self._waiting, [], False
        around, been = _Box.around(draws) or self._expected, _Box.of(before)
        inside = [
            (what, row[: target.dim])
            for what, rows in waiting
            for row in rows
            if around is None or around.holds(row[None])[0] or been.holds(row[None])[0]
        ]
        if inside and not self._told:
            self._tell(_late(inside, len(draws), target), stacklevel=5)  # the caller of sample

    def _tell(self, message: str, stacklevel: int = 4) -> None:
        self._told, self._waiting = True, []
        warnings.warn(message, EvaluationWarning, stacklevel=stacklevel + 1)


def _late(inside: list[tuple[str, FloatArray]], n_draws: int, target: Potential) -> str:
    what, first = inside[0]
    n = len({row.tobytes() for _, row in inside})
    where = "in the region of the chains" if n_draws else "before there were any draws"
    positions = "one position" if n == 1 else f"{n} positions"
    return (
        f"the target {what}, at {positions} {where}, first at "
        f"({describe_position(target, first)}); such positions are rejected and counted, so that "
        "draws lack whatever probability is there"
    )


@attrs.frozen(eq=False)
class _Box:
    """What lies between two corners, each of shape (dim,)."""

    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, points: FloatArray) -> _Box:
        """Return the box of points (n, dim); of none it is empty."""
        if not len(points):
            return cls(np.full(points.shape[1], np.inf), np.full(points.shape[1], -np.inf))
        return cls(points.min(axis=0), points.max(axis=0))

    @classmethod
    def around(cls, points: FloatArray) -> _Box | None:
        """Return the box of points and as much again on each side; None if it has no width."""
        box = cls.of(points)
        width = box.high - box.low
        if not (width > 0.0).all():
            return None
        return cls(box.low - _AROUND * width, box.high + _AROUND * width)

    def holds(self, positions: FloatArray) -> BoolArray:
        """Return which rows are inside; columns beyond the box's do not matter."""
        at = positions[:, : len(self.low)]
        return np.asarray(((at >= self.low) & (at <= self.high)).all(axis=1))
