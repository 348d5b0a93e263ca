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
from surrokit.model.model import calls_per_gradient
from surrokit.plan.recipe import GRADIENTS_A_DRAW, TUNED_AFTER_DROP, WARMUP, Recipe
from surrokit.plan.repair import Fallback, in_words
from surrokit.registry.catalogue import Composer, Spec, describe
from surrokit.registry.components import (
    ANSWERS,
    DEFAULT,
    GRADIENTS,
    NO_LEARNING,
    ON_SURROGATE,
    VALUES,
    Kind,
)
from surrokit.types import Capabilities, FloatArray
from surrokit_learning.forecast import ROWS_DECIDE, RowsForecast, forecast_rows

SINGLE_PATHS = "single-paths"
"""Purpose of a sampler of single paths on an emulator, with the settings that suit it.

On a surrogate such paths may be longer and more exact than HMC's own: they are the lesser cost.
"""

NORMAL = "normal"
"""Purpose of a sampler that draws from a normal surrogate, and of such a surrogate."""

OF_ROWS = "rows"
"""Purpose of a surrogate for sums over rows of data."""

WALK_EFFICIENCY = 0.3
"""Independent draws that a step of a tuned random walk is worth, times the number of dimensions
(Gelman, Roberts and Gilks 1996)."""

TENTH = 0.1
"""Part of plain HMC's expected cost that looking for a surrogate may take, or that draws on one may
take more."""

FEW = 100
"""Calls for each chain that is asked for no number of draws, below which no clock matters: chains
would come to few draws that tell little, and weights get more out of so few calls."""

_SAVED = 0.5  # of the warm-up that HMC is spared after an exploration, to be on the safe side


@attrs.frozen(kw_only=True)
class Automatic:
    """Plain HMC where calls are cheap, else what needs the fewest.

    Parameters
    ----------
    cheap
        Seconds of a gradient below which plain HMC is used.
    cheap_outputs
        The same for a forward map: what its Jacobians tell is learnt in less than a second.
    cheap_rows
        Seconds of a gradient below which it is not tried whether a few rows of the data would do.
    weighing
        Seconds of a value from which on answers are weighted, if ``max_calls`` is less than chains
        need: what some hundreds of steps on a surrogate take, which a call saves.
    short
        Seconds of a gradient below which draws are the ends of single paths on an emulator: the
        many of a sub-chain would take longer than the exact value.

    Raises
    ------
    ConfigurationError
        If a time is negative.
    """

    cheap: float = attrs.field(default=1e-3, validator=not_negative)
    cheap_outputs: float = attrs.field(default=5e-4, validator=not_negative)
    cheap_rows: float = attrs.field(default=1e-4, validator=not_negative)
    short: float = attrs.field(default=1e-3, validator=not_negative)
    weighing: float = attrs.field(default=3e-4, validator=not_negative)

    def choose(
        self,
        composer: Composer,
        recipe: Recipe,
        target: RecordingPotential,
        costs: Costs,
        rng: np.random.Generator,
    ) -> Recipe:
        """Pick parts by what the target offers and by what its calls cost; see the protocol."""
        picked = self._pick(_Picker(composer, recipe), target, costs, rng)
        scarce = _as_scarce(costs, self.cheap)
        return attrs.evolve(
            self._weigh(composer, picked, costs),
            exploration=_exploration(recipe, scarce),
            fallback=_fallback(composer, recipe, scarce),
        )

    def _weigh(self, composer: Composer, picked: Recipe, costs: Costs) -> Recipe:
        """Return a recipe of weighted answers where the calls do not suffice for chains."""
        serving = composer.catalogue.serving("correction", ANSWERS)
        learns = picked.surrogate not in (None, "none")
        if serving is None or not learns or not _leaves_open(picked):
            return picked
        needed, most = picked.chains * picked.wanted_draws, picked.budget.calls
        if most is None or most >= needed:
            return picked
        if costs.value < self.weighing and not _has_few(picked):
            return picked
        few = f"chains would take {needed} calls, so answers are weighted"
        return picked.fill(few, correction=serving.name)

    def plain(self, composer: Composer, recipe: Recipe, reason: str) -> Recipe:
        """Return an exact kernel that the target allows for; see the protocol."""
        return _Picker(composer, recipe).plain(reason)

    def _pick(
        self, picker: _Picker, target: RecordingPotential, costs: Costs, rng: np.random.Generator
    ) -> Recipe:
        capabilities, timed = picker.capabilities, _timed(costs)
        if picker.recipe.warmup == 0:
            return picker.plain(f"{timed}, but there is no warm-up to learn in")
        # whatever the clock says, or the calls that are left to the run would go by it
        rows = picker.forecast(target, rng) if picker.may_subsample else None
        if (costs.gradient or 0.0) < self.cheap_rows:
            rows = None
        reason = timed if rows is None else f"{timed}, and {rows}"
        if rows is not None and (rows.is_good or rows.is_nearly_normal):
            beginning = picker.begin_at(rows.mode)
            few = {"correction": picker.of_rows} if rows.is_good else {}
            return beginning.normal(reason, **few)
        # surrogates that copy rows of the data serve for less, and chains advance as one batch
        has_rows = ROWS in capabilities
        takes = costs.gradients if has_rows else costs.gradient
        by_outputs = JACOBIAN in capabilities or GRADIENT not in capabilities
        emulates = FORWARD in capabilities and by_outputs
        cheap = self.cheap_outputs if emulates else self.cheap
        is_cheap = takes is not None and takes < cheap and not costs.by_differences
        if is_cheap and not picker.needs_surrogate and not _has_few(picker.recipe):
            return picker.plain(f"{timed}, so plain HMC would do")
        if picker.serving("surrogate", DEFAULT) is None:
            return picker.plain(f"{timed}, but no surrogate is the default")
        if has_rows:
            return picker.surrogate(OF_ROWS, reason)
        what = "the outputs are learnt" if emulates else "the potential is learnt"
        with_what = "" if GRADIENT in capabilities else " from values"
        reason = f"{timed}, and {what}{with_what}"
        if emulates and costs.gradient is not None and costs.gradient < self.short:
            return picker.single_paths(f"{reason}; values are cheap")
        return picker.surrogate(DEFAULT, reason)


def _fallback(composer: Composer, recipe: Recipe, costs: Costs) -> Fallback | None:
    """Return the exact kernel to go on with where a surrogate is not worth it, if there is one."""
    purpose, seconds, steps = VALUES, costs.values * recipe.exact.dim / WALK_EFFICIENCY, None
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


def _leaves_open(recipe: Recipe) -> bool:
    """Return whether it is open if there are draws of chains or weighted answers."""
    given = (recipe.correction, recipe.draws, recipe.budget.target_rhat)
    return all(each is None for each in given)


def _has_few(recipe: Recipe) -> bool:
    """Return whether the calls are too few for chains, however fast they are."""
    most = recipe.budget.calls
    return most is not None and most < FEW * recipe.chains and _leaves_open(recipe)


def _as_scarce(costs: Costs, seconds: float) -> Costs:
    """Return costs in which a value takes so many seconds at least, if gradients are made of them.

    Whoever has values alone counts them, and how long a surrogate takes is no reason to make ten
    times as many.
    """
    if not costs.by_differences or costs.gradients is None or costs.value >= seconds:
        return costs
    scale = seconds / costs.value
    return attrs.evolve(costs, values=scale * costs.values, gradients=scale * costs.gradients)


def _exploration(recipe: Recipe, costs: Costs) -> Budget:
    """Return what looking for a surrogate may cost where plain HMC would do it as well.

    A tenth of what HMC is expected to cost for the same draws, and part of what it saves in warm-up
    when it begins with what the exploration has found. Without a gradient there is no such limit.
    The calls do not go by the clock; where a Jacobian takes as long as many gradients, the seconds
    are the limit.
    """
    if costs.gradients is None:
        return Budget()
    iterations = TENTH * (WARMUP + recipe.wanted_draws) + _SAVED * (WARMUP - TUNED_AFTER_DROP)
    gradients = GRADIENTS_A_DRAW * iterations
    calls = gradients * recipe.chains
    return Budget(max_calls=math.ceil(calls), max_seconds=gradients * costs.gradients)


def _serving(composer: Composer, kind: Kind, purpose: str) -> str | None:
    """Return the name of what serves a purpose; None where nothing does."""
    found = composer.catalogue.serving(kind, purpose)
    return None if found is None else found.name


def _timed(costs: Costs) -> str:
    if costs.gradient is None:
        return f"a value takes {in_words(costs.value)}, there is no gradient"
    how = ", by differences of values" if costs.by_differences else ""
    if costs.jacobian is not None:
        how = f", a Jacobian {in_words(costs.jacobian)}"
    return f"a gradient takes {in_words(costs.gradient)}{how}"


@attrs.frozen
class _Picker:
    """Picks among what is registered."""

    composer: Composer
    recipe: Recipe

    @property
    def capabilities(self) -> Capabilities:
        return self.recipe.exact.capabilities

    @property
    def needs_surrogate(self) -> bool:
        """Whether a part that is given does, such as the correction of answers."""
        given = self.recipe.correction
        is_to_weigh = given is not None and weighs(self.composer.make("correction", given))
        return is_to_weigh or self.recipe.needs_surrogate(self.composer.catalogue)

    def serving(self, kind: Kind, purpose: str) -> str | None:
        return _serving(self.composer, kind, purpose)

    @property
    def may_subsample(self) -> bool:
        given, correction = self.recipe, self.serving("correction", ROWS_DECIDE)
        conditions = (
            ROWS in self.capabilities,
            self.serving("sampler", NORMAL) is not None,
            self.serving("surrogate", NORMAL) is not None,
            self.serving("explorer", ON_SURROGATE) is not None or given.explorer is not None,
            correction is not None,
            given.correction is None or self._is_a("correction", given.correction, correction),
        )
        return all(conditions)

    def _is_a(self, kind: Kind, given: Spec | object, name: str | None) -> bool:
        """Return whether a part is the registered one of a name, however it was given."""
        made = self.composer.make(kind, given)
        return name is not None and type(made) is type(self.composer.make(kind, name))

    def forecast(self, target: RecordingPotential, rng: np.random.Generator) -> RowsForecast | None:
        assert self.recipe.initial is not None
        near = self.recipe.initial[0]
        try:
            return forecast_rows(self.composer, self.of_rows, target, near, rng)
        except NumericalError:  # then few rows cannot stand for all
            return None

    def begin_at(self, mode: FloatArray | None) -> _Picker:
        """Return a picker whose last chain begins at a mode (dim,), which a search then knows.

        At the start of the first one the gradient is checked, and at a mode it would be rounding.
        """
        starts = np.array(self.recipe.initial)
        if mode is None or len(starts) < 2:
            return self
        starts[-1] = mode
        return attrs.evolve(self, recipe=attrs.evolve(self.recipe, initial=starts))

    def plain(self, reason: str) -> Recipe:
        purpose = GRADIENTS if GRADIENT in self.capabilities else VALUES
        return self.recipe.fill(reason, sampler=self.composer.catalogue.pick("sampler", purpose))

    @property
    def of_rows(self) -> Spec | object:
        """The correction given, or the one that decides on a few rows."""
        return self.recipe.correction or self.serving("correction", ROWS_DECIDE)

    def normal(self, reason: str, **more: Any) -> Recipe:
        sampler, surrogate = self.serving("sampler", NORMAL), self.serving("surrogate", NORMAL)
        return self._pick_surrogate(reason, sampler=sampler, surrogate=surrogate, **more)

    def surrogate(self, purpose: str, reason: str) -> Recipe:
        name = self.serving("surrogate", purpose) or self.serving("surrogate", DEFAULT)
        plain = self.composer.catalogue.pick("sampler", GRADIENTS)
        sampler = self.serving("sampler", ON_SURROGATE)
        return self._pick_surrogate(reason, sampler=sampler or plain, surrogate=name)

    def single_paths(self, reason: str) -> Recipe:
        found = self.composer.catalogue.serving("sampler", SINGLE_PATHS)
        if found is None:
            return self.surrogate(DEFAULT, reason)
        sampler = (found.name, dict(found.purposes[SINGLE_PATHS]))
        surrogate = self.serving("surrogate", DEFAULT)
        return self._pick_surrogate(reason, sampler=sampler, surrogate=surrogate)

    def _pick_surrogate(self, reason: str, **parts: Any) -> Recipe:
        pick, given = self.composer.catalogue.pick, self.recipe
        explorer = given.explorer or self.serving("explorer", ON_SURROGATE) or pick("explorer")
        return self.recipe.fill(
            reason, explorer=explorer, schedule=given.schedule or pick("schedule"), **parts
        )
