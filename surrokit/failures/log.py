"""Warnings of positions at which a target failed, given at once or after the draws.

The search for a step size, divergent paths and other trials reach positions thousands of standard
deviations away. A sound model may overflow there to NaN, which is rejected and counted, but no
cause for alarm. Near the draws it is one. So a failure that may be overflow is told at once only
where draws are expected; any other waits until the draws are known, and is told if near them.
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
"""Failures wait no longer once their positions hold more numbers than this."""

_AROUND = 1.0  # near draws: by so many of their widths outside, in each coordinate


class FailureLog:
    """Warns of failures, once.

    Parameters
    ----------
    told
        Whether no warning is to be given any more.

    Attributes
    ----------
    waits
        Whether failures that may be overflow wait for :meth:`settle`, unless they lie where draws
        are expected.
    """

    def __init__(self, *, told: bool = False) -> None:
        self.waits = False
        self._told = told
        self._expected: Box | None = None
        self._waiting: list[tuple[str, FloatArray]] = []

    def failed(self, what: str, positions: FloatArray, *, overflow: bool) -> None:
        """Take in failures, and warn of them unless they wait.

        Parameters
        ----------
        what
            What the target did, for the message.
        positions : ndarray of shape (k, dim)
            Positions of the failures, in the sampling coordinates; further columns are ignored.
            Numbers (k,) of single data rows, whose positions are not known, do not wait.
        overflow
            Whether the failures may be mere overflow, as NaN may.
        """
        if self._told:
            return
        if self.waits and overflow and positions.ndim > 1 and not self._expects(positions):
            self._waiting.append((what, positions.copy()))
            if sum(array.size for _, array in self._waiting) <= MOST_NUMBERS:
                return
        self._tell(
            f"the target {what}; such positions are rejected and counted, and further failures are "
            'not reported. Pass on_error="raise" to stop instead'
        )

    def draws_begin(self, before: FloatArray) -> None:
        """Expect draws near earlier positions; if these have no width, let no failure wait.

        Parameters
        ----------
        before : ndarray of shape (m, dim)
            Latest positions of the chains, in the sampling coordinates.
        """
        self._expected = Box.around(before)
        self.waits = self._expected is not None

    def settle(self, draws: FloatArray, before: FloatArray, target: Potential) -> None:
        """Warn of failures that waited, if they lie near the draws or where chains have been.

        Parameters
        ----------
        draws : ndarray of shape (n, dim)
            Draws, in the sampling coordinates. If they have no width in some coordinate, the
            region where they were expected takes their place; without one, every failure counts.
        before : ndarray of shape (m, dim)
            Positions of chains in the warm-up.
        target
            The target, which names the parameters.
        """
        waiting, self._waiting, self.waits = self._waiting, [], False
        around, been = Box.around(draws) or self._expected, Box.of(before)
        inside = [
            (what, row[: target.dim])
            for what, rows in waiting
            for row in rows
            if around is None or around.holds(row[None])[0] or been.holds(row[None])[0]
        ]
        if inside and not self._told:
            self._tell(_late(inside, len(draws), target), stacklevel=5)  # the caller of sample

    def _expects(self, positions: FloatArray) -> bool:
        """Return whether draws are expected at one of these positions."""
        return self._expected is not None and bool(self._expected.holds(positions).any())

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
        f"({describe_position(target, first)}); such positions are rejected and counted, so the "
        "draws lack the probability there"
    )


@attrs.frozen(eq=False)
class Box:
    """The box between two corners, each of shape (dim,)."""

    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, points: FloatArray) -> Box:
        """Return the smallest box around points (n, dim); it is empty if there are none."""
        if not len(points):
            return cls(np.full(points.shape[1], np.inf), np.full(points.shape[1], -np.inf))
        return cls(points.min(axis=0), points.max(axis=0))

    @classmethod
    def around(cls, points: FloatArray) -> Box | None:
        """Return the box of points, widened on each side; None if some width is zero."""
        box = cls.of(points)
        width = box.high - box.low
        if not (width > 0.0).all():
            return None
        return cls(box.low - _AROUND * width, box.high + _AROUND * width)

    def holds(self, positions: FloatArray) -> BoolArray:
        """Return whether each row is inside; columns beyond the box's are ignored."""
        at = positions[:, : len(self.low)]
        return np.asarray(((at >= self.low) & (at <= self.high)).all(axis=1))
