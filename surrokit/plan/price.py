"""What a run is expected to cost, before its exploration."""

from __future__ import annotations

from surrokit.capabilities import GRADIENT, ROWS
from surrokit.contracts.progress import Estimate
from surrokit.contracts.sampler import weighs
from surrokit.model.model import calls_per_gradient
from surrokit.plan.recipe import Recipe

FEW, FEW_A_DIMENSION = 300, 30
"""Calls from which on weighted answers are suggested, and calls for each number in a position."""


def estimate_of(recipe: Recipe, asked: Recipe) -> Estimate:
    """Return what a run is expected to cost.

    On a surrogate each draw takes a value, and what is learnt from before is small beside that. An
    exact sampler takes a path of gradients, or one value, in each iteration of warm-up too.

    Parameters
    ----------
    recipe
        What the run goes by, with its parts made.
    asked
        What was asked for.
    """
    value, gradient = recipe.timed or (None, None)
    learns = recipe.learner is not None or recipe.surrogate is not None
    few, calls = None, None
    by_gradients = not learns and GRADIENT in recipe.sampler.needs
    weighing = recipe.correction is not None and weighs(recipe.correction)
    if weighing and recipe.budget.calls is not None:
        calls = recipe.budget.calls
    elif ROWS not in getattr(recipe.correction, "needs", ()):
        calls = recipe.expected_calls(learns=learns)
        is_free = asked.is_open and asked.correction is None and asked.draws is None
        if learns and is_free and asked.budget.target_rhat is None and recipe.budget.calls is None:
            fewer = max(FEW, FEW_A_DIMENSION * recipe.exact.dim)
            few = fewer if 2 * fewer <= calls else None
    by_values = by_gradients and calls_per_gradient(recipe.exact) > 1
    is_gradient = by_gradients and not by_values
    # workers evaluate proposals before their turn, or the many points of a round
    in_batches = weighing or (learns and recipe.budget.calls is None)
    return Estimate(
        seconds_a_call=gradient if is_gradient else value,
        kind="gradient" if is_gradient else "value",
        calls=calls,
        workers=recipe.workers,
        most_workers=recipe.chains * (2 if in_batches else 1),
        weighs=weighing,
        few_calls=few,
    )
