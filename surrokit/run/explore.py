"""What an exploration is handed, and what it says of the surrogate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import attrs
import numpy as np

from surrokit.contracts.explorer import Explored, Findings, Start
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.sampler import ChainState
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import PluginError
from surrokit.plan.fallback import in_words
from surrokit.plan.recipe import Recipe
from surrokit.run.learning import Learning
from surrokit.types import FloatArray

Steps = tuple[Iterator[Explored], ChainState]
"""Iterations of an exploration, and the chains at their starts."""


def begin_exploring(
    recipe: Recipe,
    target: RecordingPotential,
    learning: Learning,
    evaluated: Callable[[], Evaluations],
    rng: np.random.Generator,
) -> Callable[[FloatArray], tuple[Steps, ChainState]]:
    """Return what begins the exploration of a recipe at positions (n, dim).

    Parameters
    ----------
    recipe
        What the run goes by, with an explorer.
    target
        The exact potential. The calls that it has made so far leave the others to the exploration.
    learning
        Fits surrogates.
    evaluated
        Returns the evaluations since it was last called.
    rng
        Generator of the exploration.
    """
    most = recipe.hurry.calls
    calls = None if most is None else max(most - math.ceil(target.paid), 1)

    def begin(positions: FloatArray) -> tuple[Steps, ChainState]:
        start = Start(
            potential=target,
            positions=positions,
            warmup=recipe.most_warmup,
            evaluated=evaluated,
            fit=learning.fit_with,
            calls=calls,
            past=recipe.past,
        )
        steps = iter(recipe.explorer.explore(start, rng))
        chains = next(steps).findings.chains
        return (steps, chains), chains

    return begin


def next_of(steps: Iterator[Explored]) -> Explored:
    """Return the next iteration of an exploration.

    Raises
    ------
    PluginError
        If there is none, though the last one was not marked as such.
    """
    for explored in steps:
        return explored
    raise PluginError(
        "the explorer has ended, but its last item was not marked as done; yield it as "
        "Explored(..., done=True)"
    )


def note_limit(recipe: Recipe, seconds: float, *, done: bool) -> Recipe:
    """Return a recipe whose choice says that its exploration was ended by the clock, if it was.

    Parameters
    ----------
    recipe
        What the run goes by.
    seconds
        That the run has taken.
    done
        Whether the explorer has ended it.
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
