"""The models in PyMC."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pymc

from written import data


def schools() -> None:
    """Not centred."""
    mu, tau = pymc.Normal("mu", 0.0, 5.0), pymc.HalfCauchy("tau", 5.0)
    eta = pymc.Normal("eta", shape=8)
    pymc.Normal("effects", mu + tau * eta, data.ERRORS, observed=data.EFFECTS)


def hierarchical() -> None:
    """Unknown scales between and within groups."""
    mu = pymc.Normal("mu", 0.0, 5.0)
    between, within = pymc.HalfNormal("between", 3.0), pymc.HalfNormal("within", 3.0)
    effect = pymc.Normal("effect", mu, between, shape=6)
    pymc.Normal("y", effect[data.GROUPS], within, observed=data.IN_GROUPS)


def grades() -> None:
    """Ordered logit."""
    slope = pymc.Normal("slope", 0.0, 2.0)
    ordered = pymc.distributions.transforms.ordered
    start = np.array([-1.0, 0.0, 1.0])
    cuts = pymc.Normal("cuts", 0.0, 3.0, shape=3, transform=ordered, initval=start)
    eta = slope * data.SLOPE_AT
    pymc.OrderedLogistic("grade", eta=eta, cutpoints=cuts, observed=data.GRADES)


def covariance() -> None:
    """A covariance by the prior of Lewandowski, Kurowicka and Joe (2009)."""
    mu = pymc.Normal("mu", 0.0, 2.0, shape=3)
    sd = pymc.HalfNormal.dist(2.0, shape=3)
    factor, _, _ = pymc.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=sd)
    pymc.MvNormal("y", mu, chol=factor, observed=data.CORRELATED)


def mixture() -> None:
    """Two normal components with ordered means."""
    share = pymc.Beta("share", 2.0, 2.0)
    ordered = pymc.distributions.transforms.ordered
    start = np.array([-1.0, 1.0])
    means = pymc.Normal("means", 0.0, 3.0, shape=2, transform=ordered, initval=start)
    sd = pymc.HalfNormal("sd", 2.0, shape=2)
    weights = pymc.math.stack([share, 1.0 - share])
    pymc.NormalMixture("y", weights, means, sd, observed=data.MIXED)


def items() -> None:
    """Rasch's model of answers."""
    mu, sd = pymc.Normal("mu", 0.0, 2.0), pymc.HalfNormal("sd", 2.0)
    ability = pymc.Normal("ability", shape=data.N_PERSONS)
    difficulty = pymc.Normal("difficulty", mu, sd, shape=data.N_ITEMS)
    logit = ability[:, None] - difficulty
    pymc.Bernoulli("answer", logit_p=logit, observed=data.ANSWERS)


MODELS: Mapping[str, Callable[[], None]] = {
    each.__name__: each for each in (schools, hierarchical, grades, covariance, mixture, items)
}


def model_of(name: str) -> pymc.Model:
    """Return a model."""
    with pymc.Model() as model:
        MODELS[name]()
    return model
