"""From a model of PyMC to a sum over the rows of its observed variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import surrokit as sk
from surrokit.errors import NotASumError
from surrokit.potentials import Potential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import Form, SumAndRest, check_worth, confirm, design_of, rows_of
from surrokit.types import FloatArray
from surrokit_pymc.compiled import Compiled
from surrokit_pymc.line import Line
from surrokit_pymc.rows.graph import read_forms
from surrokit_pymc.rows.model import (
    KNOWN,
    Constants,
    EachRow,
    Known,
    Predictors,
    Priors,
    Unobserved,
    observed_values,
    observed_variable,
    parameters_of,
)


def recognise(
    model: Any, line: Line, start: FloatArray, whole: Potential, wanted: bool | None
) -> SumAndRest:
    """Return a model as a sum over rows and its rest.

    Parameters
    ----------
    model
        The model, its data frozen.
    line
        The line.
    start : ndarray of shape (dim,)
        Where PyMC starts it.
    whole
        U on the line.
    wanted
        Whether it is to be a sum; None for where it has many rows.

    Raises
    ------
    NotASumError
        If it is not known to be one, or has too few rows.
    """
    variable = observed_variable(model)
    values = np.asarray(observed_values(model, variable), dtype=np.float64).ravel()
    check_worth(len(values), line.own.dim, wanted)
    known = KNOWN[type(variable.owner.op).__name__]
    _check_forms(model, line, variable, known)
    origin, dim = np.zeros(line.own.dim), line.own.dim
    predictors = Compiled(model, Predictors(line))
    offset = _flat(predictors(origin))
    constants = Compiled(model, Constants(line))(origin) if known.constants else []
    rows = rows_of(
        known.family,
        values,
        dict(zip(known.constants.values(), map(_flat, constants), strict=True)),
        design_of(_changes(predictors, offset), len(values), dim),
        offset,
        _each(Compiled(model, EachRow(line))),
    )
    prior = _normal(model, line)
    settings = rows.arguments if prior is None else {**rows.arguments, "prior": prior}
    terms = sk.rows_potential(rows.family, rows.design, rows.response, **settings)
    rest = Unobserved.of(model, line) if prior is None else None
    return confirm(rows, terms, whole, rest, start)


def _check_forms(model: Any, line: Line, variable: Any, known: Known) -> None:
    given = model.replace_rvs_by_values(parameters_of(variable))
    forms, culprit = read_forms(line.variables(model), given)
    through = f", as it passes through {culprit}" if culprit else ""
    if forms[known.place] not in (known.form, Form.CONSTANT):
        raise NotASumError(
            f"the predictor of {variable.name!r} is not linear in the unconstrained parameters, or "
            f"not in the form that {known.family!r} has{through}"
        )
    for place, setting in known.constants.items():
        if forms[place] is not Form.CONSTANT:
            raise NotASumError(
                f"the {setting} of {variable.name!r} depends on parameters, and bounds of its "
                "derivatives are not known"
            )


def _changes(predictors: Compiled, offset: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the function from directions (k, dim) to changes of the predictors (k, n_rows)."""
    return lambda directions: np.array([_flat(predictors(one)) - offset for one in directions])


def _each(compiled: Compiled) -> Callable[[FloatArray], FloatArray]:
    return lambda position: _flat(compiled(position))


def _flat(found: Any) -> FloatArray:
    array = found[0] if isinstance(found, list) else found
    return np.asarray(array, dtype=np.float64).ravel()


def _normal(model: Any, line: Line) -> GaussianPrior | None:
    """Return the prior of all numbers on the line; None unless all are normal."""
    free = [model[name] for name in line.own.specs]
    is_plain = [
        type(variable.owner.op).__name__ == "NormalRV" and model.rvs_to_transforms[variable] is None
        for variable in free
    ]
    if not all(is_plain):
        return None
    given = [each for variable in free for each in parameters_of(variable)]
    forms, _ = read_forms(line.variables(model), model.replace_rvs_by_values(given))
    if any(form is not Form.CONSTANT for form in forms):
        return None
    found = [_flat(each) for each in Compiled(model, Priors(line))(np.zeros(line.own.dim))]
    return GaussianPrior(mean=np.concatenate(found[::2]), sd=np.concatenate(found[1::2]))
