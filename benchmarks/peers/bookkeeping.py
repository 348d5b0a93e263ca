"""From draws and calls to the figures of the table."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from peers.outcome import PHASES, Outcome
from surrokit.diagnostics import effective_sample_size, mean_error, r_hat
from surrokit.types import FloatArray

Shares = Mapping[str, float]
"""Cost of one call of each kind, in gradients; ``rows``: of one data row."""

REPEATS = 7
"""Timings of each kind of call; their median counts."""


def measured_shares(target: Any, starts: FloatArray, n_rows: int) -> dict[str, float]:
    """Time the target's kinds of calls, and return each as a part of a value with its gradient.

    Parameters
    ----------
    target
        With ``value`` and ``value_and_gradient``; ``hessian`` where it has one.
    starts : ndarray of shape (chains, dim)
        Where; one batch, as the chains are.
    n_rows
        Of the data; a row touched costs that part of a value.
    """
    calls: dict[str, Callable[[], object]] = {
        "gradient": lambda: target.value_and_gradient(starts),
        "value": lambda: target.value(starts),
    }
    if hasattr(target, "hessian"):
        calls["hessian"] = lambda: target.hessian(starts)
    times: dict[str, list[float]] = {kind: [] for kind in calls}
    for repeat in range(REPEATS + 1):
        for kind, call in calls.items():
            start = time.perf_counter()
            call()
            if repeat:  # the first is not counted
                times[kind].append(time.perf_counter() - start)
    medians = {kind: float(np.median(found)) for kind, found in times.items()}
    shares = {kind: seconds / medians["gradient"] for kind, seconds in medians.items()}
    shares["rows"] = shares["value"] / n_rows
    shares["milliseconds"] = 1e3 * medians["gradient"] / len(starts)
    return shares


def gradient_equivalents(calls: Mapping[str, float], shares: Shares) -> float:
    """Return what all calls cost, in values with gradients at one position.

    Raises
    ------
    KeyError
        If the cost of a kind of call is not known.
    """
    unknown = [kind for kind, n in calls.items() if n and kind not in shares]
    if unknown:
        raise KeyError(
            f"every kind of call must have a measured cost, got {', '.join(unknown)} without; "
            "time it in measured_shares"
        )
    return float(sum(n * shares[kind] for kind, n in calls.items() if n))


def figures(outcome: Outcome, shares: Shares) -> dict[str, Any]:
    """Return the figures of one method, as plain data.

    ``ess`` and ``ess_squares`` are the least bulk effective sample sizes over the parameters q and
    (q - mean)^2; ``rate`` and so on what they are worth a second, everything counted but
    compilation. ``sampling_rate`` is what the smaller of both is worth a second of drawing alone,
    which is what a rate would come to in an endless run.
    """
    draws = outcome.draws
    squares = np.square(draws - draws.mean(axis=(0, 1)))
    ess, ess_squares = (_least(effective_sample_size(x, "bulk")) for x in (draws, squares))
    seconds = sum(outcome.seconds[phase] for phase in PHASES)
    paid = gradient_equivalents(outcome.calls, shares)
    found = {
        "chains": draws.shape[0],
        "draws": draws.shape[1],
        "seconds": dict(outcome.seconds),
        "total_seconds": seconds,
        "calls": dict(outcome.calls),
        "gradient_equivalents": paid,
        "ess": ess,
        "ess_squares": ess_squares,
        "rate": ess / seconds,
        "rate_squares": ess_squares / seconds,
        "sampling_rate": float(np.minimum(ess, ess_squares)) / outcome.seconds["sampling"],
        "per_call": ess / paid,
        "per_call_squares": ess_squares / paid,
        "rhat": _largest(r_hat(draws)),
        "acceptance": outcome.acceptance,
        "note": outcome.note,
        "mean": draws.mean(axis=(0, 1)).tolist(),
        "mean_error": mean_error(draws).tolist(),
        "variance": squares.mean(axis=(0, 1)).tolist(),
        "variance_error": mean_error(squares).tolist(),
    }
    return _without_nan(found)


def disagreement(line: Mapping[str, Any], reference: Mapping[str, Any]) -> float | None:
    """Return the largest difference of means and variances, in Monte Carlo standard errors.

    Parameters
    ----------
    line, reference
        As :func:`figures` returns them.

    Returns
    -------
    float or None
        None where an error is not known, so that nothing can be said.
    """
    largest = 0.0
    for name in ("mean", "variance"):
        ours, other = (np.array(x[name], dtype=np.float64) for x in (line, reference))
        errors = [np.array(x[f"{name}_error"], dtype=np.float64) for x in (line, reference)]
        scores = np.abs(ours - other) / np.hypot(*errors)
        if not np.isfinite(scores).all():
            return None
        largest = max(largest, float(scores.max()))
    return largest


def tolerance(dim: int, false_alarms: float = 1e-3) -> float:
    """Return how far apart two right answers may be, in standard errors.

    The largest of 2 dim normal scores exceeds it with the given probability, at most.
    """
    from scipy.stats import norm

    return float(norm.isf(false_alarms / (4 * dim)))


def _least(sizes: FloatArray) -> float:
    return float(np.min(sizes))


def _largest(values: FloatArray) -> float:
    return float(np.max(values))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
