"""Records that observers receive."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from surrokit.contracts.progress import Estimate
from surrokit.contracts.sampler import StepInfo
from surrokit.contracts.schedule import Stage


@attrs.frozen(kw_only=True, eq=False)
class RunInfo:
    """Facts about a run as a whole.

    Parameters
    ----------
    dim, chains, warmup, draws
        Sizes; ``warmup`` includes the exploration. A ``warmup`` or ``draws`` that is left open is
        the present estimate.
    parts
        Kind to a description of the part in use.
    estimate
        What the run is expected to cost; None where that is not known.
    """

    dim: int
    chains: int
    warmup: int
    draws: int
    parts: Mapping[str, str]
    estimate: Estimate | None = None


@attrs.frozen(kw_only=True, eq=False)
class RoundInfo:
    """Facts about weighted answers after one round of them.

    Parameters
    ----------
    error
        The largest error of any figure so far, in posterior standard deviations; infinite as long
        as no answer is believed.
    draws
        Draws that correct the answers so far.
    aim
        The error that is good enough; None for no aim.
    calls
        Exact calls paid for so far, exploration included.
    most_calls
        Calls that may be paid for; None for no limit.
    """

    error: float
    draws: int
    aim: float | None
    calls: float
    most_calls: int | None

    @property
    def expected_calls(self) -> float:
        """Calls at which the aim or the limit is likely reached; ``calls`` where neither is."""
        most = math.inf if self.most_calls is None else self.most_calls
        if self.aim is not None and self.error < math.inf:
            most = min(most, self.calls + ((self.error / self.aim) ** 2 - 1.0) * self.draws)
        return self.calls if most == math.inf else max(most, self.calls)


@attrs.frozen(kw_only=True, eq=False)
class IterationInfo:
    """Facts about one iteration.

    Parameters
    ----------
    stage
        Stage of the run.
    iteration
        Iterations done in the whole run, this one included.
    step
        What happened to the chains; None where an exploration made no transition.
    calls
        Exact calls by kind since the run began.
    seconds
        Time since the run began.
    """

    stage: Stage
    iteration: int
    step: StepInfo | None
    calls: Mapping[str, int]
    seconds: float
