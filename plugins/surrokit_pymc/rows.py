"""Models of PyMC as sums over the rows of their observed variable."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.errors import NotASumError
from surrokit.potentials import Potential
from surrokit.tables.recognised import Family, Observed, recognise
from surrokit.targets.summed import SumAndRest
from surrokit.types import Capabilities, FloatArray
from surrokit_pymc.compiled import Compiled, Function, Line

_FAMILIES: Mapping[str, Family] = {
    "BernoulliRV": Family("logistic", 0, "logit"),
    "BinomialRV": Family("binomial", 1, "logit", {0: "total"}),
    "PoissonRV": Family("poisson", 0, "log"),
    "ExponentialRV": Family("exponential", 0, "reciprocal"),
    "NormalRV": Family("gaussian", 0, "identity", {1: "scale"}),
    "StudentTRV": Family("student", 1, "identity", {0: "degrees", 2: "scale"}),
}
"""Arguments of distributions go by their places."""


def as_sum(
    model: Any, line: Line, start: FloatArray, whole: Potential, wanted: bool | None
) -> SumAndRest:
    """Return a frozen model, which is ``whole`` on the line, as a sum over rows and its rest.

    Raises
    ------
    NotASumError
        If it is not known to be one, or has too few rows.
    """
    variable = _observed_variable(model)
    values = np.asarray(model.rvs_to_values[variable].eval(), dtype=np.float64)
    family = _FAMILIES[type(variable.owner.op).__name__]
    arguments = Compiled(model, partial(_arguments, line=line, shape=values.shape))
    each = Compiled(model, partial(_each_row, line=line))

    def slopes(position: FloatArray, along: FloatArray) -> FloatArray:
        here = arguments(position)[0]
        return np.array([arguments(position + one)[0] - here for one in along])

    observed = Observed(
        name=variable.name,
        family=family,
        values=values.ravel(),
        predictors=lambda position: np.array(arguments(position)[0]),
        slopes=slopes,
        settings=lambda position: dict(
            zip(family.constants.values(), map(np.array, arguments(position)[1:]), strict=True)
        ),
        log_likelihoods=lambda position: np.array(each(position)[0]),
        rest=Rest(model, line),
    )
    return recognise(observed, whole, start, wanted)


def _observed_variable(model: Any) -> Any:
    """Return a model's one observed variable, whose distribution is a family."""
    if model.potentials:
        raise NotASumError(
            f"{model.potentials[0].name!r} is a pymc.Potential, whose rows are not known"
        )
    names = [variable.name for variable in model.observed_RVs]
    if len(names) != 1:
        raise NotASumError(
            f"it has {len(names)} observed variables ({', '.join(names) or 'none'}), not one"
        )
    variable = model.observed_RVs[0]
    kind = type(variable.owner.op).__name__
    if kind not in _FAMILIES:
        raise NotASumError(
            f"{variable.name!r} is distributed as {kind.removesuffix('RV')}, which is no family of "
            f"rows; there are {', '.join(name.removesuffix('RV') for name in _FAMILIES)}"
        )
    return variable


def _arguments(model: Any, line: Line, shape: tuple[int, ...]) -> Function:
    """Return the compiled function of a position to predictors and settings of the variable."""
    import pytensor.tensor as pt

    variable = _observed_variable(model)
    family = _FAMILIES[type(variable.owner.op).__name__]
    given = variable.owner.op.dist_params(variable.owner)
    predictors = family.predictors(given[family.argument], pt.log, pt.log1p)
    found = [predictors, *(given[at] for at in family.constants)]
    flat = [pt.broadcast_to(each, shape).ravel() for each in found]
    return line.compile(model, model.replace_rvs_by_values(flat))


def _each_row(model: Any, line: Line) -> Function:
    """Return that to the log likelihood of each observed number, shape (n_rows,)."""
    (each,) = model.logp(vars=[_observed_variable(model)], sum=False)
    return line.compile(model, [each.ravel()])


def _rest(model: Any, line: Line, order: int) -> Function:
    """Return that to minus the log density of all but the observed variable, or derivatives."""
    from pytensor.gradient import grad, hessian

    (found,), position = line.ravel(model, [-model.logp(vars=model.free_RVs)])
    if order > 0:
        found = (grad, hessian)[order - 1](found, position, disconnected_inputs="ignore")
    function: Function = model.compile_fn([found], inputs=[position], point_fn=False)
    return function


class Rest:
    """What U has beside the observed variable, at one position at a time."""

    capabilities: Capabilities = frozenset({can.GRADIENT, can.HESSIAN})

    def __init__(self, model: Any, line: Line) -> None:
        self.dim = line.own.dim
        self._orders = [
            Compiled(model, partial(_rest, line=line, order=order)) for order in range(3)
        ]

    def value(self, positions: FloatArray) -> FloatArray:
        """Return it, shape (n,), at positions of shape (n, dim)."""
        return self._at(0, positions, ())

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return it, shape (n,), and its gradient, shape (n, dim)."""
        return self.value(positions), self._at(1, positions, (self.dim,))

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return its second derivatives, shape (n, dim, dim)."""
        return self._at(2, positions, (self.dim, self.dim))

    def _at(self, order: int, positions: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        rows = check_positions(positions, self.dim)
        found = [self._orders[order](row)[0] for row in rows]
        return np.array(found, dtype=np.float64).reshape(len(rows), *shape)
