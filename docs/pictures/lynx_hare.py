"""The posterior of the lynx-hare model, and what its draws cost with and without a surrogate."""

import matplotlib.pyplot as plt
import numpy as np
from style import BLACK, BLUE, GREY, ORANGE, SKY, VERMILION, save

import surrokit as sk
from surrokit_problems.lynx_hare import COUNTS, TIMES

DRAWS = 2000
NAMES = {
    "alpha": "alpha (1 / year)",
    "beta": "beta (1 / year / 1000 lynx)",
    "gamma": "gamma (1 / year)",
    "delta": "delta (1 / year / 1000 hares)",
    "hare_0": "hares in 1900 (thousands)",
    "lynx_0": "lynx in 1900 (thousands)",
    "sigma_hare": "sd of log hare counts",
    "sigma_lynx": "sd of log lynx counts",
}


def trajectories(run: sk.Run) -> None:
    """Draw the counts, and the populations of the kept draws."""
    populations = np.exp(run.outputs.reshape(-1, len(TIMES), 2))
    low, median, high = np.quantile(populations, [0.05, 0.5, 0.95], axis=0)
    figure, axes = plt.subplots(figsize=(6.6, 2.6))
    for k, (name, colour, mark) in enumerate((("hare", BLUE, "o"), ("lynx", VERMILION, "s"))):
        axes.fill_between(TIMES + 1900, low[:, k], high[:, k], color=colour, alpha=0.25, lw=0)
        axes.plot(TIMES + 1900, median[:, k], color=colour, lw=1.4, label=f"{name}: model")
        axes.plot(TIMES + 1900, COUNTS[:, k], mark, color=colour, ms=4, label=f"{name}: pelts")
    axes.set(xlabel="year", ylabel="thousands", ylim=(0, None), xticks=range(1900, 1921, 4))
    axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    save(figure, "lynx-hare-trajectories")


def marginals(run: sk.Run, baseline: sk.Run) -> None:
    """Draw the eight marginals of both runs."""
    figure, grid = plt.subplots(2, 4, figsize=(7.4, 3.4), layout="constrained")
    for axes, (name, label) in zip(grid.flat, NAMES.items(), strict=True):
        both = np.concatenate([run[name].ravel(), baseline[name].ravel()])
        bins = np.linspace(*np.quantile(both, [0.001, 0.999]), 36)
        axes.hist(run[name].ravel(), bins, density=True, color=SKY, label="with surrogate")
        axes.hist(
            baseline[name].ravel(),
            bins,
            density=True,
            histtype="step",
            color=BLACK,
            lw=0.9,
            label="plain HMC",
        )
        axes.set(xlabel=label, yticks=[])
        axes.spines["left"].set_visible(False)
        axes.xaxis.label.set_size(8)
        axes.tick_params(labelsize=8)
    grid[0, 0].set_ylabel("density")
    grid[1, 0].set_ylabel("density")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=2)
    save(figure, "lynx-hare-marginals")


def costs(run: sk.Run, chained: sk.Run, baseline: sk.Run) -> None:
    """Draw exact calls per effective draw, exploration and training included."""
    counts = np.unique(np.geomspace(50, DRAWS, 14).astype(int))
    figure, axes = plt.subplots(figsize=(5.0, 2.8))
    for each, colour, mark, label in (
        (baseline, ORANGE, "s", "plain HMC"),
        (run, BLUE, "o", "HMC on the surrogate (RNS-HMC)"),
        (chained, VERMILION, "^", "sub-chains on it, explored in rounds"),
    ):
        total = sum(np.asarray(calls) for kind, calls in each.kept.calls.items() if kind != "rows")
        ess = [sk.effective_sample_size(each.draws[:, :n]).min() for n in counts]
        axes.plot(counts, total[counts - 1] / ess, mark + "-", color=colour, ms=4, label=label)
        print(label, total[-1], round(float(ess[-1])), round(float(total[-1] / ess[-1]), 2))
    axes.axhline(1.0, color=GREY, lw=0.8, ls=":")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="kept draws of each of 4 chains",
        ylabel="exact calls per effective draw",
        xticks=[50, 100, 200, 500, 1000, 2000],
        xticklabels=["50", "100", "200", "500", "1000", "2000"],
        yticks=[1, 2, 5, 10, 20, 50, 100],
        yticklabels=["1", "2", "5", "10", "20", "50", "100"],
    )
    axes.minorticks_off()
    axes.legend()
    save(figure, "lynx-hare-costs")


if __name__ == "__main__":
    learned = sk.sample("lynx-hare", surrogate="additive", draws=DRAWS, seed=1)
    # the parts that are picked where none is named
    chained = sk.sample(
        "lynx-hare",
        sampler="sub-chain",
        surrogate="additive",
        explorer="rounds",
        schedule="once",
        draws=DRAWS,
        seed=1,
    )
    plain = sk.sample("lynx-hare", sampler="hmc", draws=DRAWS, seed=1)
    trajectories(learned)
    marginals(learned, plain)
    costs(learned, chained, plain)
