"""The methods of table 1: the paper's four, and others that the paper does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from surrokit_paper.methods import HMC
from surrokit_paper.problems import PDE, PROBLEMS, PaperProblem

RMHMC, TUNED = "rmhmc", "hmc-tuned"
"""Methods on the exact potential, in names of rows, beside HMC."""

_CHAINS = 4


Arguments: TypeAlias = dict[str, Any]
Recipe: TypeAlias = Callable[[PaperProblem, Any], Arguments]
"""Of a problem, and the table with its sizes."""


@attrs.frozen(kw_only=True)
class TableMethod:
    """A line of the table for each problem that it is for."""

    label: str  # in tables and pictures
    what: str  # its settings, for the reader
    arguments: Recipe  # keywords for surrokit.sample, as plain data
    problems: tuple[str, ...] = PROBLEMS
    of_paper: bool = False  # is it in the paper's? Then it starts from 0, without fallback
    settles: bool = False  # does it start where exact HMC comes in `settling` iterations?
    sees_outputs: bool = False  # does it need the elliptic problem with its outputs?


def _hmc(problem: PaperProblem) -> tuple[str, Arguments]:
    sizes = {"step_size": problem.step_size, "n_steps": problem.n_steps}
    return "hmc", {"metric": "identity", **sizes}


def _one_chain(problem: PaperProblem, sizes: Any, **more: Any) -> Arguments:
    return {"sampler": _hmc(problem), "chains": 1, "draws": sizes.draws, **more}


def _riemannian(problem: PaperProblem, metric: Any, **more: Any) -> Arguments:
    path = {"step_size": problem.riemannian_step_size, "n_steps": problem.riemannian_n_steps}
    return {"sampler": ("rmhmc", {"metric": metric, **path}), "chains": 1, **more}


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


def _of_ours(**settings: Any) -> Recipe:
    """Return the paper's HMC on this project's surrogate."""
    surrogate = ("additive", settings)
    return lambda problem, sizes: _one_chain(
        problem, sizes, surrogate=surrogate, warmup=sizes.warmup
    )


def _four_chains(**parts: Any) -> Recipe:
    return lambda _, sizes: {**parts, "chains": _CHAINS, "draws": -(-sizes.draws // _CHAINS)}


METHODS: Mapping[str, TableMethod] = {
    HMC: TableMethod(
        label="HMC",
        what="the paper's step size and number of steps, unit masses, one chain from 0",
        arguments=lambda problem, sizes: _one_chain(problem, sizes, warmup=sizes.burn_in),
        of_paper=True,
    ),
    RMHMC: TableMethod(
        label="RMHMC",
        what="the paper's step size and number of steps, one chain; Fisher metric, for the PDE "
        "the Gauss-Newton matrix",
        arguments=lambda problem, sizes: _riemannian(
            problem,
            problem.metric,
            warmup=sizes.riemannian_burn_in,
            draws=sizes.riemannian_draws,
        ),
        of_paper=True,
        settles=True,
        sees_outputs=True,
    ),
    "rns-hmc": TableMethod(
        label="RNS-HMC",
        what="HMC on the paper's network, which learns once, from the states of a burn-in of "
        "exact HMC",
        arguments=lambda problem, sizes: _one_chain(
            problem, sizes, **_learnt_once(problem, sizes, problem.ridge)
        ),
        of_paper=True,
    ),
    "rns-rmhmc": TableMethod(
        label="RNS-RMHMC",
        what="RMHMC on the paper's network, which learns once, from the states of a burn-in of "
        "exact HMC; the metric is the network's Hessian, for the PDE its diagonal",
        arguments=_rns_rmhmc,
        of_paper=True,
    ),
    "trend": TableMethod(
        label="default surrogate, values",
        what="HMC as in the paper on the surrogate additive, which learns from values alone; "
        "exploration and warm-up as they come",
        arguments=_of_ours(train_on="values"),
    ),
    "gradients": TableMethod(
        label="default surrogate, gradients",
        what="the same, learning from gradients too",
        arguments=_of_ours(),
    ),
    "emulator": TableMethod(
        label="emulator of the forward map",
        what="HMC as in the paper on the surrogate additive, which learns outputs and Jacobians; "
        "explorer rounds",
        arguments=lambda problem, sizes: _one_chain(
            problem, sizes, surrogate="additive", explorer="rounds"
        ),
        problems=(PDE,),
        sees_outputs=True,
    ),
    "sub-chains": TableMethod(
        label="sub-chains",
        what="sampler sub-chain on the surrogate additive, explorer rounds; four chains, all tuned",
        arguments=_four_chains(sampler="sub-chain", surrogate="additive", explorer="rounds"),
        sees_outputs=True,
    ),
    "subsampled": TableMethod(
        label="subsampled correction",
        what="sampler gaussian on the surrogate quadratic, explorer rounds, correction "
        "subsampled; four chains",
        arguments=_four_chains(
            sampler="gaussian", surrogate="quadratic", explorer="rounds", correction="subsampled"
        ),
        problems=tuple(name for name in PROBLEMS if name != PDE),
    ),
    "automatic": TableMethod(
        label="sample(target)",
        what="everything picked by itself; four chains",
        arguments=_four_chains(),
        sees_outputs=True,
    ),
    TUNED: TableMethod(
        label="HMC, all tuned",
        what="exact HMC with a dense mass matrix, step size and number of steps tuned in "
        "warm-up; four chains. The posterior that others are compared with",
        arguments=lambda problem, sizes: {
            **_four_chains(sampler="hmc")(problem, sizes),
            "warmup": sizes.warmup,
        },
    ),
}
"""By the word in names of rows, in the order of the tables."""
