"""Means of functions under the target, from a run's draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import unmasked
from surrokit.diagnostics import mean_error
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.settings import is_whole
from surrokit.types import FloatArray
from surrokit.weighted.answer import Answer
from surrokit.weighted.estimate import Estimate
from surrokit.weighted.resampling import shares
from surrokit.weighted.sharpened import Sharpened

RULE_OF_THREE = 3.0
"""By n independent draws that none saw, an event has a probability of at most 3 / n, with a
confidence of 95 % (Hanley and Lippman-Hand 1983, doi:10.1001/jama.1983.03330370053031)."""

_NORMAL = 1.959964  # half an interval of 95 %, in standard errors


def expectation(
    draws: FloatArray,
    answer: Answer | Sharpened | None,
    calls: float,
    function: Callable[[FloatArray], npt.ArrayLike],
    *,
    batched: bool,
    independent: Callable[[], float],
) -> Estimate:
    """Return the mean of a function; see :meth:`surrokit.result.run.Run.expectation`.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        In the user's coordinates.
    answer
        Weighted or sharpened answers; None for the plain mean of draws.
    calls
        Exact calls of the whole run.
    function, batched
        As there.
    independent
        Returns how many independent draws the draws or answers are worth at least.
    """
    if not draws.shape[1]:
        raise ConfigurationError("there are no draws to take a mean over; draw some first")
    values = _Values(function, batched)
    estimate = (
        _of_draws(draws, values(draws.reshape(-1, draws.shape[2])), calls)
        if answer is None
        else attrs.evolve(answer, calls=calls).expectation(values)
    )
    estimate = _unseen(estimate, independent)
    return estimate if values.many else _first(estimate)


def _unseen(estimate: Estimate, independent: Callable[[], float]) -> Estimate:
    """Return an estimate whose errors say what events that were not seen may hide.

    All draws have one value of the function. If that is 0 or 1, the function may be an event that
    no draw saw, or that none missed, and has an upper bound.
    """
    event = ~(estimate.error > 0.0) & np.isin(estimate.value, (0.0, 1.0))
    if not event.any():
        return estimate
    n = independent()
    return attrs.evolve(
        estimate,
        error=np.where(event, RULE_OF_THREE / _NORMAL / n, estimate.error),
        effective=np.where(event, n, estimate.effective),
        degrees=np.where(event, np.inf, estimate.degrees),
    )


def resample(
    draws: FloatArray,
    log_weights: FloatArray | None,
    n: int,
    rng: np.random.Generator | int | None,
) -> FloatArray:
    """Return draws of equal weight; see :meth:`surrokit.result.run.Run.resampled`.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        Any.
    log_weights : ndarray of shape (chains, draws) or None
        Of the draws; None if all are one.
    n, rng
        As there.
    """
    flat = draws.reshape(-1, draws.shape[2])
    if not is_whole(n, 1) or not len(flat):
        raise ConfigurationError(
            f"n must be a whole number of at least 1, and there must be draws, got n={n!r} and "
            f"{len(flat)} draws"
        )
    logs = np.zeros(len(flat)) if log_weights is None else log_weights
    rows = np.random.default_rng(rng).choice(len(flat), int(n), p=shares(logs))
    return np.asarray(flat[rows])


class _Values:
    """A function as it was given, made one of positions (n, dim) to values (n, k)."""

    def __init__(self, function: Callable[[FloatArray], npt.ArrayLike], batched: bool) -> None:
        self._function, self._batched, self.many = function, batched, False

    def __call__(self, positions: FloatArray) -> FloatArray:
        function: Any = self._function
        n = len(positions)
        found: Any
        if self._batched:
            found = unmasked(function(positions.copy()))
        else:  # a function may return the same array each time
            found = [np.array(unmasked(function(each.copy()))) for each in positions]
        try:
            values = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ShapeError(
                f"the function must return a number, or a vector of one length: {error}"
            ) from error
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
