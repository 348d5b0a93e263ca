"""Every sampler, integrator and metric, on the exact potential."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

import surrokit as sk
from record.targets import (
    BOUNDS,
    FIXED,
    banana,
    bounded,
    bounded_banana,
    drawn,
    forward,
    gaussian,
    joint,
    regression,
    smooth,
)


def runs() -> Mapping[str, Callable[[], sk.Run]]:
    """Return runs by name."""
    return {**_of_constant_metrics(), **_riemannian(), **_without_paths(), **_composed()}


def _of_constant_metrics() -> Mapping[str, Callable[[], sk.Run]]:
    unit = {"metric": "identity", "randomize": False}
    shorter = {"shortest": 0.4, "target_acceptance": 0.9}
    return {
        "hmc/tuned": lambda: drawn(banana(), sampler="hmc"),
        "hmc/fixed": lambda: drawn(smooth(), sampler=("hmc", unit), **FIXED),
        "hmc/diagonal": lambda: drawn(joint(), sampler=("hmc", shorter), metric="diagonal"),
        "hmc/bounds": lambda: drawn(bounded(), sampler="hmc"),
        "hmc/rows": lambda: drawn(regression(sparse=True), sampler="hmc"),
        "nuts/tuned": lambda: drawn(banana(), sampler="nuts"),
        "nuts/forward": lambda: drawn(forward(parameters=BOUNDS), sampler="nuts"),
    }


def _riemannian() -> Mapping[str, Callable[[], sk.Run]]:
    few = {"warmup": 12, "draws": 8, "chains": 2, "sampler": ("rmhmc", {"n_steps": 2})}
    return {
        "rmhmc/softabs": lambda: drawn(banana(), **few),
        "rmhmc/hessian": lambda: drawn(regression(), **few, metric="hessian", step_size=0.4),
        "rmhmc/fisher": lambda: drawn(regression(), **few, metric="fisher"),
        "rmhmc/gauss-newton": lambda: drawn(forward(hessian=True), **few, metric="gauss-newton"),
        "rmhmc/diagonal": lambda: drawn(regression(), **few, metric="hessian-diagonal"),
        "rmhmc/bounds": lambda: drawn(bounded_banana(), **few, step_size=0.2),
    }


def _without_paths() -> Mapping[str, Callable[[], sk.Run]]:
    return {
        "random-walk/tuned": lambda: drawn(bounded(gradient=False), sampler="random-walk"),
        "gaussian/exact": lambda: drawn(gaussian(), sampler="gaussian"),
        "sub-chain/exact": lambda: drawn(
            gaussian(), sampler=("sub-chain", {"kernel": ("hmc", {"n_steps": 3}), "length": 3})
        ),
    }


def _composed() -> Mapping[str, Callable[[], sk.Run]]:
    """Parts that are made by hand and handed over as objects."""

    def nested() -> sk.Run:
        metric = sk.make("metric", "diagonal", inverse_mass=np.array([0.5, 1.0, 2.0]))
        kernel = sk.make("sampler", "nuts", metric=metric, max_depth=4)
        explorer = sk.make(
            "explorer",
            "sampler",
            sampler=sk.make("sampler", "hmc", metric=metric, n_steps=3),
            correction=sk.make("correction", "metropolis"),
            iterations=30,
        )
        return drawn(
            smooth(),
            sampler=sk.make("sampler", "sub-chain", kernel=kernel, length=2),
            surrogate=sk.make("surrogate", "additive", n_nodes=30),
            schedule=sk.make("schedule", "greville", kappa=0.8),
            explorer=explorer,
            correction=sk.make("correction", "metropolis"),
        )

    def by_names() -> sk.Run:
        explorer = ("sampler", {"sampler": "random-walk", "evaluations": 120})
        return drawn(
            "banana",
            sampler=("sub-chain", {"kernel": ("hmc", {"metric": "diagonal"})}),
            surrogate=("rbf", {"n_nodes": 40}),
            schedule=("once", {}),
            explorer=explorer,
        )

    return {"composed/objects": nested, "composed/names": by_names}
