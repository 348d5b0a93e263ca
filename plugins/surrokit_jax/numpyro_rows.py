"""The observed site of a model of NumPyro as a regression, read from JAX's graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from surrokit.errors import NotASumError
from surrokit.tables.graphs import Form, Regression, form_of, predictor_of
from surrokit.types import FloatArray
from surrokit_jax.compiled import load_jax

_FAMILIES = {
    "BernoulliLogits": ("logistic", "logits", Form.LINEAR),
    "BernoulliProbs": ("logistic", "probs", Form.LOGISTIC),
    "Poisson": ("poisson", "rate", Form.EXPONENTIAL),
    "Normal": ("gaussian", "loc", Form.LINEAR),
}


def regression_of(sites: Any) -> Regression:
    """Return a model's one observed site, of its sites (:mod:`surrokit_jax.numpyro_model`).

    NotASumError is raised if there is not one, or distributions are of no known family.
    """
    jax = load_jax()
    jnp, trace = jax.numpy, sites.trace(np.zeros(sites.own.dim))
    name, latent = _observed_site(trace), sites.own.specs
    family, argument, form = _FAMILIES[_kind(trace[name])]
    for other in latent:
        if _kind(trace[other]) != "Normal":
            raise NotASumError(f"the prior of {other!r} is not normal")

    def given(z: Any) -> dict[str, Any]:
        found = sites.trace(z)

        def flat(site: str, what: str) -> Any:
            array = getattr(_plain(found[site]["fn"]), what)
            return jnp.broadcast_to(array, np.shape(found[site]["value"])).ravel()

        prior = {"mean": "loc", "sd": "scale"}
        arrays = {
            key: jnp.concatenate([flat(each, what) for each in latent])
            for key, what in prior.items()
        }
        if family == "gaussian":
            arrays["scale"] = flat(name, "scale")
        return {"argument": flat(name, argument), **arrays}

    def numbers(z: Any) -> dict[str, Any]:
        arrays = given(z)
        return {"predictor": predictor_of(arrays.pop("argument"), form, jnp), **arrays}

    compiled = jax.jit(numbers)

    def at(position: FloatArray) -> Mapping[str, FloatArray]:
        return {key: np.asarray(array, np.float64) for key, array in compiled(position).items()}

    forms, culprit = read_forms(given, sites.own.dim)
    values = np.asarray(trace[name]["value"], dtype=np.float64).ravel()
    return Regression(
        name=name, family=family, form=form, values=values, forms=forms, culprit=culprit, at=at
    )


def _observed_site(trace: Mapping[str, Mapping[str, Any]]) -> str:
    sites = {name: site for name, site in trace.items() if site["type"] == "sample"}
    observed = [name for name, site in sites.items() if site["is_observed"]]
    if len(observed) != 1:
        raise NotASumError(
            f"it has {len(observed)} observed sites ({', '.join(observed) or 'none'}), not one"
        )
    for each, site in sites.items():
        if site.get("scale") is not None:
            raise NotASumError(f"the density of {each!r} is scaled by a handler")
    (name,) = observed
    if (kind := _kind(sites[name])) not in _FAMILIES:
        raise NotASumError(
            f"{name!r} is distributed as {kind}, which is no family of rows; there are "
            f"{', '.join(_FAMILIES)}"
        )
    return name


def _kind(site: Mapping[str, Any]) -> str:
    kind = type(_plain(site["fn"]))
    return kind.__name__ if kind.__module__.startswith("numpyro.") else str(kind)


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
    **dict.fromkeys(_SAME, "same"),
    **dict.fromkeys(("add", "sub", "add_any", "pad", "neg", "reduce_sum", "cumsum"), "add"),
    "exp": "exp",
    "logistic": "logistic",
    "mul": "multiply",
    "dot_general": "contract",
    "div": "divide",
    "concatenate": "join",
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
