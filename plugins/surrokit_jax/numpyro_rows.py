"""Models of NumPyro as sums over the rows of their observed site, read from JAX's graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import map_of
from surrokit.errors import NotASumError
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import (
    Family,
    Form,
    SumAndRest,
    add,
    apply,
    check_worth,
    confirm,
    contract,
    design_of,
    divide,
    join,
    multiply,
    raise_to,
    rows_of,
)
from surrokit.types import FloatArray
from surrokit_jax.compiled import Compiled, load_jax
from surrokit_jax.density import JaxPotential

_FAMILIES: Mapping[str, Family] = {
    "BernoulliLogits": Family("logistic", "logits", Form.LINEAR),
    "BernoulliProbs": Family("logistic", "probs", Form.LOGISTIC),
    "BinomialLogits": Family("binomial", "logits", Form.LINEAR, {"total_count": "total"}),
    "BinomialProbs": Family("binomial", "probs", Form.LOGISTIC, {"total_count": "total"}),
    "Poisson": Family("poisson", "rate", Form.EXPONENTIAL),
    "Exponential": Family("exponential", "rate", Form.EXPONENTIAL),
    "Normal": Family("gaussian", "loc", Form.LINEAR, {"scale": "scale"}),
    "StudentT": Family("student", "loc", Form.LINEAR, {"df": "degrees", "scale": "scale"}),
}


def recognise(sites: Any, whole: JaxPotential, wanted: bool | None) -> SumAndRest:
    """Return a model as a sum over the rows of its observed site, and its rest.

    ``sites`` are those of :mod:`surrokit_jax.numpyro_model`.

    Raises
    ------
    NotASumError
        If it is not known to be one, or has too few rows.
    """
    jax, dim = load_jax(), whole.dim
    origin = np.zeros(dim)
    trace = sites.trace(origin)
    site = _observed_site(trace)
    values = np.asarray(trace[site]["value"], dtype=np.float64).ravel()
    check_worth(len(values), dim, wanted)
    model = _Regression(sites, site, _FAMILIES[type(_plain(trace[site]["fn"])).__name__])
    forms, culprit = read_forms(model.arguments, dim)
    model.family.check(site, forms, culprit and repr(culprit))
    constants = {name: np.asarray(each) for name, each in model.arguments(origin).items()}
    along = jax.jit(jax.vmap(lambda u: jax.jvp(model.predictors, (origin,), (u,))[1]))
    prior = _normal(sites.own, forms, constants)
    given, owners = rows_of(
        model.family.family,
        values,
        {setting: constants[name] for name, setting in model.family.constants.items()},
        design_of(lambda directions: np.asarray(along(directions)), len(values), dim),
        np.asarray(model.predictors(origin)),
        prior,
    )
    line, each = Parameters.unnamed(dim), Compiled("the likelihood of each row", model.each)
    rest = JaxPotential(function=model.rest, parameters=line, transform=map_of(line), derivatives=2)
    return confirm(
        sk.rows_potential(**given),  # type: ignore[arg-type]
        rest if prior is None else None,
        whole,
        given["data"],
        owners,
        lambda position: each(position[None])[0],
        origin,
    )


@attrs.frozen(eq=False)
class _Regression:
    """The observed one of a model's sites, as functions of a position (dim,) on the line."""

    sites: Any
    site: str
    family: Family

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
        jnp = load_jax().numpy
        given = self.arguments(z)[self.family.argument]
        return self.family.predictors(given, jnp.log, jnp.log1p)

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


def _normal(
    own: Parameters, forms: Mapping[str, Form], constants: Mapping[str, FloatArray]
) -> GaussianPrior | None:
    """Return the prior of all unconstrained numbers; None unless all are normal."""
    parts = [[f"{name}/{each}" for each in ("loc", "scale")] for name in own.specs]
    if any(forms.get(key) is not Form.CONSTANT for pair in parts for key in pair):
        return None
    mean, sd = (np.concatenate([constants[pair[k]] for pair in parts]) for k in (0, 1))
    return GaussianPrior(mean=mean, sd=sd)


# --- forms, read from JAX's graph ---

_SAME = (
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "rev", "copy", "copy_p"),
    *("expand_dims", "split"),
)
_NESTED = (
    *("pjit", "jit", "closed_call", "core_call", "remat", "checkpoint"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
)
_INSIDE = ("jaxpr", "call_jaxpr", "fun_jaxpr")

_RULES: dict[str, Callable[[list[Form]], Form]] = {
    **dict.fromkeys(_SAME, lambda forms: forms[0]),
    **dict.fromkeys(("add", "sub", "add_any", "pad", "neg"), add),
    "mul": multiply,
    "dot_general": contract,
    "div": lambda forms: divide(*forms),
    "pow": lambda forms: raise_to(*forms),
    "integer_pow": lambda forms: raise_to(forms[0], Form.CONSTANT),
    "concatenate": join,
    "exp": lambda forms: apply("exp", forms[0]),
    "log": lambda forms: apply("log", forms[0]),
    "logistic": lambda forms: apply("logistic", forms[0]),
    **dict.fromkeys(("sqrt", "rsqrt"), lambda forms: apply("root", forms[0])),
    **dict.fromkeys(("reduce_sum", "cumsum"), lambda forms: apply("sum", forms[0])),
    **dict.fromkeys(
        ("gather", "dynamic_slice"),
        lambda forms: forms[0] if join(forms[1:]) is Form.CONSTANT else Form.OTHER,
    ),
    "select_n": lambda forms: join(forms[1:]) if forms[0] is Form.CONSTANT else Form.OTHER,
    **dict.fromkeys(
        ("scatter", "scatter-add", "scatter_add"),
        lambda forms: add([forms[0], forms[2]]) if forms[1] is Form.CONSTANT else Form.OTHER,
    ),
}
"""From the forms of an operation's arguments, none of them unknown, to that of its results."""


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
    known: dict[Any, Form] = dict.fromkeys(jaxpr.constvars, Form.CONSTANT)
    known.update(zip(jaxpr.invars, inputs, strict=True))
    literal = load_jax().extend.core.Literal

    def forms_of(variables: Sequence[Any]) -> list[Form]:
        return [Form.CONSTANT if isinstance(each, literal) else known[each] for each in variables]

    for equation in jaxpr.eqns:
        forms, name = forms_of(equation.invars), equation.primitive.name
        if name in _NESTED and set(forms) != {Form.CONSTANT}:
            inner = next(equation.params[key] for key in _INSIDE if key in equation.params)
            made = _read(getattr(inner, "jaxpr", inner), forms, culprits)
        else:
            form = _form(name, equation.params, forms)
            made = [form] * len(equation.outvars)
            if form is Form.OTHER:
                culprits.append(name)
        known.update(zip(equation.outvars, made, strict=True))
    return forms_of(jaxpr.outvars)


def _form(name: str, parameters: Any, forms: list[Form]) -> Form:
    if set(forms) <= {Form.CONSTANT}:
        return Form.CONSTANT
    if name == "convert_element_type" and parameters["new_dtype"] == np.float64:
        return forms[0]
    return Form.OTHER if Form.OTHER in forms or name not in _RULES else _RULES[name](forms)
