"""What observers of a run get: figures of an iteration or a round, and how far the run is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from surrokit.interfaces import Stage, StepInfo


@attrs.frozen(kw_only=True)
class Progress:
    """How far a run is, by its exact calls."""

    stage: str  # what it does now, in words
    calls: float  # that have come back; a data row counts as its share of all rows
    in_flight: int  # calls that go on now
    seconds_a_call: float | None  # mean in this session; None before one has come back
    failures: int  # positions at which the target failed
    seconds: float  # since the run began
    most_calls: int | None = None  # None without a limit
    most_seconds: float | None = None
    left: tuple[float, float] = (0.0, math.inf)  # fewest and most seconds, as far as is known

    def __str__(self) -> str:
        of = "" if self.most_calls is None else f" of {self.most_calls}"
        said = [f"{self.stage}: {self.calls:.0f}{of} exact calls"]
        if self.in_flight:
            said.append(f"{self.in_flight} in flight")
        if self.seconds_a_call is not None:
            said.append(f"{duration(self.seconds_a_call)} a call")
        if self.failures:
            said.append(f"{self.failures} failed")
        limit = "" if self.most_seconds is None else f" of {duration(self.most_seconds)}"
        said.append(f"{duration(self.seconds, whole=True)}{limit} so far")
        least, most = (duration(each, whole=True) for each in self.left)
        if 0.0 < self.left[1] < math.inf:
            likely = most if least == most else f"{least} to {most}"
            said.append(f"{likely} left" if self.left[0] > 0 else f"up to {most} left")
        return ", ".join(said)


@attrs.frozen(kw_only=True)
class Estimate:
    """What a run is expected to cost, by a few timed calls; ``str`` says it in one sentence."""

    seconds_a_call: float | None  #: Of a call at one position; None where none was timed.
    kind: Literal["value", "gradient"]  #: A call is a value of the density, or a gradient with it.
    #: Calls that the run is expected to take, for about as many independent draws as are wanted;
    #: None where few data rows decide, so that calls say little.
    calls: int | None
    workers: int = 1
    most_workers: int = 1  #: Workers that can be of use.
    weighs: bool = False  #: Whether the calls are those of weighted answers, and not of chains.
    #: Calls for which weighted answers are to be had instead; None where they are not.
    few_calls: int | None = None

    def seconds(self, workers: int | None = None) -> float:
        """Return the seconds of all calls on so many workers, by default those that the run has.

        They are NaN where calls are not known.
        """
        return self._seconds(self.calls, workers)

    def _seconds(self, calls: int | None, workers: int | None) -> float:
        if calls is None or self.seconds_a_call is None:
            return math.nan
        at_once = min(self.workers if workers is None else workers, self.most_workers)
        return calls * self.seconds_a_call / max(at_once, 1)

    @property
    def few_seconds(self) -> float:
        """Seconds of ``few_calls`` on the workers that the run has; NaN without."""
        return self._seconds(self.few_calls, None)

    @property
    def matters(self) -> bool:
        """Whether all calls take more than a minute, so that the cost is reported beforehand."""
        return self.seconds() > 60.0

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data, with the sentence."""
        figures = {"seconds": self.seconds(), "few_seconds": self.few_seconds}
        known = {name: None if math.isnan(each) else each for name, each in figures.items()}
        return {**attrs.asdict(self), **known, "text": str(self)}

    def __str__(self) -> str:
        what = "a gradient" if self.kind == "gradient" else "a call"
        said = []
        if self.seconds_a_call is not None:
            said.append(f"{what} takes {duration(self.seconds_a_call)}")
        if self.calls is None:
            said.append("few data rows decide, so that the number of calls is not predicted")
            return "; ".join(said)
        need = "weighted answers take" if self.weighs else "chains need"
        # more than two digits are not known
        rounded = round(self.calls, min(1 - math.floor(math.log10(max(self.calls, 1))), 0))
        calls = f"{need} about {rounded:,} calls"
        if self.seconds_a_call is not None:
            most = self.workers if self.workers > 1 else self.most_workers
            calls += f", {duration(self.seconds(1))} on 1 worker"
            calls += f", {duration(self.seconds(most))} on {most}" if most > 1 else ""
        said.append(calls)
        if self.few_calls is not None:
            takes = (
                f" in about {duration(self.few_seconds)}" if self.seconds_a_call is not None else ""
            )
            said.append(f"`max_calls={self.few_calls}` gives weighted answers{takes}")
        return "; ".join(said)


def duration(seconds: float, *, whole: bool = False) -> str:
    """Return a time with its units, such as ``3 h 27 min``; in whole seconds at least, if asked."""
    if not seconds < math.inf:
        return "unknown"
    minutes = round(seconds / 60)
    if minutes >= 60:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest and hours < 100 else f"{hours} h"
    if seconds >= 99.5:
        return f"{minutes} min"
    if whole or seconds >= 10:
        return f"{seconds:.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    number, unit = (1e3 * seconds, "ms") if seconds >= 1e-4 else (1e6 * seconds, "us")
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"


@attrs.frozen(kw_only=True, eq=False)
class RunInfo:
    """Facts about a run as a whole; sizes that are left open are the present estimates."""

    dim: int
    chains: int
    warmup: int  #: With the exploration.
    draws: int
    parts: Mapping[str, str]  #: Kind to a description of the part in use.
    estimate: Estimate | None = None  #: What the run is expected to cost, where that is known.


@attrs.frozen(kw_only=True, eq=False)
class RoundInfo:
    """Facts about weighted answers after one round of them."""

    #: The largest error of any figure so far, in posterior standard deviations; infinite as long as
    #: no answer is reliable.
    error: float
    draws: int  #: That correct the answers so far.
    aim: float | None  #: The error that is good enough; None for no aim.
    calls: float  #: Exact calls so far, exploration included.
    most_calls: int | None  #: Calls that are allowed; None for no limit.

    @property
    def expected_calls(self) -> float:
        """Calls at which the aim or the limit is likely reached; ``calls`` where neither is."""
        most = math.inf if self.most_calls is None else self.most_calls
        if self.aim is not None and self.error < math.inf:
            most = min(most, self.calls + ((self.error / self.aim) ** 2 - 1.0) * self.draws)
        return self.calls if most == math.inf else max(most, self.calls)


@attrs.frozen(kw_only=True, eq=False)
class IterationInfo:
    """Facts about one iteration."""

    stage: Stage
    iteration: int  #: Iterations done in the whole run, this one included.
    step: StepInfo | None  #: What happened to the chains; None where an exploration made no move.
    calls: Mapping[str, int]  #: Exact calls by kind since the run began.
    seconds: float
