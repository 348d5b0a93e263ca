"""Models whose data can change no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


def freeze(model: Any) -> Any:
    """Return a copy of a model of PyMC, with constants for its data and lengths of dimensions.

    The copy may lack the initial values of the model.
    """
    from pymc.model.transform.optimization import freeze_dims_and_data

    try:
        return freeze_dims_and_data(model)
    except NotImplementedError:
        with _without_initial_values(model):  # PyMC before 6 cannot copy them
            return freeze_dims_and_data(model)


def read_observed(frozen: Any) -> dict[str, Any]:
    """Return what was observed, by name, without what is computed.

    Parameters
    ----------
    frozen
        A model with constants for its data.
    """
    values = {variable.name: frozen.rvs_to_values[variable] for variable in frozen.observed_RVs}
    found = {name: getattr(value, "data", None) for name, value in values.items()}
    return {name: np.asarray(array) for name, array in found.items() if array is not None}


@contextmanager
def _without_initial_values(model: Any) -> Iterator[None]:
    """Have a model without initial values for a while."""
    values = dict(model.rvs_to_initial_values)
    try:
        model.rvs_to_initial_values.update(dict.fromkeys(values))
        yield
    finally:
        model.rvs_to_initial_values.update(values)
