"""Draws in the form of the ArviZ project: groups of arrays and attributes, by its names."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from importlib import metadata
from typing import Any, TypeAlias

import numpy as np

from surrokit.arguments import load_library, read_seed
from surrokit.capabilities import ROWS
from surrokit.coordinates.models import Reported
from surrokit.coordinates.parameters import Parameter
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.potentials import Potential, with_rows
from surrokit.types import FloatArray, IntArray
from surrokit.weighted.round import effective, resampled_rows

Group: TypeAlias = Mapping[str, np.ndarray]
"""Name to an array of shape (chains, draws, ...); data that were observed have any shape."""

MOST_NUMBERS = 2**26  #: Log-likelihoods that are exported at most, half a gigabyte of them.

MOST_DATA = 2**22
"""Numbers of an array of data that is exported at most: draws may be few, and data many."""


def to_arviz(run: Any, seed: int | np.random.Generator, target: Potential | None = None) -> Any:
    """Return a DataTree (ArviZ 1 and later) or InferenceData; see :meth:`surrokit.Run.to_arviz`.

    A parameter that has the name of an axis, such as ``chain``, gets an underscore, else it would
    be lost. Names have ÷ for each slash, which parts the names of groups in trees and files. Units
    are the attribute ``units``, as the CF conventions call it.
    """
    places = None
    if run.log_weights is not None:  # of which ArviZ knows nothing: draws are drawn anew
        places = resampled_rows(run.log_weights, read_seed(seed))
    groups = _groups_of(run, places)
    if target is not None:
        positions = run.kept.positions
        if places is not None:
            positions = run.kept.transform.to_unbounded(_taken(run.draws, places)[0])[None]
        groups["log_likelihood"] = {"row": log_likelihood_of(positions, target)}
    try:
        from arviz_base import from_dict
    except ImportError:
        old = load_library("arviz", "arviz", "for this")

        def from_dict(groups: Mapping[str, Group], **options: Any) -> Any:
            return old.from_dict(**groups, **options)

    dims, coords = _axes_of(run.parameters.specs)
    unnamed = {
        f"{name}_dim_{place}"  # as ArviZ calls an axis without a name
        for name, array in groups["posterior"].items()
        for place in range(array.ndim - 2)
    }
    taken = {"chain", "draw", "."}
    axes = {axis for each in dims.values() for axis in each} | unnamed | coords.keys()
    names = _free_names(groups["posterior"], taken | axes)
    data = _free_names(groups.get("observed_data", {}), taken)
    new = {"posterior": names, "warmup_posterior": names, "observed_data": data}
    renamed = {
        group: {new.get(group, {}).get(name, name): array for name, array in arrays.items()}
        for group, arrays in groups.items()
    }
    named = {"dims": {names[of]: each for of, each in dims.items()}, "coords": coords}
    with warnings.catch_warnings():
        # with fewer draws than chains ArviZ warns of swapped axes
        warnings.filterwarnings("ignore", category=UserWarning, message=".*chain.*")
        converted = from_dict(renamed, save_warmup=True, **(named if dims else {}))
    converted.attrs.update(_attributes_of(run))
    return converted


def _free_names(group: Group, taken: Collection[str]) -> dict[str, str]:
    """Return a new name for each, unlike all others and those taken."""
    renamed: dict[str, str] = {}
    for name in group:
        free, others = name.replace("/", "÷"), {*taken, *renamed.values(), *group} - {name}
        while free in others or (free == name and name in taken):
            free += "_"
        renamed[name] = free
    return renamed


def _axes_of(specs: Mapping[str, Parameter]) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return the names of axes by parameter, and the coordinates of axes by name.

    An axis without a name is called as ArviZ would: by its parameter and its place.
    """
    axes = {name: spec.axes for name, spec in specs.items() if isinstance(spec, Reported)}
    dims = {
        name: [(axis.name or f"{name}_dim_{i}").replace("/", "÷") for i, axis in enumerate(of)]
        for name, of in axes.items()
        if any(axis.name for axis in of)
    }
    coords = {
        axis.name.replace("/", "÷"): list(axis.labels)
        for of in axes.values()
        for axis in of
        if axis.name and axis.labels
    }
    return dims, coords


def _taken(arrays: FloatArray, places: IntArray | None) -> FloatArray:
    """Return rows of arrays (chains, draws, k) at places, as those of one chain; None for all."""
    return arrays if places is None else arrays.reshape(-1, arrays.shape[2])[places][None]


def _groups_of(run: Any, places: IntArray | None) -> dict[str, Group]:
    """Return draws and statistics, of the warm-up too, outputs of a forward map, and data.

    Weighted draws are those at ``places``, and have no statistics of a sampler.

    Data are what the target reports, but for arrays of text or of more than :data:`MOST_DATA`
    numbers.
    """
    groups: dict[str, Group] = {
        "posterior": run.parameters.split(_taken(run.draws, places)),
        "warmup_sample_stats": run.warmup.statistics(),
    }
    if places is None:
        groups["sample_stats"] = run.kept.statistics()
    if len(run.warmup):
        groups["warmup_posterior"] = run.parameters.split(run.warmup.draws)
    outputs = run.outputs
    if outputs is not None:
        groups["posterior_predictive"] = {"outputs": _taken(outputs, places)}
    observed = {
        name: array
        for name, array in run.observed_data.items()
        if array.dtype.kind in "biuf" and array.size <= MOST_DATA
    }
    return {**groups, "observed_data": observed} if observed else groups


def _attributes_of(run: Any) -> dict[str, Any]:
    try:
        version = metadata.version("surrokit")
    except metadata.PackageNotFoundError:  # a bare checkout on the path
        version = "unknown"
    weights = run.log_weights
    worth = {} if weights is None else {"resampled": 1, "weights_worth": effective(weights)}
    return {
        "inference_library": "surrokit",
        "inference_library_version": version,
        "sampling_time": run.seconds["sampling"],
        "tuning_steps": len(run.warmup),
        "stopped": run.stopped,
        "exact": int(run.exact),
        "verdict": str(run.verdict),
        **{f"part_{kind}": name for kind, name in run.parts.items()},
        "failures": run.failures,
        **{f"calls_{kind}": n for kind, n in run.calls.items()},
        **worth,
    }


def log_likelihood_of(positions: FloatArray, target: Potential) -> FloatArray:
    """Return the log-likelihood of each row of data at each draw, shape (chains, draws, rows).

    It is minus the term of the row in the target of the run, a sum over rows, so constants that the
    target leaves out are missing.
    """
    if ROWS not in target.capabilities:
        raise CapabilityError(
            "log-likelihoods by row need a target that is a sum over rows of data, such as "
            "surrokit.rows_potential makes; leave log_likelihood out"
        )
    terms = with_rows(target)
    chains, draws, dim = positions.shape
    if target.dim != dim:
        raise ConfigurationError(
            f"log_likelihood must be the target of this run, whose positions have {dim} numbers, "
            f"got one with {target.dim}"
        )
    if terms.n_rows * chains * draws > MOST_NUMBERS:
        raise ConfigurationError(
            f"log-likelihoods of {terms.n_rows} rows at {chains * draws} draws are too many to "
            f"export ({MOST_NUMBERS} numbers at most); leave log_likelihood out, or draw fewer"
        )
    flat = positions.reshape(-1, dim)
    rows = [-terms.select(np.array([row])).value(flat) for row in range(terms.n_rows)]
    return np.stack(rows, axis=-1).reshape(chains, draws, -1)
