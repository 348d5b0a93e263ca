"""What a target did where it failed, as plain data that outlive the exception."""

from __future__ import annotations

import subprocess
import traceback
from contextlib import suppress
from typing import TypeAlias

import attrs

from surrokit.errors import ResultTypeError, ShapeError
from surrokit.types import FloatArray

NAN = "NaN"
MINUS_INFINITY = "minus infinity"
BROKEN_GRADIENT = "broken gradient"
WRONG_SHAPE = "wrong shape"
WRONG_TYPE = "wrong type"
TIME_OUT = "time-out"
"""Kinds of failures, beside ``exception X`` and ``warning X`` with the name of a class."""


def kind_of(error: Exception) -> str:
    """Return the kind of failure that an exception of a target is."""
    if isinstance(error, TimeoutError | subprocess.TimeoutExpired):
        return TIME_OUT
    if isinstance(error, ShapeError):
        return WRONG_SHAPE
    if isinstance(error, ResultTypeError):
        return WRONG_TYPE
    what = "warning" if isinstance(error, Warning) else "exception"
    return f"{what} {type(error).__name__}"


Place: TypeAlias = tuple[str, int | None]
"""A file and a line."""

_PLACE = "_raised_at"


def place_of(error: Exception) -> Place | None:
    """Return where an exception was raised, or was said to be; None if it never was."""
    if hasattr(error, _PLACE):
        told: Place | None = getattr(error, _PLACE)
        return told
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].filename, frames[-1].lineno) if frames else None


def say_place(error: Exception, place: Place | None) -> None:
    """Say where an exception was raised whose traceback is lost or tells nothing; None: nowhere."""
    with suppress(AttributeError):  # some exceptions take no attributes
        setattr(error, _PLACE, place)


LONGEST = 2000
"""Characters of a report that are kept: a file may hold one for each position."""

_LAST = 400


def report_of(error: Exception) -> str:
    """Return what a target did that raised: the exception, and the line that it comes from."""
    place = place_of(error)
    where = f" ({place[0]}, line {place[1]})" if place else ""
    try:
        message = str(error)
    except Exception:  # of a class of the user's own
        message = "its message cannot be shown"
    return f"raised {type(error).__name__}: {message}{where}"


def _cut(report: str) -> str:
    """Return a report without its middle where it is long; how much is left out is in it."""
    if len(report) <= LONGEST:
        return report
    left_out = len(report) - LONGEST
    return f"{report[: LONGEST - _LAST]} [... {left_out} characters ...] {report[-_LAST:]}"


@attrs.frozen
class Cause:
    """Why a position could not be evaluated.

    Parameters
    ----------
    kind
        Kind of failure.
    report
        What the target did; of a long text the first and the last characters.
    overflow
        Whether it may be mere overflow.
    """

    kind: str
    report: str = attrs.field(converter=_cut)
    overflow: bool

    @classmethod
    def of(cls, error: Exception) -> Cause:
        """Return what an exception tells."""
        overflow = isinstance(error, ArithmeticError)
        return cls(kind=kind_of(error), report=report_of(error), overflow=overflow)


RETURNED_NAN = Cause(kind=NAN, report="returned NaN", overflow=True)


@attrs.frozen(eq=False)
class Cure:
    """A position that failed first, and could be evaluated by a retry.

    Parameters
    ----------
    cause
        What failed.
    position : ndarray of shape (width,)
        Where.
    """

    cause: Cause
    position: FloatArray
