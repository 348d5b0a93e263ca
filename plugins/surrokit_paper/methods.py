"""The surrogates that the paper and this project use, and how they are trained."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import (
    Limits,
    is_number,
    not_negative_integer,
    one_of,
    optional_positive_integer,
    positive_integer,
)
from surrokit.capabilities import GRADIENT
from surrokit.interfaces import LearningProblem
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray
from surrokit_paper.chains import burnt_in
from surrokit_paper.harness import Conditions, Row
from surrokit_paper.problems import PDE, PaperProblem, ProblemExperiment

HMC = "hmc"
"""The exact sampler, in names of rows."""


@attrs.frozen
class Method:
    """A surrogate under the name that rows and pictures call it by."""

    name: str
    label: str  # in tables and legends
    surrogate: str = "additive"  # as it is registered
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    gradients: bool = False  # is it shown gradients (Jacobians, of a forward map) beside values?
    outputs: bool = False  # does it learn those of a forward map in place of U?

    def applies(self, problem: PaperProblem) -> bool:
        """Whether a problem has what it learns from."""
        return problem.name == PDE or not self.outputs

    def facts(self) -> dict[str, Any]:
        """Return what a row's result depends on, as plain data."""
        return {
            "method": self.name,
            "label": self.label,
            "surrogate": self.surrogate,
            "surrogate_settings": dict(self.settings),
            "gradients": self.gradients,
        }


EXACT = Method(HMC, "HMC, exact", "none")
"""For comparison."""

_GP: Mapping[str, Any] = {
    "kernel_scales": "isotropic",
    "mean": "constant",
    "whiten": False,
    "tail": "full",
    "n_search": None,
    "max_signal": 1e4,
}  # one length scale, raw coordinates; hyperparameters by the marginal likelihood of all points


def processes(n_inducing: int) -> tuple[Method, Method]:
    """Return the paper's Gaussian processes: exact, and FITC with so many inducing points."""
    inducing = {**_GP, "n_inducing": n_inducing, "inducing": "data"}
    return Method("gp", "GP", "gp", _GP), Method("fitc", "FITC", "fitc", inducing)


DEFAULTS = (
    Method("additive-default", "additive, surrokit's defaults"),
    Method("additive-gradients", "the same, from gradients too", gradients=True),
)
"""This project's own settings, from values alone and from gradients too."""


class Trained(NamedTuple):
    """A fitted surrogate, and the processor's and the wall's seconds of the whole fit."""

    potential: Potential
    seconds: float
    wall_seconds: float


def evaluated(target: Potential, positions: FloatArray) -> sk.Evaluations:
    """Return values and gradients at positions, shape (n, dim)."""
    values, gradients = with_gradient(target).value_and_gradient(positions)
    return sk.Evaluations(positions=positions, values=values, gradients=gradients)


def train(
    surrogate: str,
    settings: Mapping[str, Any],
    evaluations: sk.Evaluations,
    rng: np.random.Generator,
    gradients: bool,
) -> Trained:
    """Fit a registered surrogate to evaluations, with their gradients or without."""
    if not gradients:
        evaluations = attrs.evolve(evaluations, gradients=None)
    problem = LearningProblem(
        dim=evaluations.positions.shape[1],
        capabilities=frozenset({GRADIENT} if gradients else ()),
    )
    learner = sk.make("surrogate", surrogate, **settings).learner(problem, rng)
    began = time.process_time(), time.perf_counter()
    learner.observe(evaluations)
    potential = learner.fit()
    return Trained(potential, time.process_time() - began[0], time.perf_counter() - began[1])


def squared_length_scale(potential: Any) -> float:
    """Return l^2 of a Gaussian process that was fitted with one length scale."""
    return float(potential.hyperparameters.length_scales) ** 2


# --- surrogates that learn on the way, figures 7 and 8; settings are those of ``additive`` ---

PAPER = Method(
    "paper",
    "the paper's network, values alone",
    # whitened, which the paper's inputs are not: see the notes of figure 7; n_nodes is s as in
    # the paper
    settings={"trend": "constant", "train_on": "values", "learns": "potential"},
)
"""Network alone."""

SCHEMES: Mapping[str, Method] = {
    scheme.name: scheme
    for scheme in (
        PAPER,
        Method("defaults", "surrokit's defaults, gradients too", gradients=True),
        Method("emulator", "surrokit's defaults, forward map", gradients=True, outputs=True),
    )
}
"""By name: the paper's, this project's surrogate of U as it comes, and of a forward map."""


def adaptive(scheme: Method, kappa: float, freeze_after: str | None) -> dict[str, Any]:
    """Return settings of the schedule ``greville``, which is Algorithm 4.

    The surrogate is deployed with probability (1 + t)^-kappa, t iterations after the starting
    phase. It freezes after the ``"warmup"``, or never, as in the paper, with None.
    """
    derivatives = "warmup" if scheme.gradients else "never"
    return {"kappa": kappa, "freeze_after": freeze_after, "derivatives": derivatives}


_vanishing = Limits(
    "a number above 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1
)  # (1 + t)^-kappa then vanishes, and has no finite sum


@attrs.frozen(kw_only=True)
class LearningExperiment(ProblemExperiment):
    """Runs on surrogates that learn on the way.

    Parameters
    ----------
    repeats
        Runs of each.
    burn_in
        Exact iterations from 0, with a tuned step size, that nothing is learnt from.
    n_nodes
        Of the paper's network; None for s as in the paper.
    updates
        How the paper's network takes in points. ``"greville"`` is Proposition 1; ``"auto"``
        refits while points are few, and then goes on by that.
    kappa
        Deployments happen with probability (1 + t)^-kappa. The paper does not say its rate.
    """

    repeats: int = attrs.field(default=10, validator=positive_integer)
    burn_in: int = attrs.field(default=500, validator=not_negative_integer)
    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    updates: str = attrs.field(default="auto", validator=one_of("auto", "refit", "greville"))
    kappa: float = attrs.field(default=0.6, validator=_vanishing)

    def begin(
        self, row: Row, conditions: Conditions
    ) -> tuple[PaperProblem, FloatArray, np.random.Generator]:
        """Return the problem of a row, where its chain starts, and its random numbers.

        All methods of a repeat start from the same place to the last digit, on the same target.
        """
        problem = self.problem(row.settings["problem"])
        target, keys = problem.target(conditions), (problem.name, row.settings["repeat"])
        before = conditions.generator("burn-in", *keys)
        start = burnt_in(target, problem, self.burn_in, before)
        return problem, start, conditions.generator("row", row.settings["method"], *keys)

    def surrogate(self, scheme: Method, problem: PaperProblem) -> dict[str, Any]:
        """Return what a row says of a scheme's surrogate; the defaults choose their own nodes."""
        network = {"n_nodes": self.n_nodes or problem.n_nodes, "updates": self.updates}
        settings = {**scheme.settings, **(network if scheme is PAPER else {})}
        return {"surrogate": scheme.surrogate, "surrogate_settings": settings}
