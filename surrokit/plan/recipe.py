"""The recipe of a run: its parts, sizes and limits, filled in step by step."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NewType,
    Protocol,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import is_number
from surrokit.capabilities import GRADIENT
from surrokit.compute import Compute
from surrokit.cost.budget import Budget
from surrokit.errors import ConfigurationError, SurrokitError
from surrokit.interfaces import Evaluations, Past
from surrokit.model.calls import OnError
from surrokit.model.model import calls_per_gradient
from surrokit.plan.repair import Fallback, Safety
from surrokit.potentials import Potential
from surrokit.registry.catalogue import Catalogue, Composer, name_and_settings
from surrokit.registry.components import KINDS, NO_LEARNING, Kind
from surrokit.result.records import Choice
from surrokit.types import FloatArray

if TYPE_CHECKING:
    from surrokit.cost.measuring import Costs
    from surrokit.cost.recording import RecordingPotential


ModeWeights: TypeAlias = Literal["weighted", "as found"]
"""What becomes of draws of chains that stay at modes."""

WARMUP = 1000
"""Most iterations of warm-up where no number is given."""

DRAWS = 1000
"""Draws kept of each chain where no number is given."""

MOST_DRAWS = 100_000
"""Most draws of each chain where their quality ends the run and no number is given."""

TUNED_AFTER_DROP = 300
"""Iterations of warm-up on the exact potential where a surrogate was not worth its cost."""

JUDGED = 20
"""Last iterations of the warm-up by which a surrogate is judged again; :data:`SHORTEST` are enough
if there are no more."""

PART_BEFORE_DRAWS = 0.5
"""Part of the budget that exploration and a warm-up of open length may take together."""


LAST_PART = 0.1
"""Part of the iterations so far that a warm-up of open length still makes once its part of the
budget is about used up.

A limit is most likely reached where iterations are expensive; chains forget that meanwhile.
"""


def ending(iteration: int) -> int:
    """Return the last iteration of a warm-up whose budget is about used up at ``iteration``."""
    return iteration + math.ceil(LAST_PART * iteration)


GRADIENTS_A_DRAW = 10
"""Gradients that an iteration of HMC is expected to take."""

MANY_TIMES, NAMED_TIMES = 50, 500
"""Times as many calls as are expected, at which a run without ``max_calls`` ends: one whose parts
are picked, and one whose sampler or surrogate is named, as these may take more on purpose."""

_OF_TAILS = 4.5
"""Variance of the 5 % quantile of a normal distribution, times the draws, in its variances."""


@attrs.frozen(kw_only=True, eq=False)
class Recipe:
    """The parts that a run is to have, by name or as objects, its sizes and its limits.

    A policy fills in open parts (:meth:`fill`); :func:`surrokit.plan.plan.make_plan` makes them.

    Parameters
    ----------
    target
        The name of a registered target, alone or with settings; None of any other one.
    seed
        What makes the run's generator again; an ellipsis where that is not known.
    sampler, surrogate, schedule, explorer, correction
        Names, pairs of name and settings, objects, or None where left open.
    policy
        Picks these parts where neither a sampler nor a surrogate is named; given likewise.
    chains, warmup, draws
        Sizes; None where left open.
    initial : ndarray of shape (chains, dim), optional
        Starts of the chains in the sampling coordinates; once calls are timed, the positions that
        were used for that.
    evaluations
        Exact evaluations already made, in the sampling coordinates.
    past
        Draws of earlier runs; None without.
    on_error
        What to do where the target fails.
    retries
        How often a position that failed is evaluated again at most, with ``"retry"``.
    safety
        What to do when the surrogate fails.
    exploration
        Limits of the exploration alone, which then ends early.
    fallback
        The exact kernel that replaces a surrogate not worth its cost; None to keep the surrogate.
    chosen
        The parts filled in, why, and what replaced them later; None where there are none such.
    noticed
        What was noticed of the target on the way, in sentences.
    workers
        Calls of the target that may go on at once.
    modes
        Whether chains that stay at modes are weighted by these, or are left as they are.
    timed
        Seconds of a value and of a gradient at one position, None where there is no gradient; None
        where no calls were timed, in this run or of its model before.
    """

    exact: Potential
    name: str = "target"
    target: Any = None
    seed: Any = ...
    sampler: Any = None
    surrogate: Any = None
    schedule: Any = None
    explorer: Any = None
    correction: Any = None
    policy: Any = None
    chains: int = 4
    warmup: int | None = None
    draws: int | None = None
    initial: FloatArray | None = None
    evaluations: Evaluations | None = None
    past: Past | None = None
    on_error: OnError = "reject"
    retries: int = 0
    safety: Safety = attrs.field(factory=Safety)
    budget: Budget = attrs.field(factory=Budget)
    exploration: Budget = attrs.field(factory=Budget)
    fallback: Fallback | None = None
    chosen: Choice | None = None
    noticed: tuple[str, ...] = ()
    workers: int = 1
    modes: ModeWeights = "weighted"
    timed: tuple[float, float | None] | None = None

    @property
    def choice(self) -> str | None:
        """The parts filled in, and why, in words; None where none was."""
        return None if self.chosen is None else str(self.chosen)

    @property
    def is_open(self) -> bool:
        """Whether a policy picks the parts."""
        return self.sampler is None and self.surrogate is None

    @property
    def most_warmup(self) -> int:
        """Most iterations of warm-up, as far as is known before the run."""
        return WARMUP if self.warmup is None else self.warmup

    @property
    def most_draws(self) -> int:
        """Most draws of each chain."""
        return Extension.of(self).most_draws

    @property
    def wanted_draws(self) -> int:
        """Number of about independent draws of each chain that would be enough."""
        if self.budget.target_mcse is not None:
            return min(
                self.most_draws, math.ceil(_OF_TAILS / self.budget.target_mcse**2 / self.chains)
            )
        if self.budget.target_ess is None:
            return min(self.most_draws, DRAWS) if self.draws is None else self.draws
        return min(self.most_draws, math.ceil(self.budget.target_ess / self.chains))

    @property
    def most_calls(self) -> float:
        """The default limit on calls, which ends a run that would go on for ever.

        Iterations are expected to take ten gradients each, or as many as ``n_steps`` says. Where
        gradients are made of values, or there are none, half as many values as a gradient to one
        side: chains that move by values alone take one.
        """
        named = name_and_settings(self.sampler)
        n_steps = None if named is None else named[1].get("n_steps")
        price: float = max(GRADIENTS_A_DRAW, n_steps or 0)
        if calls_per_gradient(self.exact) > 1 or GRADIENT not in self.exact.capabilities:
            price = (1 + self.exact.dim) / 2
        iterations = self.chains * (self.most_warmup + max(self.wanted_draws, DRAWS))
        return price * iterations * (MANY_TIMES if self.is_open else NAMED_TIMES)

    @property
    def hurry(self) -> Budget:
        """The part of the budget after which a warm-up of open length comes to its end."""
        return self.budget.part(PART_BEFORE_DRAWS / (1.0 + LAST_PART))

    def needs_surrogate(self, catalogue: Catalogue) -> bool:
        """Return whether something was given that only a surrogate can use."""
        given = (self.explorer, self.evaluations)
        return (
            self.schedule not in (None, catalogue.pick("schedule", NO_LEARNING))
            or any(part is not None for part in given)
            or bool(self.safety.mix)
        )

    def fill(self, reason: str, **parts: Any) -> Recipe:
        """Return a copy with parts filled in.

        Parameters
        ----------
        reason
            Why these parts, with the figures measured; it follows the reasons of parts that were
            filled in before.
        **parts
            Fields with their new values: names, pairs of name and settings, or objects.
        """
        recipe = attrs.evolve(self, **parts)
        kinds = ("sampler", "surrogate", "explorer", "schedule", "correction")
        specs = {kind: getattr(recipe, kind) for kind in kinds}
        given = {kind: _spell(spec) for kind, spec in specs.items() if spec}
        chosen = attrs.evolve(self.chosen or Choice(), parts=given).because(reason)
        return attrs.evolve(recipe, chosen=chosen)


def _spell(spec: Any) -> str:
    """Return a part as it would be typed, or described where it is an object."""
    return repr(spec) if name_and_settings(spec) is not None else f"<{type(spec).__name__}>"


GOALS: Final = ("target_ess", "target_rhat", "target_mcse")
"""Limits that draws reach by being good enough."""

LIMITS: Final = ("max_calls", "max_seconds")
"""Limits that cut a run."""


@attrs.frozen(kw_only=True)
class Extension:
    """Sizes and limits of a session of a run; what was decided before stays as it was.

    Parameters
    ----------
    draws
        Draws of each chain in all; None where left open.
    after
        Number of the last event in the journal before this session; 0 for the first one.
    """

    draws: int | None
    budget: Budget
    after: int = attrs.field(default=0, eq=False)

    @classmethod
    def of(cls, recipe: Recipe) -> Extension:
        """Return the sizes and limits that a recipe has."""
        return cls(draws=recipe.draws, budget=recipe.budget)

    @property
    def most_draws(self) -> int:
        """Most draws of each chain."""
        if self.draws is not None:
            return self.draws
        return MOST_DRAWS if self.budget.looks_at_draws else DRAWS

    def asked_of(self, recipe: Recipe) -> Recipe:
        """Return a recipe with these sizes and limits."""
        return attrs.evolve(recipe, draws=self.draws, budget=self.budget)


def make_room(changed: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits that change, so that more draws are made than there are.

    Goals that a run has reached would end it at once again: they no longer hold.

    Parameters
    ----------
    changed
        Limits that its user changes, by name.
    account
        What its file says of the run so far.

    Raises
    ------
    ConfigurationError
        If a limit has cut the run, and stays.
    """
    ended_by = account.get("stopped") if account.get("state") == "ended" else None
    if ended_by in LIMITS and ended_by not in changed:
        raise ConfigurationError(
            f"the run has ended as {ended_by} was reached, which leaves no room for more draws; "
            f"pass a larger {ended_by} too, or None for no limit"
        )
    met = dict.fromkeys(GOALS) if ended_by in GOALS else {}
    return {**met, **changed}


class Policy(Protocol):
    """Picks the parts of a run where its user names neither a sampler nor a surrogate.

    It receives what the target offers and what its calls cost, and finds parts by the purposes that
    their components name (:meth:`surrokit.registry.catalogue.Catalogue.serving`).
    """

    def choose(
        self,
        composer: Composer,
        recipe: Recipe,
        target: RecordingPotential,
        costs: Costs,
        rng: np.random.Generator,
    ) -> Recipe:
        """Return a recipe with its parts picked; the run counts the calls made for that.

        The policy may also set ``exploration``, the limit of what the search for a surrogate may
        cost, and ``fallback``, the exact kernel that replaces a surrogate not worth its cost.

        Parameters
        ----------
        composer
            Knows what is registered, and makes it.
        recipe
            Holds the parts that the user has named, which stay as they are; its ``initial`` holds
            the starts of the chains, the best first.
        target
            The exact potential, which counts the policy's calls.
        """

    def plain(self, composer: Composer, recipe: Recipe, reason: str) -> Recipe:
        """Return a recipe with an exact kernel that suits its target, without any measurement.

        Parameters
        ----------
        recipe
            Holds the settings of the sampler that the user has named.
        """


LARGEST = 1_000_000
"""Largest whole number that a file may name, of nodes, chains, steps or anything else that takes
memory or time; seeds may be larger. A part with a larger one has to be given again."""

_ARRAY_LIKE = frozenset(get_args(npt.ArrayLike))
_OF_NUMBERS = re.compile(r"[<>=|]?[biuf]\d{1,2}")


def to_plain(value: Any) -> Any:
    """Return a setting as JSON can hold it.

    Raises
    ------
    TypeError
        If it is an object that JSON cannot hold.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, tuple):
        return {"tuple": [to_plain(each) for each in value]}
    if isinstance(value, list):
        return [to_plain(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {"dict": {name: to_plain(each) for name, each in value.items()}}
    raise TypeError(f"a {type(value).__name__} is no plain data")


def can_write(value: Any) -> bool:
    """Return whether a setting is plain data."""
    try:
        to_plain(value)
    except TypeError:
        return False
    return True


def from_plain(data: Any) -> Any:
    """Return a setting from what :func:`to_plain` made of it."""
    if isinstance(data, list):
        return [from_plain(each) for each in data]
    if not isinstance(data, dict):
        return data
    if "tuple" in data:
        return tuple(from_plain(each) for each in data["tuple"])
    if "array" in data:
        return numbers_of(data["array"], data["dtype"])
    return {name: from_plain(each) for name, each in data["dict"].items()}


def numbers_of(data: Any, dtype: str) -> npt.NDArray[Any]:
    """Return an array of numbers from plain data.

    Raises
    ------
    ValueError
        If ``dtype`` is not the name of a type of numbers.
    """
    if not _OF_NUMBERS.fullmatch(dtype):
        raise ValueError(f"{dtype!r} is no type of numbers")
    return np.array(data, dtype=dtype)


# --- what a file may give ---


def is_data(name: str, value: Any, catalogue: Catalogue) -> bool:
    """Return whether a file may hold a part of a run, or a setting of its sampler.

    It may hold a registered name, with settings that are plain data by the types that the part
    declares. It may not hold an object, or text for which a part declares no choice of words: that
    may name what is to be imported, or a file to be read.

    Parameters
    ----------
    name
        A kind of part, or the name of a setting that takes a number.
    value
        Name, pair of name and settings, number, or anything else.
    catalogue
        Where names are looked up.

    """
    if name not in KINDS:
        return value is None or is_number(value)
    if value is None or isinstance(value, str):
        return True
    if not (isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping)):
        return False
    found = name_and_settings(value)
    return found is not None and _are_data(name, *found, catalogue)


def _are_data(kind: Kind, name: str, settings: Mapping[str, Any], catalogue: Catalogue) -> bool:
    entry = catalogue.entries.get((kind, name))
    if entry is None or not settings:  # of an unknown name nothing is made
        return True
    try:
        known, parts = entry.settings(), entry.parts
    except SurrokitError:  # it cannot be imported, so that it declares nothing
        return False
    return all(
        is_data(parts[each].kind, value, catalogue)
        if each in parts
        else each in known
        and is_of(value, known[each].takes)
        and (is_bounded(value) or each == "seed")
        for each, value in settings.items()
    )


def is_bounded(value: Any, largest: int = LARGEST) -> bool:
    """Return whether no whole number in plain data is larger than a file may name."""
    if isinstance(value, Mapping):
        return all(is_bounded(each, largest) for each in value.values())
    if isinstance(value, tuple | list):
        return all(is_bounded(each, largest) for each in value)
    return not isinstance(value, int | np.integer) or abs(int(value)) <= largest


Text = NewType("Text", str)
"""Any text, of what is only shown; as ``str`` a type is no plain data."""


def is_of(value: Any, declared: Any) -> bool:
    """Return whether a value is plain data of a declared type.

    Parameters
    ----------
    declared
        The type. A dictionary of names and types stands for one that has these, if it has them.
    """
    if isinstance(declared, Mapping):
        return isinstance(value, Mapping) and all(
            is_of(value[name], of) for name, of in declared.items() if name in value
        )
    if declared is Text:
        return isinstance(value, str)
    if isinstance(value, np.generic):
        value = value.item()
    origin, inside = get_origin(declared), get_args(declared)
    if declared is Any:  # numbers name nothing
        return isinstance(value, bool) or _are_numbers(value)
    if origin in (Union, UnionType):
        if _ARRAY_LIKE and set(inside) >= _ARRAY_LIKE and _are_numbers(value):
            return True
        return any(is_of(value, each) for each in inside)
    if origin is Literal:
        return any(type(value) is type(word) and value == word for word in inside)
    if declared in (bool, int, float, NoneType):
        if isinstance(value, bool):
            return declared is bool
        return isinstance(value, (int, float) if declared is float else declared)
    if declared is np.ndarray or origin is np.ndarray:
        return _are_numbers(value)
    if origin is tuple and isinstance(value, tuple | list):
        if len(inside) == 2 and inside[1] is ...:
            return all(is_of(each, inside[0]) for each in value)
        return len(inside) == len(value) and all(map(is_of, value, inside))
    if origin in (list, Sequence) and isinstance(value, tuple | list):
        return all(is_of(each, inside[0]) for each in value)
    if origin in (dict, Mapping) and isinstance(value, Mapping):
        return all(isinstance(name, str) and is_of(each, inside[1]) for name, each in value.items())
    return False


def _are_numbers(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_are_numbers, value))
    return is_number(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "bif")


PARTS = ("sampler", "surrogate", "schedule", "explorer", "correction", "policy")
"""Parts of a recipe that may be objects, which no file can hold."""

_PLAIN_LIMITS = ("max_calls", "max_seconds", "target_ess")


def knows_coordinates(surrogate: object, sampler: object) -> bool:
    """Return whether a run is given something in the coordinates of the line.

    A ready surrogate, a metric that is more than a name and a step size hold there alone.
    """
    found = name_and_settings(sampler)
    settings = {} if found is None else found[1]
    named = settings.get("metric") is None or isinstance(settings["metric"], str)
    ready = hasattr(surrogate, "value") and not hasattr(surrogate, "learner")
    return ready or not named or settings.get("step_size") is not None


def split_policy(sampler: object, catalogue: Catalogue) -> dict[str, Any]:
    """Return a sampler and a policy of what was given as sampler, which may be either."""
    found = name_and_settings(sampler)
    if found is None:
        is_policy = callable(getattr(sampler, "choose", None))
    else:
        entries = catalogue.entries
        is_policy = ("policy", found[0]) in entries and ("sampler", found[0]) not in entries
    return {"policy": sampler} if is_policy else {"sampler": sampler}


def split_safety(schedule: object) -> dict[str, Any]:
    """Return a schedule and a safety of what was given as schedule, which may hold both."""
    if isinstance(schedule, Safety):
        return {"safety": schedule}
    if isinstance(schedule, tuple) and len(schedule) == 2 and isinstance(schedule[1], Safety):
        return {"schedule": schedule[0], "safety": schedule[1]}
    return {"schedule": schedule}


def seed_of(rng: np.random.Generator) -> Any:
    """Return the number that makes a generator again; an ellipsis if it was used already.

    Without a seed it is the entropy that was drawn.

    Parameters
    ----------
    rng
        The generator, before the run draws from it.
    """
    seeds = getattr(rng.bit_generator, "seed_seq", None)
    if not isinstance(seeds, np.random.SeedSequence) or seeds.n_children_spawned:
        return ...
    entropy: Any = seeds.entropy
    if isinstance(entropy, np.integer):
        entropy = int(entropy)
    fresh = np.random.default_rng(entropy)
    return entropy if fresh.bit_generator.state == rng.bit_generator.state else ...


def arguments_of(asked: Recipe) -> dict[str, Any]:
    """Return what :func:`surrokit.sample` was given, by name, without what is the default.

    An ellipsis stands for objects and arrays. The target is left out unless it is registered.
    """

    def shown(part: Any) -> Any:
        return part if part is None or can_write(part) else ...

    found = {"target": asked.target if can_write(asked.target) else None}
    found |= {name: shown(getattr(asked, name)) for name in PARTS}
    policy, budget = found.pop("policy"), asked.budget
    found["sampler"] = found["sampler"] or policy
    if asked.safety != Safety():
        named = found["schedule"]
        found["schedule"] = asked.safety if named is None else (named, asked.safety)
    found |= {"warmup": asked.warmup, "draws": asked.draws}
    known = {"initial": asked.initial, "warm_start": asked.past or asked.evaluations}
    found |= {name: None if value is None else ... for name, value in known.items()}
    found |= {name: getattr(budget, name) for name in _PLAIN_LIMITS}
    rest = attrs.evolve(budget, **dict.fromkeys(_PLAIN_LIMITS))
    found["budget"] = None if rest == Budget() else rest
    compute = Compute(on_error=asked.on_error, retries=asked.retries or None)
    found["compute"] = None if compute == Compute() else compute
    found["modes"] = None if asked.modes == "weighted" else asked.modes
    given = {name: value for name, value in found.items() if value is not None}
    return {**given, "chains": asked.chains, "seed": asked.seed}
