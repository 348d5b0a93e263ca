"""A poor surrogate costs acceptance, not correctness: a winding ridge with known moments."""

import matplotlib.pyplot as plt
import numpy as np
from style import BLACK, BLUE, ORANGE, save

import surrokit as sk

NODES = (5, 10, 20, 50, 200, 1000)


def ridge(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return U and gradient where x ~ N(1, 1) and y | x ~ N(2 sin x, 1/4)."""
    along, across = positions[:, 0] - 1.0, positions[:, 1] - 2.0 * np.sin(positions[:, 0])
    slope = along - 8.0 * across * np.cos(positions[:, 0])
    return 0.5 * along**2 + 2.0 * across**2, np.column_stack([slope, 4.0 * across])


EXACT = {"E x": 1.0, "E y": 2.0 * np.sin(1.0) * np.exp(-0.5)}


if __name__ == "__main__":
    target = sk.potential(value_and_gradient=ridge, dim=2, batched=True)
    acceptance, means, errors = [], [], []
    for n_nodes in NODES:
        # values alone and no trend, or a few nodes would do well already
        settings = {"n_nodes": n_nodes, "trend": "constant", "train_on": "values"}
        run = sk.sample(target, surrogate=("additive", settings), draws=4000, seed=1)
        acceptance.append(run.acceptance.mean())
        means.append(run.draws.mean(axis=(0, 1)))
        errors.append(run.summary()["mcse"])
        print(n_nodes, acceptance[-1], means[-1], errors[-1], run.ess(), run.rhat())
    means, errors = np.array(means), np.array(errors)

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.7), layout="constrained")
    left.plot(NODES, acceptance, "o-", color=BLUE)
    left.set(xscale="log", ylim=(0, 1), xlabel="nodes of the surrogate", ylabel="acceptance rate")
    for k, (name, colour, mark) in enumerate((("E x", ORANGE, "s"), ("E y", BLUE, "o"))):
        right.errorbar(
            np.array(NODES) * (0.94 + 0.12 * k),
            means[:, k] - EXACT[name],
            2 * errors[:, k],
            fmt=mark,
            color=colour,
            ms=4,
            capsize=2,
            label=name,
        )
    right.axhline(0.0, color=BLACK, lw=0.8, ls=":")
    right.set(
        xscale="log",
        ylim=(-0.2, 0.2),
        xlabel="nodes of the surrogate",
        ylabel="error of the mean, ± 2 standard errors",
    )
    right.yaxis.label.set_size(8)
    right.legend(loc="upper right", ncols=2)
    save(figure, "wrong-surrogate")
