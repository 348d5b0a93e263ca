"""Samplers on every surrogate: learnt once, learnt all along, ready, and by a few rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import surrokit as sk
from record.targets import (
    FIXED,
    banana,
    decay,
    decay_jacobian,
    drawn,
    forward,
    gaussian,
    regression,
    smooth,
)

RIDGE = {
    "estimator": "sklearn.kernel_ridge.KernelRidge",
    "parameters": {"kernel": "rbf", "alpha": 1e-4, "gamma": 0.3},
}
"""A regressor of scikit-learn."""


def runs() -> Mapping[str, Callable[[], sk.Run]]:
    """Return runs by name."""
    return {
        **_learnt_once(),
        **_outputs_learnt(),
        **_by_other_samplers(),
        **_learnt_all_along(),
        **_of_rows(),
        **_subsampled(),
    }


def parabola(evaluations: Any, rng: np.random.Generator) -> Any:
    """Fit a parabola in each coordinate by least squares, for ``batch_surrogate``."""
    near = evaluations.take(evaluations.values < evaluations.values.min() + 20.0)
    q, n = near.positions, len(near)
    columns = np.column_stack([np.ones(n), q, np.square(q)])
    ridge = 1e-6 * np.eye(columns.shape[1])
    found = np.linalg.solve(columns.T @ columns + ridge, columns.T @ near.values)
    slope, curve = found[1 : 1 + q.shape[1]], np.maximum(found[1 + q.shape[1] :], 0.05)
    curve = curve * (1.0 + 0.01 * rng.random())
    return sk.potential(
        lambda q: q @ slope + np.square(q) @ curve,
        lambda q: slope + 2.0 * q * curve,
        dim=q.shape[1],
        batched=True,
    )


class Counts:
    """An energy of its own: the outputs are rates of Poisson counts, the prior is normal."""

    seen = np.array([5.0, 4.0, 2.0, 2.0, 1.0, 0.0])

    def value(self, outputs: np.ndarray, positions: np.ndarray) -> np.ndarray:
        return self.value_and_gradients(outputs, positions)[0]

    def value_and_gradients(
        self, outputs: np.ndarray, positions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        misfit = (np.exp(outputs) - self.seen * outputs).sum(axis=1)
        prior = 0.5 * np.square(positions).sum(axis=1)
        return misfit + prior, np.exp(outputs) - self.seen, positions


def _learnt_once() -> Mapping[str, Callable[[], sk.Run]]:
    values = {"train_on": "values"}
    burn_in = ("sampler", {"evaluations": 300, "discard": 5, "learn_from": "states"})
    return {
        "once/additive": lambda: drawn(smooth(), surrogate="additive"),
        "once/additive-values": lambda: drawn(smooth(), surrogate=("additive", values)),
        "once/additive-paper": lambda: drawn(
            smooth(), surrogate=("additive-paper", {"n_nodes": 100}), explorer=burn_in, **FIXED
        ),
        "once/rbf": lambda: drawn(banana(), surrogate="rbf"),
        "once/rbf-paper": lambda: drawn(
            smooth(), surrogate=("rbf-paper", {"n_nodes": 100}), explorer=burn_in, **FIXED
        ),
        "once/quadratic": lambda: drawn(smooth(), surrogate="quadratic"),
        "once/gp": lambda: drawn(banana(), surrogate=("gp", {"n_search": 100})),
        "once/fitc": lambda: drawn(smooth(), surrogate=("fitc", {"n_inducing": 25})),
        "once/sklearn": lambda: drawn(smooth(), surrogate=("sklearn", RIDGE)),
        "once/batch": lambda: drawn(smooth(), surrogate=sk.batch_surrogate(parabola)),
        "once/no-gradient": lambda: drawn(
            smooth(gradient=False), surrogate="additive", sampler="nuts"
        ),
        "never/ready": lambda: drawn(smooth(), surrogate=gaussian()),
        "never/ready-nuts": lambda: drawn(smooth(), surrogate=gaussian(), sampler="nuts"),
    }


def _outputs_learnt() -> Mapping[str, Callable[[], sk.Run]]:
    box = ("rounds", {"start": "sobol"})
    return {
        "outputs/additive": lambda: drawn(forward(), surrogate="additive"),
        "outputs/values": lambda: drawn(
            forward(jacobian=False, batched=False), surrogate="additive", explorer=box, warmup=None
        ),
        "outputs/quadratic": lambda: drawn(forward(), surrogate="quadratic", sampler="nuts"),
        "outputs/energy": lambda: drawn(
            sk.forward_potential(decay, decay_jacobian, energy=Counts(), dim=2, batched=True),
            surrogate="additive",
            sampler="nuts",
        ),
        "outputs/pde": lambda: drawn(
            sk.make("potential", "elliptic-pde", mesh=5, modes=3, observations=3),
            surrogate="additive",
            sampler="sub-chain",
            explorer="rounds",
            warmup=None,
        ),
        "outputs/lynx-hare": lambda: drawn(
            "lynx-hare", surrogate="additive", explorer="rounds", warmup=None, chains=2, draws=20
        ),
    }


def _by_other_samplers() -> Mapping[str, Callable[[], sk.Run]]:
    few = {"sampler": ("rmhmc", {"n_steps": 2}), "chains": 2, "warmup": 50, "draws": 10}
    nodes = {"n_nodes": 30}
    kernel = ("rmhmc", {"n_steps": 2, "step_size": 0.3})
    return {
        "nuts/additive": lambda: drawn(smooth(), sampler="nuts", surrogate="additive"),
        "sub-chain/additive": lambda: drawn(smooth(), sampler="sub-chain", surrogate="additive"),
        "sub-chain/nuts": lambda: drawn(
            smooth(), sampler=("sub-chain", {"kernel": "nuts"}), surrogate="quadratic"
        ),
        "sub-chain/rmhmc": lambda: drawn(
            smooth(),
            **{**few, "sampler": ("sub-chain", {"kernel": kernel, "length": 2})},
            surrogate="quadratic",
        ),
        "gaussian/quadratic": lambda: drawn(smooth(), sampler="gaussian", surrogate="quadratic"),
        "rmhmc/additive": lambda: drawn(smooth(), surrogate=("additive", nodes), **few),
        "rmhmc/quadratic": lambda: drawn(smooth(), surrogate="quadratic", metric="hessian", **few),
        "rmhmc/additive-diagonal": lambda: drawn(
            smooth(), surrogate=("additive", nodes), metric="hessian-diagonal", **few
        ),
    }


def _learnt_all_along() -> Mapping[str, Callable[[], sk.Run]]:
    def along(target: Any, schedule: Mapping[str, Any] | None = None, **options: Any) -> sk.Run:
        return drawn(target, schedule=("greville", dict(schedule or {})), **options)

    small = {"n_nodes": 30, "learns": "potential"}
    by_gradients = sk.batch_surrogate(parabola, uses={"gradient"})
    states = {"freeze_after": 60, "kappa": 1.0, "learn_from": "states"}
    return {
        "greville/additive": lambda: along(smooth(), surrogate="additive"),
        "greville/updates": lambda: along(
            smooth(), surrogate=("additive", {**small, "updates": "greville"})
        ),
        "greville/paper": lambda: along(
            smooth(),
            {"derivatives": "never", "learn_from": "states"},
            surrogate=("additive-paper", {"n_nodes": 60}),
            warmup=300,
            **FIXED,
        ),
        "greville/states": lambda: along(banana(), states, surrogate="quadratic", sampler="nuts"),
        "greville/batch": lambda: along(smooth(), surrogate=by_gradients),
        "greville/rows": lambda: along(regression(), surrogate="rows"),
        "greville/random-walk": lambda: along(
            smooth(gradient=False), surrogate="additive", warmup=300
        ),
    }


def _of_rows() -> Mapping[str, Callable[[], sk.Run]]:
    sub_chain = {"sampler": "sub-chain", "explorer": "rounds", "warmup": None}
    return {
        "rows/logistic": lambda: drawn(regression(), surrogate="rows", **sub_chain),
        "rows/sparse": lambda: drawn(
            regression(sparse=True), surrogate=("rows", {"train_on": "values"}), sampler="hmc"
        ),
    }


def _subsampled() -> Mapping[str, Callable[[], sk.Run]]:
    def few_rows(target: Any, correction: Any = "subsampled", **options: Any) -> sk.Run:
        return drawn(target, correction=correction, **options)

    quick = {"surrogate": "quadratic", "explorer": "rounds", "warmup": None}
    third = ("subsampled", {"order": 3})
    many = {"n_rows": 4000}
    return {
        "subsampled/gaussian": lambda: few_rows(
            regression(**many), sampler="gaussian", surrogate="quadratic"
        ),
        "subsampled/rounds": lambda: few_rows(regression(**many), sampler="gaussian", **quick),
        "subsampled/third-order": lambda: few_rows(
            regression(**many), third, sampler="gaussian", **quick
        ),
        "subsampled/all-rows": lambda: few_rows(regression(n_rows=60), sampler="gaussian", **quick),
        "subsampled/hmc": lambda: few_rows(regression(**many), sampler="hmc", **quick),
        "subsampled/sub-chain": lambda: few_rows(regression(**many), sampler="sub-chain", **quick),
        "subsampled/mixed": lambda: few_rows(
            regression(**many), sampler="nuts", schedule=sk.Safety(mix=0.2), **quick
        ),
    }
