"""Models written down with NumPyro, whole and as sums over the rows of their observed site."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import load_library
from surrokit.capabilities import ROWS
from surrokit.coordinates.models import ModelMap, reported_as
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError
from surrokit.potentials import Pointwise
from surrokit.tables.graphs import sum_if_safe
from surrokit.targets.forward import ModelledPotential
from surrokit.types import FloatArray
from surrokit_jax.compiled import Functions, load_jax, travel
from surrokit_jax.density import JaxPotential, check_number, derivatives_of, highest_order
from surrokit_jax.numpyro_rows import regression_of

_TRIED = 64  # positions at which a number is the same if it is constant


def from_numpyro(
    model: Callable[..., Any], *args: Any, rows: bool | None = None, **kwargs: Any
) -> ModelledPotential:
    """Make a target of a model written down with NumPyro.

    Chains move in NumPyro's unconstrained space. Draws come back by the names of the model's sites,
    with constrained values; deterministic sites are among them.

    A model with one observed site that is a regression with normal priors becomes a sum over rows:
    a few of them then stand for all, as for :func:`surrokit.rows_potential`. What it is, is read
    from JAX's graph, and its density is compared with NumPyro's own. Else ``target.missing`` says
    why not.

    Parameters
    ----------
    model
        The model.
    *args, **kwargs
        What it is called with, data among them.
    rows
        True demands a sum over rows, False forbids it; None takes it from 1000 observed numbers on,
        where it is one. An argument of the model of this name is given by its place.

    Returns
    -------
    ModelledPotential
        With gradients, and with what :func:`from_jax` offers or, as a sum over rows, Hessians and
        their products.

    Raises
    ------
    MissingDependencyError
        If NumPyro is not installed.
    ConfigurationError
        If JAX is in single precision, or NumPyro cannot make a potential of the model; or it is no
        sum over rows and that is demanded.
    """
    load_jax()
    load_library("numpyro", "numpyro")
    sites, reported = _sites(model, args, kwargs)
    line = Parameters.unnamed(sites.own.dim)
    check_number("the model's potential", sites.potential, line.dim)
    whole = JaxPotential(
        functions=Functions("the log density", derivatives_of, sites.potential),
        parameters=line,
        order=highest_order("the model's potential", sites.potential, line.dim),
    )
    n_rows = sum(array.size for array in sites.observed.values())
    start = np.zeros(line.dim)
    found, reason = sum_if_safe(rows, n_rows, whole, start, lambda: regression_of(sites))
    transform = ModelMap(
        reported=reported,
        own=sites.own,
        constrain=partial(Functions("the model", _constrained, sites.constrained), "all"),
        unconstrain=sites.unconstrain,
    )
    missing = {} if found else {ROWS: reason}
    inner, observed = found or whole, sites.observed
    return ModelledPotential(inner, transform, None, observed, missing, terms=sites.terms)


def _constrained(function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {"all": function}


def target_of(
    model: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    rows: bool | None = None,
) -> ModelledPotential:
    """Make a target of a model written down with NumPyro, for :func:`surrokit.make`.

    Parameters
    ----------
    model
        The model.
    args, kwargs
        What the model is called with.
    rows
        As for :func:`from_numpyro`.
    """
    return from_numpyro(model, *args, rows=rows, **(kwargs or {}))


@attrs.frozen(eq=False)
class Sites:
    """The sites of a model, and its functions of a position (dim,) on the line, in JAX.

    NumPyro's own potential and report take unconstrained sites, which are ``own``, by name.
    """

    model: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    potential_of: Callable[[Mapping[str, Any]], Any]
    report: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    own: Parameters
    names: tuple[str, ...]
    observed: Mapping[str, Any]

    def potential(self, z: Any) -> Any:
        """Return U."""
        return self.potential_of(self.own.split(z))

    def constrained(self, z: Any) -> Any:
        """Return all that is reported, shape (n_user,)."""
        jnp = load_jax().numpy
        values = self.report(self.own.split(z))
        flat = [jnp.ravel(values[name]).astype(np.float64) for name in self.names]
        return jnp.concatenate(flat)

    def unconstrain(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        """Return positions on the line (n, dim) at constrained sites by name, (n, *shape) each."""
        jax = load_jax()
        from numpyro.infer.util import unconstrain_fn

        def one(values: Mapping[str, Any]) -> Any:
            found = unconstrain_fn(self.model, self.args, self.kwargs, values)
            return jax.numpy.concatenate([jax.numpy.ravel(found[name]) for name in self.own.specs])

        given = {name: jax.numpy.asarray(array) for name, array in arrays.items()}
        return np.array(jax.vmap(one)(given))

    def trace(self, z: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return NumPyro's sites."""
        from numpyro import handlers

        values = self.report(self.own.split(z))
        latent = {name: values[name] for name in self.own.specs}
        model = handlers.substitute(handlers.seed(self.model, 0), data=latent)
        found: Mapping[str, Any] = handlers.trace(model).get_trace(*self.args, **self.kwargs)
        return found

    def terms(self, positions: FloatArray) -> Pointwise:
        """Return log likelihoods by observed site, and log priors by latent one, at (n, dim)."""

        def one(z: Any) -> dict[str, Any]:
            trace, names = self.trace(z), (*self.observed, *self.own.specs)
            logs = {name: trace[name]["fn"].log_prob(trace[name]["value"]) for name in names}
            return {name: log * (trace[name].get("scale") or 1.0) for name, log in logs.items()}

        jax = load_jax()
        found = jax.jit(jax.vmap(one))(positions)
        logs = {name: np.asarray(array, np.float64) for name, array in found.items()}
        n, latent = len(positions), self.own.specs
        priors = {name: logs[name].reshape(n, -1).sum(axis=1) for name in latent}
        return {name: logs[name] for name in self.observed}, priors

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return travel(_again, self.model, self.args, self.kwargs)  # NumPyro's own are made anew


def _sites(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Sites, Parameters]:
    jax = load_jax()
    from numpyro.infer.util import initialize_model

    try:
        info = initialize_model(
            jax.random.PRNGKey(0),
            model,
            dynamic_args=False,
            model_args=args,
            model_kwargs=dict(kwargs),
        )
        start = info.param_info.z
        shapes = jax.eval_shape(info.postprocess_fn, start)
    except Exception as error:
        raise ConfigurationError(
            f"NumPyro cannot make a potential of the model: {type(error).__name__}: {error}"
        ) from error
    _check_plates(info.model_trace)
    if not start:
        raise ConfigurationError("the model has no latent site, so there is nothing to draw")
    order = [name for name in info.model_trace if name in shapes]
    order += [name for name in shapes if name not in order]
    line = Parameters.declare(
        {name: Parameter(np.shape(start[name])) for name in order if name in start}
    )
    sites = Sites(
        model=model,
        args=args,
        kwargs=kwargs,
        potential_of=info.potential_fn,
        report=info.postprocess_fn,
        own=line,
        names=tuple(order),
        observed={
            name: np.asarray(site["value"])
            for name, site in info.model_trace.items()
            if site.get("is_observed") and np.size(site["value"])  # a factor has no value
        },
    )
    constrained = jax.jit(jax.vmap(sites.constrained))
    reported = reported_as(
        {name: tuple(shapes[name].shape) for name in order},
        lambda z: np.asarray(constrained(z)),
        np.random.default_rng(0).uniform(-2.0, 2.0, size=(_TRIED, line.dim)),
    )
    return sites, reported


def _again(*given: Any) -> Sites:
    return _sites(*given)[0]


def _check_plates(trace: Mapping[str, Mapping[str, Any]]) -> None:
    for name, site in trace.items():
        size, part = site["args"] if site["type"] == "plate" else (None, None)
        if part not in (None, size):
            raise ConfigurationError(
                f"plate {name!r} takes {part} of {size} rows at random, so that the model's "
                "density is no function of its parameters; leave subsample_size out"
            )
