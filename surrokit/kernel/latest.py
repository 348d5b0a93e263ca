"""What is worked out of a covariance, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from surrokit.types import FloatArray

Result = TypeVar("Result")


class Latest(Generic[Result]):
    """A function of the tuned covariance that remembers its latest result.

    Tuning binds a sampler anew in every iteration, but its covariance changes a few times only:
    what a matrix decomposition costs is paid as often. Covariances are told apart as objects.

    Parameters
    ----------
    function
        From a covariance of shape (dim, dim) to its result.
    """

    def __init__(self, function: Callable[[FloatArray], Result]) -> None:
        self._function = function
        self._latest: tuple[FloatArray, Result] | None = None

    def __call__(self, covariance: FloatArray | None) -> Result | None:
        """Return the result for a covariance (dim, dim); None while nothing is known."""
        if covariance is None:
            return None
        latest = self._latest
        if latest is None or latest[0] is not covariance:
            latest = self._latest = covariance, self._function(covariance)
        return latest[1]
