"""Snippets of the guide "Use the paper's schemes"."""

# [banana]
import numpy as np

import surrokit as sk
from surrokit.plugin import LearningProblem


def value(q):
    return 0.5 * (q[0] ** 2 + (q[1] - q[0] ** 2) ** 2 / 0.5 + (q[2] - 0.5 * q[1]) ** 2)


def gradient(q):
    bend, lag = (q[1] - q[0] ** 2) / 0.5, q[2] - 0.5 * q[1]
    return np.array([q[0] - 2 * q[0] * bend, bend - 0.5 * lag, lag])


target = sk.potential(value, gradient, dim=3)
surrogate = ("additive", {"n_nodes": 100})
run = sk.sample(target, surrogate=surrogate, schedule="greville", warmup=300, draws=500, seed=2)
# [account]
print(f"acceptance {run.acceptance.mean():.2f}")
print(f"{len(run.adaptation.deployments)} surrogates from {run.adaptation.training_rows} rows")
print(f"the last after iteration {run.adaptation.last_deployment}")
print(f"frozen before the draws: {run.adaptation.frozen_before_draws}")
# [collapse]
target = sk.potential(
    lambda q: -np.logaddexp(-0.5 * (q[0] + 3) ** 2, -0.5 * (q[0] - 3) ** 2) + 0.5 * q[1] ** 2,
    lambda q: np.array([q[0] - 3 * np.tanh(3 * q[0]), q[1]]),
    dim=2,
)
fits = []


def one_mode_first(evaluations, rng):
    """Fit a network; the first time, to what lies left of 0."""
    fits.append(len(evaluations))
    rows = evaluations.positions[:, 0] < 0 if len(fits) == 1 else slice(None)
    problem = LearningProblem(dim=2, capabilities=frozenset({"gradient"}))
    learner = sk.make("surrogate", "rbf").learner(problem, rng)
    learner.observe(evaluations.take(rows))
    return learner.fit()


surrogate = sk.batch_surrogate(one_mode_first)
run = sk.sample(
    target,
    surrogate=surrogate,
    explorer=("sampler", {"iterations": 60}),
    initial=[[-3.0, 0.0], [-3.0, 0.0], [3.0, 0.0], [3.0, 0.0]],
    warmup=400,
    draws=500,
    seed=1,
)
# [repairs]
for repair in run.adaptation.repairs:
    print(f"after iteration {repair.iteration}: {repair.reason}")
    before = run.warmup.acceptance[:, repair.iteration - 40 : repair.iteration].mean(axis=1)
    print("acceptance by chain before", before.round(2), "and in the draws", run.acceptance)
# [end]
