"""Table 1: four methods on four problems, and this project's own beside them.

HMC, RMHMC, RNS-HMC and RNS-RMHMC as section 5 sets them up, one chain from 0 with unit masses and
given step sizes; then methods of this project that the paper does not have. Each case is a run of
one method on one problem, burn-in and training included, and times single calls of the target too.

The authors count the cost of HMC with two gradients for each leapfrog step. Algorithm 1 taken
literally has two half kicks in each of n steps, a gradient for each, and then one value for the
decision. This project merges half kicks, keeps the gradient between iterations, and gets the value
with the last gradient: n gradients an iteration and no value. A baseline that costs what the
authors' does is then

    seconds as run + (2 n - gradients) t_gradient + (draws - values) t_value,

with t the seconds of one call, measured in the same row at draws of the posterior.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.potentials import with_gradient
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_REPAIR, Clock, Row, array, generator, groups, hmc, sampled
from surrokit_paper.pictures import BLACK, BLUE, GREY, VERMILION, common_legend, drawing, panels
from surrokit_paper.problems import (
    A9A,
    BANK,
    FEWER,
    LABELS,
    N_NODES,
    PDE,
    SIMULATED,
    SIZES,
    paths_of,
    target_of,
)

TITLE = "Table 1: acceptance, effective draws and seconds of four methods on four problems"

FULL: dict[str, Any] = {
    **SIZES,
    "burn_in": 5000,  # iterations of exact HMC before the kept draws
    "discard": 1000,  # how many of them nothing is learnt from
    "draws": 5000,  # kept draws, of all chains together
    "settling": 300,  # iterations of exact HMC from 0 that bring RMHMC to where it starts
    "riemannian_burn_in": 50,  # of exact RMHMC, half a second each; the paper has 5000 and 5000
    "riemannian_draws": 300,
    "surrogate_riemannian_draws": 2000,  # kept draws of RNS-RMHMC
    "warmup": None,  # of trend, gradients and hmc-tuned; None for what is the default
    "n_nodes": None,  # of the paper's network; None for s as in the paper
    # of RNS-RMHMC on the logistic regressions: "hessian" as in the paper, which ends with an error
    # where the network is not convex, or "softabs"
    "convex_metric": "hessian",
    "repeats": 1,  # runs of each; figures are averaged
}
QUICK: dict[str, Any] = {
    **FEWER,
    "burn_in": 150,
    "discard": 30,
    "draws": 200,
    "settling": 50,
    "riemannian_burn_in": 1,
    "riemannian_draws": 5,
    "surrogate_riemannian_draws": 20,
    "warmup": 100,
    "n_nodes": 100,
    "convex_metric": "softabs",
    "mesh": 10,
}

PRINTED: dict[tuple[str, str], tuple[float, tuple[int, int, int], float, float, float]] = {
    (SIMULATED, "hmc"): (0.76, (4351, 5000, 5000), 0.061, 14.17, 1),
    (SIMULATED, "rmhmc"): (0.80, (1182, 1496, 1655), 3.794, 0.06, 0.004),
    (SIMULATED, "rns-hmc"): (0.76, (4449, 4999, 5000), 0.007, 123.56, 8.72),
    (SIMULATED, "rns-rmhmc"): (0.82, (1116, 1471, 1662), 0.103, 2.17, 0.15),
    (BANK, "hmc"): (0.70, (2005, 2454, 3368), 0.061, 6.52, 1),
    (BANK, "rmhmc"): (0.92, (1769, 2128, 2428), 0.631, 0.56, 0.09),
    (BANK, "rns-hmc"): (0.70, (1761, 2358, 3378), 0.007, 52.22, 8.01),
    (BANK, "rns-rmhmc"): (0.90, (1974, 2254, 2457), 0.027, 14.41, 2.21),
    (A9A, "hmc"): (0.72, (1996, 2959, 3564), 0.033, 11.96, 1),
    (A9A, "rmhmc"): (0.82, (5000, 5000, 5000), 3.492, 0.29, 0.02),
    (A9A, "rns-hmc"): (0.68, (1835, 2650, 3203), 0.005, 81.80, 6.84),
    (A9A, "rns-rmhmc"): (0.79, (4957, 5000, 5000), 0.370, 2.68, 0.22),
    (PDE, "hmc"): (0.91, (4533, 5000, 5000), 0.775, 1.17, 1),
    (PDE, "rmhmc"): (0.80, (5000, 5000, 5000), 4.388, 0.23, 0.20),
    (PDE, "rns-hmc"): (0.75, (2306, 3034, 3516), 0.066, 7.10, 6.07),
    (PDE, "rns-rmhmc"): (0.66, (2126, 4052, 5000), 0.097, 4.38, 3.74),
}
"""By problem and method: AP; least, median and largest ESS of 5000 draws; seconds a draw; min(ESS)
a second; speed-up."""

METHODS = {
    "hmc": "HMC",
    "rmhmc": "RMHMC",
    "rns-hmc": "RNS-HMC",
    "rns-rmhmc": "RNS-RMHMC",
    "trend": "default surrogate, values",
    "gradients": "default surrogate, gradients",
    "emulator": "emulator of the forward map",
    "sub-chains": "sub-chains",
    "subsampled": "subsampled correction",
    "automatic": "sample(target)",
    "hmc-tuned": "HMC, all tuned",
}
"""The paper's four, then this project's own."""

OF_PAPER = ("hmc", "rmhmc", "rns-hmc", "rns-rmhmc")

RIEMANNIAN_STEPS = {SIMULATED: (0.54, 2), BANK: (0.4, 6), A9A: (0.4, 4), PDE: (0.8, 3)}
"""Step size of RMHMC and RNS-RMHMC, with so many steps in each path."""

RIDGES = {SIMULATED: (1e-6, 1e-9), BANK: (1e-7, 1e-9), A9A: (1e-9, 1e-9), PDE: (1e-7, 1e-7)}
"""Added to the normal equations of the network: for HMC, and for RMHMC."""


def cases(sizes: SimpleNamespace) -> list[Row]:
    """Return a case for each problem, repeat, and method that is for it."""
    if sizes.convex_metric not in ("hessian", "softabs"):
        raise ConfigurationError(
            f"convex_metric must be 'hessian' or 'softabs', got {sizes.convex_metric!r}"
        )
    return [
        {"problem": problem, "method": name, "repeat": repeat}
        for problem in LABELS
        for repeat in range(1, sizes.repeats + 1)
        for name in METHODS
        if name != ("subsampled" if problem == PDE else "emulator")
    ]


def arguments_of(problem: str, method: str, sizes: SimpleNamespace) -> dict[str, Any]:
    """Return keywords for :func:`surrokit.sample`."""
    four: dict[str, Any] = {"chains": 4, "draws": -(-sizes.draws // 4)}
    of_four: dict[str, dict[str, Any]] = {
        "sub-chains": {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"},
        "subsampled": {
            "sampler": "gaussian",
            "surrogate": "quadratic",
            "explorer": "rounds",
            "correction": "subsampled",
        },
        "automatic": {},
        "hmc-tuned": {"sampler": "hmc", "warmup": sizes.warmup},
    }
    if method in of_four:
        return {**four, **of_four[method]}
    paths = ("hmc", {"metric": "identity", **paths_of(problem, sizes)})
    one: dict[str, Any] = {"sampler": paths, "chains": 1, "draws": sizes.draws}
    if method == "rmhmc":
        metric = "gauss-newton" if problem == PDE else "fisher"
        lengths = {"warmup": sizes.riemannian_burn_in, "draws": sizes.riemannian_draws}
        return {**one, "sampler": _riemannian(problem, metric), **lengths}
    if method in ("rns-hmc", "rns-rmhmc"):
        return one | _learnt_once(problem, method, sizes, paths)
    return (
        one
        | {
            "hmc": {"warmup": sizes.burn_in},
            "trend": {"surrogate": ("additive", {"train_on": "values"}), "warmup": sizes.warmup},
            "gradients": {"surrogate": "additive", "warmup": sizes.warmup},
            "emulator": {"surrogate": "additive", "explorer": "rounds", "warmup": None},
        }[method]
    )


def _learnt_once(problem: str, method: str, sizes: SimpleNamespace, paths: Any) -> dict[str, Any]:
    """Return the paper's network, and the exact HMC whose states it learns from."""
    explorer = {"iterations": sizes.burn_in, "discard": sizes.discard, "learn_from": "states"}
    ridge = RIDGES[problem][method == "rns-rmhmc"]
    network = {"n_nodes": sizes.n_nodes or N_NODES[problem], "ridge": ridge}
    learnt = {
        "surrogate": ("additive-paper", network),
        "explorer": ("sampler", {"sampler": paths, **explorer}),
        "schedule": ("once", NO_REPAIR),
        "warmup": sizes.burn_in,
    }
    if method == "rns-hmc":
        return learnt
    metric = "hessian-diagonal" if problem == PDE else sizes.convex_metric
    # a network of a convex potential is nearly convex, and the authors do not look either
    more = {"hessian": {"trusted": True}, "softabs": {"hardness": 200.0}}
    sampler = _riemannian(problem, (metric, more.get(metric, {})))
    return {**learnt, "sampler": sampler, "draws": sizes.surrogate_riemannian_draws}


def _riemannian(problem: str, metric: Any) -> tuple[str, dict[str, Any]]:
    step, n_steps = RIEMANNIAN_STEPS[problem]
    return "rmhmc", {"metric": metric, "step_size": step, "n_steps": n_steps}


def run(case: Row, sizes: SimpleNamespace) -> Row:
    """Run one method on one problem."""
    problem, method, _ = case.values()
    outputs = method in ("rmhmc", "emulator", "sub-chains", "automatic")
    target = target_of(problem, sizes, outputs=outputs)
    arguments, began = arguments_of(problem, method, sizes), time.process_time()
    before: dict[str, int] = {}
    if method in OF_PAPER:
        arguments["initial"] = np.zeros(target.dim)
    if method == "rmhmc" and sizes.settling:
        rng, lengths = generator(sizes.seed, "settling", *case.values()), {"warmup": 0}
        paths = paths_of(problem, sizes)
        converged = hmc(target, paths, np.zeros(target.dim), rng, **lengths, draws=sizes.settling)
        arguments["initial"], before = converged.draws[0, -1], dict(converged.calls)
    clock, rng = Clock(), generator(sizes.seed, "row", *case.values())
    run = sampled(target, **arguments, seed=rng, clock=clock)
    warm = {kind: int(n[-1]) if len(run.warmup) else 0 for kind, n in run.warmup.calls.items()}
    return {
        "acceptance": float(run.acceptance.mean()),
        "draws": run.draws[..., 0].size,
        "ess_paper": run.ess("paper"),
        "ess_bulk": run.ess("bulk"),
        "rhat": float(np.max(run.rhat())),
        "seconds": clock.sampling,
        "calls": {kind: n + before.get(kind, 0) for kind, n in run.calls.items()},
        "sampling_calls": {kind: int(n[-1]) - warm[kind] for kind, n in run.kept.calls.items()},
        "steps": int(run.kept.n_steps.sum()),
        "all_seconds": time.process_time() - began,
        "value_seconds": seconds_of_call(target.value, run.draws[0]),
        "gradient_seconds": seconds_of_call(with_gradient(target).value_and_gradient, run.draws[0]),
    }


def seconds_of_call(function: Callable[[FloatArray], Any], positions: FloatArray) -> float:
    """Return the median processor seconds of a call at a position.

    At 64 of the positions, shape (n, dim), far apart in the list, one at a time.
    """
    chosen, seconds = positions[np.linspace(0, len(positions) - 1, 64).astype(int)], []
    function(chosen[:1])  # the first call may set something up
    for position in chosen:
        began = time.process_time()
        function(position[None])
        seconds.append(time.process_time() - began)
    return float(np.median(seconds))


# --- what came out ---


def charged_seconds(row: Row) -> float:
    """Return seconds of sampling of HMC as the authors count."""
    calls = row["sampling_calls"]
    gradients, values = 2 * row["steps"] - calls["gradient"], row["draws"] - calls["value"]
    saved = gradients * row["gradient_seconds"] + values * row["value_seconds"]
    return float(row["seconds"] + saved)


def summaries(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """Return means over repeats for each problem and method with finished rows, in their order.

    ``ess`` is least, median and largest over parameters by the paper's estimator, ``bulk_ess`` the
    least by ranks; NaN where a run never moved. Seconds of sampling are those of one kept draw, a
    rate is min(ESS) a second: as run, and ``charged_`` for HMC as the authors count.
    """
    found = {}
    for (problem, method), runs in groups(rows, "problem", "method").items():
        draws = runs[0]["draws"]
        ess, bulk = (
            np.quantile([array(row[name]) for row in runs], [0.0, 0.5, 1.0], axis=1).mean(axis=1)
            for name in ("ess_paper", "ess_bulk")
        )
        charged = [charged_seconds(row) if method == "hmc" else np.nan for row in runs]
        one: Row = {"draws": draws, "ess": ess, "bulk_ess": float(bulk[0])}
        for kind, seconds in (("", [row["seconds"] for row in runs]), ("charged_", charged)):
            mean = float(np.mean(seconds))
            one |= {f"{kind}seconds": mean / draws, f"{kind}rate": float(ess[0]) / mean}
        for name in ("acceptance", "all_seconds", "rhat"):
            one[name] = float(np.mean(array([row[name] for row in runs])))
        kinds = runs[0]["calls"]
        one["calls"] = {k: float(np.mean([row["calls"][k] for row in runs])) for k in kinds}
        found[problem, method] = one
    return found


def report(rows: Sequence[Row], _: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return the table beside the paper's, speed-ups over HMC, and an account of everything."""
    found = summaries(rows)
    beside, speed, everything = [], [], []
    for (problem, method), one in found.items():
        names = {"problem": LABELS[problem], "method": METHODS[method]}
        printed = PRINTED.get((problem, method))
        acceptance, ess, seconds, rate, speed_up = printed or (None,) * 5
        line = {
            "draws": one["draws"],
            "AP: paper": acceptance,
            "here": one["acceptance"],
            "ESS of 100 draws: paper": ess and _percentages(array(ess) / 5000),
            "here ": _percentages(one["ess"] / one["draws"]),
            "s a draw: paper": seconds,
            "here  ": one["seconds"],
            "min(ESS)/s: paper": rate,
            "here   ": one["rate"],
        }
        beside.append({**names, **line})
        exact = found.get((problem, "hmc"))
        if method != "hmc" and exact is not None:
            counted = {"as the authors count": one["rate"] / exact["charged_rate"]}
            ratio = {"paper": speed_up, **counted, "as run": one["rate"] / exact["rate"]}
            speed.append({**names, **ratio})
        calls = {kind: n for kind, n in one["calls"].items() if n}
        in_all = sum(n for kind, n in calls.items() if kind != "rows")
        line = {
            "bulk ESS: least": one["bulk_ess"],
            "R-hat": one["rhat"],
            "calls": ", ".join(f"{n:.0f} {kind}" for kind, n in calls.items()),
            "calls for each effective draw": in_all / one["bulk_ess"],
            "seconds": one["all_seconds"],
            "effective draws a second": one["bulk_ess"] / one["all_seconds"],
        }
        everything.append({**names, **line})
    return {
        "The paper's accounting: sampling alone": beside,
        "min(ESS)/s over HMC's: HMC charged as the authors do, and as it runs here": speed,
        "Everything counted: burn-in, exploration, training and warm-up": everything,
    }, []


def _percentages(parts: FloatArray) -> str | None:
    return ", ".join(f"{100 * n:.0f}" for n in parts) if np.isfinite(parts).all() else None


def draw(rows: Sequence[Row], _: SimpleNamespace) -> Any:
    """Return a panel for each problem: effective draws a second of each method."""
    found = summaries(rows)
    problems = [problem for problem in LABELS if any(of == problem for of, _ in found)]
    methods = [name for name in METHODS if any(method == name for _, method in found)]
    columns, lines = min(len(problems), 2), -(-len(problems) // 2)
    with drawing(2.0 + 3.4 * columns, 1.2 + lines * (0.7 + 0.19 * len(methods))) as figure:
        axes = panels(figure, len(problems))
        for ax, problem in zip(axes, problems, strict=True):
            of = {method: one for (its, method), one in found.items() if its == problem}
            printed = {m: {"rate": PRINTED[problem, m][3]} for m in of if (problem, m) in PRINTED}
            _dots(ax, of, "rate", methods, marker="o", color=BLUE, label="here, as run")
            charged = {"marker": "s", "label": "here, HMC charged as the authors do"}
            _dots(ax, of, "charged_rate", methods, color=VERMILION, **charged)
            hollow = {"marker": "D", "markerfacecolor": "none", "label": "the paper, its machine"}
            _dots(ax, printed, "rate", methods, color=BLACK, **hollow)
            ax.grid(axis="y", color=GREY, linewidth=0.3, alpha=0.5)
            ax.set(xscale="log", title=LABELS[problem], xlabel="min(ESS) a second of sampling")
            ax.tick_params(axis="y", length=0)
        axes[0].set_yticks(range(len(methods)), [METHODS[name] for name in methods])
        axes[0].set_ylim(len(methods) - 0.5, -0.5)
        common_legend(figure, axes)
    return figure


def _dots(ax: Any, of: Mapping[str, Row], rate: str, methods: Sequence[str], **look: Any) -> None:
    known = [(one[rate], methods.index(method)) for method, one in of.items()]
    ax.plot(*array(known).reshape(-1, 2).T, linestyle="none", **look)
