"""Draws in the form of the ArviZ project."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.models import Reported
from surrokit.coordinates.parameters import Parameter
from surrokit.errors import MissingDependencyError
from surrokit.output.groups import Group, attributes_of, equally_weighted, groups_of
from surrokit.types import FloatArray
from surrokit.weighted.round import effective

_OF_PARAMETERS = ("posterior", "warmup_posterior")

_INSTALL = "python -m pip install 'surrokit[arviz]'"


@attrs.frozen(kw_only=True, eq=False)
class Draws:
    """The draws of a run as they are written.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        In the user's coordinates.
    labels
        One for each of the ``dim`` numbers.
    groups
        Groups of arrays, by ArviZ's names of the groups.
    attributes
        Attributes of ArviZ's object.
    dims, coords
        Names of the axes of arrays by name, and the coordinates of axes by name, of a model that
        has them.
    titles
        Each label with its unit.
    units
        Those of parameters that have one, by name.
    """

    draws: FloatArray
    labels: Sequence[str]
    groups: Mapping[str, Group]
    attributes: Mapping[str, Any]
    dims: Mapping[str, list[str]] = attrs.field(factory=dict)
    coords: Mapping[str, Any] = attrs.field(factory=dict)
    titles: Sequence[str] = ()
    units: Mapping[str, str] = attrs.field(factory=dict)

    @classmethod
    def of(cls, run: Any) -> Draws:
        """Return those of a :class:`~surrokit.result.run.Run`, with any weights beside them."""
        dims, coords = axes_of(run.parameters.specs)
        return cls(
            dims=dims,
            coords=coords,
            draws=run.draws,
            labels=run.labels,
            titles=run.titles,
            units=run.parameters.units,
            groups=groups_of(run),
            attributes=attributes_of(run),
        )

    @classmethod
    def unweighted(cls, run: Any, seed: int | np.random.Generator) -> Draws:
        """Return those of a run, each of equal weight: ArviZ knows nothing of weights.

        Parameters
        ----------
        run
            Whose weighted draws are drawn anew by their weights.
        seed
            By which they are drawn.
        """
        if run.log_weights is None:
            return cls.of(run)
        worth = {"resampled": 1, "weights_worth": effective(run.log_weights)}
        even = cls.of(equally_weighted(run, seed))
        return attrs.evolve(even, attributes={**attributes_of(run), **worth})

    def with_free_names(self, *, slashes: bool = False) -> Draws:
        """Return draws none of whose parameters has the name of an axis, and would be lost for it.

        They get an underscore. In files and trees a slash parts the names of groups, and is refused
        in that of a parameter.

        Parameters
        ----------
        slashes
            Whether slashes stay; else parameters and axes have a division sign for each.
        """
        sign = "/" if slashes else "÷"
        taken = {axis.replace("/", sign) for axis in (*self._axes(), *self.coords)}
        allowed = _allowed(self.groups["posterior"], sign, {*_TAKEN, *taken})
        groups = {
            group: {allowed.get(name, name): array for name, array in arrays.items()}
            if group in _OF_PARAMETERS
            else arrays
            for group, arrays in self.groups.items()
        }
        data = groups.get("observed_data", {})
        known = _allowed(data, sign, _TAKEN)
        groups["observed_data"] = {known[name]: array for name, array in data.items()}
        if not data:
            del groups["observed_data"]
        dims = {
            allowed.get(name, name): [axis.replace("/", sign) for axis in axes]
            for name, axes in self.dims.items()
        }
        coords = {axis.replace("/", sign): labels for axis, labels in self.coords.items()}
        units = {allowed.get(name, name): unit for name, unit in self.units.items()}
        return attrs.evolve(self, groups=groups, dims=dims, coords=coords, units=units)

    def _axes(self) -> list[str]:
        """Return the names of the axes of parameters: their own, and those that ArviZ gives."""
        return [axis for axes in self.dims.values() for axis in axes] + [
            f"{name}_dim_{place}"
            for name, array in self.groups["posterior"].items()
            for place in range(array.ndim - 2)
        ]


_TAKEN = frozenset({"chain", "draw", "."})


def _allowed(group: Group, sign: str, taken: Collection[str]) -> dict[str, str]:
    """Return a name for each parameter, unlike those of all others and of axes.

    Parameters
    ----------
    group
        Arrays by name.
    sign
        What stands in the place of a slash.
    taken
        Names of axes.
    """
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


def axes_of(specs: Mapping[str, Parameter]) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return the names of axes by parameter, and the coordinates of axes by name.

    An axis without a name is called as ArviZ would: by its parameter and its place.
    """
    axes = {name: spec.axes for name, spec in specs.items() if isinstance(spec, Reported)}
    dims = {
        name: [axis.name or f"{name}_dim_{place}" for place, axis in enumerate(of)]
        for name, of in axes.items()
        if any(axis.name for axis in of)
    }
    coords = {
        axis.name: list(axis.labels)
        for of in axes.values()
        for axis in of
        if axis.name and axis.labels
    }
    return dims, coords


def to_arviz(draws: Draws) -> Any:
    """Return a DataTree (ArviZ 1 and later) or InferenceData (before).

    A parameter that has the name of an axis, such as ``chain``, gets an underscore. In a tree names
    of parameters have ÷ for each slash, which it refuses. Units are the attribute ``units``.

    Raises
    ------
    MissingDependencyError
        If ArviZ is not installed.
    """
    with warnings.catch_warnings():
        # with fewer draws than chains ArviZ warns of swapped axes
        warnings.filterwarnings("ignore", category=UserWarning, message=".*chain.*")
        converted = _convert(draws)
    converted.attrs.update(draws.attributes)
    return converted


def _convert(draws: Draws) -> Any:
    try:
        from arviz_base import from_dict
    except ImportError:
        pass
    else:
        draws = draws.with_free_names()
        return _with_units(from_dict(draws.groups, save_warmup=True, **_axes(draws)), draws)
    try:
        import arviz
    except ImportError as error:
        raise MissingDependencyError(
            f"ArviZ is needed for this and is not installed; run {_INSTALL}"
        ) from error
    draws = draws.with_free_names(slashes=True)
    return _with_units(arviz.from_dict(**draws.groups, save_warmup=True, **_axes(draws)), draws)


def _with_units(converted: Any, draws: Draws) -> Any:
    """Give parameters the attribute ``units``, as the CF conventions call it."""
    for group in _OF_PARAMETERS:
        for name, unit in draws.units.items() if group in draws.groups else ():
            converted[group][name].attrs["units"] = unit
    return converted


def _axes(draws: Draws) -> dict[str, Any]:
    return {"dims": draws.dims, "coords": draws.coords} if draws.dims else {}
