"""Data, the scales of their errors, and what a forward target is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import numbers
from surrokit.coordinates.distributions import quantiles
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.priors import Priors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Energy
from surrokit.targets.energies import Block, ObservedEnergy, WithScales
from surrokit.targets.families import ErrorFamily, FamilyName, Link, read_family
from surrokit.targets.gaussian import Prior, check_finite, read_energy, read_prior
from surrokit.types import FloatArray, IntArray, Pair


def estimated(
    groups: npt.ArrayLike | None = None,
    *,
    prior: Any = None,
    times: npt.ArrayLike = 1.0,
    name: str | None = None,
) -> Estimated:
    """Declare scales of errors that are not known.

    They become positive parameters of the target, with draws like all others.

    Parameters
    ----------
    groups : array_like of shape (m,), optional
        The group of each datum, each group with a scale of its own: whole numbers from 0 on for one
        parameter that is a vector, or texts for a parameter each. One scale for all data unless
        given.
    prior
        A frozen univariate distribution of ``scipy.stats``, of each scale. By default half of
        Student's t with 3 degrees of freedom, whose scale is 2.5 standard deviations of the
        group's data.
    times : float or array_like of shape (m,)
        Factors by which each datum's scale differs from that of its group: for errors that are
        known up to a factor.
    name
        Of the parameter; with groups that are texts, what stands before each. A positive parameter
        of this name that is declared already serves, and its prior stands beside it.

    Raises
    ------
    ConfigurationError
        If groups are neither texts nor whole numbers from 0 on, factors are not positive, or
        the prior or the name is none.
    """
    if prior is not None:
        Parameter((), lower=0.0, prior=prior)  # refuses what is no distribution
    if name is not None and (not isinstance(name, str) or not name):
        raise ConfigurationError(f"the name of an estimated scale must be text, got {name!r}")
    of_data, labels = (None, None) if groups is None else _read_groups(groups)
    factors = numbers("times of an estimated scale", times)
    if not (np.isfinite(factors).all() and (factors > 0.0).all()):
        raise ConfigurationError(
            f"times of an estimated scale must be positive and finite, got {factors}"
        )
    return Estimated(groups=of_data, labels=labels, prior=prior, times=factors, name=name)


def _read_groups(given: npt.ArrayLike) -> tuple[IntArray, tuple[str, ...] | None]:
    """Return the group of each datum, and names of the groups that a user gave as texts."""
    array = np.asarray(given)
    if array.ndim == 1 and array.size and all(isinstance(each, str) for each in array.tolist()):
        labels = tuple(dict.fromkeys(array.tolist()))
        return np.array([labels.index(each) for each in array.tolist()]), labels
    whole = array.dtype.kind in "iu" and array.ndim == 1 and array.size > 0
    if not whole or not np.array_equal(np.unique(array), np.arange(int(array.max()) + 1)):
        raise ConfigurationError(
            "groups must be one whole number for each datum, from 0 on and none left out, or a "
            f"text for each, got {given!r}"
        )
    return array.astype(np.int64), None


Places: TypeAlias = list[tuple[str, int]]
"""Parameter and index in it, of each datum's scale."""


@attrs.frozen(kw_only=True, eq=False)
class Estimated:
    """Scales that are not known; see :func:`estimated`.

    ``groups (m,)`` are numbers, with ``labels`` where they have names. ``declared`` says whether
    the parameter must be there already.
    """

    groups: IntArray | None = None
    labels: tuple[str, ...] | None = None
    prior: Any = None
    times: FloatArray = attrs.field(factory=lambda: np.ones(()))
    name: str | None = None
    declared: bool = False

    def check(self, n_data: int) -> None:
        """Raise ShapeError unless there are a group and a factor for each datum."""
        if self.groups is not None and len(self.groups) != n_data:
            raise ShapeError(
                f"groups must be given for each of the {n_data} data, got {len(self.groups)}"
            )
        if self.times.shape not in ((), (n_data,)):
            raise ShapeError(
                f"times of an estimated scale must be one number or have shape ({n_data},), one "
                f"for each datum, got {self.times.shape}"
            )

    def declare(self, name: str, spread: FloatArray) -> tuple[dict[str, Parameter], Places]:
        """Return new parameters by name, and places, for data in the units of the scale (m,)."""
        called = self.name or name
        groups = np.zeros(len(spread), dtype=np.int64) if self.groups is None else self.groups
        factors = np.broadcast_to(self.times, spread.shape)
        typical = np.ones(int(groups.max()) + 1)  # the sd of each group's data, or else their size
        for k in range(len(typical)):
            data, own = spread[groups == k], factors[groups == k]
            size = next((s for s in (data.std(), np.sqrt(np.square(data).mean())) if s > 0.0), 1.0)
            typical[k] = size / np.sqrt(np.square(own).mean())

        def one(shape: tuple[int, ...], typical: FloatArray) -> Parameter:
            prior = HalfStudent(2.5 * typical) if self.prior is None else self.prior
            return Parameter(shape, lower=0.0, prior=prior)

        if self.groups is None:
            return {called: one((), typical)}, [(called, 0)] * len(spread)
        if self.labels is None:
            return {called: one(typical.shape, typical)}, [(called, int(i)) for i in groups]
        names = [f"{called}_{label}" for label in self.labels]
        found = {name: one((), typical[[i]]) for i, name in enumerate(names)}
        return found, [(names[i], 0) for i in groups]

    def find(self, declared: Parameters, n_data: int) -> Places:
        """Return places in a parameter that is declared already.

        ConfigurationError or ShapeError is raised where it is none, or does not suit.
        """
        name = str(self.name)
        spec = declared.specs.get(name)
        if spec is None:
            raise ConfigurationError(
                f"{name!r} is given for the scale of errors, but the parameters are "
                f"{', '.join(declared.specs)}; declare it, or say 'estimate'"
            )
        if spec.constraint is not None or not spec.bounds[0] >= 0.0:
            raise ConfigurationError(
                f"{name!r} is given for the scale of errors, but it may be negative, or its numbers"
                f" are tied together; declare it by {name!r}: surrokit.positive(...)"
            )
        if self.prior is not None:
            raise ConfigurationError(
                f"the scale {name!r} is a declared parameter, and a prior is given for it by "
                "surrokit.estimated too; give that beside the parameter"
            )
        if spec.shape == () and self.groups is None:
            return [(name, 0)] * n_data
        order = np.arange(n_data) if self.groups is None else self.groups
        needed = int(order.max()) + 1
        if spec.shape != (needed,):
            whose = "data, or be one number" if self.groups is None else "groups"
            raise ShapeError(
                f"the scale {name!r} must have shape ({needed},), one number for each of the "
                f"{whose}, got {spec.shape}"
            )
        return [(name, int(i)) for i in order]


@attrs.frozen(eq=False)
class HalfStudent:
    """Half of Student's t distribution with 3 degrees of freedom and scales (k,), for scales."""

    scale: FloatArray

    def support(self) -> tuple[float, float]:
        """Return that scales are positive."""
        return 0.0, np.inf

    def logpdf(self, x: FloatArray) -> FloatArray:
        """Return log densities, of the shape of ``x (..., k)``."""
        constant = math.log(4.0 / (math.pi * math.sqrt(3.0)))
        square = np.square(x / self.scale) / 3.0
        density = constant - np.log(self.scale) - 2.0 * np.log1p(square)
        return np.where(x < 0.0, -np.inf, density)

    def ppf(self, part: npt.ArrayLike) -> FloatArray:
        """Return the quantiles of a probability, shape (k,)."""
        from scipy.special import stdtrit  # late: importing the package stays fast

        return np.asarray(self.scale * stdtrit(3.0, 0.5 + 0.5 * np.asarray(part)))


Scale: TypeAlias = npt.ArrayLike | str | Estimated
"""A known scale, ``"estimate"``, a parameter's name, or :func:`estimated`."""


def observed(
    data: npt.ArrayLike,
    scale: Scale | None = None,
    *,
    family: FamilyName = "gaussian",
    degrees: float | None = None,
    link: Link | None = None,
) -> Observed:
    """Say what was observed of a forward map, and how it scatters about the outputs.

    Parameters
    ----------
    data : array_like of shape (m,)
        What was observed, one number for each output.
    scale : float or array_like of shape (m,), or str, or Estimated
        Of the errors. ``"estimate"`` makes it a parameter; another text is the name of a positive
        parameter that is declared; :func:`estimated` has more to set. None without a scale.
    family
        ``"gaussian"``: the scale is the standard deviation; ``"student"``: it is that of Student's
        t; ``"lognormal"``: data and outputs are positive, and it is the standard deviation of
        log data about log outputs; ``"poisson"``: data are counts. ``"normal"`` is the first one,
        and ``"cauchy"`` Student's t with one degree of freedom.
    degrees
        Degrees of freedom of ``"student"``; 4 unless given.
    link
        Of ``"poisson"``: ``"identity"`` (default) where outputs are means of counts, ``"log"``
        where they are logarithms of means.

    Returns
    -------
    Observed
        To be given as ``data`` of :func:`surrokit.forward_potential`.

    Raises
    ------
    ConfigurationError
        If the data are none of the family's, or a setting is missing or makes no sense.
    ShapeError
        If an array is none, or does not fit the data.
    """
    array = numbers("data", data).copy()
    if array.ndim != 1 or not array.size:
        raise ShapeError(f"data must have shape (m,), got {array.shape}; flatten it")
    check_finite("data", array)
    kind = read_family(family, degrees, link)
    kind.check_data(array)
    array.setflags(write=False)
    return Observed(data=array, family=kind, scale=_read_scale(scale, kind, len(array)))


@attrs.frozen(kw_only=True, eq=False)
class Observed:
    """Data and their errors; see :func:`observed`. Scales are ones for a family without."""

    data: FloatArray
    family: ErrorFamily
    scale: FloatArray | Estimated


def _read_scale(scale: Any, family: ErrorFamily, n_data: int) -> FloatArray | Estimated:
    if not family.has_scale:
        if scale is not None:
            raise ConfigurationError(
                f"scale is given, but the family {family.name!r} has none; leave it out"
            )
        return np.ones(n_data)
    if scale is None:
        raise ConfigurationError(
            f"the family {family.name!r} needs scale, that of the errors; give scale='estimate' if "
            "it is not known"
        )
    if isinstance(scale, str):
        scale = estimated() if scale == "estimate" else Estimated(name=scale, declared=True)
    if isinstance(scale, Estimated):
        scale.check(n_data)
        return scale
    array = numbers("scale", scale)
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise ConfigurationError(f"scale must be positive and finite, got {array}")
    if array.shape not in ((), (n_data,)):
        raise ShapeError(
            f"scale must be one number or have the shape of data, ({n_data},), got {array.shape}"
        )
    return np.broadcast_to(array, (n_data,)).copy()


Data: TypeAlias = npt.ArrayLike | Observed | Mapping[str, Observed]
"""What was observed: numbers, with their errors, or several such by name."""

_NAME_OF_NOISE = "noise_sd"


@attrs.frozen(kw_only=True, eq=False)
class ForwardModel:
    """Parameters and energy of a forward target.

    The map takes the parameters ``of_map``, whose places in a position are ``columns
    (of_map.dim,)``, None where it takes all. ``sizes`` counts the data of each set by name, None
    where they have no names.
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
        """Return what a user gave :func:`surrokit.forward_potential`, of declared parameters."""
        own_prior = read_prior(prior, energy, declared)
        named = _read_sets(data, noise_sd)
        if named is None or energy is not None:
            numbers, sd = cast("npt.ArrayLike", data), cast("npt.ArrayLike", noise_sd)
            own = read_energy(numbers, sd, own_prior, energy)
            return cls(parameters=declared, of_map=declared, columns=None, energy=own)
        added: dict[str, Parameter] = {}
        places = {name: _place(name, each, declared, added) for name, each in named.items()}
        whole = Parameters.declare({**declared.specs, **added})
        used = {name for found in places.values() if found for name, _ in found}
        of_map = {k: spec for k, spec in declared.specs.items() if k not in used}
        if not of_map:
            raise ConfigurationError(
                f"the parameters {', '.join(declared.specs)} are all scales of errors, so "
                "that none is left for the forward map; declare its parameters too"
            )
        slices = whole.slices()
        columns = [np.arange(whole.dim)[slices[name]] for name in of_map]
        blocks = []
        for name, each in named.items():
            factors, found = each.scale, places[name]
            at = None
            if isinstance(factors, Estimated) and found is not None:
                factors = np.broadcast_to(factors.times, each.data.shape)
                at = np.array([slices[name].start + i for name, i in found])
            assert not isinstance(factors, Estimated)
            blocks.append(Block(data=each.data, family=each.family, factors=factors, columns=at))
        if added:
            of_scales = Priors.of(Parameters(added))
            assert of_scales is not None
            n = declared.dim
            moved = tuple((slice(w.start + n, w.stop + n), p) for w, p in of_scales.by_slice)
            own_prior = WithScales(own_prior, n, attrs.evolve(of_scales, by_slice=moved))
        return cls(
            parameters=whole,
            of_map=Parameters(of_map),
            columns=np.concatenate(columns) if used else None,
            energy=ObservedEnergy(blocks=tuple(blocks), prior=own_prior),
            sizes={k: len(v.data) for k, v in named.items()} if isinstance(data, Mapping) else None,
        )

    def fill_plausible(self, ranges: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a user's plausible ranges, with those of scales that are added where missing."""
        if not isinstance(ranges, Mapping):
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


def _place(
    set_name: str, each: Observed, declared: Parameters, added: dict[str, Parameter]
) -> Places | None:
    """Return the places of a set's scales, and add those that are new; None if they are known."""
    scale = each.scale
    if not isinstance(scale, Estimated):
        return None
    if scale.declared or scale.name in declared.specs:
        return scale.find(declared, len(each.data))
    usual = {"": "scale", _NAME_OF_NOISE: _NAME_OF_NOISE}.get(set_name, f"scale_{set_name}")
    found, places = scale.declare(usual, each.family.spread(each.data))
    for name in found.keys() & {**declared.specs, **added}:
        raise ConfigurationError(
            f"the scale of errors would be the parameter {name!r}, which is declared already; "
            f"say {name!r} in place of 'estimate' to use it, or give another name by "
            "surrokit.estimated(name=...)"
        )
    added |= found
    return places


def _plausible(spec: Parameter) -> Pair | None:
    """Return the range of a scale to begin in: the middle half of its prior, or of its size.

    None where the prior has no quantiles.
    """
    if isinstance(spec.prior, HalfStudent):
        low, high = 0.1 * spec.prior.scale, 0.4 * spec.prior.scale
    else:
        found = quantiles(spec.prior, (0.25, 0.75), spec.bounds, spec.size)
        if found is None:
            return None
        low, high = found
    return low.reshape(spec.shape), high.reshape(spec.shape)
