"""Draws in the form of the ArviZ project: groups of arrays and attributes, by its names."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from importlib import metadata
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import load_library, read_seed
from surrokit.coordinates.models import Reported
from surrokit.coordinates.parameters import Parameter
from surrokit.errors import ConfigurationError
from surrokit.types import IntArray
from surrokit.weighted.round import effective, resampled_rows

Group: TypeAlias = Mapping[str, np.ndarray]
"""Name to an array of shape (chains, draws, ...); data that were observed have any shape."""

MOST_NUMBERS = 2**26  #: Log-likelihoods that are exported at most, half a gigabyte of them.

MOST_DATA = 2**22
"""Numbers of an array of data that is exported at most: draws may be few, and data many."""


def to_arviz(run: Any, seed: int | np.random.Generator, log_likelihood: bool = False) -> Any:
    """Return a DataTree (ArviZ 1 and later) or InferenceData; see :meth:`surrokit.Run.to_arviz`.

    A parameter that has the name of an axis, such as ``chain``, gets an underscore, else it would
    be lost. Names have ÷ for each slash, which parts the names of groups in trees and files. Units
    are the attribute ``units``, as the CF conventions call it.
    """
    even = run
    if run.log_weights is not None:  # of which ArviZ knows nothing: draws are drawn anew
        even = _even(run, resampled_rows(run.log_weights, read_seed(seed)))
    groups = _groups_of(even)
    known = even.outputs is not None and run.pointwise is not None and len(run.kept)
    if log_likelihood or (known and not np.isnan(even.outputs).any()):
        groups |= _pointwise_of(even)
    try:
        from arviz_base import from_dict
    except ImportError:
        old = load_library("arviz", "arviz", "for this")

        def from_dict(groups: Mapping[str, Group], **options: Any) -> Any:
            made = old.from_dict(**groups, **options)
            if "log_prior" in groups:  # which it does not take
                made.add_groups({"log_prior": groups["log_prior"]})
            return made

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
    new = {"posterior": names, "warmup_posterior": names}
    new |= {"observed_data": data, "log_likelihood": data}
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
    for group in {"posterior_predictive", "log_likelihood"} & renamed.keys():
        if run.outputs is not None:
            converted[group].attrs["outputs"] = _origin_of_outputs(run)
    return converted


def _origin_of_outputs(run: Any) -> str:
    evaluated = run.evaluated
    if evaluated.all():
        return "evaluated"
    return f"the surrogate's, but evaluated at {evaluated.sum()} of {evaluated.size} draws"


def _even(run: Any, places: IntArray) -> Any:
    """Return a run of one chain whose draws are the weighted ones at places."""
    if run.draws is run.kept.draws:  # they were evaluated
        return attrs.evolve(run, kept=run.kept.chosen(places), weights=None)
    draws, outputs = run.draws.reshape(-1, run.draws.shape[2])[places], run.outputs
    kept = attrs.evolve(
        run.kept.chosen(np.zeros_like(places)),  # nothing was decided on these draws
        draws=draws[None],
        positions=run.kept.transform.to_unbounded(draws)[None],
        values=np.full((1, len(places)), np.nan),
        outputs=None if outputs is None else outputs.reshape(-1, outputs.shape[2])[places][None],
    )
    return attrs.evolve(run, kept=kept, weights=None)


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


def _groups_of(run: Any) -> dict[str, Group]:
    """Return draws and statistics, of the warm-up too, outputs of a forward map, and data.

    Data are what the target reports, but for arrays of text or of more than :data:`MOST_DATA`
    numbers.
    """
    groups: dict[str, Group] = {
        "posterior": {n: run[n] for n in (*run.parameters.specs, *run.kept.quantities)},
        "sample_stats": run.kept.statistics(),
        "warmup_sample_stats": run.warmup.statistics(),
    }
    if len(run.warmup):
        groups["warmup_posterior"] = run.parameters.split(run.warmup.draws)
    if run.outputs is not None:
        groups["posterior_predictive"] = {"outputs": run.outputs}
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


def _pointwise_of(run: Any) -> dict[str, Group]:
    """Return log likelihoods and log priors, by observation and draw, as far as there are any."""
    chains, draws, dim = run.draws.shape
    n = sum(np.size(array) for array in run.observed_data.values()) * chains * draws
    if run.pointwise is None or not draws or n > MOST_NUMBERS:
        raise ConfigurationError(
            "log_likelihood needs draws of a forward model with surrokit.observed data, a sum over "
            "rows, or a model of PyMC or NumPyro, given in this session, and at most "
            f"{MOST_NUMBERS:,} observations times draws, got {n:,}. Leave it out"
        )
    outputs = None if run.outputs is None else run.outputs.reshape(chains * draws, -1)
    parts = run.pointwise(outputs, run.draws.reshape(-1, dim))
    return {
        group: {name: np.reshape(of, (chains, draws, *of.shape[1:])) for name, of in part.items()}
        for group, part in zip(("log_likelihood", "log_prior"), parts, strict=True)
        if part
    }
