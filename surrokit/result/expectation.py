"""Means of functions under the target, from a run's draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.diagnostics import mean_error
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray
from surrokit.weighted.estimate import Estimate

if TYPE_CHECKING:
    from surrokit.result.run import Run


def expectation(
    run: Run, function: Callable[[FloatArray], npt.ArrayLike], *, batched: bool
) -> Estimate:
    """Return the mean of a function; see :meth:`surrokit.result.run.Run.expectation`."""
    if not len(run.kept):
        raise ConfigurationError("there are no draws to take a mean over; draw some first")
    values = _Values(function, batched)
    estimate = (
        _of_draws(run.draws, values(run.draws.reshape(-1, run.draws.shape[2])), run.total_calls)
        if run.answer is None
        else attrs.evolve(run.answer, calls=run.total_calls).expectation(values)
    )
    return estimate if values.many else _first(estimate)


class _Values:
    """A function as it was given, made one of positions (n, dim) to values (n, k)."""

    def __init__(self, function: Callable[[FloatArray], npt.ArrayLike], batched: bool) -> None:
        self._function, self._batched, self.many = function, batched, False

    def __call__(self, positions: FloatArray) -> FloatArray:
        function: Any = self._function
        n = len(positions)
        found = function(positions) if self._batched else [function(each) for each in positions]
        values = np.asarray(found, dtype=np.float64)
        if values.ndim not in (1, 2) or len(values) != n:
            raise ShapeError(
                f"the function must return a number or a vector for each position, got an array of "
                f"shape {values.shape} for {n} of them; see batched="
            )
        if np.isnan(values).any():
            raise ShapeError("the function returned NaN at some draws; give it a value there")
        self.many = values.ndim == 2
        return np.asarray(values.reshape(n, -1))


def _of_draws(draws: FloatArray, values: FloatArray, calls: float) -> Estimate:
    """Return the plain mean over draws of the target."""
    by_chain = values.reshape(*draws.shape[:2], -1)
    error = mean_error(by_chain)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = values.var(axis=0) / np.square(error)
    return Estimate(
        value=values.mean(axis=0),
        error=error,
        effective=effective,
        degrees=np.full(len(error), np.inf),
        calls=calls,
    )


def _first(estimate: Estimate) -> Estimate:
    """Return an estimate of one number, as a number."""
    names = ("value", "error", "effective", "degrees")
    return attrs.evolve(estimate, **{name: getattr(estimate, name)[0] for name in names})
