"""Results of functions in double precision, and which functions have no more than single."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.arguments import unmasked
from surrokit.errors import ResultTypeError
from surrokit.types import FloatArray


class Precision:
    """Notes, for each function, whether a number ever had more digits than single precision has.

    The type of a result does not always show it: a number computed in single precision may have
    become a Python number since. The digits of values and outputs show it, since they are many. A
    derivative with few digits may just be round, so for derivatives the type must show it as well.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._fine: set[str] = set()

    def double(self, what: str, result: Any) -> FloatArray:
        """Return a copy of a function's result in double precision, and take note of its digits.

        The function may go on using what it returned. Numbers that a mask hides become NaN.
        ResultTypeError is raised if it is no array of real numbers.
        """
        fine = what in self._fine
        if isinstance(result, float):  # first what most functions return, as this is often called
            if fine or result == 0.0:
                return np.array(result)
        elif (
            type(result) is np.ndarray
            and result.dtype == np.float64
            and (fine or not np.count_nonzero(result))
        ):
            return result.copy()
        array = _real_numbers(what, result)
        if not fine:
            telling = array[np.isfinite(array) & (array != 0.0)]
            if telling.size:
                kind = np.asarray(unmasked(result)).dtype
                by_digits = what in ("value", "forward") or kind in (np.float16, np.float32)
                single = by_digits and is_single(telling)
                (self._seen if single else self._fine).add(what)
        return array

    @property
    def notes(self) -> tuple[frozenset[str], frozenset[str]]:
        """Functions with numbers of single precision, and with others."""
        return frozenset(self._seen), frozenset(self._fine)

    def add(self, notes: tuple[frozenset[str], frozenset[str]]) -> None:
        """Take in the notes of a copy."""
        self._seen |= notes[0]
        self._fine |= notes[1]

    @property
    def single(self) -> frozenset[str]:
        """Functions whose numbers so far were all of single precision."""
        return frozenset(self._seen - self._fine)


def _real_numbers(what: str, result: Any) -> FloatArray:
    """Return a copy in double precision, without imaginary parts of 0."""
    try:
        given = np.asarray(unmasked(result))
    except ValueError as error:
        raise ResultTypeError(
            f"the {what} function must return real numbers in one array: {error}"
        ) from error
    if given.dtype.kind in "fiub":
        return np.array(given, dtype=np.float64)
    if given.dtype.kind == "c" and not given.imag.any():
        return np.array(given.real, dtype=np.float64)
    nothing = given.dtype.kind == "O" and any(item is None for item in given.flat)
    if given.dtype.kind == "O" and not nothing:
        try:
            return np.asarray(given, dtype=np.float64)
        except TypeError:
            pass
    came = "None" if nothing else f"an array of type {given.dtype}"
    raise ResultTypeError(
        f"the {what} function must return real numbers, got {came}"
        + ("; does it lack a return?" if nothing else "; take the real part, or mend what made it")
    )


def is_single(numbers: FloatArray) -> bool:
    """Return whether single precision can hold all numbers exactly."""
    with np.errstate(over="ignore"):
        return bool((numbers.astype(np.float32) == numbers).all())


def single_precision_of(potential: object) -> frozenset[str]:
    """Return the functions of a potential, or of the one it wraps, that are single precision."""
    while potential is not None:
        noted = getattr(potential, "precision", None)
        if isinstance(noted, Precision):
            return noted.single
        potential = getattr(potential, "inner", getattr(potential, "target", None))
    return frozenset()
