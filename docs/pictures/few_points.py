"""Error of a surrogate's gradient against the evaluations that it learnt from.

The target is the simulated logistic regression of the paper (100000 rows, 50 parameters). Training
points are draws from the Laplace approximation; the error is judged at others. Medians of three
training sets. Takes a few minutes.
"""

import numpy as np
from style import BLUE, GREEN, GREY, ORANGE, VERMILION, plt, save

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.plugin import Evaluations, LearningProblem
from surrokit.surrogate.quality import fit_quality

POINTS = (20, 40, 60, 100, 200, 400, 800)
SEEDS = 3
NEWTON_STEPS = 20
NETWORK = {"n_nodes": 2000, "weight_scale": 0.3}
CURVES = {
    "paper's scheme, values": (("additive-paper", {"n_nodes": 2000}), GREY, "s:", False),
    "network alone, values": (
        ("additive", {"trend": "constant", **NETWORK}),
        ORANGE,
        "v--",
        False,
    ),
    "network alone, gradients": (("additive", {"trend": "constant", **NETWORK}), BLUE, "^-.", True),
    "default, values": (("additive", {}), VERMILION, "D--", False),
    "default, gradients": (("additive", {}), GREEN, "o-", True),
}


def laplace(target):
    """Return the mode and the Cholesky factor of the inverse Hessian there."""
    mode = np.zeros(target.dim)
    for _ in range(NEWTON_STEPS):
        gradient, hessian = target.gradient(mode[None])[0], target.hessian(mode[None])[0]
        mode = mode - np.linalg.solve(hessian, gradient)
    hessian = target.hessian(mode[None])[0]
    return mode, np.linalg.cholesky(np.linalg.inv(hessian))


def evaluated(target, mode, factor, n, seed):
    """Evaluate the target at draws from its Laplace approximation."""
    normals = np.random.default_rng(seed).standard_normal((n, target.dim))
    positions = mode + normals @ factor.T
    values, gradients = target.value_and_gradient(positions)
    return Evaluations(positions=positions, values=values, gradients=gradients)


def error(spec, rows, judging, factor, seed):
    """Return the relative error of a fitted surrogate's gradient."""
    name, settings = spec
    problem = LearningProblem(dim=len(factor), capabilities=frozenset({"gradient"}))
    learner = sk.make("surrogate", name, **settings).learner(problem, np.random.default_rng(seed))
    learner.observe(rows)
    try:
        return fit_quality(learner.fit(), judging, factor).gradient_error
    except SurrogateFitError:  # too few values
        return np.nan


def main():
    target = sk.make("potential", "simulated-logistic")
    mode, factor = laplace(target)
    judging = evaluated(target, mode, factor, 200, 1000)
    sets = [evaluated(target, mode, factor, max(POINTS), seed) for seed in range(SEEDS)]
    figure, axes = plt.subplots(figsize=(5.5, 3.4))
    for label, (spec, colour, style, with_gradients) in CURVES.items():
        medians = []
        for n in POINTS:
            errors = []
            for seed, whole in enumerate(sets):
                rows = whole.take(slice(0, n))
                if not with_gradients:
                    rows = Evaluations(positions=rows.positions, values=rows.values)
                errors.append(error(spec, rows, judging, factor, seed))
            medians.append(float(np.median(errors)))
        print(f"{label:28s}", " ".join(f"{value:8.4f}" for value in medians))
        axes.loglog(POINTS, medians, style, color=colour, label=label, markersize=4)
    axes.set_xlabel("exact evaluations that the surrogate learnt from")
    axes.set_ylabel("relative error of the gradient\n(whitened, at new points)")
    axes.set_xticks(POINTS, [str(n) for n in POINTS])
    axes.minorticks_off()
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, "few-points")


if __name__ == "__main__":
    main()
