"""Draws in the form of the ArviZ project: groups of arrays and attributes, by its names."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.coordinates.models import Reported
from surrokit.coordinates.parameters import Parameter
from surrokit.errors import CapabilityError, ConfigurationError, MissingDependencyError
from surrokit.potentials import Potential, with_rows
from surrokit.types import FloatArray
from surrokit.weighted.round import effective, resampled_rows

Group: TypeAlias = Mapping[str, np.ndarray]
"""Name to an array of shape (chains, draws, ...); data that were observed have any shape."""

MOST_NUMBERS = 2**26
"""Log-likelihoods that are exported at most, half a gigabyte of them."""

MOST_DATA = 2**22
"""Numbers of an array of data that is exported at most: draws may be few, and data many."""

_OF_PARAMETERS = ("posterior", "warmup_posterior")

_TAKEN = frozenset({"chain", "draw", "."})


@attrs.frozen(kw_only=True, eq=False)
class Draws:
    """The draws of a run as they are written.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        In the user's coordinates.
    labels, titles
        One for each of the ``dim`` numbers; titles have units.
    groups
        Groups of arrays, by ArviZ's names of the groups.
    attributes
        Attributes of ArviZ's object.
    dims, coords
        Names of the axes of arrays by name, and the coordinates of axes by name, of a model that
        has them.
    units
        Those of parameters that have one, by name.
    """

    draws: FloatArray
    labels: Sequence[str]
    titles: Sequence[str]
    groups: Mapping[str, Group]
    attributes: Mapping[str, Any]
    dims: Mapping[str, list[str]]
    coords: Mapping[str, Any]
    units: Mapping[str, str]

    @classmethod
    def of(cls, run: Any) -> Draws:
        """Return those of a :class:`~surrokit.result.run.Run`, with any weights beside them."""
        dims, coords = _named_axes(run.parameters.specs)
        return cls(
            dims=dims,
            coords=coords,
            draws=run.draws,
            labels=run.labels,
            titles=run.titles,
            units=run.parameters.units,
            groups=_groups_of(run),
            attributes=_attributes_of(run),
        )

    @classmethod
    def unweighted(cls, run: Any, seed: int | np.random.Generator) -> Draws:
        """Return those of a run, each of equal weight: ArviZ knows nothing of weights.

        Weighted draws are drawn anew by their weights, by ``seed``.
        """
        if run.log_weights is None:
            return cls.of(run)
        worth = {"resampled": 1, "weights_worth": effective(run.log_weights)}
        even = cls.of(equally_weighted(run, seed))
        return attrs.evolve(even, attributes={**_attributes_of(run), **worth})

    def with_free_names(self, *, slashes: bool = False) -> Draws:
        """Return draws none of whose parameters has the name of an axis, and would be lost for it.

        They get an underscore. In files and trees a slash parts the names of groups, and is refused
        in that of a parameter: without ``slashes``, names have a division sign for each.
        """
        sign = "/" if slashes else "÷"
        axes = [axis for each in self.dims.values() for axis in each] + [
            f"{name}_dim_{place}"  # as ArviZ calls an axis without a name
            for name, array in self.groups["posterior"].items()
            for place in range(array.ndim - 2)
        ]
        taken = {axis.replace("/", sign) for axis in (*axes, *self.coords)} | _TAKEN
        new = {group: _allowed(self.groups["posterior"], sign, taken) for group in _OF_PARAMETERS}
        new["observed_data"] = _allowed(self.groups.get("observed_data", {}), sign, _TAKEN)
        groups = {
            group: {new.get(group, {}).get(name, name): array for name, array in arrays.items()}
            for group, arrays in self.groups.items()
        }
        names = new["posterior"]
        dims = {
            names.get(name, name): [axis.replace("/", sign) for axis in axes]
            for name, axes in self.dims.items()
        }
        coords = {axis.replace("/", sign): labels for axis, labels in self.coords.items()}
        units = {names.get(name, name): unit for name, unit in self.units.items()}
        return attrs.evolve(self, groups=groups, dims=dims, coords=coords, units=units)


def _allowed(group: Group, sign: str, taken: Collection[str]) -> dict[str, str]:
    """Return a new name for each, unlike all others and those taken, with a sign for slashes."""
    renamed: dict[str, str] = {}
    for name in group:
        allowed = name.replace("/", sign)
        while (
            allowed in taken
            or allowed in renamed.values()
            or (allowed != name and allowed in group)
        ):
            allowed += "_"
        renamed[name] = allowed
    return renamed


def _named_axes(specs: Mapping[str, Parameter]) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return the names of axes by parameter, and the coordinates of axes by name.

    An axis without a name is called as ArviZ would: by its parameter and its place.
    """
    axes = {name: spec.axes for name, spec in specs.items() if isinstance(spec, Reported)}
    dims = {
        name: [axis.name or f"{name}_dim_{place}" for place, axis in enumerate(of)]
        for name, of in axes.items()
        if any(axis.name for axis in of)
    }
    every = [axis for of in axes.values() for axis in of]
    return dims, {axis.name: list(axis.labels) for axis in every if axis.name and axis.labels}


def to_arviz(draws: Draws) -> Any:
    """Return a DataTree (ArviZ 1 and later) or InferenceData (before).

    A parameter that has the name of an axis, such as ``chain``, gets an underscore. In a tree names
    of parameters have ÷ for each slash, which it refuses. Units are the attribute ``units``, as the
    CF conventions call it.

    Raises
    ------
    MissingDependencyError
        If ArviZ is not installed.
    """
    with warnings.catch_warnings():
        # with fewer draws than chains ArviZ warns of swapped axes
        warnings.filterwarnings("ignore", category=UserWarning, message=".*chain.*")
        draws, converted = _convert(draws)
    for group in _OF_PARAMETERS:
        for name, unit in draws.units.items() if group in draws.groups else ():
            converted[group][name].attrs["units"] = unit
    converted.attrs.update(draws.attributes)
    return converted


def _convert(draws: Draws) -> tuple[Draws, Any]:
    """Return draws with names that the installed ArviZ takes, and what it makes of them."""
    try:
        from arviz_base import from_dict
    except ImportError:
        pass
    else:
        draws = draws.with_free_names()
        return draws, from_dict(draws.groups, save_warmup=True, **_axes(draws))
    try:
        import arviz
    except ImportError as error:
        raise MissingDependencyError(
            "ArviZ is needed for this and is not installed; run python -m pip install "
            "'surrokit[arviz]'"
        ) from error
    draws = draws.with_free_names(slashes=True)
    return draws, arviz.from_dict(**draws.groups, save_warmup=True, **_axes(draws))


def _axes(draws: Draws) -> dict[str, Any]:
    return {"dims": draws.dims, "coords": draws.coords} if draws.dims else {}


def _groups_of(run: Any) -> dict[str, Group]:
    """Return draws and statistics, of the warm-up too, outputs of a forward map, and data.

    Data are what the target reports, but for arrays of text or of more than :data:`MOST_DATA`
    numbers.
    """
    groups: dict[str, Group] = {
        "posterior": {name: run[name] for name in run.parameters.specs},
        "sample_stats": {**run.kept.statistics(run.log_weights), **_depths(run, run.kept)},
        "warmup_sample_stats": {**run.warmup.statistics(), **_depths(run, run.warmup)},
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
    if observed:
        groups["observed_data"] = observed
    return groups


def _depths(run: Any, trace: Any) -> Group:
    """Return how often each path was doubled, of samplers that double paths."""
    if not hasattr(run.sampler, "max_depth"):
        return {}
    return {"tree_depth": np.ceil(np.log2(trace.n_steps + 1.0)).astype(np.int64)}


def equally_weighted(run: Any, seed: int | np.random.Generator) -> Any:
    """Return a run with draws of equal weight, in one chain, in place of weighted ones.

    They are drawn anew by ``seed``; a run without weights is returned as it is.
    """
    if run.log_weights is None:
        return run
    places = resampled_rows(run.log_weights, np.random.default_rng(seed))
    return attrs.evolve(run, kept=run.kept.chosen(places), weights=None)


def _attributes_of(run: Any) -> dict[str, Any]:
    """Return versions, calls and other facts of a run, as numbers and text."""
    try:
        version = metadata.version("surrokit")
    except metadata.PackageNotFoundError:  # a bare checkout on the path
        version = "unknown"
    return {
        "inference_library": "surrokit",
        "inference_library_version": version,
        "python_version": platform.python_version(),
        "numpy_version": np.__version__,
        "sampling_time": run.seconds["sampling"],
        "warmup_time": run.seconds["warmup"],
        "training_time": run.seconds["training"],
        "tuning_steps": len(run.warmup),
        "stopped": run.stopped,
        "length": run.length,
        "exact": int(run.exact),
        "verdict": str(run.verdict),
        **({} if run.choice is None else {"choice": run.choice}),
        **{f"part_{kind}": name for kind, name in run.parts.items()},
        "deployments": len(run.adaptation.deployments),
        "failures": run.failures,
        "calls": float(run.total_calls),
        **{f"calls_{kind}": n for kind, n in run.calls.items()},
    }


def log_likelihood_of(run: Any, target: Potential) -> FloatArray:
    """Return the log-likelihood of each row of data at each draw, shape (chains, draws, rows).

    It is minus the term of the row in the target of the run, a sum over rows, so constants that the
    target leaves out are missing.

    Raises
    ------
    CapabilityError
        If the target is no sum over rows.
    ConfigurationError
        If there are more than :data:`MOST_NUMBERS` numbers, or the target is another run's.
    """
    if ROWS not in target.capabilities:
        raise CapabilityError(
            "log-likelihoods by row need a target that is a sum over rows of data, such as "
            "surrokit.rows_potential makes; leave log_likelihood out"
        )
    positions, terms = run.kept.positions, with_rows(target)
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
    found = np.empty((len(flat), terms.n_rows))
    for row in range(terms.n_rows):
        found[:, row] = -terms.select(np.array([row])).value(flat)
    return found.reshape(chains, draws, -1)
