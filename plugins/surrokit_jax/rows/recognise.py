"""From a model of NumPyro to a sum over the rows of its observed site."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import surrokit as sk
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import map_of
from surrokit.errors import NotASumError
from surrokit.potentials import Potential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import Form, SumAndRest, check_worth, confirm, design_of, rows_of
from surrokit.types import FloatArray
from surrokit_jax.compiled import Compiled
from surrokit_jax.library import load_jax
from surrokit_jax.potential import JaxPotential
from surrokit_jax.rows.graph import read_forms
from surrokit_jax.rows.model import KNOWN, Known, Observed, observed_site, plain_of


def recognise(
    observed: Callable[[str], Observed],
    trace: Mapping[str, Mapping[str, Any]],
    whole: Potential,
    wanted: bool | None,
) -> SumAndRest:
    """Return a model as a sum over rows and its rest.

    Parameters
    ----------
    observed
        From the name of the observed site to the model with it.
    trace
        NumPyro's sites at some position.
    whole
        U on the line.
    wanted
        Whether it is to be a sum; None for where it has many rows.

    Raises
    ------
    NotASumError
        If it is not known to be one, or has too few rows.
    """
    site = observed_site(trace)
    values = np.asarray(trace[site]["value"], dtype=np.float64).ravel()
    model, dim = observed(site), whole.dim
    check_worth(len(values), dim, wanted)
    forms, culprit = read_forms(model.arguments, dim)
    known = KNOWN[type(plain_of(trace[site]["fn"])).__name__]
    _check_forms(site, known, forms, culprit)
    constants = model.arguments(np.zeros(dim))
    rows = rows_of(
        known.family,
        values,
        {setting: np.asarray(constants[name]) for name, setting in known.constants.items()},
        design_of(_changes(model, dim), len(values), dim),
        np.asarray(model.predictors(np.zeros(dim))),
        _one(Compiled("the likelihood of each row", model.each)),
    )
    prior = _normal(model.own, forms, constants)
    settings = rows.arguments if prior is None else {**rows.arguments, "prior": prior}
    terms = sk.rows_potential(rows.family, rows.design, rows.response, **settings)
    rest = _beside(model) if prior is None else None
    return confirm(rows, terms, whole, rest, np.zeros(dim))


def _check_forms(site: str, known: Known, forms: Mapping[str, Form], culprit: str | None) -> None:
    through = f", as it passes through {culprit!r}" if culprit else ""
    if forms[known.argument] not in (known.form, Form.CONSTANT):
        raise NotASumError(
            f"the predictor of {site!r} is not linear in the unconstrained parameters, or not in "
            f"the form that {known.family!r} has{through}"
        )
    inferred = [name for name in known.constants if forms[name] is not Form.CONSTANT]
    if inferred:
        raise NotASumError(
            f"{inferred[0]!r} of {site!r} depends on parameters, and bounds of its derivatives are "
            "not known"
        )


def _changes(model: Observed, dim: int) -> Callable[[FloatArray], FloatArray]:
    """Return the function from directions (k, dim) to changes of the predictors (k, n_rows)."""
    jax = load_jax()
    origin = np.zeros(dim)

    def along(direction: Any) -> Any:
        return jax.jvp(model.predictors, (origin,), (direction,))[1]

    program = jax.jit(jax.vmap(along))
    return lambda directions: np.asarray(program(directions))


def _one(compiled: Compiled) -> Callable[[FloatArray], FloatArray]:
    return lambda position: compiled(position[None])[0]


def _normal(
    own: Parameters, forms: Mapping[str, Form], constants: Mapping[str, Any]
) -> GaussianPrior | None:
    """Return the prior of all unconstrained numbers; None unless all are normal."""
    parts = [[f"{name}/{each}" for each in ("loc", "scale")] for name in own.specs]
    if any(forms.get(key) is not Form.CONSTANT for pair in parts for key in pair):
        return None
    mean, sd = (np.concatenate([constants[pair[k]] for pair in parts]) for k in (0, 1))
    return GaussianPrior(mean=mean, sd=sd)


def _beside(model: Observed) -> JaxPotential:
    line = Parameters.unnamed(model.own.dim)
    return JaxPotential(
        function=model.beside, parameters=line, transform=map_of(line), derivatives=2
    )
