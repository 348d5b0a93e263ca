"""Observers are told these records."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from surrokit.contracts.sampler import StepInfo
from surrokit.contracts.schedule import Stage


@attrs.frozen(kw_only=True, eq=False)
class RunInfo:
    """What observers are told about a run as a whole.

    Parameters
    ----------
    dim, chains, warmup, draws
        Sizes; ``warmup`` counts the exploration. Where ``warmup`` or ``draws`` is left open, what
        is expected at the moment.
    parts
        Kind of part to a description of the one in use.
    """

    dim: int
    chains: int
    warmup: int
    draws: int
    parts: Mapping[str, str]


@attrs.frozen(kw_only=True, eq=False)
class IterationInfo:
    """What observers are told about one iteration.

    Parameters
    ----------
    stage
        Where in the run.
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
