"""A model that fails in part of its prior: the points of an exploration, and the draws."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from style import BLACK, BLUE, GREY, ORANGE, SKY, save

import surrokit as sk

OBSERVED = np.array([1.0, 0.3])


def edge(y: float) -> float:
    """Return from which x on the model fails."""
    return 1.0 + 0.5 * y


def outputs(q: np.ndarray) -> np.ndarray:
    """Return what is observed of the model."""
    if q[0] > edge(q[1]):
        raise ArithmeticError("the solver did not converge")
    return np.array([q[0] + 0.3 * q[1] ** 2, q[1] + 0.4 * np.sin(2.0 * q[0])])


class Points:
    """Where the model was evaluated while the run explored."""

    def __init__(self) -> None:
        self.good: list[np.ndarray] = []
        self.failed: list[np.ndarray] = []
        self.explores = True

    def __call__(self, q: np.ndarray) -> float:
        try:
            value = 0.5 * np.sum(((outputs(q) - OBSERVED) / 0.5) ** 2) + 0.5 * q @ q
        except ArithmeticError:
            self.failed += [q] * self.explores
            raise
        self.good += [q] * self.explores
        return value

    def surrokit_transition_done(self, run, state, info) -> None:  # noqa: ARG002
        """Note when the exploration is over."""
        self.explores = info.stage == "exploration"


if __name__ == "__main__":
    points = Points()
    target = sk.potential(points, parameters={"x": None, "y": None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sk.sample(
            target, surrogate="additive", explorer="rounds", draws=500, seed=1, observers=[points]
        )
    print(len(points.good), len(points.failed), run.calls, run.failures, run.acceptance.mean())
    print(run.verdict)

    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.0), layout="constrained", sharey=True)
    y = np.array([-2.5, 3.0])
    for panel in axes:
        panel.fill_betweenx(y, edge(y), 4.0, color=GREY, alpha=0.25, lw=0)
        panel.plot(edge(y), y, color=BLACK, lw=0.8)
        panel.set(xlim=(-2.0, 2.5), ylim=(y[0], y[1]), xlabel="x")
    good, failed, draws = np.array(points.good), np.array(points.failed), run.draws.reshape(-1, 2)
    left, right = axes
    left.plot(*good.T, "o", ms=3, color=BLUE, label=f"{len(good)} points evaluated")
    left.plot(*failed.T, "x", ms=4, color=ORANGE, label=f"{len(failed)} points that failed")
    left.set(ylabel="y", title="the exploration")
    left.legend(loc="upper left", fontsize=8)
    right.plot(*draws[::4].T, ".", ms=2, color=SKY, label=f"every fourth of {len(draws)} draws")
    right.set(title="the draws")
    right.legend(loc="upper left", fontsize=8)
    right.text(1.5, -2.1, "the model fails", fontsize=8, color=BLACK)
    save(figure, "failing-model")
