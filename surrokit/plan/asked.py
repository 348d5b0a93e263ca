"""What a run was asked for, so that it can be made again."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.plan.plain import can_write
from surrokit.plan.recipe import Recipe
from surrokit.plan.safety import Safety

PARTS = ("sampler", "surrogate", "schedule", "explorer", "correction", "policy")
"""Parts of a recipe that may be objects, which no file can hold."""

_USUAL = {"on_error": "reject", "keep": "memory"}


def knows_coordinates(surrogate: object, metric: object, step_size: object) -> bool:
    """Return whether a run is given something in the coordinates of the line.

    Parameters
    ----------
    surrogate, metric, step_size
        As :func:`surrokit.sample` takes them. A ready surrogate, a metric that is more than a name
        and a step size hold there alone.
    """
    named = metric is None or isinstance(metric, str)
    ready = hasattr(surrogate, "value") and not hasattr(surrogate, "learner")
    return ready or not named or step_size is not None


def read_seed(seed: object) -> np.random.Generator:
    """Return the generator of a run.

    Parameters
    ----------
    seed
        A whole number, a generator, or None for entropy of the operating system.

    Raises
    ------
    ConfigurationError
        If it is none of these.
    """
    try:
        return np.random.default_rng(seed)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"seed must be a whole number of at least 0, a numpy generator or None, got {seed!r}"
        ) from error


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

    Parameters
    ----------
    asked
        The recipe as asked for.
    """
    given = {"target": asked.target if can_write(asked.target) else None}
    parts = {**{name: getattr(asked, name) for name in PARTS}, **asked.settings}
    given |= {name: part if can_write(part) else ... for name, part in parts.items()}
    given |= {"warmup": asked.warmup, "draws": asked.draws}
    known = {
        "initial": asked.initial,
        "evaluations": asked.evaluations if asked.past is None else None,
        "warm_start": asked.past,
    }
    given |= {name: ... for name, value in known.items() if value is not None}
    given |= {
        **attrs.asdict(asked.budget),
        "safety": None if asked.safety == Safety() else asked.safety,
    }
    found = {name: value for name, value in given.items() if value is not None}
    sizes = {name: getattr(asked, name) for name in _USUAL}
    found |= {name: value for name, value in sizes.items() if value != _USUAL[name]}
    if asked.on_error == "retry":
        found["retries"] = asked.retries
    return {**found, "chains": asked.chains, "seed": asked.seed}
