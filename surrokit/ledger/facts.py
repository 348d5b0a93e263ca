"""What a ledger says of a run: its settings, and its generator's first state."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import NoneType
from typing import Any, Literal, cast

import attrs
import numpy as np

from surrokit.capabilities import CALL_KINDS
from surrokit.cost.budget import Budget
from surrokit.errors import ConfigurationError, LedgerError
from surrokit.interfaces import Evaluations, Past
from surrokit.ledger.store import Store, reading
from surrokit.plan.recipe import (
    LARGEST,
    PARTS,
    Recipe,
    Sequel,
    Text,
    arguments_of,
    can_write,
    from_plain,
    is_bounded,
    is_data,
    is_of,
    seed_of,
    to_plain,
)
from surrokit.plan.repair import Safety
from surrokit.potentials import Potential
from surrokit.progress import Progress, duration
from surrokit.registry.catalogue import Spec, default_catalogue
from surrokit.targets.differences import Differences
from surrokit.types import FloatArray

_SIZES = ("name", "chains", "warmup", "draws", "on_error", "retries")
_RECORDS = {"evaluations": Evaluations, "past": Past}
_LIMITS = ("warmup", "draws", "after", "budget")
_MOST_OF_TIME = 10**18


_SIZE_TYPES: dict[str, Any] = {
    "name": Text,
    "chains": int,
    "warmup": int | None,
    "draws": int | None,
    "on_error": Literal["reject", "raise", "retry"],
    "retries": int,
    "differences": bool,
}
_ACCOUNT: dict[str, Any] = {
    "state": Text,
    "iteration": int,
    "calls": dict[str, int],
    "n_rows": int | None,
    "failures": int,
    "failure_kinds": dict[str, dict[str, int | Text | list[float] | None]],
    "recheck": {
        "tried": int,
        "worked": int,
        "apart": tuple[float, float] | None,
        "retries": int,
        "infinite": int,
        "finite": int,
    },
    "seconds": dict[str, float],
    "adaptation": {
        "deployments": list[int],
        "training_rows": int,
        "frozen_before_draws": bool,
        "rescues": list[dict[str, int | Text]],
        "jumps": int,
        "mix": float,
        "missed": int,
        "recalled": bool,
        "deployed_though_frozen": list[int],
        "searches": dict[str, list[int] | float | bool] | None,
    },
    "sampler": dict[str, list[Text]],
    "stopped": Text | None,
    "length": Text | None,
    "chosen": {
        "parts": dict[str, Text],
        "reasons": list[Text],
        "fallback": list[Text],
    },
    "parts": dict[str, Text],
    "kept": int,
    "weights": {
        "refused": Text | None,
        "rejected": int,
        "calls": float,
        "unnormalized": list[Text],
    },
}
_SEQUEL: dict[str, Any] = {"draws": int | None, "after": int}

PROGRESS = "progress"
"""The fact that says how far a run is within an iteration."""


def write_progress(store: Store, progress: Progress) -> None:
    """Write how far a run is: figures, the sentence that says them, and when that was."""
    figures = attrs.asdict(progress)
    figures["left"] = [None if math.isinf(seconds) else seconds for seconds in progress.left]
    with store.transaction():
        store.write_facts({PROGRESS: {**figures, "text": str(progress), "at": time.time()}})


def read_progress(store: Store) -> str | None:
    """Return how far a run is in a sentence, and how long ago that was; None if nothing says it."""
    written = store.facts().get(PROGRESS)
    if not isinstance(written, Mapping) or not is_of(written, {"text": Text, "at": float}):
        return None
    ago = duration(max(time.time() - written["at"], 0.0), whole=True)
    return f"{written['text']} ({ago} ago)"


def read_account(store: Store) -> dict[str, Any] | None:
    """Return what a run has done so far, as it is written; None if nothing is."""
    with reading(store.path):
        facts = store.facts()
        if "account" not in facts:
            return None
        account: Mapping[str, Any] = facts["account"]
        missing = [name for name in ("weights", "chosen") if not account.get(name)]
        form = {**_ACCOUNT, **dict.fromkeys(missing, NoneType)}
        if not is_of(account, form):
            raise ValueError("its account of the run has another form")
        return {
            **account,
            "calls": {kind: account.get("calls", {}).get(kind, 0) for kind in CALL_KINDS},
            "seconds": {"warmup": 0.0, "training": 0.0, "sampling": 0.0}
            | account.get("seconds", {}),
        }


def describe_settings(asked: Recipe) -> dict[str, Any]:
    """Return the facts and arrays of what a run was asked for.

    Of parts that no file may hold there is only what they are.
    """
    given = {name: getattr(asked, name) for name in PARTS}
    catalogue = default_catalogue()
    plain = {name: to_plain(p) for name, p in given.items() if is_data(name, p, catalogue)}
    objects = {name: _describe(part) for name, part in given.items() if name not in plain}
    settings = {
        **{name: getattr(asked, name) for name in _SIZES},
        "safety": attrs.asdict(asked.safety),
        "budget": attrs.asdict(asked.budget),
        "differences": isinstance(asked.exact, Differences),
        "parts": plain,
        "objects": objects,
        "target": to_plain(asked.target if can_write(asked.target) else None),
    }
    facts: dict[str, Any] = {"settings": settings}
    if asked.initial is not None:
        facts["initial"] = asked.initial
    for name in _RECORDS:
        record = getattr(asked, name)
        arrays = {} if record is None else attrs.asdict(record, recurse=False)
        facts |= {f"{name}/{of}": array for of, array in arrays.items() if array is not None}
    return facts


def read_settings(store: Store, exact: Potential, given: Mapping[str, Any]) -> Recipe:
    """Return what a run was asked for, of a target as the run has it.

    ``given`` are the parts by kind that are not in the file; None where not given.
    """
    with reading(store.path):
        facts, arrays = store.facts()["settings"], store.arrays()
        _check_bounds(store.path, facts)
        parts, objects = _read_parts(facts)
        _check_given(objects, given)
        return _recipe(
            facts, arrays, exact, parts | {n: p for n, p in given.items() if p is not None}
        )


def _read_parts(facts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return parts by name, and what those are that a file must not give."""
    held = {name: from_plain(part) for name, part in facts["parts"].items()}
    if not held.keys() <= set(PARTS):
        raise ValueError("there are parts of no known name")
    catalogue = default_catalogue()
    parts = {name: part for name, part in held.items() if is_data(name, part, catalogue)}
    others = {name: _describe(part) for name, part in held.items() if name not in parts}
    return parts, {**{str(name): str(of) for name, of in facts["objects"].items()}, **others}


def _describe(part: Any) -> str:
    """Return the name of a part, or the type of an object."""
    return str(part[0]) if isinstance(part, tuple) and part else type(part).__name__


def _check_bounds(path: Path, facts: Mapping[str, Any], *sessions: Mapping[str, Any]) -> None:
    """Raise if sizes are larger than a file may name."""
    of_memory = {name: facts.get(name) for name in ("chains", "retries", "safety")}
    of_time = [{name: each.get(name) for name in _LIMITS} for each in (facts, *sessions)]
    if is_bounded(of_memory) and is_bounded(of_time, _MOST_OF_TIME):
        return
    raise LedgerError(
        f"{path} names a size that is too large for a file: more than {LARGEST:,} chains, "
        f"steps or retries, or more than {_MOST_OF_TIME:.0e} draws or calls. Begin a new run"
    )


def _recipe(
    facts: Mapping[str, Any],
    arrays: Mapping[str, FloatArray],
    exact: Potential,
    parts: dict[str, Any],
) -> Recipe:
    """Return a recipe, unless sizes are such as no run can have been given."""
    least = {"chains": 1, "warmup": 0, "draws": 1, "retries": 0}
    numbers = {name: facts[name] for name in least if facts[name] is not None}
    if not is_of(facts, _SIZE_TYPES) or any(n < least[name] for name, n in numbers.items()):
        raise ValueError("sizes are out of range")
    initial = arrays.get("initial")
    if initial is not None and (initial.ndim != 2 or len(initial) != facts["chains"]):
        raise ValueError("starts are not one for each chain")
    records: dict[str, Any] = {}
    for name, of in _RECORDS.items():
        fields = [(field.name, f"{name}/{field.name}") for field in attrs.fields(of)]
        columns = {field: arrays[held] for field, held in fields if held in arrays}
        records[name] = of(**columns) if columns else None
    return Recipe(
        exact=exact,
        **{name: parts.pop(name, None) for name in PARTS},
        **{name: facts[name] for name in _SIZES},
        safety=Safety(**facts["safety"]),
        budget=Budget(**facts["budget"]),
        initial=initial,
        **records,
    )


def read_target(path: Path, run: int | None) -> tuple[int, Spec]:
    """Return the number of a run, by default the last one, and the registered name of its target.

    The name may be alone or with settings. Only those that are plain data come from the file: it
    may not name what is to be imported or read, as a setting that is text could.
    """
    with closing(Store.open(path, run=run)) as store, reading(path):
        facts, run = store.facts()["settings"], store.run
        target, name = from_plain(facts.get("target")), str(facts.get("name"))
    if target is None or not is_data("potential", target, default_catalogue()):
        of = name if target is None else _describe(target)
        raise ConfigurationError(
            f"{path} does not hold the run's target ({of}): a file holds a registered name with "
            f"plain data alone. Give it again: surrokit.resume({path.name!r}, target, ...), or "
            f"surrokit resume {path.name} TARGET"
        )
    return run, cast(Spec, target)


def read_arguments(store: Store) -> dict[str, Any]:
    """Return what :func:`surrokit.sample` was given, by name, without what is the default.

    An ellipsis stands for objects and arrays. Draws and limits are those of the last session.
    """
    with reading(store.path):
        facts, arrays = store.facts(), store.arrays()
        settings = facts["settings"]
        last = {**settings, **(facts.get("sequels") or [{}])[-1]}
        _check_bounds(store.path, last)
        parts, objects = _read_parts(settings)
        asked = _recipe(last, arrays, cast(Potential, None), parts | dict.fromkeys(objects, ...))
        seed = seed_of(read_generator(store))
        target = from_plain(settings.get("target"))
        return arguments_of(attrs.evolve(asked, target=target, seed=seed))


def write_sequels(store: Store, sequels: Sequence[Sequel]) -> None:
    """Write the sessions of a run."""
    store.write_facts({"sequels": [attrs.asdict(each) for each in sequels]})


def read_sequels(store: Store, asked: Recipe) -> list[Sequel]:
    """Return the sessions of a run so far, at least the first one."""
    with reading(store.path):
        told = store.facts().get("sequels", [])
        if not isinstance(told, list) or not all(is_of(each, _SEQUEL) for each in told):
            raise ValueError("its sessions have another form")
        _check_bounds(store.path, {}, *told)
        return [Sequel(**{**each, "budget": Budget(**each["budget"])}) for each in told] or [
            Sequel.of(asked)
        ]


def names_of_arrays() -> list[str]:
    """Return the names of all arrays that settings may have."""
    fields = [(name, field) for name, of in _RECORDS.items() for field in attrs.fields(of)]
    return ["initial", *(f"{name}/{field.name}" for name, field in fields)]


def _check_given(objects: Mapping[str, str], given: Mapping[str, Any]) -> None:
    missing = [name for name in objects if given.get(name) is None]
    if missing:
        held = ", ".join(f"{name} ({objects[name]})" for name in missing)
        again = ", ".join(f"{name}=..." for name in missing)
        raise ConfigurationError(
            f"the run has parts that no file may give, as they are more than plain data or numbers "
            f"up to {LARGEST:,}: {held}. Pass them again, as {again}"
        )
    more = [name for name, part in given.items() if part is not None and name not in objects]
    if more:
        raise ConfigurationError(
            f"the ledger holds the run's {', '.join(more)}, which cannot be changed; leave it "
            "out, or begin a new run with warm_start=..."
        )


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
    state = {
        "name": type(bits).__name__,
        "state": bits.state,
        "entropy": seeds.entropy,
        "spawn_key": seeds.spawn_key,
        "pool_size": seeds.pool_size,
        "n_children_spawned": seeds.n_children_spawned,
    }
    return {"generator": to_plain(state)}


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
