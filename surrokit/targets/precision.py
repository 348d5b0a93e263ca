"""Detection of functions that compute in single precision."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surrokit.types import FloatArray

_BY_DIGITS = ("value", "forward")
_SINGLE = (np.float16, np.float32)


class Precision:
    """Notes of each function whether a number ever had more digits than single precision has.

    The type of a result does not always say: what was computed in single precision may have been
    made a Python number since. Of values and outputs the digits say it, as these are evaluated at
    many positions; a derivative of few digits may just be round.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._fine: set[str] = set()

    def double(self, what: str, result: npt.ArrayLike) -> FloatArray:
        """Return what a function gave in double precision, and take note of its digits.

        Parameters
        ----------
        what
            Which function.
        result
            What it returned.
        """
        given = np.asarray(result)
        array = np.asarray(given, dtype=np.float64)
        if what not in self._fine:
            telling = array[np.isfinite(array) & (array != 0.0)]
            if telling.size:
                by_digits = what in _BY_DIGITS or given.dtype in _SINGLE
                single = by_digits and is_single(telling)
                (self._seen if single else self._fine).add(what)
        return array

    @property
    def single(self) -> frozenset[str]:
        """Functions of which all numbers so far were of single precision."""
        return frozenset(self._seen - self._fine)


def is_single(numbers: FloatArray) -> bool:
    """Return whether all numbers are such that single precision can hold them."""
    with np.errstate(over="ignore"):
        return bool((numbers.astype(np.float32) == numbers).all())


def single_precision_of(potential: object) -> frozenset[str]:
    """Return which functions of a potential, or of what it wraps, are of single precision."""
    while potential is not None:
        noted = getattr(potential, "precision", None)
        if isinstance(noted, Precision):
            return noted.single
        potential = getattr(potential, "inner", getattr(potential, "target", None))
    return frozenset()
