"""A memory of what was last worked out of a covariance."""

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

    Tuning binds a sampler anew in every iteration, but the covariance (dim, dim) changes a few
    times only: what a matrix decomposition costs is paid as often. Covariances are told apart as
    objects.
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
