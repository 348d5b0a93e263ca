"""A memory of the last result computed from a covariance."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from surrokit.types import FloatArray

Owner = TypeVar("Owner")
Result = TypeVar("Result")


def latest(
    method: Callable[[Owner, FloatArray], Result],
) -> Callable[[Owner, FloatArray | None], Result | None]:
    """Let a method of a sampler remember its result for the latest covariance; None for None.

    Tuning binds a sampler anew in every iteration, but the covariance (dim, dim) changes only a few
    times, and a matrix decomposition is paid only then. Covariances are compared by identity.
    """
    known: WeakKeyDictionary[Owner, tuple[FloatArray, Result]] = WeakKeyDictionary()

    @wraps(method)
    def remembering(self: Owner, covariance: FloatArray | None) -> Result | None:
        if covariance is None:
            return None
        last = known.get(self)
        if last is None or last[0] is not covariance:
            last = known[self] = covariance, method(self, covariance)
        return last[1]

    return remembering
