"""Models written down with NumPyro, whole and as sums over the rows of their observed site."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import load_library
from surrokit.capabilities import ROWS
from surrokit.coordinates.models import ModelMap, Reported
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.transforms import map_of
from surrokit.errors import ConfigurationError, NotASumError
from surrokit.targets.forward import ModelledPotential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import (
    Form,
    SumAndRest,
    check_worth,
    confirm,
    design_of,
    rows_of,
    sum_if_safe,
)
from surrokit.types import FloatArray
from surrokit_jax.compiled import Compiled, load_jax
from surrokit_jax.density import JaxPotential, check_number, highest_order
from surrokit_jax.graph import read_forms

_TRIED = 64  # positions at which a number is the same if it is constant
_ROUNDING = 1e-14  # relative: the diagonal of a correlation matrix is one to the last digits


@attrs.frozen
class _Family:
    """A family of ``surrokit.rows_potential`` that a distribution of NumPyro is.

    The argument has the predictor in it, in a form; others are settings of the family.
    """

    family: str
    argument: str
    form: Form
    constants: Mapping[str, str] = attrs.field(factory=dict)


_FAMILIES: Mapping[str, _Family] = {
    "BernoulliLogits": _Family("logistic", "logits", Form.LINEAR),
    "BernoulliProbs": _Family("logistic", "probs", Form.LOGISTIC),
    "BinomialLogits": _Family("binomial", "logits", Form.LINEAR, {"total_count": "total"}),
    "BinomialProbs": _Family("binomial", "probs", Form.LOGISTIC, {"total_count": "total"}),
    "Poisson": _Family("poisson", "rate", Form.EXPONENTIAL),
    "Exponential": _Family("exponential", "rate", Form.EXPONENTIAL),
    "Normal": _Family("gaussian", "loc", Form.LINEAR, {"scale": "scale"}),
    "StudentT": _Family("student", "loc", Form.LINEAR, {"scale": "scale", "df": "degrees"}),
}


def from_numpyro(
    model: Callable[..., Any], *args: Any, rows: bool | None = None, **kwargs: Any
) -> JaxPotential | ModelledPotential:
    """Make a target of a model written down with NumPyro.

    Chains move in NumPyro's unconstrained space. Draws come back by the names of the model's sites,
    with constrained values; deterministic sites are among them.

    A model with one observed site that is a regression of a known family, whose predictor is linear
    in the unconstrained parameters, becomes a sum over rows: a few of them then stand for all, as
    for :func:`surrokit.rows_potential`. What it is, is read from JAX's graph, and its density is
    compared with NumPyro's own. Else ``target.missing`` says why not.

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
    JaxPotential or ModelledPotential
        The latter is a sum over rows, with Hessians and their products. The former has gradients,
        Hessians and their products, and contractions of third derivatives, as far as JAX can trace
        them.

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
    sites = _sites(model, args, kwargs)
    dim = sites.own.dim
    check_number("the model's potential", sites.potential, dim)
    transform = ModelMap(
        reported=sites.reported,
        own=sites.own,
        constrain=Compiled("the model", sites.constrained),
        unconstrain=sites.unconstrain,
    )
    whole = JaxPotential(
        function=sites.potential,
        parameters=sites.reported,
        transform=transform,
        derivatives=highest_order("the model's potential", sites.potential, dim, None),
        dim=dim,
        observed_data=sites.observed,
        unnormalized=("the model",),
    )
    found, reason = sum_if_safe(rows, lambda: _recognise(sites, whole, rows))
    if found is None:
        return attrs.evolve(whole, missing={ROWS: reason})
    return ModelledPotential(found, transform, observed_data=sites.observed)


def target_of(
    model: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    rows: bool | None = None,
) -> JaxPotential | ModelledPotential:
    """Make a target of a model written down with NumPyro, for :func:`surrokit.make`.

    Parameters
    ----------
    model
        The model.
    args, kwargs
        What it is called with.
    rows
        As for :func:`from_numpyro`.
    """
    return from_numpyro(model, *args, rows=rows, **(kwargs or {}))


@attrs.frozen(eq=False)
class _Sites:
    """The sites of a model, and its functions of a position (dim,) on the line, in JAX.

    NumPyro's own potential and report take unconstrained sites by name; the names and shapes of
    these are ``own``, and those of all that is reported ``reported``.
    """

    model: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    potential_of: Callable[[Mapping[str, Any]], Any]
    report: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    own: Parameters
    reported: Parameters
    observed: Mapping[str, Any]

    def potential(self, z: Any) -> Any:
        return self.potential_of(self.own.split(z))

    def constrained(self, z: Any) -> Any:
        """Return all that is reported, shape (n_user,)."""
        jnp = load_jax().numpy
        values = self.report(self.own.split(z))
        flat = [jnp.ravel(values[name]).astype(np.float64) for name in self.reported.specs]
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

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _sites, (self.model, self.args, self.kwargs)  # NumPyro's functions are made anew


def _sites(model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Sites:
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
    own = {name: Parameter(np.shape(start[name])) for name in order if name in start}
    line = Parameters.declare(own)
    constant = _constants(jax, info.postprocess_fn, line)
    reported = {
        name: Reported(tuple(shapes[name].shape), constant=constant[name]) for name in order
    }
    return _Sites(
        model=model,
        args=args,
        kwargs=kwargs,
        potential_of=info.potential_fn,
        report=info.postprocess_fn,
        own=line,
        reported=Parameters.declare(reported),
        observed=_observed(info.model_trace),
    )


def _constants(jax: Any, report: Callable[..., Any], own: Parameters) -> dict[str, tuple[int, ...]]:
    """Return which numbers of each site are constant, such as zeros of a factor."""
    z = np.random.default_rng(0).uniform(-2.0, 2.0, size=(_TRIED, own.dim))
    found = jax.jit(jax.vmap(lambda row: report(own.split(row))))(z)
    flat = {name: np.asarray(array).reshape(_TRIED, -1) for name, array in found.items()}
    return {
        name: tuple(
            np.flatnonzero(np.isclose(array, array[0], _ROUNDING, 0.0).all(axis=0)).tolist()
        )
        for name, array in flat.items()
    }


def _observed(trace: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what was observed by site; a factor has nothing of the kind."""
    sites = {name: site for name, site in trace.items() if site.get("is_observed")}
    found = {name: np.asarray(site["value"]) for name, site in sites.items()}
    return {name: array for name, array in found.items() if array.size}


def _check_plates(trace: Mapping[str, Mapping[str, Any]]) -> None:
    for name, site in trace.items():
        size, part = site["args"] if site["type"] == "plate" else (None, None)
        if part not in (None, size):
            raise ConfigurationError(
                f"plate {name!r} takes {part} of {size} rows at random, so that the model's "
                "density is no function of its parameters; leave subsample_size out"
            )


def _recognise(sites: _Sites, whole: JaxPotential, wanted: bool | None) -> SumAndRest:
    """Return a model as a sum over the rows of its observed site, and its rest.

    Raises
    ------
    NotASumError
        If it is not known to be one, or has too few rows.
    """
    dim = whole.dim
    origin = np.zeros(dim)
    trace = sites.trace(origin)
    site = _observed_site(trace)
    values = np.asarray(trace[site]["value"], dtype=np.float64).ravel()
    check_worth(len(values), dim, wanted)
    model = _Regression(sites, site, _FAMILIES[type(_plain(trace[site]["fn"])).__name__])
    family = model.family
    forms, culprit = read_forms(model.arguments, dim)
    _check_forms(site, family, forms, culprit)
    constants = model.arguments(origin)
    each = Compiled("the likelihood of each row", model.each)
    rows = rows_of(
        family.family,
        values,
        {setting: np.asarray(constants[name]) for name, setting in family.constants.items()},
        design_of(_changes(model, dim), len(values), dim),
        np.asarray(model.predictors(origin)),
        lambda position: each(position[None])[0],
    )
    prior = _normal(sites.own, forms, constants)
    settings = rows.arguments if prior is None else {**rows.arguments, "prior": prior}
    terms = sk.rows_potential(rows.family, rows.design, rows.response, **settings)
    line = Parameters.unnamed(dim)
    rest = JaxPotential(function=model.rest, parameters=line, transform=map_of(line), derivatives=2)
    return confirm(rows, terms, whole, rest if prior is None else None, origin)


@attrs.frozen(eq=False)
class _Regression:
    """The observed site of a model, as functions of a position (dim,) on the line, in JAX."""

    sites: _Sites
    site: str
    family: _Family

    def arguments(self, z: Any) -> dict[str, Any]:
        """Return arguments of the observed distribution, (n_rows,), and those of normal priors."""
        jnp = load_jax().numpy
        trace, family = self.sites.trace(z), self.family
        value, plain = trace[self.site]["value"], _plain(trace[self.site]["fn"])
        found = {
            name: jnp.broadcast_to(getattr(plain, name), np.shape(value)).ravel()
            for name in (family.argument, *family.constants)
        }
        for name, spec in self.sites.own.specs.items():
            prior = _plain(trace[name]["fn"])
            if type(prior).__name__ == "Normal":
                for each in ("loc", "scale"):
                    array = jnp.broadcast_to(getattr(prior, each), spec.shape).ravel()
                    found[f"{name}/{each}"] = array
        return found

    def predictors(self, z: Any) -> Any:
        """Return the predictors, shape (n_rows,)."""
        jnp = load_jax().numpy
        given = self.arguments(z)[self.family.argument]
        if self.family.form is Form.EXPONENTIAL:
            return jnp.log(given)
        if self.family.form is Form.LOGISTIC:
            return jnp.log(given) - jnp.log1p(-given)
        return given

    def each(self, z: Any) -> Any:
        """Return the log likelihood of each observed number, shape (n_rows,)."""
        site = self.sites.trace(z)[self.site]
        return _plain(site["fn"]).log_prob(site["value"]).ravel()

    def rest(self, z: Any) -> Any:
        """Return minus the log density without the observed site."""
        from numpyro import handlers
        from numpyro.infer.util import potential_energy

        sites = self.sites
        hidden = handlers.block(sites.model, hide=[self.site])
        return potential_energy(hidden, sites.args, dict(sites.kwargs), sites.own.split(z))


def _observed_site(trace: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the name of a model's one observed site, whose distribution is a family."""
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
    plain = _plain(sites[name]["fn"])
    known = type(plain).__name__ in _FAMILIES and type(plain).__module__.startswith("numpyro.")
    if not known:
        raise NotASumError(
            f"{name!r} is distributed as {type(plain).__name__}, which is no family of rows; there "
            f"are {', '.join(_FAMILIES)}"
        )
    return name


def _plain(distribution: Any) -> Any:
    """Return a distribution without what only changes its shape."""
    while type(distribution).__name__ in ("Independent", "ExpandedDistribution"):
        distribution = distribution.base_dist
    return distribution


def _check_forms(
    site: str, family: _Family, forms: Mapping[str, Form], culprit: str | None
) -> None:
    through = f", as it passes through {culprit!r}" if culprit else ""
    if forms[family.argument] not in (family.form, Form.CONSTANT):
        raise NotASumError(
            f"the predictor of {site!r} is not linear in the unconstrained parameters, or not in "
            f"the form that {family.family!r} has{through}"
        )
    inferred = [name for name in family.constants if forms[name] is not Form.CONSTANT]
    if inferred:
        raise NotASumError(
            f"{inferred[0]!r} of {site!r} depends on parameters, and bounds of its derivatives are "
            "not known"
        )


def _changes(model: _Regression, dim: int) -> Callable[[FloatArray], FloatArray]:
    """Return the function from directions (k, dim) to changes of the predictors (k, n_rows)."""
    jax = load_jax()
    origin = np.zeros(dim)

    def along(direction: Any) -> Any:
        return jax.jvp(model.predictors, (origin,), (direction,))[1]

    program = jax.jit(jax.vmap(along))
    return lambda directions: np.asarray(program(directions))


def _normal(
    own: Parameters, forms: Mapping[str, Form], constants: Mapping[str, Any]
) -> GaussianPrior | None:
    """Return the prior of all unconstrained numbers; None unless all are normal."""
    parts = [[f"{name}/{each}" for each in ("loc", "scale")] for name in own.specs]
    if any(forms.get(key) is not Form.CONSTANT for pair in parts for key in pair):
        return None
    mean, sd = (np.concatenate([constants[pair[k]] for pair in parts]) for k in (0, 1))
    return GaussianPrior(mean=mean, sd=sd)
