"""The surrogates that the paper and this project use, and how they are trained."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import attrs
import numpy as np

import surrokit as sk
from surrokit.capabilities import GRADIENT
from surrokit.interfaces import LearningProblem
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray

HMC = "hmc"
"""The exact sampler, in names of cases."""


@attrs.frozen
class Method:
    """A surrogate under the name that cases and pictures call it by."""

    name: str
    label: str  # in tables and legends
    surrogate: str = "additive"  # as it is registered
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    gradients: bool = False  # is it shown gradients (Jacobians, of a forward map) beside values?

    def train(self, evaluations: sk.Evaluations, rng: np.random.Generator) -> Trained:
        """Fit it to evaluations."""
        if not self.gradients:
            evaluations = attrs.evolve(evaluations, gradients=None)
        problem = LearningProblem(
            dim=evaluations.positions.shape[1],
            capabilities=frozenset({GRADIENT} if self.gradients else ()),
        )
        learner = sk.make("surrogate", self.surrogate, **self.settings).learner(problem, rng)
        began = time.process_time()
        learner.observe(evaluations)
        return Trained(learner.fit(), time.process_time() - began)


class Trained(NamedTuple):
    """A fitted surrogate, and the processor's seconds of the whole fit."""

    potential: Potential
    seconds: float


def by_name(*methods: Method) -> dict[str, Method]:
    """Return methods by name, in order."""
    return {method.name: method for method in methods}


def processes(n_inducing: int) -> tuple[Method, Method]:
    """Return the paper's Gaussian processes: exact, and FITC with so many inducing points.

    They have one length scale and raw coordinates, and hyperparameters by the marginal likelihood
    of all points.
    """
    settings = {
        "mean": "constant",
        "whiten": False,
        "tail": "full",
        "n_search": None,
        "max_signal": 1e4,
    }
    inducing = {**settings, "n_inducing": n_inducing, "inducing": "data"}
    return Method("gp", "GP", "gp", settings), Method("fitc", "FITC", "fitc", inducing)


DEFAULTS = (
    Method("additive-default", "additive, surrokit's defaults"),
    Method("additive-gradients", "the same, from gradients too", gradients=True),
)
"""This project's own settings, from values alone and from gradients too."""


def evaluated(target: Potential, positions: FloatArray) -> sk.Evaluations:
    """Return values and gradients at positions, shape (n, dim)."""
    values, gradients = with_gradient(target).value_and_gradient(positions)
    return sk.Evaluations(positions=positions, values=values, gradients=gradients)
