"""Four modes with draws of chains that jump, and their masses by three ways of counting draws.

Chains that stay apart are those of a target in 30 dimensions, skewed at both of its modes.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from style import BLUE, GREY, ORANGE, VERMILION, save

import surrokit as sk

DIM, SHARES, SHAPE = 30, np.array([0.8, 0.2]), 0.7
CENTRES = np.array([6.0, -6.0])
OF_FOUR = np.array([0.1502, 0.2132, 0.2886, 0.3480])


def himmelblau(q):
    """Return the log density of four modes, and its gradient, at positions (n, 2)."""
    a, b = q[:, 0] + q[:, 1] ** 2 - 7.0, q[:, 0] ** 2 + q[:, 1] - 11.0
    slopes = np.stack([0.1 * a + 2.0 * b * q[:, 0], 0.2 * a * q[:, 1] + b], axis=1)
    return 0.5 * (0.1 * a * a + b * b), slopes


def skewed(q):
    """Return U and its gradient of two modes, of logarithms of gamma variables, at (n, dim)."""
    away = q[:, None] - CENTRES[:, None]
    powers = np.exp(np.minimum(away, 300.0))
    logs = np.log(SHARES) + (SHAPE * away - powers).sum(axis=2)
    top = np.logaddexp.reduce(logs, axis=1)
    weights = np.exp(logs - top[:, None])[..., None]
    return -top, -(weights * (SHAPE - powers)).sum(axis=1)


def sides(q):
    """Return the mode, by the signs of both numbers."""
    return 2 * (q[:, 0] > 0.0) + (q[:, 1] > 0.0)


def bars(axes, names, columns):
    """Draw masses side by side, with errors."""
    width = 0.8 / len(columns)
    for i, (label, colour, masses, errors) in enumerate(columns):
        at = np.arange(len(names)) + (i - 0.5 * (len(columns) - 1)) * width
        axes.bar(at, masses, 0.9 * width, yerr=errors, color=colour, label=label, capsize=2)
    axes.set_xticks(np.arange(len(names)), names)
    axes.margins(y=0.3)  # room for the legend
    axes.legend(fontsize=7)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    square = {"q": sk.interval(-4, 4, shape=2)}
    target = sk.potential(value_and_gradient=himmelblau, parameters=square, batched=True)
    jumping = sk.sample(target, sampler="hmc", seed=1, progress=False)
    modes = np.arange(4)
    four = jumping.expectation(lambda q: (sides(q)[:, None] == modes).astype(float), batched=True)
    begin = np.repeat(CENTRES, 3)[:, None] * np.ones(DIM)
    apart = sk.sample(
        sk.potential(value_and_gradient=skewed, dim=DIM, batched=True),
        sampler="hmc", chains=6, initial=begin, seed=1, progress=False,
    )  # fmt: skip
    at = (apart.draws.mean(axis=2) > 0.0).astype(float)
    found = np.array([at.mean(), 1.0 - at.mean()])
    known = apart.modes.evidences
    print(four, found, apart.by_mode is not None, known.masses, known.mass_errors)

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(7.2, 2.5), layout="constrained")
    line = np.linspace(-4.0, 4.0, 161)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    heights = himmelblau(grid)[0].reshape(161, 161)
    left.contour(line, line, heights, [0.5, 2.0, 5.0, 12.0], colors=GREY, linewidths=0.6)
    draws = jumping.draws[:, ::10].reshape(-1, 2)
    left.plot(*draws.T, ".", color=BLUE, markersize=2)
    left.set(title="chains jump", xlabel="x", ylabel="y")
    bars(
        middle,
        ["- -", "- +", "+ -", "+ +"],
        [("true", GREY, OF_FOUR, None), ("draws", BLUE, four.value, 2.0 * four.error)],
    )
    middle.set(title="signs of x and y", ylabel="mass")
    bars(
        right,
        ["first", "second"],
        [
            ("true", GREY, SHARES, None),
            ("as found", VERMILION, found, None),
            ("weighted", ORANGE, known.masses[:2], 2.0 * known.mass_errors[:2]),
        ],
    )
    right.set(title="chains stay apart")
    save(figure, "several-modes")
