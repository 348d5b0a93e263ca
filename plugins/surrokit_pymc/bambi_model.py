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
        If it is no model of Bambi, or its model of PyMC is rejected.
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


@attrs.frozen(eq=False)
class _Uncentred:
    """A model's map, with intercepts of predictors as they are.

    ``shifts`` has for each intercept the terms of its predictor, and the means of the columns of
    their design, one coefficient after another: what the intercept has less is their product.
    """

    inner: ModelMap
    shifts: Mapping[str, tuple[tuple[str, ...], FloatArray]]

    def constrain(self, positions: FloatArray) -> FloatArray:
        found = self.inner.constrain(positions)
        arrays = self.inner.reported.split(found)  # views
        for name, less in self._less(arrays).items():
            arrays[name] -= less
        return found

    def unconstrain(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        moved = {name: arrays[name] + less for name, less in self._less(arrays).items()}
        return self.inner.unconstrain({**arrays, **moved})

    def _less(self, arrays: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        found = {}
        for name, (terms, means) in self.shifts.items():
            n, *levels = arrays[name].shape  # a number for each level of a response of several
            columns = [arrays[term].reshape(n, -1, *levels) for term in terms]
            found[name] = np.tensordot(np.concatenate(columns, axis=1), means, axes=(1, 0))
        return found


def _uncentre(model: Any, of: ModelMap) -> ModelMap:
    """Return the map of a model that is built to what Bambi reports."""
    if not model.center_predictors:
        return of
    components = [each.component for each in model.backend.distributional_components.values()]
    shifts = {
        _name(each.intercept_term): (
            tuple(map(_name, each.common_terms.values())),
            np.column_stack([term.data for term in each.common_terms.values()]).mean(axis=0),
        )
        for each in components
        if each.intercept_term and each.common_terms
    }
    changed = _Uncentred(of, shifts)
    return attrs.evolve(of, constrain=changed.constrain, unconstrain=changed.unconstrain)


def _name(term: Any) -> str:
    return str(term.alias or term.name)
