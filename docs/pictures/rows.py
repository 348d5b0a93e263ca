"""Acceptance of draws from the surrogate ``rows`` against how many rows it copies.

The target is a9a with all 124 parameters. Surrogates are fitted to 400 draws of a posterior like
it, that of the surrogate with 5000 rows. Chains of HMC on each surrogate give its draws, and the
acceptance is that of an independent draw: the mean over pairs of min(1, exp(d_i - d_j)), with
d = V - U. Takes a few minutes.

    python docs/pictures/rows.py path/to/a9a
"""

import sys

import numpy as np
from style import BLUE, GREY, ORANGE, plt, save

import surrokit as sk
from surrokit.mode.search import find_mode
from surrokit.plugin import Evaluations, LearningProblem
from surrokit.potentials import terms_of

ROWS = (1, 10, 30, 100, 300, 1000, 3000, 10000)
N_TRAINING = 400
MOST = 5000


def fitted(target, rows, spec):
    """Return a surrogate fitted to evaluations of the target."""
    problem = LearningProblem(
        dim=target.dim, capabilities=target.capabilities, terms=terms_of(target)
    )
    name, settings = spec
    learner = sk.make("surrogate", name, **settings).learner(problem, np.random.default_rng(0))
    learner.observe(rows)
    return learner.fit()


def expanded(target, mode, rows):
    """Return the same rows with the rest expanded to second order at the mode instead."""
    known = target.select(rows)
    q = mode[None]
    slope = (target.gradient(q) - known.gradient(q))[0]
    matrix = (target.hessian(q) - known.hessian(q))[0]

    def value_and_gradient(positions):
        away = positions - mode
        pull = away @ matrix
        value, gradient = known.value_and_gradient(positions)
        return value + away @ slope + 0.5 * (away * pull).sum(axis=1), gradient + slope + pull

    return sk.potential(value_and_gradient=value_and_gradient, dim=target.dim, batched=True)


def draws(potential, mode, covariance, seed=1):
    """Return draws from exp(-V), shape (n, dim), in the coordinates of a covariance."""
    factor = np.linalg.cholesky(covariance)

    def whitened(positions):
        value, gradient = potential.value_and_gradient(mode + positions @ factor.T)
        return value, gradient @ factor

    moved = sk.potential(value_and_gradient=whitened, dim=len(mode), batched=True)
    run = sk.sample(
        moved,
        sampler=("hmc", {"metric": "identity"}),
        initial=np.full(len(mode), 0.1),
        chains=8,
        warmup=150,
        draws=150,
        seed=seed,
        progress=False,
    )
    return mode + run.draws[:, ::3].reshape(-1, len(mode)) @ factor.T


def evaluated(target, positions):
    """Return exact evaluations."""
    values, gradients = target.value_and_gradient(positions)
    return Evaluations(positions=positions, values=values, gradients=gradients)


def acceptance(target, potential, mode, covariance):
    """Return the acceptance of independent draws from a surrogate."""
    positions = draws(potential, mode, covariance, seed=2)
    errors = potential.value(positions) - target.value(positions)
    errors = np.random.default_rng(3).permutation(errors)
    half = len(errors) // 2
    return float(np.exp(np.minimum(errors[:half] - errors[half : 2 * half], 0.0)).mean())


def main():
    """Draw acceptance against the number of rows copied."""
    target = sk.make("potential", "a9a", path=sys.argv[1])
    found = find_mode(target, np.zeros(target.dim))
    mode = found.position
    covariance = np.linalg.inv(target.hessian(mode[None])[0])
    normals = np.random.default_rng(0).standard_normal((N_TRAINING, target.dim))
    laplace = evaluated(target, mode + normals @ np.linalg.cholesky(covariance).T)
    near = draws(fitted(target, laplace, ("rows", {"n_rows": MOST})), mode, covariance)
    training = evaluated(target, near[:N_TRAINING])
    quadratic = acceptance(target, fitted(target, training, ("quadratic", {})), mode, covariance)
    order = np.argsort(-target.row_bounds(np.linalg.cholesky(covariance)), kind="stable")
    curves = {"rest fitted to 400 draws": [], "rest expanded at the mode": []}
    for n in ROWS:
        surrogates = (
            fitted(target, training, ("rows", {"n_rows": n})),
            expanded(target, mode, np.sort(order[:n])),
        )
        for points, surrogate in zip(curves.values(), surrogates, strict=True):
            points.append(acceptance(target, surrogate, mode, covariance))
        print(n, [f"{points[-1]:.2f}" for points in curves.values()], flush=True)
    print(f"quadratic alone {quadratic:.2f}")
    figure, axes = plt.subplots(figsize=(5.0, 3.0))
    for (label, points), style, colour in zip(
        curves.items(), ("o-", "s--"), (BLUE, ORANGE), strict=True
    ):
        axes.plot(ROWS, points, style, color=colour, label=label, markersize=4)
    axes.axhline(quadratic, color=GREY, linestyle=":", label="quadratic alone")
    axes.set(xscale="log", ylim=(0, 1), xlabel="rows copied, of 32561", ylabel="acceptance")
    axes.legend(loc="lower right")
    save(figure, "rows")


if __name__ == "__main__":
    main()
