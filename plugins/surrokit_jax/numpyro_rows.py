"""The observed site of a model of NumPyro as a regression, read from JAX's graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import map_of
from surrokit.errors import NotASumError
from surrokit.tables.graphs import Family, Form, Regression, form_of
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray
from surrokit_jax.compiled import load_jax
from surrokit_jax.density import JaxPotential

_TOTAL = {"total_count": "total"}
_FAMILIES: Mapping[str, Family] = {
    "BernoulliLogits": Family("logistic", "logits", Form.LINEAR),
    "BernoulliProbs": Family("logistic", "probs", Form.LOGISTIC),
    "BinomialLogits": Family("binomial", "logits", Form.LINEAR, _TOTAL),
    "BinomialProbs": Family("binomial", "probs", Form.LOGISTIC, _TOTAL),
    "Poisson": Family("poisson", "rate", Form.EXPONENTIAL),
    "Exponential": Family("exponential", "rate", Form.EXPONENTIAL),
    "Normal": Family("gaussian", "loc", Form.LINEAR, {"scale": "scale"}),
    "StudentT": Family("student", "loc", Form.LINEAR, {"df": "degrees", "scale": "scale"}),
}


def regression_of(sites: Any) -> Regression:
    """Return a model's one observed site, of its sites (:mod:`surrokit_jax.numpyro_model`).

    NotASumError is raised if there is not one, or its distribution is no family.
    """
    jax, dim = load_jax(), sites.own.dim
    trace = sites.trace(np.zeros(dim))
    name = _observed_site(trace)
    family = _FAMILIES[type(_plain(trace[name]["fn"])).__name__]

    def arguments(z: Any) -> dict[str, Any]:
        site = sites.trace(z)[name]
        plain, shape = _plain(site["fn"]), np.shape(site["value"])
        names = (family.argument, *family.constants)
        return {n: jax.numpy.broadcast_to(getattr(plain, n), shape).ravel() for n in names}

    def numbers(z: Any) -> list[Any]:
        given = arguments(z)
        predictors = given.pop(family.argument)
        return [family.predictors(predictors, jax.numpy.log, jax.numpy.log1p), *given.values()]

    compiled = jax.jit(numbers)

    def at(position: FloatArray) -> list[FloatArray]:
        return [np.asarray(each, dtype=np.float64) for each in compiled(position)]

    def rest(z: Any) -> Any:
        from numpyro import handlers
        from numpyro.infer.util import potential_energy

        hidden = handlers.block(sites.model, hide=[name])
        return potential_energy(hidden, sites.args, dict(sites.kwargs), sites.own.split(z))

    line = Parameters.unnamed(dim)
    return Regression(
        name=name,
        family=family,
        values=np.asarray(trace[name]["value"], dtype=np.float64).ravel(),
        read=lambda: read_forms(arguments, dim),
        arguments=at,
        prior=lambda: _normal(sites, trace),
        rest=lambda: JaxPotential(
            function=rest, parameters=line, transform=map_of(line), derivatives=2
        ),
    )


def _normal(sites: Any, trace: Mapping[str, Mapping[str, Any]]) -> GaussianPrior | None:
    jnp, specs = load_jax().numpy, sites.own.specs
    if any(type(_plain(trace[name]["fn"])).__name__ != "Normal" for name in specs):
        return None

    def moments(z: Any) -> dict[str, Any]:
        at = sites.trace(z)
        priors = [(_plain(at[name]["fn"]), spec.shape) for name, spec in specs.items()]
        return {
            each: jnp.concatenate(
                [jnp.broadcast_to(getattr(prior, each), shape).ravel() for prior, shape in priors]
            )
            for each in ("loc", "scale")
        }

    if {*read_forms(moments, sites.own.dim)[0].values()} != {Form.CONSTANT}:
        return None
    found = moments(np.zeros(sites.own.dim))
    return GaussianPrior(mean=np.asarray(found["loc"]), sd=np.asarray(found["scale"]))


def _observed_site(trace: Mapping[str, Mapping[str, Any]]) -> str:
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
    for each, site in sites.items():
        if site.get("scale") is not None:
            raise NotASumError(f"the density of {each!r} is scaled by a handler")
    kind = type(_plain(sites[name]["fn"]))
    if kind.__name__ not in _FAMILIES or not kind.__module__.startswith("numpyro."):
        raise NotASumError(
            f"{name!r} is distributed as {kind.__name__}, which is no family of rows; there "
            f"are {', '.join(_FAMILIES)}"
        )
    return name


def _plain(distribution: Any) -> Any:
    """Return a distribution without what only changes its shape."""
    while type(distribution).__name__ in ("Independent", "ExpandedDistribution"):
        distribution = distribution.base_dist
    return distribution


# --- forms, read from JAX's graph ---

_SAME = (
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "rev", "copy", "copy_p"),
    *("expand_dims", "split", "gather", "dynamic_slice"),
)
_NESTED = (
    *("pjit", "jit", "closed_call", "core_call", "remat", "checkpoint"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
)
_INSIDE = ("jaxpr", "call_jaxpr", "fun_jaxpr")

_RULES = {
    **{name: name for name in ("exp", "log", "logistic")},
    **dict.fromkeys(_SAME, "same"),
    **dict.fromkeys(("add", "sub", "add_any", "pad", "neg"), "add"),
    **dict.fromkeys(("sqrt", "rsqrt", "integer_pow"), "root"),
    **dict.fromkeys(("reduce_sum", "cumsum"), "sum"),
    "mul": "multiply",
    "dot_general": "contract",
    "div": "divide",
    "pow": "power",
    "concatenate": "join",
    "select_n": "choose",
}


def read_forms(
    function: Callable[[Any], dict[str, Any]], dim: int
) -> tuple[dict[str, Form], str | None]:
    """Return the forms of arrays that a function of a position (dim,) returns by name.

    Beside them is the first operation from which on something is of no known form, if any.
    """
    closed, shapes = load_jax().make_jaxpr(function, return_shape=True)(np.zeros(dim))
    culprits: list[str] = []
    forms = _read(closed.jaxpr, [Form.LINEAR], culprits)
    return dict(zip(sorted(shapes), forms, strict=True)), next(iter(culprits), None)


def _read(jaxpr: Any, inputs: Sequence[Form], culprits: list[str]) -> list[Form]:
    """Return the forms of results; names of operations that make unknown ones are added."""
    known: dict[Any, Form] = dict(zip(jaxpr.invars, inputs, strict=True))
    literal = load_jax().extend.core.Literal

    def forms_of(variables: Sequence[Any]) -> list[Form]:
        # literals cannot be looked up, and constants of the graph are not known
        return [
            Form.CONSTANT if isinstance(each, literal) else known.get(each, Form.CONSTANT)
            for each in variables
        ]

    for equation in jaxpr.eqns:
        forms, name = forms_of(equation.invars), equation.primitive.name
        if name in _NESTED and set(forms) != {Form.CONSTANT}:
            inner = next(equation.params[key] for key in _INSIDE if key in equation.params)
            made = _read(getattr(inner, "jaxpr", inner), forms, culprits)
        else:
            is_double = equation.params.get("new_dtype") == np.float64  # of a conversion
            form = form_of("same" if is_double else _RULES.get(name), forms)
            made = [form] * len(equation.outvars)
            if form is Form.OTHER:
                culprits.append(repr(name))
        known.update(zip(equation.outvars, made, strict=True))
    return forms_of(jaxpr.outvars)
