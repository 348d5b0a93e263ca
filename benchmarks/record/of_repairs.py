"""The safety net: rescues, exact transitions mixed in, surrogates that are hopeless."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import surrokit as sk
from record.targets import (
    Interrupting,
    drawn,
    smooth,
)
from surrokit.errors import SurrogateFitError

ELSEWHERE = (4.0, 4.0, 4.0)
"""Where a normal surrogate has its mass that is wrong on purpose."""

LONG: dict[str, Any] = {"warmup": 300}


def runs() -> Mapping[str, Callable[[], sk.Run]]:
    """Return runs by name."""
    return {**_repaired(), **_mixed(), **_not_repaired()}


def corrected_later(*first: Any) -> Any:
    """Return a surrogate whose first fits are these, and every later one the smooth target."""
    fits, right = iter(first), smooth()
    return sk.batch_surrogate(lambda evaluations, rng: next(fits, right))


def wrong() -> Any:
    """Return a potential on which paths work, and end where the target has no mass."""
    return sk.make("potential", "gaussian", mean=ELSEWHERE, covariance=0.2 * np.eye(3))


def _repaired() -> Mapping[str, Callable[[], sk.Run]]:
    hasty = sk.Safety(patience=20, block=5, rescues=2)
    flat = {"trend": "constant", "ridge": 1e6, "n_nodes": 5}
    return {
        "rescue/once": lambda: drawn(smooth(), surrogate=corrected_later(wrong()), **LONG),
        "rescue/twice": lambda: drawn(
            smooth(), surrogate=corrected_later(wrong(), wrong()), schedule=hasty, **LONG
        ),
        "rescue/greville": lambda: drawn(
            smooth(), surrogate=corrected_later(*20 * [wrong()]), schedule="greville", **LONG
        ),
        "rescue/never-good": lambda: drawn(smooth(), surrogate=("additive", flat), **LONG),
        "rescue/interrupted": lambda: drawn(
            smooth(),
            surrogate=corrected_later(wrong()),
            observers=[Interrupting(121)],
            **LONG,
        ),
    }


def _mixed() -> Mapping[str, Callable[[], sk.Run]]:
    mixed = sk.Safety(mix=0.3)
    return {
        "mix/additive": lambda: drawn(smooth(), surrogate="additive", schedule=mixed),
        "mix/rmhmc": lambda: drawn(
            smooth(),
            sampler="rmhmc",
            surrogate=("additive", {"n_nodes": 20}),
            schedule=mixed,
            n_steps=2,
            chains=2,
            warmup=40,
            draws=10,
        ),
    }


def _not_repaired() -> Mapping[str, Callable[[], sk.Run]]:
    def hopeless(evaluations: Any, rng: np.random.Generator) -> Any:
        raise SurrogateFitError("no luck")

    return {
        "no-rescue/off": lambda: drawn(
            smooth(), surrogate=corrected_later(wrong()), schedule=sk.Safety(rescues=0)
        ),
        "no-rescue/ready": lambda: drawn(smooth(), surrogate=wrong()),
        "no-fit/goes-on": lambda: drawn(smooth(), surrogate=sk.batch_surrogate(hopeless)),
    }
