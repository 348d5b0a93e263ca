"""The models in NumPyro."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import sample

from written import data


def schools() -> None:
    """Not centred."""
    mu, tau = sample("mu", dist.Normal(0.0, 5.0)), sample("tau", dist.HalfCauchy(5.0))
    eta = sample("eta", dist.Normal(0.0, 1.0).expand([8]).to_event(1))
    sample("effects", dist.Normal(mu + tau * eta, data.ERRORS), obs=data.EFFECTS)


def hierarchical() -> None:
    """Unknown scales between and within groups."""
    mu = sample("mu", dist.Normal(0.0, 5.0))
    between = sample("between", dist.HalfNormal(3.0))
    within = sample("within", dist.HalfNormal(3.0))
    effect = sample("effect", dist.Normal(mu, between).expand([6]).to_event(1))
    sample("y", dist.Normal(effect[data.GROUPS], within), obs=data.IN_GROUPS)


def grades() -> None:
    """Ordered logit; the prior of the cuts is on the numbers, as in the other languages."""
    slope = sample("slope", dist.Normal(0.0, 2.0))
    cuts = sample("cuts", dist.ImproperUniform(dist.constraints.ordered_vector, (), (3,)))
    numpyro.factor("prior", dist.Normal(0.0, 3.0).log_prob(cuts).sum())
    sample("grade", dist.OrderedLogistic(slope * data.SLOPE_AT, cuts), obs=data.GRADES)


def covariance() -> None:
    """A covariance by the prior of Lewandowski, Kurowicka and Joe (2009)."""
    mu = sample("mu", dist.Normal(0.0, 2.0).expand([3]).to_event(1))
    sd = sample("sd", dist.HalfNormal(2.0).expand([3]).to_event(1))
    factor = sample("factor", dist.LKJCholesky(3, 2.0))
    scale = sd[:, None] * factor
    sample("y", dist.MultivariateNormal(mu, scale_tril=scale), obs=data.CORRELATED)


def mixture() -> None:
    """Two normal components with ordered means."""
    share = sample("share", dist.Beta(2.0, 2.0))
    means = sample("means", dist.ImproperUniform(dist.constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior", dist.Normal(0.0, 3.0).log_prob(means).sum())
    sd = sample("sd", dist.HalfNormal(2.0).expand([2]).to_event(1))
    weights = dist.Categorical(probs=jnp.stack([share, 1.0 - share]))
    sample("y", dist.MixtureSameFamily(weights, dist.Normal(means, sd)), obs=data.MIXED)


def items() -> None:
    """Rasch's model of answers."""
    mu, sd = sample("mu", dist.Normal(0.0, 2.0)), sample("sd", dist.HalfNormal(2.0))
    ability = sample("ability", dist.Normal(0.0, 1.0).expand([data.N_PERSONS]).to_event(1))
    difficulty = sample("difficulty", dist.Normal(mu, sd).expand([data.N_ITEMS]).to_event(1))
    logits = ability[:, None] - difficulty
    sample("answer", dist.Bernoulli(logits=logits), obs=data.ANSWERS)


def garch() -> None:
    """Variance by the last return and the last variance."""
    omega = sample("omega", dist.HalfNormal(1.0))
    alpha = sample("alpha", dist.Uniform(0.0, 1.0))
    beta = sample("beta", dist.Uniform(0.0, 1.0 - alpha))

    def step(variance: jax.Array, last: jax.Array) -> tuple[jax.Array, jax.Array]:
        following = omega + alpha * last**2 + beta * variance
        return following, following

    _, later = jax.lax.scan(step, jnp.ones(()), data.RETURNS[:-1])
    variances = jnp.concatenate([jnp.ones(1), later])
    sample("y", dist.Normal(0.0, jnp.sqrt(variances)), obs=data.RETURNS)


def curve() -> None:
    """A Gaussian process that is integrated out, with a height, a length and a noise."""
    height, noise = sample("height", dist.HalfNormal(2.0)), sample("noise", dist.HalfNormal(1.0))
    length = sample("length", dist.InverseGamma(5.0, 5.0))
    apart = (data.PLACES[:, None] - data.PLACES) / length
    matrix = height**2 * jnp.exp(-0.5 * apart**2) + noise**2 * jnp.eye(40)
    sample("y", dist.MultivariateNormal(jnp.zeros(40), matrix), obs=data.HEIGHTS)


def logistic() -> None:
    """A generalised linear model of many rows."""
    intercept = sample("intercept", dist.Normal(0.0, 2.5))
    slopes = sample("slopes", dist.Normal(0.0, 1.0).expand([10]).to_event(1))
    sample("y", dist.Bernoulli(logits=intercept + data.COLUMNS @ slopes), obs=data.EVENTS)


def epidemic() -> None:
    """Shares of the susceptible and the infected by two differential equations."""
    from jax.experimental.ode import odeint

    contact = sample("contact", dist.LogNormal(0.0, 0.5))
    recovery = sample("recovery", dist.LogNormal(-1.0, 0.5))
    first = sample("first", dist.Beta(1.0, 20.0))
    noise = sample("noise", dist.HalfNormal(0.1))

    def flow(shares: jax.Array, _: jax.Array, contact: jax.Array, recovery: jax.Array) -> jax.Array:
        new = contact * shares[0] * shares[1]
        return jnp.stack([-new, new - recovery * shares[1]])

    days = jnp.concatenate([jnp.zeros(1), data.DAYS])
    shares = odeint(flow, jnp.stack([1.0 - first, first]), days, contact, recovery)
    sample("y", dist.Normal(shares[1:, 1], noise), obs=data.SICK)


_ALL = (
    *(schools, hierarchical, grades, covariance, mixture, items),
    *(garch, curve, logistic, epidemic),
)
MODELS: Mapping[str, Callable[[], None]] = {each.__name__: each for each in _ALL}
