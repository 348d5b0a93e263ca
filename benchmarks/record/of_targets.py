"""Explorers, targets that fail, what is already known, and parts picked by what calls cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import surrokit as sk
from record.targets import (
    BOUNDS,
    FIXED,
    Slow,
    banana,
    bent,
    bent_gradient,
    bounded,
    decay,
    decay_jacobian,
    drawn,
    failing,
    forward,
    regression,
    smooth,
    two_modes,
)
from surrokit.testing import Fenced, Limited


def runs() -> Mapping[str, Callable[[], sk.Run]]:
    """Return runs by name."""
    return {**_explorers(), **_failing(), **_known(), **_picked(), **_picked_and_limited()}


def _explorers() -> Mapping[str, Callable[[], sk.Run]]:
    def by_rounds(target: Any, settings: Mapping[str, Any] | None = None, **options: Any) -> sk.Run:
        given = {"surrogate": "additive", "sampler": "sub-chain", "warmup": None, **options}
        return drawn(target, explorer=("rounds", dict(settings or {})), **given)

    some = {"iterations": 40, "discard": 5, "learn_from": "states"}
    quick = {"evaluations": 90}
    return {
        "sampler/states": lambda: drawn(smooth(), surrogate="additive", explorer=("sampler", some)),
        "rounds/mode": lambda: by_rounds(smooth()),
        "rounds/tuned-nuts": lambda: by_rounds(banana(), sampler="nuts", surrogate="rbf"),
        "rounds/box": lambda: by_rounds(
            smooth(gradient=False), {"box": (-3.0, 3.0), **quick, "batch": 15}
        ),
        "rounds/values-alone": lambda: by_rounds(
            smooth(), {"gradients": False, "acceptance": 0.99, **quick}
        ),
        "rounds/two-modes": lambda: by_rounds(two_modes(2.0), {"searches": 5}, sampler="hmc"),
        "rounds/greville": lambda: by_rounds(smooth(), schedule="greville", warmup=60),
        "rounds/forward": lambda: by_rounds(forward(parameters=BOUNDS), sampler="hmc"),
        "rounds/fenced": lambda: by_rounds(Fenced(banana(), 4.0)),
    }


def _failing() -> Mapping[str, Callable[[], sk.Run]]:
    learns = {"surrogate": "additive", "explorer": "rounds", "warmup": None}
    corner = np.array([[-0.5, 0.0, -0.2], [0.1, 0.2, 0.3], [0.0, -1.0, 0.1]])

    def raises() -> sk.Run:
        return drawn(failing("raise"), sampler="hmc", initial=corner, compute=_RAISES, **FIXED)

    return {
        "failing/raise-rows": lambda: drawn(failing("raise"), sampler="hmc"),
        "failing/nan": lambda: drawn(failing("nan", batched=True), sampler="nuts"),
        "failing/slope": lambda: drawn(failing("slope"), sampler="hmc"),
        "failing/surrogate": lambda: drawn(failing("raise"), surrogate="additive"),
        "failing/rounds": lambda: drawn(failing("nan"), sampler="sub-chain", **learns),
        "failing/fenced": lambda: drawn(Fenced(banana(), 3.0), sampler="rmhmc", **_FEW),
        "failing/asked-to-raise": raises,
        "failing/everywhere": lambda: drawn(
            sk.potential(lambda q: np.nan, dim=2), sampler="random-walk"
        ),
    }


_FEW = {"warmup": 10, "draws": 8, "chains": 2, "n_steps": 2, "step_size": 0.3}
_RAISES = sk.Compute(on_error="raise")


def _known() -> Mapping[str, Callable[[], sk.Run]]:
    """Starts and evaluations that a user brings."""
    points = np.random.default_rng(5).normal(size=(80, 3))
    gradients = np.array([bent_gradient(point) for point in points])

    def outputs() -> sk.Run:
        at = np.random.default_rng(6).normal((1.8, -0.2), 0.3, size=(30, 2))
        target = forward()
        paid = sk.Evaluations(
            positions=at,
            values=target.value(at),
            gradients=None,
            outputs=decay(at),
            jacobians=decay_jacobian(at),
        )
        return drawn(target, surrogate="additive", warm_start=paid)

    named = {"free": 0.1, "above": 1.0, "below": -1.0, "between": [0.5, -0.5]}
    return {
        "evaluations/gradients": lambda: drawn(
            smooth(),
            surrogate=("additive", {"n_nodes": 40}),
            warm_start=(points, bent(points), gradients),
            schedule="greville",
        ),
        "evaluations/outputs": outputs,
        "initial/each": lambda: drawn(smooth(), surrogate="additive", initial=points[:3]),
        "initial/named": lambda: drawn(bounded(), sampler="nuts", initial=named, warmup=40),
    }


def _picked() -> Mapping[str, Callable[[], sk.Run]]:
    """Runs that name neither a sampler nor a surrogate; time passes in the target alone."""
    dear, cheap = 0.02, 1e-5
    open_sizes = {"warmup": None, "draws": 40}

    def picked(target: Any, **options: Any) -> sk.Run:
        return drawn(target, **{**open_sizes, **options})

    quick = ("rounds", {"evaluations": 80})
    return {
        "picked/cheap": lambda: picked(smooth(seconds=cheap), warmup=200),
        "picked/dear": lambda: picked(smooth(seconds=dear)),
        "picked/black-box": lambda: picked(smooth(gradient=False, seconds=dear)),
        "picked/outputs": lambda: picked(forward(seconds=dear)),
        "picked/subsampled": lambda: picked(Slow(regression(n_rows=5000), 1e-3)),
        "picked/rows": lambda: picked(few_rows("probit")),
        "picked/cheap-rows": lambda: picked(regression(), warmup=200),
        "picked/no-derivatives": lambda: picked(
            Slow(Limited(banana(), frozenset()), dear), explorer=quick
        ),
        "picked/dropped": lambda: picked(kinked(10.0, 6), warmup=150),
        "picked/dropped-rows": lambda: picked(few_rows("logistic")),
    }


def _picked_and_limited() -> Mapping[str, Callable[[], sk.Run]]:
    """Budgets that are spent, and errors, while calls are timed or soon after."""

    def dear(**options: Any) -> sk.Run:
        return drawn(smooth(seconds=0.02), **{"warmup": None, **options})

    def interrupted() -> sk.Run:
        def value(q: np.ndarray) -> np.ndarray:
            raise KeyboardInterrupt

        return drawn(sk.potential(value, dim=3))

    return {
        "picked/timing-spent": lambda: dear(max_calls=4),
        "picked/timing-interrupted": interrupted,
        "picked/timing-fails": lambda: drawn(
            failing("raise"), compute=_RAISES, initial=[0.0, 0.0, 0.0], warmup=None
        ),
        "picked/explored-spent": lambda: dear(max_calls=40),
        "picked/good-enough": lambda: dear(target_ess=300, draws=None),
    }


def few_rows(kind: str) -> Any:
    """A dear regression on so few rows that what is picked depends on its kind."""
    return Slow(regression(kind, n_rows=25, dim=6), 0.01)


def kinked(size: float, dim: int, gradient: bool = True) -> Any:
    """A target for which no smooth surrogate is worth anything; its calls take 2 ms."""

    def value(q: np.ndarray) -> np.ndarray:
        return size * np.abs(np.sin(3.0 * q)).sum(axis=-1) + 0.5 * np.square(q).sum(axis=-1)

    def slope(q: np.ndarray) -> np.ndarray:
        return 3.0 * size * np.sign(np.sin(3.0 * q)) * np.cos(3.0 * q) + q

    target = sk.potential(value, slope if gradient else None, dim=dim, batched=True)
    return Slow(target, 2e-3)
