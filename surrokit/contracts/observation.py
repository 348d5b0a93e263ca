"""Records that observers receive."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

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
    """

    dim: int
    chains: int
    warmup: int
    draws: int
    parts: Mapping[str, str]


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
