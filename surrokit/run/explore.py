"""The exploration of an attempt: its steps, its learning, and the fits that it asks for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit.contracts.explorer import Exploration, Explorer, Findings, recalls
from surrokit.cost.budget import Clock
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import ChainState, Evaluations, StepInfo
from surrokit.plan.recipe import Recipe
from surrokit.plan.repair import in_words
from surrokit.potentials import Potential
from surrokit.run.learning import Learning
from surrokit.types import FloatArray


def bound_within(recipe: Recipe, target: RecordingPotential) -> Exploration:
    """Return a target's exploration that knows how many exact calls are left to it.

    Parameters
    ----------
    recipe
        What the run goes by. Without a limit on calls the explorer is told nothing of them; of
        draws of earlier runs it is told if it can go on from there.
    target
        The exact potential, which counts its calls.
    """
    explorer: Explorer = recipe.explorer
    if recipe.past is not None and recalls(explorer):
        explorer = explorer.recall(recipe.past)
    most = recipe.hurry.calls
    if most is None:
        return explorer.bind(target)
    return explorer.bind(target, max(most - math.ceil(target.paid), 1))


def note_limit(recipe: Recipe, seconds: float, *, done: bool) -> Recipe:
    """Return a recipe whose choice says that its exploration was ended by the clock, if it was.

    Parameters
    ----------
    recipe
        What the run goes by.
    seconds
        That the run has taken.
    done
        Whether the explorer had seen enough.
    """
    limit = recipe.exploration.max_seconds
    if done or limit is None or seconds <= limit or recipe.chosen is None:
        return recipe
    why = f"the exploration was ended at its limit of {in_words(limit)}"
    return attrs.evolve(recipe, chosen=recipe.chosen.because(why))


def complaint_after(found: Findings | None, recipe: Recipe, learning: Learning) -> str | None:
    """Return why a surrogate is not worth its cost once the target is explored, or None."""
    if (fallback := recipe.fallback) is None or found is None:
        return None
    if learning.surrogate is None:
        return "no surrogate could be fitted"
    return None if found.acceptance is None else fallback.complaint(found.acceptance)


@attrs.define(eq=False)
class Exploring:
    """An exploration and its progress.

    Parameters
    ----------
    explorer
        The exploration of the exact potential.
    learning
        Learns from the rows that the explorer chooses.
    paid
        Returns the evaluations paid for since its last call, given the state of the chains.
    clock
        Charged with the time, as warm-up.

    Attributes
    ----------
    rows
        All evaluations so far.
    """

    _explorer: Exploration
    _learning: Learning
    _paid: Callable[[ChainState], Evaluations]
    _clock: Clock
    rows: list[Evaluations] = attrs.field(factory=list, init=False)
    _state: Any = attrs.field(default=None, init=False)

    @property
    def info(self) -> StepInfo | None:
        """What the last step did to the chains; None where it moved none."""
        info: StepInfo | None = self._state.info
        return info

    def begin(self, positions: FloatArray, warmup: int) -> ChainState:
        """Begin at ``positions (n, dim)``, and return the state of the chains there."""
        self._state = self._explorer.start(positions, warmup)
        chains: ChainState = self._state.chains
        return chains

    def observe(self, rows: Evaluations | None) -> None:
        """Let the learner observe evaluations from before, if there are any."""
        if rows is not None:
            self._learning.observe(rows)
            self.rows.append(rows)

    def step(self, rng: np.random.Generator) -> Evaluations:
        """Explore for one iteration; return the rows that the learner has yet to observe."""
        explorer = self._explorer
        with self._clock.phase("warmup"):
            state = explorer.step(self._state, rng)
            self.rows.append(self._paid(state.chains))
            self._state, rows = explorer.learn(state, self.rows[-1])
        if not explorer.wants_fit(self._state):
            return rows
        self._learning.observe(rows)
        surrogate = self._fit()
        with self._clock.phase("warmup"):
            self._state = explorer.inform(self._state, surrogate)
        return Evaluations.empty(rows.positions.shape[1])

    def done(self) -> bool:
        """Return whether the explorer has seen enough."""
        return self._explorer.done(self._state)

    def findings(self) -> Findings:
        """Return the findings so far."""
        with self._clock.phase("warmup"):
            return self._explorer.findings(self._state)

    def _fit(self) -> Potential | None:
        try:
            return self._learning.fit()
        except SurrogateFitError:
            return None
