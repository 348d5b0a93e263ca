"""The front page: a surrogate learnt from a few evaluations, and a path that follows it."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from style import BLACK, BLUE, GREY, ORANGE, VERMILION, save

import surrokit as sk
from surrokit.plugin import LearningProblem

N_EVALUATIONS = 24


def banana(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return U and its gradient of a curved ridge."""
    x, y = positions.T
    across = y - 0.6 * (x**2 - 1.5)
    value = 0.5 * x**2 / 1.6 + 0.5 * across**2 / 0.35
    by_y = across / 0.35
    return value, np.column_stack([x / 1.6 - 1.2 * x * by_y, by_y])


def learnt(seed: int) -> tuple[sk.Evaluations, object]:
    """Return evaluations as in a burn-in, and what is learnt from them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(scale=1.35, size=N_EVALUATIONS)
    y = 0.6 * (x**2 - 1.5) + rng.normal(scale=0.7, size=N_EVALUATIONS)
    positions = np.column_stack([x, y])
    evaluations = sk.Evaluations(positions=positions, values=banana(positions)[0])
    problem = LearningProblem(dim=2, capabilities=frozenset({"gradient"}))
    learner = sk.make("surrogate", "additive").learner(problem, rng)
    learner.observe(evaluations)
    return evaluations, learner.fit()


def path(gradient, start, momentum, step_size: float, n_steps: int) -> np.ndarray:
    """Return the positions of a leapfrog path."""
    q, p = np.array([start]), np.array([momentum])
    found = [q[0]]
    for _ in range(n_steps):
        p = p - 0.5 * step_size * gradient(q)
        q = q + step_size * p
        p = p - 0.5 * step_size * gradient(q)
        found.append(q[0])
    return np.array(found)


if __name__ == "__main__":
    known, surrogate = learnt(seed=3)
    x, y = np.meshgrid(np.linspace(-3.6, 3.6, 121), np.linspace(-3.2, 4.6, 121))
    grid = np.column_stack([x.ravel(), y.ravel()])
    exact = banana(grid)[0].reshape(x.shape)
    cheap = surrogate.value(grid).reshape(x.shape)
    start, momentum = (-2.3, 2.0), (1.5, -2.6)
    steps = path(
        lambda q: surrogate.value_and_gradient(q)[1], start, momentum, step_size=0.15, n_steps=19
    )
    levels = np.array([0.5, 1.5, 3.0, 5.0])

    figure, axes = plt.subplots(figsize=(7.0, 3.6))
    axes.contour(x, y, exact - exact.min(), levels, colors=GREY, linewidths=1.0)
    axes.contour(
        x, y, cheap - cheap.min(), levels, colors=BLUE, linewidths=1.0, linestyles="dashed"
    )
    axes.plot(*known.positions.T, "o", color=ORANGE, ms=3.5, alpha=0.9)
    axes.plot(*steps.T, "-", color=BLACK, lw=1.2)
    axes.plot(*steps[1:-1].T, ".", color=BLACK, ms=3.5)
    axes.plot(*steps[0], "s", color=BLACK, ms=6)
    axes.plot(*steps[-1], "*", color=VERMILION, ms=13)
    axes.set(xlabel="first parameter", ylabel="second parameter", aspect="equal")
    axes.set(xlim=(-3.6, 3.6), ylim=(-3.1, 4.4), xticks=range(-3, 4), yticks=range(-3, 5))
    entries = (
        Line2D([], [], color=GREY, label="exact potential: expensive"),
        Line2D([], [], color=ORANGE, marker="o", ms=4, ls="", label="exact evaluations"),
        Line2D([], [], color=BLUE, ls="--", label="surrogate learnt from them: cheap"),
        Line2D([], [], color=BLACK, marker=".", label="path on the surrogate: no exact call"),
        Line2D(
            [], [], color=VERMILION, marker="*", ms=10, ls="",
            label="its end: one exact call\ndecides whether to accept",
        ),
    )  # fmt: skip
    axes.legend(handles=entries, loc="center left", bbox_to_anchor=(1.02, 0.5))
    save(figure, "front")
