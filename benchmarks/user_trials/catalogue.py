"""The trials."""

from __future__ import annotations

from typing import Any

import numpy as np

import surrokit as sk
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from user_trials import densities, references
from user_trials.densities import CURVE, EPIDEMIC, REGRESSION, Density
from user_trials.outcomes import Trial

FAR = 20.0
"""Starts of the regression are uniform in plus and minus so much, on the whole line."""


def of_values(density: Density, **how: Any) -> Potential:
    """Return a target of values alone."""
    return sk.potential(log_density=density, **how)


def two_modes(**how: Any) -> Potential:
    """Return the two modes."""
    return of_values(densities.two_modes, dim=2, **how)


def correlated(**how: Any) -> Potential:
    """Return the correlated normal."""
    return of_values(densities.correlated, dim=20, **how)


def sir(density: Density = densities.sir) -> Potential:
    """Return the epidemic."""
    return of_values(density, parameters=EPIDEMIC)


def curve() -> Potential:
    """Return the curve."""
    return of_values(densities.curve, parameters=CURVE)


def scores() -> Potential:
    """Return the regression."""
    slope = densities.slope_of_scores
    return of_values(densities.scores, gradient=slope, parameters=REGRESSION)


def turned(density: Density) -> Density:
    """Return a log density of which somebody forgot that it is one."""
    return lambda q: -density(q)


def far_starts(rng: np.random.Generator) -> FloatArray:
    """Return starts of four chains, far away."""
    line = rng.uniform(-FAR, FAR, (4, 5))
    return np.column_stack([line[:, :4], np.exp(line[:, 4])])


_MODES = {"truth": references.two_modes, "rhat": 1.05, "off_mean": 1e-9, "errors": 4.0}
_CURVE = {"truth": references.curve, "target": lambda _: curve(), "errors": 4.0}
_SIR = {"truth": references.sir, "errors": 4.0}
_SCORES = {"truth": references.scores, "target": lambda _: scores(), "start": far_starts}

TRIALS = (
    Trial(name="two_modes", variant="values", target=lambda _: two_modes(), **_MODES),
    Trial(
        name="two_modes",
        variant="gradients",
        target=lambda _: two_modes(gradient=densities.slope_of_two_modes),
        **_MODES,
    ),
    Trial(
        name="correlated",
        variant="values",
        target=lambda _: correlated(),
        truth=references.correlated,
    ),
    Trial(name="sir", variant="clean", target=lambda _: sir(), **_SIR),
    Trial(
        name="sir5",
        variant="somewhere",
        target=lambda _: sir(densities.fails_somewhere(densities.sir)),
        **_SIR,
    ),
    Trial(
        name="sir5",
        variant="by chance",
        target=lambda seed: sir(densities.fails_by_chance(densities.sir, seed)),
        **_SIR,
    ),
    Trial(name="curve", variant="300 calls", settings={"max_calls": 300}, **_CURVE),
    Trial(name="curve", variant="1000 calls", settings={"max_calls": 1000}, **_CURVE),
    Trial(name="curve", variant="no limit", **_CURVE),
    Trial(
        name="sign",
        variant="values",
        target=lambda _: of_values(turned(densities.correlated), dim=20),
        truth=None,
    ),
    Trial(
        name="sign",
        variant="gradients",
        target=lambda _: of_values(
            turned(densities.correlated),
            gradient=lambda q: -densities.slope_of_correlated(q),
            dim=20,
        ),
        truth=None,
    ),
    Trial(name="kidscore", variant="nuts", settings={"sampler": "nuts"}, seeds=20, **_SCORES),
    Trial(name="kidscore", variant="hmc", settings={"sampler": "hmc"}, seeds=20, **_SCORES),
)
