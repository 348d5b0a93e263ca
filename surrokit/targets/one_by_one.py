"""Any target, evaluated one position at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.contracts.counting import Count, CountedPotential
from surrokit.contracts.methods import BY_NAME, Method
from surrokit.contracts.potential import Potential
from surrokit.coordinates.isolated import isolate
from surrokit.coordinates.rowwise import EachRow, one_after_another
from surrokit.errors import EvaluationError
from surrokit.shapes import check_positions
from surrokit.shown.target import ShownTarget
from surrokit.types import Capabilities, FloatArray


def one_by_one(target: Potential) -> Potential:
    """Return a target that is evaluated one position at a time.

    Batches of such a target can be spread over workers (``executor`` of :func:`surrokit.sample`)
    with the same results to the bit. A target that takes rows of positions together, which is often
    faster in one process, may give other last digits when its rows are parted; so it is spread only
    if this says that single positions are what it is to be given, with workers and without.

    Parameters
    ----------
    target
        A target of ``batched=True`` functions, or any other potential. One whose positions are
        evaluated one by one already is returned as it is.

    Returns
    -------
    Potential
        With the capabilities of the target. What sums over rows of data offer is left to the
        target, in this process.
    """
    if isinstance(target, OneByOne) or getattr(target, "each_row", None) is not None:
        return target
    over: Callable[..., Potential] | None = getattr(target, "over", None)
    if over is not None:
        return over(one_by_one)
    split_by: Callable[[EachRow], Potential] | None = getattr(target, "split_by", None)
    return OneByOne(target) if split_by is None else split_by(one_after_another)


@attrs.frozen(eq=False)
class OneByOne(ShownTarget):
    """A potential whose methods are called with one position at a time.

    Parameters
    ----------
    inner
        The potential.
    each_row
        Evaluates rows one by one.
    """

    inner: Potential
    each_row: EachRow = one_after_another

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers."""
        return self.inner.capabilities

    def with_count(self, count: Count) -> Potential:
        """Return a copy that reports each call of a method before it is spread."""
        return CountedPotential(self, count)

    def split_by(self, each_row: EachRow) -> OneByOne:
        """Return a copy whose rows are evaluated by another function."""
        return attrs.evolve(self, each_row=each_row)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        values: FloatArray = self._evaluate(BY_NAME["value"], positions)
        return values

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return what a method gives at one position, with its factor beside it, if any."""
        method, dim = BY_NAME[what], self.dim
        factors = row[dim:] if method.factor == "vectors" else row[dim:].reshape(-1, dim)
        more = () if method.factor is None else (factors[None],)
        try:
            results = getattr(self.inner, what)(row[None, :dim], *more)
        except EvaluationError as error:
            raise error.causes[0] from None  # as if there were no batch
        both = results if isinstance(results, tuple) else (results,)
        return tuple(isolate(array)[0] for array in both)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the inner potential, row by row if it evaluates positions."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        attribute, method = getattr(self.inner, name), BY_NAME.get(name)
        return attribute if method is None else partial(self._evaluate, method)

    def _evaluate(self, method: Method, positions: FloatArray, *factors: FloatArray) -> Any:
        rows = check_positions(positions, self.dim)
        if not len(rows):
            return getattr(self.inner, method.name)(rows, *factors)
        if method.factor is not None:
            given = method.check_factors(factors[0], rows)
            # side by side, so that each row comes with its own factor
            rows = np.hstack([rows, given.reshape(len(given), -1)])
        results = self.each_row(self, method.name, rows)
        return results if len(results) > 1 else results[0]
