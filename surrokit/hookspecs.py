"""Every hook, and nothing else.

A plugin is a module, announced in the entry-point group ``surrokit``, with functions of these
names decorated with :data:`surrokit.hookimpl`. Hooks decide who exists and who is told; they
never decide what a Markov kernel does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surrokit.markers import hookspec

if TYPE_CHECKING:
    from surrokit.components import Component
    from surrokit.protocols import Potential
    from surrokit.records import ChainState, IterationInfo, RunInfo
    from surrokit.result import Run

# --- Registration: called once, when the catalogue is first needed. Import nothing heavy here. ---


@hookspec
def surrokit_register_potentials() -> Sequence[Component]:
    """Return targets that ``surrokit sample NAME`` can find."""
    return ()


@hookspec
def surrokit_register_surrogates() -> Sequence[Component]:
    """Return surrogates: factories of :class:`surrokit.protocols.Surrogate`."""
    return ()


@hookspec
def surrokit_register_explorers() -> Sequence[Component]:
    """Return explorers: factories of :class:`surrokit.protocols.Explorer`."""
    return ()


@hookspec
def surrokit_register_schedules() -> Sequence[Component]:
    """Return learning schedules: factories of :class:`surrokit.protocols.Schedule`."""
    return ()


@hookspec
def surrokit_register_samplers() -> Sequence[Component]:
    """Return samplers: factories of :class:`surrokit.protocols.Sampler`."""
    return ()


@hookspec
def surrokit_register_integrators() -> Sequence[Component]:
    """Return integrators: factories of :class:`surrokit.protocols.Integrator`."""
    return ()


@hookspec
def surrokit_register_metrics() -> Sequence[Component]:
    """Return metrics: factories of :class:`surrokit.protocols.Metric`."""
    return ()


@hookspec
def surrokit_register_corrections() -> Sequence[Component]:
    """Return corrections: factories of :class:`surrokit.protocols.Correction`."""
    return ()


@hookspec
def surrokit_register_experiments() -> Sequence[Component]:
    """Return experiments: factories of :class:`surrokit.experiments.Experiment`."""
    return ()


# --- Observation: called between transitions, never inside one. What is returned is ignored. ---


@hookspec
def surrokit_run_started(run: RunInfo) -> None:
    """Be told that a run begins, before its first exact call.

    Parameters
    ----------
    run
        Sizes and parts.
    """


@hookspec
def surrokit_transition_done(run: RunInfo, state: ChainState, info: IterationInfo) -> None:
    """Be told what an iteration did.

    Parameters
    ----------
    run
        Sizes and parts.
    state
        Where the chains are now, in the sampling coordinates.
    info
        Stage, acceptance, exact calls and seconds so far.
    """


@hookspec
def surrokit_surrogate_deployed(
    run: RunInfo, surrogate: Potential, evaluations: int, reason: str
) -> None:
    """Be told that the sampler moves on a new surrogate from here on.

    Parameters
    ----------
    run
        Sizes and parts.
    surrogate
        The fitted potential.
    evaluations
        Rows that it was fitted to.
    reason
        Why now, in words.
    """


@hookspec
def surrokit_run_finished(run: RunInfo, outcome: Run) -> None:
    """Be told that a run is over, interrupted ones included.

    Parameters
    ----------
    run
        Sizes and parts.
    outcome
        The result that the caller gets.
    """
