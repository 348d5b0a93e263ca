"""How long a warm-up is."""

from __future__ import annotations

from surrokit.contracts.explorer import Findings
from surrokit.plan.recipe import (
    APPROACHED,
    TUNED_AFTER_DROP,
    TUNED_AFTER_RESTART,
    Recipe,
    settling,
)


def warmup_length(
    recipe: Recipe, found: Findings | None, iteration: int, *, takes_over: bool
) -> int:
    """Return the iterations of warm-up that are left after an exploration.

    Parameters
    ----------
    recipe
        What the run goes by.
    found
        What the exploration has found; None without one.
    iteration
        Iterations so far.
    takes_over
        Whether another kernel moved the chains until now.
    """
    rest = recipe.most_warmup - iteration
    is_open = recipe.warmup is None
    is_led = found is None or found.modes is None or found.modes.believed
    if takes_over and is_led:
        return TUNED_AFTER_DROP if is_open else max(rest, TUNED_AFTER_RESTART)
    if is_open and found is not None and found.tuning is not None:
        return 0 if found.at_draws else settling(found.acceptance)
    if is_open and found is not None:
        rest = min(rest, getattr(recipe.sampler, "longest_warmup", rest))
    return max(min(rest, APPROACHED) if is_open and has_arrived(recipe, found) else rest, 0)


def has_arrived(recipe: Recipe, found: Findings | None) -> bool:
    """Return whether exact chains begin about modes that were found."""
    modes = None if found is None else found.modes
    return modes is not None and modes.believed and recipe.learner is None
