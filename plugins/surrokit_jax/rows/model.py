"""What a model of NumPyro says of its observed site, and of the priors of the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.parameters import Parameters
from surrokit.errors import NotASumError
from surrokit.targets.summed import Form
from surrokit_jax.library import load_jax


@attrs.frozen
class Known:
    """A distribution of NumPyro that is a family.

    Parameters
    ----------
    family
        Of :func:`surrokit.rows_potential`.
    argument, form
        What has the predictor in it, and how.
    constants
        Its other arguments, with the names of the family's settings.
    """

    family: str
    argument: str
    form: Form
    constants: Mapping[str, str] = attrs.field(factory=dict)


KNOWN: Mapping[str, Known] = {
    "BernoulliLogits": Known("logistic", "logits", Form.LINEAR),
    "BernoulliProbs": Known("logistic", "probs", Form.LOGISTIC),
    "BinomialLogits": Known("binomial", "logits", Form.LINEAR, {"total_count": "total"}),
    "BinomialProbs": Known("binomial", "probs", Form.LOGISTIC, {"total_count": "total"}),
    "Poisson": Known("poisson", "rate", Form.EXPONENTIAL),
    "Exponential": Known("exponential", "rate", Form.EXPONENTIAL),
    "Normal": Known("gaussian", "loc", Form.LINEAR, {"scale": "scale"}),
    "StudentT": Known("student", "loc", Form.LINEAR, {"scale": "scale", "df": "degrees"}),
}
"""Distributions by their names."""


@attrs.frozen(eq=False)
class Observed:
    """A model of NumPyro as functions of a position on the line.

    Parameters
    ----------
    model, args, kwargs
        The model, and what it is called with.
    report
        NumPyro's function from unconstrained sites to constrained ones.
    own
        Names and shapes of unconstrained sites.
    site
        The observed one.
    """

    model: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    report: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    own: Parameters
    site: str

    def trace(self, z: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return NumPyro's sites at a position (dim,)."""
        from numpyro import handlers

        values = self.report(self.own.split(z))
        latent = {name: values[name] for name in self.own.specs}
        model = handlers.substitute(handlers.seed(self.model, 0), data=latent)
        found: Mapping[str, Mapping[str, Any]] = handlers.trace(model).get_trace(
            *self.args, **self.kwargs
        )
        return found

    def arguments(self, z: Any) -> dict[str, Any]:
        """Return arguments of the observed distribution, (n_rows,), and those of normal priors."""
        jnp = load_jax().numpy
        sites = self.trace(z)
        value, plain = sites[self.site]["value"], plain_of(sites[self.site]["fn"])
        known = KNOWN[type(plain).__name__]
        found = {
            name: jnp.broadcast_to(getattr(plain, name), np.shape(value)).ravel()
            for name in (known.argument, *known.constants)
        }
        for name, spec in self.own.specs.items():
            prior = plain_of(sites[name]["fn"])
            if type(prior).__name__ == "Normal":
                for each in ("loc", "scale"):
                    array = jnp.broadcast_to(getattr(prior, each), spec.shape).ravel()
                    found[f"{name}/{each}"] = array
        return found

    def predictors(self, z: Any) -> Any:
        """Return the predictors, shape (n_rows,), in JAX."""
        jnp = load_jax().numpy
        known = self.known
        given = self.arguments(z)[known.argument]
        if known.form is Form.EXPONENTIAL:
            return jnp.log(given)
        if known.form is Form.LOGISTIC:
            return jnp.log(given) - jnp.log1p(-given)
        return given

    def each(self, z: Any) -> Any:
        """Return the log likelihood of each observed number, shape (n_rows,), in JAX."""
        site = self.trace(z)[self.site]
        return plain_of(site["fn"]).log_prob(site["value"]).ravel()

    def beside(self, z: Any) -> Any:
        """Return minus the log density without the observed site at a position (dim,), in JAX."""
        from numpyro import handlers
        from numpyro.infer.util import potential_energy

        hidden = handlers.block(self.model, hide=[self.site])
        return potential_energy(hidden, self.args, dict(self.kwargs), self.own.split(z))

    @property
    def known(self) -> Known:
        """The family of the observed site."""
        site = self.trace(np.zeros(self.own.dim))[self.site]
        return KNOWN[type(plain_of(site["fn"])).__name__]


def observed_site(trace: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the name of a model's one observed site, whose distribution is a family.

    Parameters
    ----------
    trace
        NumPyro's sites at some position.

    Raises
    ------
    NotASumError
        If there is none, or it is of another kind.
    """
    sites = {name: site for name, site in trace.items() if site["type"] == "sample"}
    observed = [name for name, site in sites.items() if site["is_observed"]]
    for name in observed:
        if type(sites[name]["fn"]).__name__ == "Unit":
            raise NotASumError(f"{name!r} is a factor, whose rows are not known")
    if len(observed) != 1:
        raise NotASumError(
            f"it has {len(observed)} observed sites ({', '.join(observed) or 'none'}), not one"
        )
    name = observed[0]
    scaled = [each for each, site in sites.items() if site.get("scale") is not None]
    if scaled:
        raise NotASumError(f"the density of {scaled[0]!r} is scaled by a handler")
    plain = plain_of(sites[name]["fn"])
    known = type(plain).__name__ in KNOWN and type(plain).__module__.startswith("numpyro.")
    if not known:
        raise NotASumError(
            f"{name!r} is distributed as {type(plain).__name__}, which is no family of rows; there "
            f"are {', '.join(KNOWN)}"
        )
    return name


def plain_of(distribution: Any) -> Any:
    """Return a distribution without what only changes its shape."""
    while type(distribution).__name__ in ("Independent", "ExpandedDistribution"):
        distribution = distribution.base_dist
    return distribution
