"""The methods of table 1: the paper's four, and others that the paper does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from surrokit_paper.methods import HMC
from surrokit_paper.problems import PDE, PROBLEMS, PaperProblem

RMHMC, RNS_HMC, RNS_RMHMC, TUNED = "rmhmc", "rns-hmc", "rns-rmhmc", "hmc-tuned"
"""Names of methods in cases, beside HMC."""

Arguments: TypeAlias = dict[str, Any]
"""Keywords for :func:`surrokit.sample`."""

Recipe: TypeAlias = Callable[[PaperProblem, Any], Arguments]
"""Arguments for a problem, and the table with its sizes."""


@attrs.frozen(kw_only=True)
class TableMethod:
    """A line of the table for each problem that it is for."""

    label: str  # in tables and pictures
    arguments: Recipe
    problems: tuple[str, ...] = PROBLEMS
    of_paper: bool = False  # is it in the paper's? Then it starts from 0, without fallback
    sees_outputs: bool = False  # does it need the elliptic problem with its outputs?


def _hmc(problem: PaperProblem) -> tuple[str, Arguments]:
    return "hmc", {"metric": "identity", **problem.paths}


def _one_chain(**more: Any) -> Recipe:
    """Return the paper's HMC, with the surrogate and the explorer that are given."""
    return lambda problem, sizes: {
        "sampler": _hmc(problem),
        "chains": 1,
        "draws": sizes.draws,
        "warmup": sizes.warmup,
        **more,
    }


def _four_chains(**parts: Any) -> Recipe:
    return lambda _, sizes: {**parts, "chains": 4, "draws": -(-sizes.draws // 4)}


def _riemannian(problem: PaperProblem, metric: Any) -> Arguments:
    return {"sampler": ("rmhmc", {"metric": metric, **problem.riemannian_paths}), "chains": 1}


def _learnt_once(problem: PaperProblem, sizes: Any, ridge: float) -> Arguments:
    """Return the paper's network, and the exact HMC whose states it learns from."""
    explorer = {
        "sampler": _hmc(problem),
        "iterations": sizes.burn_in,
        "discard": sizes.discard,
        "learn_from": "states",
    }
    network = {"n_nodes": sizes.n_nodes or problem.n_nodes, "ridge": ridge}
    return {
        "surrogate": ("additive-paper", network),
        "explorer": ("sampler", explorer),
        "schedule": "once",
        "warmup": sizes.burn_in,
    }


def _rns_rmhmc(problem: PaperProblem, sizes: Any) -> Arguments:
    metric: Any = problem.surrogate_metric
    if metric == "hessian":
        # a network of a convex potential is nearly convex, and the authors do not look either
        settings = {"hessian": {"trusted": True}, "softabs": {"hardness": 200.0}}
        metric = sizes.convex_metric, settings[sizes.convex_metric]
    return {
        **_riemannian(problem, metric),
        **_learnt_once(problem, sizes, problem.riemannian_ridge),
        "draws": sizes.surrogate_riemannian_draws,
    }


METHODS: Mapping[str, TableMethod] = {
    HMC: TableMethod(
        label="HMC",
        arguments=lambda problem, sizes: _one_chain(warmup=sizes.burn_in)(problem, sizes),
        of_paper=True,
    ),
    RMHMC: TableMethod(
        label="RMHMC",
        arguments=lambda problem, sizes: {
            **_riemannian(problem, problem.metric),
            "warmup": sizes.riemannian_burn_in,
            "draws": sizes.riemannian_draws,
        },
        of_paper=True,
        sees_outputs=True,
    ),
    RNS_HMC: TableMethod(
        label="RNS-HMC",
        arguments=lambda problem, sizes: _one_chain(**_learnt_once(problem, sizes, problem.ridge))(
            problem, sizes
        ),
        of_paper=True,
    ),
    RNS_RMHMC: TableMethod(
        label="RNS-RMHMC",
        arguments=_rns_rmhmc,
        of_paper=True,
    ),
    "trend": TableMethod(
        label="default surrogate, values",
        arguments=_one_chain(surrogate=("additive", {"train_on": "values"})),
    ),
    "gradients": TableMethod(
        label="default surrogate, gradients",
        arguments=_one_chain(surrogate="additive"),
    ),
    "emulator": TableMethod(
        label="emulator of the forward map",
        arguments=_one_chain(surrogate="additive", explorer="rounds", warmup=None),
        problems=(PDE,),
        sees_outputs=True,
    ),
    "sub-chains": TableMethod(
        label="sub-chains",
        arguments=_four_chains(sampler="sub-chain", surrogate="additive", explorer="rounds"),
        sees_outputs=True,
    ),
    "subsampled": TableMethod(
        label="subsampled correction",
        arguments=_four_chains(
            sampler="gaussian", surrogate="quadratic", explorer="rounds", correction="subsampled"
        ),
        problems=tuple(name for name in PROBLEMS if name != PDE),
    ),
    "automatic": TableMethod(
        label="sample(target)",
        arguments=_four_chains(),
        sees_outputs=True,
    ),
    TUNED: TableMethod(
        label="HMC, all tuned",
        arguments=lambda problem, sizes: {
            **_four_chains(sampler="hmc")(problem, sizes),
            "warmup": sizes.warmup,
        },
    ),
}
"""By the word in names of cases, in the order of the tables."""
