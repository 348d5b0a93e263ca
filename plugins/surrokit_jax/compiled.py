"""Functions of one position, compiled once for rows of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_jax.library import load_jax, single_precision

MOST_AT_ONCE = 1024
"""Rows of one call; more are taken in parts, for the sake of memory."""


def padded(n: int) -> int:
    """Return the number of rows for which a call of n rows is compiled.

    It is the next of 1, 2, 4, 6, 8, 12, 16, 24, ...: a new number of rows is seldom compiled anew,
    and the most that is added is half as many rows again. It depends on n alone, so that
    results do not depend on what was called before.
    """
    size = 1 << max(n - 1, 0).bit_length()
    smaller = 3 * size // 4
    return smaller if size >= 8 and n <= smaller else size


@attrs.define(eq=False)
class Compiled:
    """A function of one position, compiled for rows, at its first call.

    Parameters
    ----------
    what
        What the function is, for messages.
    function
        A JAX function of a position (dim,), perhaps with further arrays, that returns an array.
    """

    what: str
    function: Callable[..., Any]
    _program: Any = attrs.field(init=False, default=None)

    def __call__(self, *rows: FloatArray) -> FloatArray:
        """Return the results at rows, shape (n, ...), of arrays that have n rows each.

        Raises
        ------
        ResultTypeError
            If they are not in double precision.
        """
        n = len(rows[0])
        if 0 < n <= MOST_AT_ONCE:
            return self._at_once(rows, n)
        if n == 0:
            return self._at_once(tuple(np.zeros((1, *array.shape[1:])) for array in rows), 1)[:0]
        parts = [
            self._at_once(
                tuple(array[at : at + MOST_AT_ONCE] for array in rows), min(n - at, MOST_AT_ONCE)
            )
            for at in range(0, n, MOST_AT_ONCE)
        ]
        return np.concatenate(parts)

    def _at_once(self, rows: tuple[FloatArray, ...], n: int) -> FloatArray:
        if self._program is None:
            jax = load_jax()
            self._program = jax.jit(jax.vmap(self.function))
        more = padded(n) - n
        if more:
            rows = tuple(np.concatenate([array, np.repeat(array[:1], more, 0)]) for array in rows)
        array = np.asarray(self._program(*rows))
        if array.dtype != np.float64:
            raise single_precision(self.what, array.dtype)
        return array[:n].copy()
