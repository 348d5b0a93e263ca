"""Training rows for checks of surrogates, and fits to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.interfaces import Evaluations, Learner, LearningProblem
from surrokit.potentials import Potential, SummedTerms
from surrokit.testing.measures import evaluating
from surrokit.testing.measures.demands import demand, demand_close, demand_equal
from surrokit.testing.results import Factory
from surrokit.testing.targets.banana_rows import BananaRows
from surrokit.testing.targets.densities import Banana
from surrokit.testing.targets.target import Target, seal
from surrokit.types import FloatArray

N_POINTS = 120
"""Evaluations given to a learner, unless a check is about their number."""

LOOSE = 1e-4
"""Largest relative difference of fits that differ by rounding, even ill-conditioned ones."""

NEGLIGIBLE = 0.05
"""Largest such difference as a part of the fit's error; the larger limit holds."""

TARGET = Banana()
"""The target of surrogates: smooth, curved, and a forward potential."""


def problem_of(target: Target) -> LearningProblem:
    """Return what a surrogate may know of a target."""
    energy, terms = None, None
    if isinstance(target, Banana):
        energy, terms = target.energy, SummedTerms(BananaRows(sd=target.sd))
    return LearningProblem(
        dim=target.dim, capabilities=target.capabilities, energy=energy, terms=terms
    )


def evaluate(target: Target, positions: FloatArray) -> Evaluations:
    """Return all evaluations of a target at positions of shape (n, 2)."""
    values, gradients = target.value_and_gradient(positions)
    outputs, jacobians = None, None
    if isinstance(target, Banana):
        outputs, jacobians = target.forward_and_jacobian(positions)
    return Evaluations(
        positions=positions,
        values=values,
        gradients=gradients,
        outputs=outputs,
        jacobians=jacobians,
    )


def training(n: int = N_POINTS, seed: int = 0) -> Evaluations:
    """Return evaluations of :data:`TARGET` at n exact draws."""
    return evaluate(TARGET, TARGET.sample(np.random.default_rng([1604, seed]), n))


def learner_of(make: Factory, *blocks: Evaluations, seed: int = 0) -> Learner:
    """Return a fresh learner of :data:`TARGET` that has observed some blocks.

    The target refuses every evaluation meanwhile.
    """
    surrogate = make()
    with seal():
        learner: Learner = surrogate.learner(problem_of(TARGET), np.random.default_rng(seed))
        for block in blocks:
            learner.observe(block)
    return learner


def fit_to(make: Factory, *blocks: Evaluations, seed: int = 0) -> Any:
    """Return the potential fitted to some blocks, without one exact call."""
    learner = learner_of(make, *blocks, seed=seed)
    with seal():
        return learner.fit()


def places(n: int = 40, spread: float = 0.6) -> FloatArray:
    """Return positions, shape (n, 2), where fits are compared."""
    # nearer to the middle than draws, since rounding dominates a fit beyond its data
    return TARGET.from_normals(spread * np.random.default_rng(1605).standard_normal((n, 2)))


def demand_same(first: Any, second: Any, what: str, *, exactly: bool = False) -> None:
    """Demand that two fitted potentials give the same, or exactly the same, answers."""
    where = places()
    one, two = evaluating.answers(first, where), evaluating.answers(second, where)
    exact = evaluating.answers(TARGET, where)
    for name, array in one.items():
        if exactly:
            demand_equal(two[name], array, f"{name} of {what}")
            continue
        room = LOOSE * max(float(np.abs(array).max()), 1.0)
        if name in exact and exact[name].shape == array.shape:
            # an ill-conditioned fit loses digits, which do not matter below the error of the fit
            room = max(room, NEGLIGIBLE * float(np.std(array - exact[name])))
        demand_close(two[name], array, f"{name} of {what}", rtol=0, atol=room)


def demand_finite(fitted: Any, what: str) -> None:
    """Demand that all answers of a fitted potential are finite."""
    for name, array in evaluating.answers(fitted, places()).items():
        demand(np.isfinite(array).all(), f"{name} of a potential {what} is not finite")


def relative_error(fitted: Potential) -> float:
    """Return Var(V - U) over Var(U), where there are data."""
    where = places(500, 0.8)
    exact = TARGET.value(where)
    return float(np.var(fitted.value(where) - exact) / np.var(exact))
