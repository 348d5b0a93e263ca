"""What a ledger says of a run: its settings, its sessions, its generator and its account."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import attrs
import numpy as np

from surrokit.capabilities import CALL_KINDS
from surrokit.cost.budget import Budget
from surrokit.errors import ConfigurationError, LedgerError
from surrokit.failures import FailureKind, Recheck
from surrokit.interfaces import Evaluations, Past
from surrokit.ledger.store import Store, reading
from surrokit.model.calls import OnError
from surrokit.modes import Evidences, Modes, Searches
from surrokit.plan.recipe import (
    LARGEST,
    PARTS,
    Extension,
    ModeWeights,
    Recipe,
    arguments_of,
    can_write,
    from_plain,
    is_bounded,
    is_data,
    seed_of,
    to_plain,
)
from surrokit.plan.repair import Safety
from surrokit.potentials import Potential
from surrokit.progress import duration
from surrokit.registry.catalogue import Spec, default_catalogue
from surrokit.result.records import Adaptation, Choice, Repair
from surrokit.targets.differences import Differences

PROGRESS = "progress"
"""The fact that says in a sentence how far a run is within an iteration, and when that was."""

_MOST_OF_TIME = 10**18  # draws or calls that a file may name


# --- how far a run is ---


@attrs.frozen(kw_only=True)
class Account:
    """What a run has done so far."""

    state: str = "running"
    calls: Mapping[str, int]
    n_rows: int | None
    failures: int
    failure_kinds: Mapping[str, FailureKind]
    recheck: Recheck
    seconds: Mapping[str, float]
    iteration: int
    adaptation: Adaptation
    sampler: Mapping[str, tuple[str, ...]]
    stopped: str | None
    length: str | None
    chosen: Choice | None
    parts: Mapping[str, str]
    kept: int
    weights: WeightsAccount | None
    modes: Modes | None


@attrs.frozen(kw_only=True)
class WeightsAccount:
    """What there is to say of weighted answers beside their rounds."""

    reason: str | None
    rejected: int
    calls: float
    unnormalized: tuple[str, ...]


def read_account(store: Store) -> Account | None:
    """Return what a run has done so far; None if nothing is written."""
    with reading(store.path):
        facts = store.facts()
        if "account" not in facts:
            return None
        account: Account = structure(Account, facts["account"])
        if account.calls.keys() != set(CALL_KINDS):
            raise ValueError("calls of no known kind are counted")
        return account


def read_progress(store: Store) -> str | None:
    """Return how far a run is in a sentence, and how long ago that was; None if nothing says it."""
    written = store.facts().get(PROGRESS)
    if written is None:
        return None
    with reading(store.path):
        text, at = structure(str, written["text"]), structure(float, written["at"])
        return f"{text} ({duration(max(time.time() - at, 0.0), whole=True)} ago)"


# --- what was asked for ---


@attrs.frozen(kw_only=True)
class Settings:
    """What a run was asked for, without its arrays.

    ``parts`` are those that a file may hold, and ``objects`` says what the others are.
    """

    name: str
    chains: int
    warmup: int | None
    draws: int | None
    on_error: OnError
    retries: int
    timed: tuple[float, float | None] | None
    modes: ModeWeights
    safety: Safety
    budget: Budget
    differences: bool
    parts: Mapping[str, Any]
    objects: Mapping[str, str]
    target: Any

    def __attrs_post_init__(self) -> None:
        least = {"chains": 1, "warmup": 0, "draws": 1, "retries": 0}
        numbers = {name: getattr(self, name) for name in least}
        if any(n is not None and n < least[name] for name, n in numbers.items()):
            raise ValueError("sizes are out of range")
        if not self.parts.keys() <= set(PARTS):
            raise ValueError("there are parts of no known name")


# resolved here, as nothing is evaluated while a file is read
_FIELDS = {
    of: get_type_hints(of)
    for of in (
        *(Account, WeightsAccount, Adaptation, Repair, Searches, Choice, FailureKind, Recheck),
        *(Modes, Evidences),
        *(Settings, Extension, Safety, Budget),
    )
}


def structure(of: Any, plain: Any) -> Any:
    """Return plain data as a value of a type, or raise ValueError where it is none.

    Types are numbers, text, arrays, choices of words, records, and tuples and mappings of these.
    """
    origin, inside = get_origin(of), get_args(of)
    if of is Any:
        return plain
    if origin in (Union, UnionType):
        if plain is None and type(None) in inside:
            return None
        (of,) = (each for each in inside if each is not type(None))
        return structure(of, plain)
    if of in _FIELDS and isinstance(plain, Mapping):
        types = _FIELDS[of]
        return of(**{name: structure(types[name], each) for name, each in plain.items()})
    if origin is tuple and isinstance(plain, list):
        of_each = inside[:1] * len(plain) if inside[-1] is ... else inside
        return tuple(structure(*pair) for pair in zip(of_each, plain, strict=True))
    if origin is Literal and plain in inside:
        return plain
    if origin is np.ndarray:
        return np.array(plain, dtype=np.float64)
    if isinstance(plain, Mapping) and origin not in (None, tuple, Literal):
        return {str(name): structure(inside[1], each) for name, each in plain.items()}
    if of in (bool, int, float, str) and (
        type(plain) is of or (of is float and type(plain) is int)
    ):
        return plain
    raise ValueError(f"{str(plain)[:80]!r} is not of type {of}")


_AS_THEY_ARE = ("name", "chains", "warmup", "draws", "on_error", "retries", "timed", "modes")


def describe_settings(asked: Recipe) -> dict[str, Any]:
    """Return the facts of what a run was asked for."""
    given, catalogue = {name: getattr(asked, name) for name in PARTS}, default_catalogue()
    plain = {name: to_plain(p) for name, p in given.items() if is_data(name, p, catalogue)}
    settings = {
        **{name: getattr(asked, name) for name in _AS_THEY_ARE},
        "safety": attrs.asdict(asked.safety),
        "budget": attrs.asdict(asked.budget),
        "differences": isinstance(asked.exact, Differences),
        "parts": plain,
        "objects": {name: _describe(part) for name, part in given.items() if name not in plain},
        "target": to_plain(asked.target if can_write(asked.target) else None),
    }
    records = {name: getattr(asked, name) for name in ("evaluations", "past")}
    arrays = {
        name: None if of is None else attrs.asdict(of, recurse=False)
        for name, of in records.items()
    }
    return {"settings": settings, "initial": asked.initial, **arrays}


def _describe(part: Any) -> str:
    """Return the name of a part, or the type of an object."""
    return str(part[0]) if isinstance(part, tuple) and part else type(part).__name__


def _settings(store: Store, facts: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
    """Return what was asked for, with what a file must not give among its objects; and parts."""
    raw = facts["settings"]
    _check_bounds(store.path, raw)
    settings: Settings = structure(Settings, raw)
    held = {name: from_plain(part) for name, part in settings.parts.items()}
    catalogue = default_catalogue()
    parts = {name: part for name, part in held.items() if is_data(name, part, catalogue)}
    others = {name: _describe(part) for name, part in held.items() if name not in parts}
    return attrs.evolve(settings, objects={**settings.objects, **others}), parts


def _check_bounds(path: Path, *given: Mapping[str, Any]) -> None:
    """Raise if sizes are larger than a file may name."""
    of_memory = [{name: of.get(name) for name in ("chains", "retries", "safety")} for of in given]
    of_time = [
        {name: of.get(name) for name in ("warmup", "draws", "after", "budget")} for of in given
    ]
    if not (is_bounded(of_memory) and is_bounded(of_time, _MOST_OF_TIME)):
        raise LedgerError(
            f"{path} names a size that is too large for a file: more than {LARGEST:,} chains, "
            f"steps or retries, or more than {_MOST_OF_TIME:.0e} draws or calls. Begin a new run"
        )


def _recipe(
    settings: Settings, facts: Mapping[str, Any], exact: Potential, parts: Mapping[str, Any]
) -> Recipe:
    initial = facts["initial"]
    if initial is not None and (initial.ndim != 2 or len(initial) != settings.chains):
        raise ValueError("starts are not one for each chain")
    evaluations, past = facts["evaluations"], facts["past"]
    return Recipe(
        exact=exact,
        **parts,
        **{name: getattr(settings, name) for name in (*_AS_THEY_ARE, "safety", "budget")},
        initial=initial,
        evaluations=evaluations and Evaluations(**evaluations),
        past=past and Past(**past),
    )


def read_settings(store: Store, exact: Potential, given: Mapping[str, Any]) -> Recipe:
    """Return what a run was asked for, of a target as the run has it.

    ``given`` are the parts by kind that are not in the file; None where not given.
    """
    with reading(store.path):
        facts = store.facts()
        settings, parts = _settings(store, facts)
        objects, given = settings.objects, {n: p for n, p in given.items() if p is not None}
        missing = [name for name in objects if name not in given]
        if missing:
            held = ", ".join(f"{name} ({objects[name]})" for name in missing)
            again = ", ".join(f"{name}=..." for name in missing)
            raise ConfigurationError(
                "the run has parts that no file may give, as they are more than plain data or "
                f"numbers up to {LARGEST:,}: {held}. Pass them again, as {again}"
            )
        if more := [name for name in given if name not in objects]:
            raise ConfigurationError(
                f"the ledger holds the run's {', '.join(more)}, which cannot be changed; leave it "
                "out, or begin a new run with warm_start=..."
            )
        return _recipe(settings, facts, exact, {**parts, **given})


def read_target(path: Path) -> Spec:
    """Return the registered name of a run's target, alone or with settings.

    Only those that are plain data come from the file: it may not name what is to be imported or
    read, as a setting that is text could.
    """
    with closing(Store.open(path)) as store, reading(path):
        settings = store.facts_of_run()["settings"]
        target, name = from_plain(settings.get("target")), str(settings.get("name"))
    if target is None or not is_data("potential", target, default_catalogue()):
        of = name if target is None else _describe(target)
        raise ConfigurationError(
            f"{path} does not hold the run's target ({of}): a file holds a registered name with "
            f"plain data alone. Give it again: surrokit.resume({path.name!r}, target, ...), or "
            f"surrokit resume {path.name} TARGET"
        )
    return cast(Spec, target)


def read_arguments(store: Store) -> dict[str, Any]:
    """Return what :func:`surrokit.sample` was given, by name, without what is the default.

    An ellipsis stands for objects and arrays. Draws and limits are those of the last session.
    """
    with reading(store.path):
        facts = store.facts()
        settings, parts = _settings(store, facts)
        parts |= dict.fromkeys(settings.objects, ...)
        asked = _recipe(settings, facts, cast(Potential, None), parts)
        asked = read_extensions(store, asked)[-1].asked_of(asked)
        seed, target = seed_of(read_generator(store)), from_plain(settings.target)
        return arguments_of(attrs.evolve(asked, target=target, seed=seed))


# --- sessions ---


def write_extensions(store: Store, extensions: Sequence[Extension]) -> None:
    """Write the sessions of a run."""
    store.write_facts({"extensions": [attrs.asdict(each) for each in extensions]})


def read_extensions(store: Store, asked: Recipe) -> list[Extension]:
    """Return the sessions of a run so far, at least the first one."""
    with reading(store.path):
        reported = store.facts().get("extensions", [])
        _check_bounds(store.path, *reported)
        return [structure(Extension, each) for each in reported] or [Extension.of(asked)]


# --- the generator ---

_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def describe_generator(rng: np.random.Generator) -> dict[str, Any]:
    """Return the fact of a generator: its state, and what its children are spawned from."""
    bits: Any = rng.bit_generator
    seeds = bits.seed_seq
    if type(seeds) is not np.random.SeedSequence or type(bits).__name__ not in _GENERATORS:
        raise ConfigurationError(
            "with path=... the seed must be a whole number or a generator of numpy's own, got "
            f"{rng!r} seeded by a {type(seeds).__name__}; pass seed=1, say"
        )
    names = ("entropy", "spawn_key", "pool_size", "n_children_spawned")
    state = {"name": type(bits).__name__, "state": bits.state}
    return {"generator": to_plain(state | {name: getattr(seeds, name) for name in names})}


def read_generator(store: Store) -> np.random.Generator:
    """Return the generator as it was."""
    with reading(store.path):
        state = from_plain(store.facts()["generator"])
        if state["name"] not in _GENERATORS:
            raise ValueError(f"there is no generator {state['name']!r} of numpy's")
        seeds = np.random.SeedSequence(
            state["entropy"],
            spawn_key=state["spawn_key"],
            pool_size=min(int(state["pool_size"]), 1024),
            n_children_spawned=state["n_children_spawned"],
        )
        bits = getattr(np.random, state["name"])(seeds)
        bits.state = state["state"]
        return np.random.Generator(bits)
