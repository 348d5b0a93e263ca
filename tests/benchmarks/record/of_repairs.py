"""The safety net: rescues, restarts, exact transitions mixed in, surrogates that are hopeless."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np

import surrokit as sk
from record.drawn import FIXED, Interrupting, drawn
from record.targets import bent, bent_gradient, forward, gaussian, smooth
from surrokit.errors import SurrogateFitError

ELSEWHERE = (4.0, 4.0, 4.0)
"""Where a normal surrogate has its mass that is wrong on purpose."""

LONG: dict[str, Any] = {"warmup": 300}


def runs() -> Mapping[str, Callable[[], sk.Run]]:
    """Return runs by name."""
    return {**_repaired(), **_restarted(), **_mixed(), **_not_repaired()}


def corrected_later(*first: Any, last: Any = None) -> Any:
    """Return a surrogate whose first fits are these, and every later one the smooth target."""
    fits = iter([*first])
    right = smooth() if last is None else last
    return sk.batch_surrogate(lambda evaluations, rng: next(fits, right))


def spoilt(paths: int) -> Any:
    """Return a potential that is right for so many batches, and then elsewhere."""
    batches = count()

    def both(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if next(batches) < paths:
            return bent(q), bent_gradient(q)
        return bent(q - ELSEWHERE), bent_gradient(q - ELSEWHERE)

    return sk.potential(value_and_gradient=both, dim=3, batched=True)


def wrong() -> Any:
    """Return a potential on which paths work, and end where the target has no mass."""
    return sk.make("potential", "gaussian", mean=ELSEWHERE, covariance=0.2 * np.eye(3))


def _repaired() -> Mapping[str, Callable[[], sk.Run]]:
    hasty = sk.Safety(patience=20, block=5, rescues=2)
    given = ("sub-chain", {"kernel": ("hmc", FIXED)})
    flat = {"trend": "constant", "ridge": 1e6, "n_nodes": 5}
    return {
        "rescue/once": lambda: drawn(smooth(), surrogate=corrected_later(wrong()), **LONG),
        "rescue/twice": lambda: drawn(
            smooth(), surrogate=corrected_later(wrong(), wrong()), safety=hasty, **LONG
        ),
        # with a given step a path always leaves its start; else standing still passes for a move
        "rescue/sub-chain": lambda: drawn(
            smooth(), sampler=given, surrogate=corrected_later(wrong()), **LONG
        ),
        "rescue/nuts": lambda: drawn(
            smooth(), sampler="nuts", surrogate=corrected_later(wrong()), step_size=0.4, **LONG
        ),
        "rescue/by-walk": lambda: drawn(
            smooth(gradient=False), surrogate=corrected_later(wrong()), **LONG
        ),
        "rescue/greville": lambda: drawn(
            smooth(), surrogate=corrected_later(*20 * [wrong()]), schedule="greville", **LONG
        ),
        "rescue/never-right": lambda: drawn(
            smooth(), surrogate=sk.batch_surrogate(lambda evaluations, rng: wrong()), **LONG
        ),
        "rescue/never-good": lambda: drawn(smooth(), surrogate=("additive", flat), **LONG),
        "rescue/outputs": lambda: drawn(forward(), surrogate=("additive", flat), **LONG),
        "rescue/spent": lambda: drawn(
            smooth(), surrogate=corrected_later(wrong()), max_calls=1100, **LONG
        ),
        "rescue/interrupted": lambda: drawn(
            smooth(),
            surrogate=corrected_later(wrong()),
            observers=[Interrupting(121)],
            **LONG,
        ),
    }


def _restarted() -> Mapping[str, Callable[[], sk.Run]]:
    again = sk.Safety(restart=True, rescues=0)
    paths = {"step_size": 0.4, "n_steps": 4, "metric": "identity", "draws": 160, **LONG}
    return {
        "restart/once": lambda: drawn(
            smooth(), surrogate=corrected_later(spoilt(600)), safety=again, **paths
        ),
        "restart/always": lambda: drawn(
            smooth(),
            surrogate=sk.batch_surrogate(lambda evaluations, rng: spoilt(600)),
            safety=again,
            **paths,
        ),
        "restart/not-asked-for": lambda: drawn(
            smooth(), surrogate=corrected_later(spoilt(600)), **paths
        ),
        "restart/mixed": lambda: drawn(
            smooth(),
            surrogate=corrected_later(spoilt(800)),
            safety=sk.Safety(restart=True, rescues=1, mix=0.1),
            **paths,
        ),
    }


def _mixed() -> Mapping[str, Callable[[], sk.Run]]:
    mixed = sk.Safety(mix=0.3)
    return {
        "mix/additive": lambda: drawn(smooth(), surrogate="additive", safety=mixed),
        "mix/ready": lambda: drawn(smooth(), surrogate=gaussian(), safety=mixed),
        "mix/by-walk": lambda: drawn(
            smooth(gradient=False), surrogate="additive", sampler="nuts", safety=mixed
        ),
        "mix/greville": lambda: drawn(
            smooth(), surrogate="additive", schedule="greville", safety=mixed
        ),
        "mix/rmhmc": lambda: drawn(
            smooth(),
            sampler="rmhmc",
            surrogate=("additive", {"n_nodes": 20}),
            safety=mixed,
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
            smooth(), surrogate=corrected_later(wrong()), safety=sk.Safety(rescues=0)
        ),
        "no-rescue/ready": lambda: drawn(smooth(), surrogate=wrong()),
        "no-rescue/no-time": lambda: drawn(smooth(), surrogate=corrected_later(wrong()), warmup=60),
        "no-rescue/step-too-large": lambda: drawn(
            smooth(), surrogate="additive", step_size=50.0, n_steps=5, **LONG
        ),
        "no-fit/goes-on": lambda: drawn(smooth(), surrogate=sk.batch_surrogate(hopeless)),
        "no-fit/stops": lambda: drawn(
            smooth(gradient=False), surrogate=sk.batch_surrogate(hopeless)
        ),
    }
