"""Data, the scales of their errors, and what a forward target is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import check_methods, numbers
from surrokit.coordinates.distributions import quantiles
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.model.source import Isolated
from surrokit.potentials import Energy
from surrokit.targets.energies import (
    Block,
    ErrorFamily,
    FamilyName,
    Link,
    ObservedEnergy,
    read_family,
)
from surrokit.targets.gaussian import GaussianPrior, Prior, Priors, check_finite, frozen_numbers
from surrokit.types import FloatArray, IntArray, Pair


def estimated(
    groups: npt.ArrayLike | None = None, *, prior: Any = None, name: str | None = None
) -> Estimated:
    """Declare scales of errors that are not known.

    They become a positive parameter of the target, with draws like all others.

    Parameters
    ----------
    groups : array_like of shape (m,), optional
        The group of each datum, whole numbers from 0 on: the parameter is a vector with a scale for
        each group. One scale for all data unless given.
    prior
        A frozen univariate distribution of ``scipy.stats``, of each scale. By default half of
        Student's t with 3 degrees of freedom, whose scale is 2.5 standard deviations of the
        group's data.
    name
        Of the parameter.

    Raises
    ------
    ConfigurationError
        If groups are no whole numbers from 0 on, or the prior or the name is none.
    """
    if prior is not None:
        Parameter((), lower=0.0, prior=prior)  # refuses what is no distribution
    if name is not None and (not isinstance(name, str) or not name):
        raise ConfigurationError(f"the name of an estimated scale must be text, got {name!r}")
    if groups is None:
        return Estimated(prior=prior, name=name)
    array = np.asarray(groups)
    whole = array.dtype.kind in "iu" and array.ndim == 1 and array.size > 0
    if not whole or not np.array_equal(np.unique(array), np.arange(int(array.max()) + 1)):
        raise ConfigurationError(
            "groups must be one whole number for each datum, from 0 on and none left out, got "
            f"{groups!r}"
        )
    return Estimated(groups=array.astype(np.int64), prior=prior, name=name)


@attrs.frozen(kw_only=True, eq=False)
class Estimated:
    """Scales that are not known; see :func:`estimated`."""

    groups: IntArray | None = None
    prior: Any = None
    name: str | None = None

    def declare(self, data: FloatArray) -> tuple[Parameter, IntArray]:
        """Return a parameter for data (m,) in the units of the scale, and their places, (m,)."""
        shape: tuple[int, ...] = () if self.groups is None else (int(self.groups.max()) + 1,)
        groups = np.zeros(len(data), dtype=np.int64) if self.groups is None else self.groups
        prior = self.prior
        if prior is None:  # by the sd of each group's data, or else their size
            parts = [data[groups == k] for k in range(int(groups.max()) + 1)]
            sizes = [own.std() or np.sqrt(np.square(own).mean()) or 1.0 for own in parts]
            prior = HalfStudent(2.5 * np.array(sizes))
        return Parameter(shape, lower=0.0, prior=prior), groups


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
"""A known scale, ``"estimate"``, or :func:`estimated`."""


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
        Of the errors. ``"estimate"`` makes it a parameter; :func:`estimated` has more to set. None
        without a scale.
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
    return _observed(data, scale, read_family(family, degrees, link), "scale")


@attrs.frozen(kw_only=True, eq=False)
class Observed:
    """Data and their errors; see :func:`observed`. Scales are ones for a family without."""

    data: FloatArray
    family: ErrorFamily
    scale: FloatArray | Estimated


def _observed(data: npt.ArrayLike, scale: Any, family: ErrorFamily, name: str) -> Observed:
    """Return data and their errors, of a scale that a user knows by a name."""
    array = frozen_numbers("data", data)
    if array.ndim != 1 or not array.size:
        raise ShapeError(f"data must have shape (m,), got {array.shape}; flatten it")
    check_finite("data", array)
    family.check_data(array)
    if family.has_scale != (scale is not None):
        raise ConfigurationError(
            f"the family {family.name!r} needs scale, that of the errors; give scale='estimate' if "
            "it is not known"
            if scale is None
            else f"scale is given, but the family {family.name!r} has none; leave it out"
        )
    if isinstance(scale, str) and scale == "estimate":
        scale = Estimated()
    if isinstance(scale, Estimated):
        if scale.groups is not None and scale.groups.shape != array.shape:
            raise ShapeError(
                f"groups must be given for each of the {len(array)} data, got {len(scale.groups)}"
            )
        return Observed(data=array, family=family, scale=scale)
    known = np.ones(()) if scale is None else numbers(name, scale)
    if not (np.isfinite(known).all() and (known > 0.0).all()):
        raise ConfigurationError(f"{name} must be positive and finite, got {known}")
    if known.shape not in ((), array.shape):
        raise ShapeError(
            f"{name} must be one number or have the shape of data, {array.shape}, got {known.shape}"
        )
    return Observed(data=array, family=family, scale=np.broadcast_to(known, array.shape).copy())


Data: TypeAlias = npt.ArrayLike | Observed | Mapping[str, Observed]
"""What was observed: numbers, with their errors, or several such by name."""

_NOISE = "noise_sd"


@attrs.frozen(kw_only=True, eq=False)
class ForwardModel:
    """Parameters and energy of a forward target.

    Scales of errors are ``added`` after the parameters of the map, whose places in a position are
    ``columns (k,)``; None where it takes all.
    """

    parameters: Parameters
    energy: Energy
    added: Mapping[str, Parameter] = attrs.field(factory=dict)
    columns: IntArray | None = None

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
        priors = _read_prior(prior, energy, declared)
        sets = _read_sets(data, noise_sd)
        if energy is not None:
            own = _read_energy(energy, data, noise_sd, prior)
            return cls(parameters=declared, energy=own)
        if sets is None:
            given = ["missing" if each is None else "given" for each in (data, noise_sd)]
            raise ConfigurationError(
                "a forward potential needs data and noise_sd, or an energy; "
                f"data is {given[0]}, noise_sd is {given[1]}"
            )
        added: dict[str, Parameter] = {}
        blocks, dim = [], declared.dim
        for set_name, each in sets.items():
            scale = each.scale
            if isinstance(scale, Estimated):
                usual = {"": "scale", _NOISE: _NOISE}.get(set_name, f"scale_{set_name}")
                name = scale.name or usual
                if name in declared.specs or name in added:
                    raise ConfigurationError(
                        f"the scale of errors would be the parameter {name!r}, which is declared "
                        "already; give another name by surrokit.estimated(name=...)"
                    )
                added[name], places = scale.declare(each.family.on_scale(each.data))
                block = Block(data=each.data, family=each.family, columns=dim + places)
                dim += added[name].size
            else:
                block = Block(data=each.data, family=each.family, scale=scale)
            blocks.append(block)
        if added:
            of_scales = Priors.of(Parameters(added)).moved(declared.dim)
            priors = Priors((*priors.parts, *of_scales), priors.lacking)
        return cls(
            parameters=Parameters.declare({**declared.specs, **added}),
            energy=ObservedEnergy(blocks=tuple(blocks), prior=priors),
            added=added,
            columns=np.arange(declared.dim) if added else None,
        )

    def fill_plausible(self, ranges: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return a user's plausible ranges, with those of scales that are added where missing.

        These are the middle half of a prior; none where it has no quantiles.
        """
        if not isinstance(ranges, Mapping):
            return ranges
        added: dict[str, Pair] = {}
        for name, spec in self.added.items():
            ends = quantiles(spec.prior, (0.25, 0.75), spec.bounds, spec.size)
            if ends is not None:
                added[name] = ends[0].reshape(spec.shape), ends[1].reshape(spec.shape)
        return {**added, **ranges}


def _read_energy(energy: Energy, *others: object) -> Energy:
    check_methods("energy", energy, ("value", "value_and_gradients"), "a surrokit.plugin.Energy")
    if any(each is not None for each in others):
        raise ConfigurationError(
            "energy is given together with data, noise_sd or prior; an energy holds all "
            "three, so leave them out"
        )
    return cast(Energy, Isolated(energy))


def _read_prior(prior: Prior | None, energy: Energy | None, declared: Parameters) -> Priors:
    """Return the prior of a forward potential, which shares no array with the rest.

    It may stand beside the parameters. ConfigurationError is raised if it is given twice, or is
    none.
    """
    check_methods("prior", prior, ("value_and_gradient",), "surrokit.gaussian_prior(mean, sd)")
    beside = Priors.of(declared)
    if not beside.parts:
        is_own = prior is None or isinstance(prior, GaussianPrior)
        given = prior if is_own else cast(Prior, Isolated(prior))
        return Priors() if given is None else Priors(((slice(0, declared.dim), given),), ())
    if prior is not None or energy is not None:
        raise ConfigurationError(
            f"parameters have priors beside them, and {'prior' if energy is None else 'energy'} "
            "is given too; give priors once"
        )
    return beside


def _read_sets(data: Data | None, noise_sd: Scale | None) -> Mapping[str, Observed] | None:
    """Return sets of data by name; None where something is missing."""
    if isinstance(data, Observed | Mapping) and noise_sd is not None:
        raise ConfigurationError(
            "noise_sd is given beside surrokit.observed, which holds the errors of its data; leave "
            "it out, and give scale there"
        )
    if isinstance(data, Observed):
        return {"": data}
    if not isinstance(data, Mapping):
        if data is None or noise_sd is None:
            return None
        return {_NOISE: _observed(data, noise_sd, read_family("gaussian"), _NOISE)}
    if not data:
        raise ConfigurationError("data by name must hold at least one set, got none")
    for name, each in data.items():
        if not isinstance(name, str) or not isinstance(each, Observed):
            raise ConfigurationError(
                "data by name must be a dictionary of names and surrokit.observed(...), got "
                f"{name!r}: {each!r}"
            )
    return data
