"""Figure 6, section 5.1: posterior marginals by HMC and by HMC on a surrogate, on simulated data.

HMC and RNS-HMC run as in the paper: one chain from 0, unit masses, step size 0.045, paths of up to
6 steps, so many iterations of exact HMC as burn-in, and as many again that are kept. The network is
fitted once, to the states of the burn-in, as in the authors' code. A third run is
``surrokit.sample(target)`` as it comes. No run knows of another, and no random number is shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import ndtri

from surrokit.diagnostics import effective_sample_size, mean_error
from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_REPAIR, Row, array, generator, hmc, sampled
from surrokit_paper.pictures import LOOKS, drawing
from surrokit_paper.problems import FEWER, SIMULATED, SIZES, paths_of, target_of

TITLE = "Figure 6: marginals of the simulated logistic regression by HMC and RNS-HMC"

FULL: dict[str, Any] = {
    **SIZES,
    "burn_in": 5000,  # iterations of exact HMC before any draw is kept
    "discard": 1000,  # those of them, from the first on, that nothing is learnt from
    "draws": 5000,  # kept by HMC and RNS-HMC
    "n_nodes": 2000,  # of the paper's network
    "ridge": 1e-6,
    "parameters": (1, 11, 21, 31, 41),  # that are drawn, counted from 1
    "n_shown": 1600,  # about so many draws of these are kept for the picture
}
QUICK = {
    **FEWER,
    "burn_in": 600,
    "discard": 100,
    "draws": 1500,
    "n_nodes": 500,
    "parameters": (1, 6, 11, 16),
}

METHODS = {"hmc": "HMC", "rns": "RNS-HMC", "defaults": "surrokit as it comes"}

MASSES = (0.9, 0.5)
"""Of the draws, inside the contours."""


def cases(sizes: SimpleNamespace) -> list[Row]:
    """Return a case for each method."""
    if not 1 <= min(sizes.parameters) <= max(sizes.parameters) <= sizes.dim:
        raise ConfigurationError(
            f"parameters must be numbers from 1 to dim, which is {sizes.dim}, got "
            f"{sizes.parameters}"
        )
    return [{"method": name} for name in METHODS]


def run(case: Row, sizes: SimpleNamespace) -> Row:
    """Run one method."""
    target, method = target_of(SIMULATED, sizes), case["method"]
    rng = generator(sizes.seed, "row", method)
    if method == "defaults":
        run = sampled(target, seed=rng)
    else:
        learning: dict[str, Any] = {"warmup": sizes.burn_in, "draws": sizes.draws}
        if method == "rns":
            states = {"iterations": sizes.burn_in, "discard": sizes.discard}
            network = {"n_nodes": sizes.n_nodes, "ridge": sizes.ridge}
            learning |= {
                "surrogate": ("additive-paper", network),
                "schedule": ("once", NO_REPAIR),
                "explorer": ("sampler", {**states, "learn_from": "states"}),
            }
        run = hmc(target, paths_of(SIMULATED, sizes), np.zeros(target.dim), rng, **learning)
    columns = [number - 1 for number in sizes.parameters]
    chosen = run.draws.reshape(-1, run.draws.shape[2])[:, columns]
    return {
        "acceptance": float(run.kept.acceptance.mean()),
        "seconds": sum(run.seconds.values()),
        "gradients": int(run.calls["gradient"]),
        "values": int(run.calls["value"]),
        **marginals(run.draws),
        "shown": np.round(chosen[:: max(len(chosen) // sizes.n_shown, 1)], 6),
    }


def marginals(draws: FloatArray) -> dict[str, FloatArray]:
    """Return mean, sd, their Monte Carlo errors, and bulk ESS of draws (chains, draws, dim).

    The error of an sd is that of the mean of squared deviations, over twice the sd.
    """
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1), ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # a parameter that never moved
        sd_error = mean_error(np.square(draws - mean)) / (2.0 * sd)
    ess = effective_sample_size(draws, "bulk")
    return {
        "mean": mean,
        "mean_error": mean_error(draws),
        "sd": sd,
        "sd_error": sd_error,
        "ess_bulk": ess,
    }


def report(rows: Sequence[Row], sizes: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return means and standard deviations, what runs cost, and differences from HMC."""
    titles = ("mean", "standard error", "sd", "standard error of the sd")
    columns = dict(zip(titles, ("mean", "mean_error", "sd", "sd_error"), strict=True))
    by_parameter = [
        {
            "parameter": f"beta_{number}",
            "method": METHODS[row["method"]],
            **{title: row[name][number - 1] for title, name in columns.items()},
        }
        for number in sizes.parameters
        for row in rows
    ]
    exact = next((row for row in rows if row["method"] == "hmc"), None)
    costs = [
        {
            "method": METHODS[row["method"]],
            "acceptance": row["acceptance"],
            "min bulk ESS": min(row["ess_bulk"]),
            "seconds": row["seconds"],
            "gradients": row["gradients"],
            "values": row["values"],
            **{
                f"{of}s from HMC's, in standard errors": difference(row, exact, of)
                for of in ("mean", "sd")
            },
            # of so many normal numbers, signs excluded (Sidak 1967)
            "99% stay under": float(ndtri(0.5 + 0.5 * 0.99 ** (1.0 / len(row["mean"])))),
        }
        for row in rows
    ]
    printed = [
        (f"acceptance, {METHODS[row['method']]} (table 1)", 0.76, row["acceptance"])
        for row in rows
        if row["method"] != "defaults"  # the paper has the same for both
    ]
    return {"marginals, in log odds": by_parameter, "runs": costs}, printed


def difference(row: Row, exact: Row | None, of: str) -> float | None:
    """Return the largest difference from another run over parameters, in standard errors."""
    if exact is None or row is exact:
        return None
    values, errors = ([array(each[name]) for each in (row, exact)] for name in (of, f"{of}_error"))
    if of == "sd":  # on a logarithmic scale, where an error does not grow with its sd
        errors = [error / sd for error, sd in zip(errors, values, strict=True)]
        values = [np.log(sd) for sd in values]
    return float(np.max(np.abs(values[0] - values[1]) / np.hypot(*errors)))


def draw(rows: Sequence[Row], sizes: SimpleNamespace) -> Any:
    """Return a triangle of panels: densities on the diagonal, contours of pairs below it."""
    subscripts = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
    labels = [f"β{str(number).translate(subscripts)} (log odds)" for number in sizes.parameters]
    n, draws = len(labels), [array(row["shown"]) for row in rows]
    ends = np.concatenate(draws).min(axis=0), np.concatenate(draws).max(axis=0)
    grids = list(np.linspace(*ends, 50).T)
    with drawing(max(1.55 * n, 4.0), max(1.55 * n, 4.0)) as figure:
        axes = figure.subplots(n, n, sharex="col", squeeze=False)
        for (i, j), ax in np.ndenumerate(axes):
            if j > i:
                ax.axis("off")
                continue
            shown = [i] if i == j else [j, i]
            for row, array_of in zip(rows, draws, strict=True):
                _draw(ax, row["method"], array_of[:, shown], [grids[each] for each in shown])
            ax.locator_params(nbins=4)
            if j:
                ax.set_yticklabels([])
            if i == j:
                ax.set_yticks([])
        for label, ax, first in zip(labels, axes[-1], axes[:, 0], strict=True):
            ax.set_xlabel(label)
            first.set_ylabel(label)
        axes[0, 0].set_ylabel("density")
        inside = " and ".join(f"{mass:.0%}" for mass in reversed(MASSES))
        title = {"title": f"contours hold {inside} of the draws", "alignment": "left"}
        legend = axes[0, 0].get_legend_handles_labels()
        figure.legend(*legend, loc="upper right", **title)
    return figure


def _draw(ax: Any, method: str, draws: FloatArray, grids: Sequence[FloatArray]) -> None:
    """Draw the density of one parameter, or contours of that of two."""
    from scipy.stats import gaussian_kde

    density, colour = gaussian_kde(draws.T), LOOKS[method]["color"]
    # HMC is a broad line below the others, to show agreement
    line, width = ("-", 2.6) if method == "hmc" else (LOOKS[method]["linestyle"], 1.2)
    ax.set_xlim(grids[0][0], grids[0][-1])
    if len(grids) == 1:
        look = {"color": colour, "linestyle": line, "linewidth": width}
        ax.plot(grids[0], density(grids[0]), label=METHODS[method], **look)
        ax.set_ylim(bottom=0.0)
        return
    points = np.stack(np.meshgrid(*grids), axis=-1)
    heights = density(points.reshape(-1, 2).T).reshape(points.shape[:2])
    levels = np.quantile(density(draws.T), [1.0 - mass for mass in MASSES])
    look = {"colors": colour, "linewidths": width, "linestyles": [line] * len(levels)}
    ax.contour(*grids, heights, levels=levels, **look)
    ax.set_ylim(grids[1][0], grids[1][-1])
