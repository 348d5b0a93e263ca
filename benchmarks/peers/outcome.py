"""What one method did with one problem, and the figures of the table made of that."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np

from harness import in_turns
from surrokit.diagnostics import effective_sample_size, mean_error, r_hat
from surrokit.potentials import Potential
from surrokit.types import FloatArray

PHASES = ("warmup", "training", "sampling")
"""What the seconds consist of; compilation is counted apart."""

LONGEST_WARMUP = 1.5
"""In parts of the time; one that takes longer is given up."""


@attrs.frozen(kw_only=True, eq=False)
class Task:
    """A problem with its data, and what a method may spend on it."""

    target: Potential  # the registered target
    design: FloatArray  # (n_rows, dim) and (n_rows,): the same data
    response: FloatArray
    prior_variance: float  # of each coefficient
    starts: FloatArray  # (chains, dim): starting positions
    step_size: float  # of the paper's HMC
    n_steps: int
    dense: bool  # whether peers adapt a dense mass matrix; else a diagonal one
    warmup: int  # iterations of warm-up where a method wants their number
    draws: int  # most draws a chain
    seconds: float  # after these no further draws are begun; compilation does not count
    seed: int  # of everything random

    @property
    def chains(self) -> int:
        """Number of chains."""
        return int(self.starts.shape[0])

    @property
    def longest_warmup(self) -> float:
        """Seconds after which a warm-up is given up."""
        return LONGEST_WARMUP * self.seconds

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return int(self.starts.shape[1])


@attrs.frozen(kw_only=True, eq=False)
class Outcome:
    """Draws and what they cost."""

    draws: FloatArray  # (chains, draws, dim): after warm-up
    seconds: Mapping[str, float]  # by phase, and ``compilation``
    # exact evaluations by kind, in positions (``rows``: in data rows), warm-up and training
    # included. Samplers that follow gradients count one for each leapfrog step
    calls: Mapping[str, float]
    # mean acceptance of the kept draws, where it says something; else None
    acceptance: float | None = None
    note: str = ""  # what a reader of the table should know


class OverTimeError(Exception):
    """A warm-up takes so long that nothing would come of it."""

    @classmethod
    def after(cls, done: int, of: int, seconds: float) -> OverTimeError:
        """Return the error of a warm-up, or one chain's, given iterations done and wanted."""
        return cls(f"{done} of {of} iterations of warm-up in {seconds:.0f} s")


class Stopwatch:
    """Charges seconds to phases, and says when the time is used up."""

    def __init__(self, seconds: float) -> None:
        self.limit = seconds
        self.seconds = dict.fromkeys(("compilation", *PHASES), 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge what the block takes."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start

    @property
    def spent(self) -> float:
        """Seconds of all finished phases, compilation left out."""
        return sum(self.seconds[name] for name in PHASES)

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return self.spent >= self.limit


FEWEST_DRAWS = 20
"""The first chain makes as many even where its share of the time is over."""


@attrs.frozen(kw_only=True, eq=False)
class Chain:
    """One chain, finished."""

    draws: FloatArray  # (draws, dim): after warm-up
    steps: int  # leapfrog steps, warm-up included
    # seconds; whatever passed before the first iteration counts as compilation
    compilation: float = 0.0
    warmup: float
    sampling: float


@attrs.frozen(kw_only=True)
class Share:
    """What one chain may spend."""

    number: int  # of the chain, from 0
    draws: int  # most draws after warm-up
    # after these, warm-up included, no draw is begun; but ``FEWEST_DRAWS`` are made in any
    # case
    seconds: float

    def is_over(self, draws: int, seconds: float) -> bool:
        """Whether a chain with so many draws after so many seconds should stop."""
        return draws >= FEWEST_DRAWS and seconds >= self.seconds


def run_chains(
    task: Task, watch: Stopwatch, chain: Callable[[Share], Chain], note: str = ""
) -> Outcome:
    """Run the chains: the first for its part of the time, the others until they have as many draws.

    Parameters
    ----------
    task
        What is sampled.
    watch
        Has been charged with the compilation.
    chain
        Makes one chain.
    note
        For the table.
    """
    share = Share(number=0, draws=task.draws, seconds=task.seconds / task.chains)
    made: list[Chain] = []
    for number in range(task.chains):
        made.append(chain(attrs.evolve(share, number=number)))
        share = Share(number=0, draws=len(made[0].draws), seconds=np.inf)
    seconds = dict(watch.seconds)
    for phase in ("compilation", "warmup", "sampling"):
        seconds[phase] += sum(getattr(one, phase) for one in made)
    return Outcome(
        draws=np.stack([one.draws for one in made]),
        seconds=seconds,
        calls={"gradient": sum(one.steps for one in made)},
        note=note,
    )


Shares = Mapping[str, float]
"""Cost of one call of each kind, in gradients; ``rows``: of one data row."""


def measured_shares(target: Any, starts: FloatArray, n_rows: int) -> dict[str, float]:
    """Time the target's kinds of calls, and return each as a part of a value with its gradient."""
    calls: dict[str, Callable[[], object]] = {
        "gradient": lambda: target.value_and_gradient(starts),
        "value": lambda: target.value(starts),
    }
    if hasattr(target, "hessian"):
        calls["hessian"] = lambda: target.hessian(starts)
    medians = {kind: float(np.median(found)) for kind, found in in_turns(calls, 7).items()}
    shares = {kind: seconds / medians["gradient"] for kind, seconds in medians.items()}
    shares["rows"] = shares["value"] / n_rows
    shares["milliseconds"] = 1e3 * medians["gradient"] / len(starts)
    return shares


def gradient_equivalents(calls: Mapping[str, float], shares: Shares) -> float:
    """Return what all calls cost, in values with gradients at one position."""
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
    ess, ess_squares = (float(np.min(effective_sample_size(x, "bulk"))) for x in (draws, squares))
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
        "rhat": float(np.max(r_hat(draws))),
        "acceptance": outcome.acceptance,
        "note": outcome.note,
        "mean": draws.mean(axis=(0, 1)).tolist(),
        "mean_error": mean_error(draws).tolist(),
        "variance": squares.mean(axis=(0, 1)).tolist(),
        "variance_error": mean_error(squares).tolist(),
    }
    return _without_nan(found)


def disagreement(line: Mapping[str, Any], reference: Mapping[str, Any]) -> float | None:
    """Return the largest difference of means and variances, in Monte Carlo standard errors."""
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


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
