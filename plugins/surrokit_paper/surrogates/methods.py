"""Surrogates that experiments compare."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.capabilities import GRADIENT
from surrokit.contracts.learner import LearningProblem
from surrokit.contracts.potential import Potential

PAPER_GP: Mapping[str, Any] = {
    "kernel_scales": "isotropic",
    "mean": "constant",
    "whiten": False,
    "tail": "full",
    "n_search": None,
    "max_signal": 1e4,
}
"""One length scale, raw coordinates; hyperparameters by the marginal likelihood of all points."""


@attrs.frozen(kw_only=True)
class Method:
    """A surrogate under the name that rows and pictures call it by.

    Parameters
    ----------
    name
        Word in the names of rows.
    label
        What tables and legends say.
    surrogate, settings
        The registered surrogate.
    gradients
        Whether it is shown gradients as well as values.
    random
        Whether two fits to one data set differ.
    """

    name: str
    label: str
    surrogate: str
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    gradients: bool = False
    random: bool = True

    def facts(self) -> dict[str, Any]:
        """Return what a row's result depends on, as plain data."""
        return {
            "method": self.name,
            "label": self.label,
            "surrogate": self.surrogate,
            "surrogate_settings": dict(self.settings),
            "gradients": self.gradients,
        }


DEFAULTS = (
    Method(name="additive-default", label="additive, surrokit's defaults", surrogate="additive"),
    Method(
        name="additive-gradients",
        label="the same, from gradients too",
        surrogate="additive",
        gradients=True,
    ),
)
"""This project's own settings, from values alone and from gradients too."""


@attrs.frozen(kw_only=True, eq=False)
class Trained:
    """A fitted surrogate and what it cost.

    Parameters
    ----------
    potential
        The surrogate.
    seconds
        Processor time from the first look at the data to the fitted potential, hyperparameters
        included.
    wall_seconds
        The same by the clock on the wall.
    """

    potential: Potential
    seconds: float
    wall_seconds: float


def train(
    surrogate: str,
    settings: Mapping[str, Any],
    evaluations: sk.Evaluations,
    rng: np.random.Generator,
) -> Trained:
    """Fit a registered surrogate to evaluations, with nothing explored.

    Parameters
    ----------
    surrogate, settings
        The registered surrogate.
    evaluations
        What it learns from; with gradients it is told that the target has them.
    rng
        Draws what is random in it.

    Raises
    ------
    UnknownComponentError
        If there is no such surrogate.
    ConfigurationError
        If a setting is unknown or out of range.
    SurrogateFitError
        If it cannot be fitted to these evaluations.
    """
    has_gradients = evaluations.gradients is not None
    problem = LearningProblem(
        dim=evaluations.positions.shape[1],
        capabilities=frozenset({GRADIENT} if has_gradients else ()),
    )
    learner = sk.make("surrogate", surrogate, **settings).learner(problem, rng)
    began = time.process_time(), time.perf_counter()
    learner.observe(evaluations)
    potential = learner.fit()
    return Trained(
        potential=potential,
        seconds=time.process_time() - began[0],
        wall_seconds=time.perf_counter() - began[1],
    )


def solve_seconds(
    fit: Trained,
    surrogate: str,
    settings: Mapping[str, Any],
    evaluations: sk.Evaluations,
    rng: np.random.Generator,
) -> float | None:
    """Return how long a Gaussian process takes to fit once its hyperparameters are known.

    Parameters
    ----------
    fit
        What was fitted with hyperparameters to be found.
    surrogate, settings, evaluations, rng
        As for :func:`train`.

    Returns
    -------
    float or None
        Processor time; None for a surrogate without hyperparameters.
    """
    found = getattr(fit.potential, "hyperparameters", None)
    if found is None:
        return None
    known = {**settings, "hyperparameters": attrs.asdict(found)}
    return train(surrogate, known, evaluations, rng).seconds


def squared_length_scale(potential: Any) -> float:
    """Return l^2 of a fitted Gaussian process that has one length scale for all coordinates.

    Parameters
    ----------
    potential
        Fitted by the surrogate ``gp`` or ``fitc``; it says its ``hyperparameters``.
    """
    return float(potential.hyperparameters.length_scales) ** 2
