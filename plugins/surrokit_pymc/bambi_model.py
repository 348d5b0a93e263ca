"""Targets of regressions written down with Bambi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import load_library
from surrokit.coordinates.models import ModelMap
from surrokit.errors import ConfigurationError
from surrokit.targets.forward import ModelledPotential
from surrokit.types import FloatArray
from surrokit_pymc.target import Backend, assemble, check_model, choose


def from_bambi(
    model: Any,
    *,
    var_names: Sequence[str] | None = None,
    backend: Backend = "pytensor",
    rows: bool | None = None,
) -> ModelledPotential:
    """Make a target of a regression written down with Bambi.

    Draws come back by Bambi's names, and the intercept is the one of predictors as they are, as
    :meth:`bambi.Model.fit` reports it, though the model is sampled with centred ones. Offsets of
    effects of groups are among the draws.

    Parameters
    ----------
    model
        The model; it is built if it is not.
    var_names
        Deterministic quantities to report beside the free variables; None for all but parameters
        of the response, which have as many numbers as the data have rows.
    backend, rows
        As for :func:`surrokit_pymc.from_pymc`.

    Returns
    -------
    ModelledPotential
        As :func:`surrokit_pymc.from_pymc` returns.

    Raises
    ------
    MissingDependencyError
        If Bambi is not installed, or JAX where it is asked for.
    ConfigurationError
        If it is no model of Bambi, or its model of PyMC is refused.
    """
    bambi = load_library("bambi", "bambi")
    if not isinstance(model, bambi.Model):
        raise ConfigurationError(f"model must be a bambi.Model, got {type(model).__name__}")
    if not model.built:
        model.build()
    inner = model.backend.model
    free = check_model(inner)
    wanted = choose(inner, var_names, hidden=model.family.likelihood.params)
    return assemble(inner, [*free, *wanted], backend, rows=rows, adjust=partial(_uncentre, model))


@attrs.frozen
class _Shift:
    """What an intercept of predictors as they are has less than one of centred predictors."""

    intercept: str
    terms: tuple[str, ...]
    means: FloatArray  # of each column of the design matrix, one coefficient after another

    def of(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        """Return it at arrays by name, (n, *shape) each, in the intercept's shape."""
        shape = arrays[self.intercept].shape
        levels = shape[1:]  # a number for each level of a response of several
        columns = [arrays[name].reshape(shape[0], -1, *levels) for name in self.terms]
        return np.tensordot(np.concatenate(columns, axis=1), self.means, axes=(1, 0))


@attrs.frozen(eq=False)
class _Uncentred:
    """A model's map, with intercepts of predictors as they are."""

    inner: ModelMap
    shifts: tuple[_Shift, ...]

    def constrain(self, positions: FloatArray) -> FloatArray:
        found = self.inner.constrain(positions)
        arrays = self.inner.reported.split(found)  # views
        for shift in self.shifts:
            arrays[shift.intercept] -= shift.of(arrays)
        return found

    def unconstrain(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        moved = {each.intercept: arrays[each.intercept] + each.of(arrays) for each in self.shifts}
        return self.inner.unconstrain({**arrays, **moved})


def _uncentre(model: Any, of: ModelMap) -> ModelMap:
    """Return the map of a model that is built to what Bambi reports."""
    if not model.center_predictors:
        return of
    components = [each.component for each in model.backend.distributional_components.values()]
    shifts = tuple(
        _Shift(
            intercept=_name(each.intercept_term),
            terms=tuple(map(_name, each.common_terms.values())),
            means=np.column_stack([t.data for t in each.common_terms.values()]).mean(axis=0),
        )
        for each in components
        if each.intercept_term and each.common_terms
    )
    changed = _Uncentred(of, shifts)
    return attrs.evolve(of, constrain=changed.constrain, unconstrain=changed.unconstrain)


def _name(term: Any) -> str:
    return str(term.alias or term.name)
