"""The policy that picks the parts of a run by what the calls of its target cost."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import not_negative
from surrokit.capabilities import FORWARD, GRADIENT, JACOBIAN, ROWS
from surrokit.cost.budget import Budget
from surrokit.cost.measuring import Costs
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import NumericalError
from surrokit.interfaces import weighs
from surrokit.mode.search import laplace_acceptance
from surrokit.model.model import calls_per_gradient
from surrokit.plan.recipe import GRADIENTS_A_DRAW, TUNED_AFTER_DROP, WARMUP, Recipe
from surrokit.plan.repair import Fallback, in_words
from surrokit.registry.catalogue import Composer, describe
from surrokit.registry.components import (
    ANSWERS,
    DEFAULT,
    FEW_VALUES,
    GRADIENTS,
    NO_LEARNING,
    ON_SURROGATE,
    VALUES,
    Kind,
)
from surrokit.targets.cheap import cheap_of
from surrokit.targets.estimates import noise_of
from surrokit.types import FloatArray

TENTH = 0.1
"""Part of plain HMC's expected cost that looking for a surrogate may take, or that draws on one may
take more."""

CHEAP_ROWS = 1e-4
"""Seconds of a gradient below which it is not tried whether a few rows of the data would do."""

MOST_DIM = 20
"""Numbers in a position up to which few values are spent on a process about a quadratic."""

LAST_ROUND = 36
"""Values that an exploration by few values leaves: a round of weighted answers, with its edges."""

WEIGHED = 3e-4
"""Seconds of a value from which on answers are weighted, if ``max_calls`` is less than chains need:
what some hundreds of steps on a surrogate take, which a call saves."""

SUBSAMPLES = "rows"
"""Purpose of a correction that decides on a few rows of the data, and of a surrogate for sums of
rows. The decider of such a correction, once prepared, has the target's ``mode``, the
``expected_rows`` of a decision, and ``predicted_acceptance(rng)`` of independent draws of the
Laplace approximation."""

_CLEARLY = 0.25  # of an evaluation of all rows, for an about independent draw


@attrs.frozen(kw_only=True)
class RowsForecast:
    """What decisions on a few rows would cost: of moves between draws of the Laplace approximation.

    The acceptance is None where even the prediction would be expensive. The target is least at the
    ``mode (dim,)``, as a search has found.
    """

    rows: float
    n_rows: int
    acceptance: float | None
    whole: float | None = None  # the acceptance when all rows decide; None where not looked at
    mode: FloatArray | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def is_good(self) -> bool:
        """Whether it clearly beats an evaluation of all rows."""
        accepted = self.acceptance or 0.0
        return self.rows / self.n_rows < _CLEARLY * accepted / (2.0 - accepted)

    @property
    def suits_normal(self) -> bool:
        """Whether independent normal draws are a good proposal, with few rows or with all."""
        return self.is_good or (self.whole or 0.0) >= 0.75

    def __str__(self) -> str:
        said = f"decisions are expected to touch {self.rows:.3g} of {self.n_rows} rows"
        if self.rows >= self.n_rows:
            said = f"decisions would touch all {self.n_rows} rows"
        elif self.acceptance is not None:
            said += f", with an acceptance of {self.acceptance:.2f}"
        if self.whole is not None:
            said += f"; with all rows normal draws would be accepted with {self.whole:.2f}"
        return said


@attrs.frozen(kw_only=True)
class Automatic:
    """Plain HMC where calls are cheap, else what needs the fewest.

    Parameters
    ----------
    cheap
        Seconds of a gradient below which plain HMC is used.

    Raises
    ------
    ConfigurationError
        If it is negative.
    """

    cheap: float = attrs.field(default=1e-3, validator=not_negative)

    def plain(self, composer: Composer, recipe: Recipe, reason: str) -> Recipe:
        """Return an exact kernel that the target allows for; see the protocol."""
        purpose = GRADIENTS if GRADIENT in recipe.exact.capabilities else VALUES
        return recipe.fill(reason, sampler=composer.catalogue.pick("sampler", purpose))

    def choose(
        self,
        composer: Composer,
        recipe: Recipe,
        target: RecordingPotential,
        costs: Costs,
        rng: np.random.Generator,
    ) -> Recipe:
        """Pick parts by what the target offers and by what its calls cost; see the protocol."""
        picked = self._pick(composer, recipe, target, costs, rng)
        if costs.by_differences and costs.gradients is not None and costs.value < self.cheap:
            # who has values alone counts them: a surrogate's time is no reason for ten times more
            scale = self.cheap / costs.value
            costs = attrs.evolve(
                costs, values=scale * costs.values, gradients=scale * costs.gradients
            )
        most, needed = recipe.budget.calls, picked.chains * picked.wanted_draws
        serving, why = _serving(composer, "correction", ANSWERS), None
        if picked.surrogate not in (None, "none") and _leaves_open(recipe):
            noise = noise_of(recipe.exact)
            scarce = costs.value >= WEIGHED or _has_few(recipe) or _by_few_values(recipe)
            if noise is not None and not noise.is_unbiased:
                why = "values have noise"
            elif most is not None and most < needed and scarce:
                why = f"chains would take {needed} calls"
        if serving is not None and why is not None:
            picked = picked.fill(f"{why}, so answers are weighted", correction=serving)
        return attrs.evolve(
            picked,
            exploration=_exploration(recipe, costs),
            fallback=_fallback(composer, recipe, costs),
        )

    def _pick(
        self,
        composer: Composer,
        recipe: Recipe,
        target: RecordingPotential,
        costs: Costs,
        rng: np.random.Generator,
    ) -> Recipe:
        """Return the first of a table that holds: plain HMC, or parts beside the usual ones."""
        offers, timed, rows = recipe.exact.capabilities, _timed(costs), None
        few = _for_few_values(composer, recipe, target)
        # whatever the clock says, or the calls that are left to the run would go by it
        subsampling = None if recipe.warmup == 0 else _subsampling(composer, recipe)
        if subsampling is not None and recipe.initial is not None:
            rows = forecast_rows(subsampling, target, recipe.initial[0], rng)
        if (costs.gradient or 0.0) < CHEAP_ROWS:
            rows = None
        elif rows is not None:
            timed = f"{timed}, and {rows}"
        # surrogates that copy rows of the data serve for less, and chains advance as one batch
        takes = costs.gradients if ROWS in offers else costs.gradient
        is_cheap = takes is not None and takes < self.cheap and not costs.by_differences
        is_asked = _needs_surrogate(composer, recipe) or _has_few(recipe)
        emulates = FORWARD in offers and (JACOBIAN in offers or GRADIENT not in offers)
        what = "the outputs are learnt" if emulates else "the potential is learnt"
        by_values = "" if GRADIENT in offers else " from values"
        table: list[tuple[bool, str, dict[str, Any] | None]] = [
            (recipe.warmup == 0, "but there is no warm-up to learn in", None),
            (rows is not None and rows.suits_normal, "", _normals(composer, recipe, rows)),
            (is_cheap and not is_asked, "so plain HMC would do", None),
            (few is not None, "and few calls", few),
            (
                _serving(composer, "surrogate", DEFAULT) is None,
                "but no surrogate is the default",
                None,
            ),
            (ROWS in offers, "", {"surrogate": _serving(composer, "surrogate", SUBSAMPLES)}),
            (True, f"and {what}{by_values}", {}),
        ]
        why, parts = next((why, parts) for holds, why, parts in table if holds)
        reason = f"{timed}, {why}" if why else timed
        if parts is None:
            return self.plain(composer, recipe, reason)
        return _learn(composer, recipe, reason, **parts)


def forecast_rows(
    correction: Any, target: RecordingPotential, near: FloatArray, rng: np.random.Generator
) -> RowsForecast | None:
    """Return what a correction by a few rows would cost; None where the target rules it out.

    It takes a search of the mode from ``near (dim,)``, its curvature, and a few passes over the
    rows.
    """
    if not correction.needs <= target.capabilities:
        return None
    try:
        prepared = correction.bind(target).prepare(near)
        rows = float(prepared.expected_rows)
        few = rows < _CLEARLY * target.n_rows
        forecast = RowsForecast(
            rows=rows,
            n_rows=target.n_rows,
            acceptance=prepared.predicted_acceptance(rng) if few else None,
            mode=prepared.mode.position,
        )
        if forecast.is_good:
            return forecast
        return attrs.evolve(forecast, whole=laplace_acceptance(target, prepared.mode, rng))
    except NumericalError:  # then few rows cannot stand for all
        return None


def _serving(composer: Composer, kind: Kind, purpose: str) -> str | None:
    """Return the name of what serves a purpose; None where nothing does."""
    found = composer.catalogue.serving(kind, purpose)
    return None if found is None else found.name


def _subsampling(composer: Composer, recipe: Recipe) -> object | None:
    """Return the correction by a few rows; None where it or what goes with it is ruled out."""
    name, given = _serving(composer, "correction", SUBSAMPLES), recipe.correction
    normal = [_serving(composer, kind, "normal") for kind in ("sampler", "surrogate")]
    explorer = recipe.explorer or _serving(composer, "explorer", ON_SURROGATE)
    if ROWS not in recipe.exact.capabilities or None in (*normal, name, explorer):
        return None
    correction = composer.make("correction", given or name)
    # however it was given
    is_it = given is None or type(correction) is type(composer.make("correction", name))
    return correction if is_it else None


def _normals(composer: Composer, recipe: Recipe, rows: RowsForecast | None) -> dict[str, Any]:
    """Return parts for independent normal draws, on which a few rows decide where that is good."""
    parts: dict[str, Any] = {
        kind: _serving(composer, kind, "normal") for kind in ("sampler", "surrogate")
    }
    if rows is not None and rows.mode is not None and len(starts := np.array(recipe.initial)) > 1:
        starts[-1] = rows.mode
        parts["initial"] = starts
    if rows is not None and rows.is_good:
        parts["correction"] = recipe.correction or _serving(composer, "correction", SUBSAMPLES)
    return parts


def _learn(composer: Composer, recipe: Recipe, reason: str, **parts: Any) -> Recipe:
    """Return a recipe with a surrogate: what is not among the parts is what serves for one."""
    pick, initial = composer.catalogue.pick, parts.pop("initial", recipe.initial)
    sampler = parts.get("sampler") or _serving(composer, "sampler", ON_SURROGATE)
    explorer = parts.get("explorer") or _serving(composer, "explorer", ON_SURROGATE)
    chosen = {
        **parts,
        "sampler": sampler or pick("sampler", GRADIENTS),
        "surrogate": parts.get("surrogate") or pick("surrogate"),
        "explorer": recipe.explorer or explorer or pick("explorer"),
        "schedule": recipe.schedule or pick("schedule"),
    }
    return attrs.evolve(recipe, initial=initial).fill(reason, **chosen)


def _fallback(composer: Composer, recipe: Recipe, costs: Costs) -> Fallback | None:
    """Return the exact kernel to go on with where a surrogate is not worth it, if there is one."""
    # a step of a tuned random walk is worth 0.3 / dim draws (Gelman, Roberts and Gilks 1996)
    purpose, seconds, steps = VALUES, costs.values * recipe.exact.dim / 0.3, None
    most, price = recipe.budget.calls, calls_per_gradient(recipe.exact)
    tuning = TUNED_AFTER_DROP * GRADIENTS_A_DRAW * recipe.chains * price
    # where a gradient takes several calls, half of these have to suffice for tuning
    affords = most is None or price == 1 or 2 * tuning <= most
    if costs.gradients is not None and affords:
        purpose, steps = GRADIENTS, GRADIENTS_A_DRAW
        seconds = costs.gradients * steps
    names: dict[str, Any] = {
        "sampler": _serving(composer, "sampler", purpose),
        "correction": _serving(composer, "correction", DEFAULT),
        "schedule": _serving(composer, "schedule", NO_LEARNING),
    }
    if None in names.values():
        return None
    correction = recipe.correction or names["correction"]  # one that is named stays
    sampler = composer.make("sampler", names["sampler"])
    if not sampler.needs <= recipe.exact.capabilities:
        return None
    # of few draws each has to be worth something
    share = min(TUNED_AFTER_DROP / recipe.wanted_draws, 1.0)
    return Fallback(
        name=names["sampler"],
        sampler=sampler,
        correction=composer.make("correction", correction),
        schedule=composer.make("schedule", names["schedule"]),
        seconds_per_draw=(1.0 + TENTH + share) * seconds,
        seconds_per_value=costs.values,
        steps_per_draw=steps,
        described={**names, "correction": describe(correction), "surrogate": "none"},
    )


def _exploration(recipe: Recipe, costs: Costs) -> Budget:
    """Return a tenth of what HMC would cost, and half of what it is spared in warm-up."""
    if costs.gradients is None:
        return Budget()
    iterations = TENTH * (WARMUP + recipe.wanted_draws) + 0.5 * (WARMUP - TUNED_AFTER_DROP)
    gradients = GRADIENTS_A_DRAW * iterations
    calls = gradients * recipe.chains
    return Budget(max_calls=math.ceil(calls), max_seconds=gradients * costs.gradients)


def _leaves_open(recipe: Recipe) -> bool:
    """Return whether it is open if there are draws of chains or weighted answers."""
    return recipe.correction is recipe.draws is recipe.budget.target_rhat is None


def _has_few(recipe: Recipe) -> bool:
    """Return whether calls are too few for chains: less than 100 for each tell little."""
    most = recipe.budget.calls
    return most is not None and most < 100 * recipe.chains and _leaves_open(recipe)


def _by_few_values(recipe: Recipe) -> bool:
    """Return whether there are values alone, and too few even for differences, or with noise."""
    exact = recipe.exact
    offers = exact.capabilities & {GRADIENT, FORWARD, ROWS}
    is_few = recipe.budget.calls is not None or noise_of(exact) is not None
    return is_few and not offers and exact.dim <= MOST_DIM


def _for_few_values(
    composer: Composer, recipe: Recipe, target: RecordingPotential
) -> dict[str, Any] | None:
    """Return parts for few values, that leave a round of weights; None for other targets."""
    surrogate, explorer = (_serving(composer, k, FEW_VALUES) for k in ("surrogate", "explorer"))
    has_cheap = cheap_of(recipe.exact) is not None  # which says where the mass is
    if surrogate is None or explorer is None or has_cheap or not _by_few_values(recipe):
        return None
    calls = recipe.budget.calls
    if calls is None:
        return {"surrogate": surrogate, "explorer": explorer}
    most = calls - LAST_ROUND - max(int(target.n_calls) - recipe.chains, 0)
    if most <= 2 * recipe.exact.dim + 2:  # too few for both
        most = max(calls - 1, 1)
    return {"surrogate": surrogate, "explorer": (explorer, {"evaluations": most})}


def _needs_surrogate(composer: Composer, recipe: Recipe) -> bool:
    """Return whether a part that is given does, such as the correction of answers."""
    given = recipe.correction
    if cheap_of(recipe.exact) is not None:
        return True
    is_to_weigh = given is not None and weighs(composer.make("correction", given))
    return is_to_weigh or recipe.needs_surrogate(composer.catalogue)


def _timed(costs: Costs) -> str:
    if costs.gradient is None:
        return f"a value takes {in_words(costs.value)}, there is no gradient"
    how = ", by differences of values" if costs.by_differences else ""
    if costs.jacobian is not None:
        how = f", a Jacobian {in_words(costs.jacobian)}"
    return f"a gradient takes {in_words(costs.gradient)}{how}"
