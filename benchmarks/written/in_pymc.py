"""The models in PyMC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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


def garch() -> None:
    """Variance by the last return and the last variance."""
    omega, alpha = pymc.HalfNormal("omega", 1.0), pymc.Uniform("alpha", 0.0, 1.0)
    beta = pymc.Uniform("beta", 0.0, 1.0 - alpha)
    pymc.GARCH11(
        "y", omega=omega, alpha_1=alpha, beta_1=beta, initial_vol=1.0, observed=data.RETURNS
    )


def curve() -> None:
    """A Gaussian process that is integrated out, with a height, a length and a noise."""
    height, noise = pymc.HalfNormal("height", 2.0), pymc.HalfNormal("noise", 1.0)
    length = pymc.InverseGamma("length", 5.0, 5.0)
    process = pymc.gp.Marginal(cov_func=height**2 * pymc.gp.cov.ExpQuad(1, ls=length))
    process.marginal_likelihood(
        "y", X=data.PLACES[:, None], y=data.HEIGHTS, sigma=noise, jitter=0.0
    )


def logistic() -> None:
    """A generalised linear model of many rows."""
    intercept, slopes = pymc.Normal("intercept", 0.0, 2.5), pymc.Normal("slopes", shape=10)
    logit = intercept + pymc.math.dot(data.COLUMNS, slopes)
    pymc.Bernoulli("y", logit_p=logit, observed=data.EVENTS)


def epidemic() -> None:
    """Shares of the susceptible and the infected by two differential equations."""
    from pymc.ode import DifferentialEquation

    contact = pymc.LogNormal("contact", 0.0, 0.5)
    recovery = pymc.LogNormal("recovery", -1.0, 0.5)
    first, noise = pymc.Beta("first", 1.0, 20.0), pymc.HalfNormal("noise", 0.1)

    def flow(shares: Any, _: Any, rates: Any) -> list[Any]:
        new = rates[0] * shares[0] * shares[1]
        return [-new, new - rates[1] * shares[1]]

    solve = DifferentialEquation(func=flow, times=data.DAYS, n_states=2, n_theta=2, t0=0.0)
    shares = solve(y0=[1.0 - first, first], theta=[contact, recovery])
    pymc.Normal("y", shares[:, 1], noise, observed=data.SICK)


_ALL = (
    *(schools, hierarchical, grades, covariance, mixture, items),
    *(garch, curve, logistic, epidemic),
)
MODELS: Mapping[str, Callable[[], None]] = {each.__name__: each for each in _ALL}


def model_of(name: str) -> pymc.Model:
    """Return a model."""
    with pymc.Model() as model:
        MODELS[name]()
    return model
