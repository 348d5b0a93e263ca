"""What a forward target is made of beside its map: parameters, and an energy of its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import check_methods
from surrokit.contracts.forward import Energy
from surrokit.coordinates.distributions import quantiles
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.priors import Priors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.targets.gaussian import (
    PRIOR_METHODS,
    Prior,
    isolated_prior,
    one_prior,
    read_energy,
)
from surrokit.targets.observed.energy import Block, ObservedEnergy, WithScales
from surrokit.targets.observed.observed import Observed, Scale, observed
from surrokit.targets.observed.scales import Estimated, HalfStudent
from surrokit.types import FloatArray, IntArray

Data: TypeAlias = npt.ArrayLike | Observed | Mapping[str, Observed]
"""What was observed: numbers, with their errors, or several such by name."""

_USUAL_NAME = "scale"
_NAME_OF_NOISE = "noise_sd"


@attrs.frozen(kw_only=True, eq=False)
class ForwardModel:
    """Parameters and energy of a forward target.

    Parameters
    ----------
    parameters
        All, those of the errors included.
    of_map
        Those that the map takes.
    columns : ndarray of shape (of_map.dim,), optional
        Their places in a position; None where the map takes all.
    energy
        Of outputs and positions.
    sizes
        Count of the data of each set, by name; None where they have no names.
    """

    parameters: Parameters
    of_map: Parameters
    columns: IntArray | None
    energy: Energy
    sizes: Mapping[str, int] | None = None

    @classmethod
    def read(
        cls,
        data: Data | None,
        noise_sd: Scale | None,
        prior: Prior | None,
        energy: Energy | None,
        declared: Parameters,
    ) -> ForwardModel:
        """Read what a user gave.

        Parameters
        ----------
        data, noise_sd, prior, energy
            As for :func:`surrokit.forward_potential`.
        declared
            The user's parameters.

        Raises
        ------
        ConfigurationError
            If neither or both of ``energy`` and ``data`` are given, or something is not of its
            kind.
        ShapeError
            If arrays are not numbers, or do not fit each other.
        """
        beside = one_prior(prior, energy, declared)
        named = _read_sets(data, noise_sd)
        if named is None or energy is not None:
            numbers, sd = cast("npt.ArrayLike", data), cast("npt.ArrayLike", noise_sd)
            own = read_energy(numbers, sd, beside, energy)
            return cls(parameters=declared, of_map=declared, columns=None, energy=own)
        check_methods("prior", prior, *PRIOR_METHODS)
        scales = _Scales(declared)
        for name, each in named.items():
            scales.add(name, each)
        blocks = tuple(scales.block(each) for each in named.values())
        sizes = {name: len(each.data) for name, each in named.items()}
        return cls(
            parameters=scales.parameters,
            of_map=scales.of_map,
            columns=scales.columns,
            energy=ObservedEnergy(blocks=blocks, prior=scales.join(isolated_prior(beside))),
            sizes=sizes if isinstance(data, Mapping) else None,
        )

    def fill_plausible(self, ranges: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a user's plausible ranges, with those of scales that are added where missing."""
        if ranges is None or not isinstance(ranges, Mapping):
            return ranges
        added = {
            name: _plausible(spec)
            for name, spec in self.parameters.specs.items()
            if name not in self.of_map.specs and spec.prior is not None
        }
        return {**{name: each for name, each in added.items() if each is not None}, **ranges}


def names_of_scales(data: Data | None, noise_sd: Scale | None) -> frozenset[str]:
    """Return the names that a user gives scales of errors, which may be declared parameters."""
    sets = _read_sets(data, noise_sd) or {}
    given = (each.scale for each in sets.values())
    return frozenset(
        scale.name for scale in given if isinstance(scale, Estimated) and scale.name is not None
    )


def _read_sets(data: Data | None, noise_sd: Scale | None) -> Mapping[str, Observed] | None:
    """Return sets of data by name, or None where plain numbers have known normal errors."""
    if isinstance(data, Observed | Mapping) and noise_sd is not None:
        raise ConfigurationError(
            "noise_sd is given beside surrokit.observed, which holds the errors of its data; leave "
            "it out, and give scale there"
        )
    if isinstance(data, Observed):
        return {"": data}
    if not isinstance(data, Mapping):
        if data is None or not isinstance(noise_sd, str | Estimated):
            return None
        return {_NAME_OF_NOISE: observed(data, noise_sd)}
    if not data:
        raise ConfigurationError("data by name must hold at least one set, got none")
    for name, each in data.items():
        if not isinstance(name, str) or not isinstance(each, Observed):
            raise ConfigurationError(
                "data by name must be a dictionary of names and surrokit.observed(...), got "
                f"{name!r}: {each!r}"
            )
    return data


class _Scales:
    """Parameters of a target, as scales of errors join them."""

    def __init__(self, declared: Parameters) -> None:
        self._declared = declared
        self._added: dict[str, Parameter] = {}
        self._places: dict[int, list[tuple[str, int]]] = {}
        self._used: list[str] = []

    def add(self, set_name: str, each: Observed) -> None:
        """Declare the scales of a set of data, or find them among the parameters."""
        scale = each.scale
        if not isinstance(scale, Estimated):
            return
        if scale.declared or scale.name in self._declared.specs:
            self._places[id(each)] = self._find(str(scale.name), scale, len(each.data))
            return
        usual = _NAME_OF_NOISE if set_name == _NAME_OF_NOISE else _USUAL_NAME
        if set_name not in ("", _NAME_OF_NOISE):
            usual = f"{usual}_{set_name}"
        found = scale.declare(usual, each.family.spread(each.data))
        for name in found:
            self._refuse_twice(name)
        self._added |= found
        self._places[id(each)] = _places(found, scale, len(each.data))

    @property
    def parameters(self) -> Parameters:
        """All parameters."""
        return Parameters.declare({**self._declared.specs, **self._added})

    @property
    def of_map(self) -> Parameters:
        """Those that are no scales.

        Raises
        ------
        ConfigurationError
            If there are none.
        """
        kept = {k: v for k, v in self._declared.specs.items() if k not in self._used}
        if not kept:
            raise ConfigurationError(
                f"the parameters {', '.join(self._declared.specs)} are all scales of errors, so "
                "that none is left for the forward map; declare its parameters too"
            )
        return Parameters(kept)

    @property
    def columns(self) -> IntArray | None:
        """Their places in a position; None where there are no scales."""
        if not self._used and not self._added:
            return None
        slices = self.parameters.slices()
        return np.concatenate(
            [np.arange(slices[name].start, slices[name].stop) for name in self.of_map.specs]
        )

    def block(self, each: Observed) -> Block:
        """Return a set of data, with the places of its scales."""
        if not isinstance(each.scale, Estimated):
            return Block(data=each.data, family=each.family, factors=each.scale)
        slices = self.parameters.slices()
        columns = [slices[name].start + i for name, i in self._places[id(each)]]
        factors = np.broadcast_to(each.scale.times, each.data.shape)
        return Block(data=each.data, family=each.family, factors=factors, columns=np.array(columns))

    def join(self, prior: Prior | None) -> Prior | None:
        """Return a prior of all parameters, from that of the declared ones."""
        if not self._added:
            return prior
        n = self._declared.dim
        own = Priors.of(Parameters(self._added))
        assert own is not None
        moved = tuple((slice(w.start + n, w.stop + n), each) for w, each in own.by_slice)
        return WithScales(prior, n, attrs.evolve(own, by_slice=moved))

    def _find(self, name: str, scale: Estimated, n_data: int) -> list[tuple[str, int]]:
        spec = self._declared.specs.get(name)
        if spec is None:
            raise ConfigurationError(
                f"{name!r} is given for the scale of errors, but the parameters are "
                f"{', '.join(self._declared.specs)}; declare it, or say 'estimate'"
            )
        if spec.constraint is not None or not spec.bounds[0] >= 0.0:
            raise ConfigurationError(
                f"{name!r} is given for the scale of errors, but it may be negative, or its numbers"
                f" are tied together; declare it by {name!r}: surrokit.positive(...)"
            )
        if scale.prior is not None:
            raise ConfigurationError(
                f"the scale {name!r} is a declared parameter, and a prior is given for it by "
                "surrokit.estimated too; give that beside the parameter"
            )
        groups = None if scale.groups is None else scale.groups.of_data
        needed = n_data if groups is None else int(groups.max()) + 1
        alone = spec.shape == () and groups is None
        if not alone and spec.shape != (needed,):
            whose = "data" if groups is None else "groups"
            raise ShapeError(
                f"the scale {name!r} must have shape ({needed},), one number for each of the "
                f"{whose}{', or be one number' if groups is None else ''}, got {spec.shape}"
            )
        self._used.append(name)
        order = np.arange(n_data) if groups is None else groups
        return [(name, 0 if alone else int(i)) for i in order]

    def _refuse_twice(self, name: str) -> None:
        if name in self._declared.specs or name in self._added:
            raise ConfigurationError(
                f"the scale of errors would be the parameter {name!r}, which is declared already; "
                f"say {name!r} in place of 'estimate' to use it, or give another name by "
                "surrokit.estimated(name=...)"
            )


def _places(found: Mapping[str, Parameter], scale: Estimated, n_data: int) -> list[tuple[str, int]]:
    """Return parameter and index of each datum's scale."""
    names = list(found)
    if scale.groups is None:
        return [(names[0], 0)] * n_data
    if scale.groups.labels is None:
        return [(names[0], int(i)) for i in scale.groups.of_data]
    return [(names[i], 0) for i in scale.groups.of_data]


def _plausible(spec: Parameter) -> tuple[FloatArray, FloatArray] | None:
    """Return the range of a scale to begin in: the middle half of its prior, or of its size.

    None where the prior has no quantiles.
    """
    if isinstance(spec.prior, HalfStudent):
        low, high = 0.1 * spec.prior.scale, 0.4 * spec.prior.scale
        return (low, high) if spec.shape else (low[0], high[0])
    found = quantiles(spec.prior, (0.25, 0.75), spec.bounds, spec.size)
    if found is None:
        return None
    return found[0].reshape(spec.shape), found[1].reshape(spec.shape)
