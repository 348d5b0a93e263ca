"""What a run is made of where its user names neither a sampler nor a surrogate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.budget import Budget
from surrokit.capabilities import FORWARD, GRADIENT, ROWS
from surrokit.composer import Composer, named
from surrokit.fallback import Fallback, in_words
from surrokit.kinds import Kind
from surrokit.measuring import Costs
from surrokit.parts import (
    DEFAULT_CORRECTION,
    DEFAULT_EXPLORER,
    DEFAULT_SCHEDULE,
    DEFAULT_SURROGATE,
    GRADIENT_FREE_SAMPLER,
    GRADIENT_SAMPLER,
    QUIET_SCHEDULE,
    described,
)
from surrokit.plan import TUNED_AFTER_DROP, WARMUP
from surrokit.recording import RecordingPotential
from surrokit.subsampling import SUBSAMPLED, prospect_of
from surrokit.types import Capabilities, FloatArray

CHEAP = 1e-3
"""Seconds of a gradient below which plain HMC is used."""

CHEAP_OUTPUTS = 5e-4
"""The same for a forward map: what its Jacobians tell is learnt in less than a second."""

CHEAP_ROWS = 1e-4
"""Seconds of a gradient below which it is not tried whether a few rows of the data would do."""

GRADIENTS_A_DRAW = 10
"""What plain HMC, well tuned, is expected to pay for an iteration."""

WALK_EFFICIENCY = 0.3
"""Independent draws that a step of a tuned random walk is worth, times the number of dimensions
(Gelman, Roberts and Gilks 1996)."""

SHORT = 5e-3
"""Seconds of a gradient below which draws are the ends of single paths on an emulator: the many of
a sub-chain would take longer than the exact value.

On a surrogate such paths may be longer and more exact than HMC's own: they are the lesser cost.
"""

TENTH = 0.1
"""Part of plain HMC's expected bill that looking for a surrogate may cost, or that draws on one may
cost more."""

_SAVED = 0.5  # of the warm-up that HMC is spared after an exploration, to be on the safe side
_SINGLE_PATHS = {"target_acceptance": 0.93, "shortest": 0.33}
_SAMPLER, _EXPLORER = "sub-chain", "rounds"
_OF_ROWS, _QUADRATIC, _NORMAL = "rows", "quadratic", "gaussian"


@attrs.frozen(kw_only=True, eq=False)
class Fixed:
    """What a user has named, though neither a sampler nor a surrogate.

    Parameters
    ----------
    schedule, explorer, correction
        Names, pairs of name and settings, objects, or None.
    settings
        Those of the sampler that were given.
    learns
        Whether something was given that only a surrogate can use.
    warms_up
        Whether there is a warm-up to learn in.
    """

    schedule: Any = None
    explorer: Any = None
    correction: Any = None
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    learns: bool = False
    warms_up: bool = True


@attrs.frozen(kw_only=True, eq=False)
class Choice:
    """What was picked, and why.

    Parameters
    ----------
    sampler, surrogate, schedule, explorer, correction
        Names, pairs of name and settings, or what the user gave; None as usual.
    reason
        Why, with the figures measured.
    settings
        More settings of the sampler.
    """

    sampler: Any
    surrogate: Any
    schedule: Any
    explorer: Any
    correction: Any
    reason: str
    settings: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def line(self) -> str:
        """What was picked as keyword arguments of ``sample``, and why, in one line."""
        names = ("sampler", "surrogate", "explorer", "schedule", "correction")
        parts = {name: getattr(self, name) for name in names}
        given = ", ".join(f"{name}={_written(spec)}" for name, spec in parts.items() if spec)
        return f"{given}: {self.reason}"


def choice_of(
    composer: Composer,
    target: RecordingPotential,
    costs: Costs,
    fixed: Fixed,
    starts: FloatArray,
    rng: np.random.Generator,
) -> Choice:
    """Pick the parts of a run by what the target offers and by what its calls cost.

    Parameters
    ----------
    composer
        Knows what is registered.
    target
        Counts what is paid to decide.
    costs
        Measured.
    fixed
        What the user has named.
    starts : ndarray of shape (chains, dim)
        Where chains start, the best first.
    rng
        Generator.
    """
    picker = _Picker(composer, target.capabilities, fixed)
    timed = _timed(costs)
    if not fixed.warms_up:
        return picker.plain(f"{timed}, but there is no warm-up to learn in")
    prospect = None
    if picker.may_subsample and (costs.gradient or 0.0) >= CHEAP_ROWS:
        prospect = prospect_of(composer, target, starts[0], rng)
    if prospect is not None and prospect.is_good:
        return picker.subsampled(f"{timed}, and {prospect}")
    if prospect is not None and prospect.is_nearly_normal:
        return picker.normal(f"{timed}, and {prospect}")
    # surrogates that copy rows of the data serve for less, and chains advance as one batch
    has_rows = ROWS in target.capabilities
    takes = costs.gradients if has_rows else costs.gradient
    emulates = FORWARD in target.capabilities
    cheap = CHEAP_OUTPUTS if emulates else CHEAP
    if takes is not None and takes < cheap and not fixed.learns:
        return picker.plain(f"{timed}, so plain HMC would do")
    if not picker.has("surrogate", DEFAULT_SURROGATE):
        return picker.plain(f"{timed}, but no surrogate {DEFAULT_SURROGATE!r} is registered")
    if has_rows:
        return picker.surrogate(_OF_ROWS, timed if prospect is None else f"{timed}, and {prospect}")
    what = "the outputs are learnt" if emulates else "the potential is learnt"
    with_what = "" if GRADIENT in target.capabilities else " from values"
    reason = f"{timed}, and {what}{with_what}"
    if emulates and costs.gradient is not None and costs.gradient < SHORT:
        return picker.single_paths(DEFAULT_SURROGATE, f"{reason}; values are cheap")
    return picker.surrogate(DEFAULT_SURROGATE, reason)


def plain_choice(
    composer: Composer, capabilities: Capabilities, settings: Mapping[str, Any], reason: str
) -> Choice:
    """Return an exact kernel that a target allows for.

    Parameters
    ----------
    composer
        Knows what is registered.
    capabilities
        What the target offers.
    settings
        Of the sampler.
    reason
        Why there is no surrogate.
    """
    return _Picker(composer, capabilities, Fixed(settings=settings)).plain(reason)


def fallback_of(
    composer: Composer,
    capabilities: Capabilities,
    costs: Costs,
    dim: int,
    draws: int,
    settings: Mapping[str, Any],
) -> Fallback | None:
    """Return the exact kernel to go on with where a surrogate is not worth it, if there is one.

    Parameters
    ----------
    composer
        Makes its parts.
    capabilities
        What the target offers.
    costs
        Of the target's calls.
    dim
        Numbers in a position.
    draws
        About independent draws of each chain that are wanted.
    settings
        Of the sampler; for one that takes gradients, as those of paths on a surrogate are.
    """
    name, seconds, steps = GRADIENT_FREE_SAMPLER, costs.values * dim / WALK_EFFICIENCY, None
    given: Mapping[str, Any] = {}
    if costs.gradients is not None:
        name, steps, given = GRADIENT_SAMPLER, GRADIENTS_A_DRAW, settings
        seconds = costs.gradients * steps
    parts: tuple[tuple[Kind, str], ...] = (
        ("sampler", name),
        ("correction", DEFAULT_CORRECTION),
        ("schedule", QUIET_SCHEDULE),
    )
    if any(part not in composer.catalogue.names(kind) for kind, part in parts):
        return None
    sampler = composer.make("sampler", name, **given)
    correction, schedule = (composer.make(kind, part) for kind, part in parts[1:])
    if not sampler.needs <= capabilities:
        return None
    return Fallback(
        name=name,
        sampler=sampler,
        correction=correction,
        schedule=schedule,
        # of few draws each has to be worth something
        seconds_per_draw=(1.0 + TENTH + min(TUNED_AFTER_DROP / draws, 1.0)) * seconds,
        seconds_per_value=costs.values,
        steps_per_draw=steps,
    )


def exploration_limit(costs: Costs, chains: int, draws: int) -> Budget:
    """Return what looking for a surrogate may cost where plain HMC would do it as well.

    A tenth of the bill that HMC is expected to run up for the same draws, and part of what it
    saves in warm-up when it begins with what the exploration has found.

    Parameters
    ----------
    costs
        Of the target's calls; without a gradient there is no such limit.
    chains, draws
        Sizes.
    """
    if costs.gradients is None:
        return Budget()
    iterations = TENTH * (WARMUP + draws) + _SAVED * (WARMUP - TUNED_AFTER_DROP)
    gradients = GRADIENTS_A_DRAW * iterations
    return Budget(max_calls=math.ceil(gradients * chains), max_seconds=gradients * costs.gradients)


def _timed(costs: Costs) -> str:
    if costs.gradient is None:
        return f"a value takes {in_words(costs.value)}, there is no gradient"
    return f"a gradient takes {in_words(costs.gradient)}"


def _written(spec: Any) -> str:
    """Return a part as it would be typed, or described where it is an object."""
    return repr(spec) if named(spec) is not None else f"<{type(spec).__name__}>"


@attrs.frozen
class _Picker:
    """Picks among what is registered."""

    composer: Composer
    capabilities: Capabilities
    fixed: Fixed

    def has(self, kind: Kind, name: str) -> bool:
        return name in self.composer.catalogue.names(kind)

    @property
    def may_subsample(self) -> bool:
        fixed = self.fixed
        names = (
            ROWS in self.capabilities,
            self.has("sampler", _NORMAL),
            self.has("surrogate", _QUADRATIC),
            self.has("explorer", _EXPLORER) or fixed.explorer is not None,
            fixed.correction is None or described(fixed.correction).startswith(SUBSAMPLED),
            not fixed.settings,
        )
        return all(names)

    def plain(self, reason: str) -> Choice:
        has_gradient = GRADIENT in self.capabilities
        sampler = GRADIENT_SAMPLER if has_gradient else GRADIENT_FREE_SAMPLER
        return self._choice(sampler, None, reason)

    def subsampled(self, reason: str) -> Choice:
        choice = self._choice(_NORMAL, _QUADRATIC, reason)
        return attrs.evolve(choice, correction=self.fixed.correction or SUBSAMPLED)

    def normal(self, reason: str) -> Choice:
        return self._choice(_NORMAL, _QUADRATIC, reason)

    def surrogate(self, name: str, reason: str) -> Choice:
        if not self.has("surrogate", name):
            name = DEFAULT_SURROGATE
        if not self.has("sampler", _SAMPLER):
            return self._choice(GRADIENT_SAMPLER, name, reason)
        kernel = (GRADIENT_SAMPLER, dict(self.fixed.settings))
        sampler = (_SAMPLER, {"kernel": kernel}) if kernel[1] else _SAMPLER
        return attrs.evolve(self._choice(sampler, name, reason), settings={})

    def single_paths(self, name: str, reason: str) -> Choice:
        settings = dict(self.fixed.settings) or _SINGLE_PATHS
        choice = self._choice((GRADIENT_SAMPLER, settings), name, reason)
        return attrs.evolve(choice, settings={})

    def _choice(self, sampler: Any, surrogate: str | None, reason: str) -> Choice:
        fixed = self.fixed
        explorer, schedule = fixed.explorer, fixed.schedule
        if surrogate is not None:
            found = _EXPLORER if self.has("explorer", _EXPLORER) else DEFAULT_EXPLORER
            explorer, schedule = explorer or found, schedule or DEFAULT_SCHEDULE
        return Choice(
            sampler=sampler,
            surrogate=surrogate,
            schedule=schedule,
            explorer=explorer,
            correction=fixed.correction,
            reason=reason,
            settings=fixed.settings,
        )
