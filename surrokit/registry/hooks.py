"""All hooks, and the markers of hooks and of their implementations.

A plugin is a module, announced in the entry-point group ``surrokit``, with functions of these
names decorated with :data:`surrokit.hookimpl`. Hooks register parts, offer commands and inform
observers; they never decide what a Markov kernel does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    import click

    from surrokit.interfaces import ChainState
    from surrokit.potentials import Potential
    from surrokit.progress import IterationInfo, RoundInfo, RunInfo
    from surrokit.registry.components import Component
    from surrokit.result.run import Run


GROUP = "surrokit"  #: Name of the project for pluggy, and of the entry-point group.

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Decorates a plugin's functions that implement a hook of :mod:`surrokit.registry.hooks`."""


# --- Registration: called once, when the catalogue is first needed. ---


@hookspec
def surrokit_components() -> Sequence[Component]:
    """Return everything that the plugin offers, of whatever kind."""
    return ()


@hookspec
def surrokit_commands() -> Sequence[click.Command]:
    """Return commands that ``surrokit`` has beside its own; called when they are looked for."""
    return ()


# --- Observation: called between transitions, never inside one. Return values are ignored.
# --- Raising surrokit.errors.StopRun ends the run with the draws so far.


@hookspec
def surrokit_run_started(run: RunInfo) -> None:
    """Receive notice that a run begins, before its first exact call."""


@hookspec
def surrokit_transition_done(run: RunInfo, state: ChainState, info: IterationInfo) -> None:
    """Receive what an iteration did, and where chains are now, in the sampling coordinates."""


@hookspec
def surrokit_surrogate_deployed(
    run: RunInfo, surrogate: Potential, evaluations: int, reason: str
) -> None:
    """Receive notice that the sampler uses a new surrogate from here on, fitted to so many rows."""


@hookspec
def surrokit_round_weighed(run: RunInfo, info: RoundInfo) -> None:
    """Receive how good weighted answers are, after each round of them."""


@hookspec
def surrokit_run_finished(run: RunInfo, outcome: Run) -> None:
    """Receive the result of a run that is over, interrupted ones included."""
