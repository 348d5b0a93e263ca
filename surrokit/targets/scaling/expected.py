"""Where the mass of a target is expected before any evaluation, and how wide it is.

Chains, searches and first designs begin there, and coordinates of like scale are made of it. It is
read from plausible ranges, then from priors; bounds are in the map to the line already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from surrokit.capabilities import FORWARD
from surrokit.contracts.potential import Potential
from surrokit.coordinates.blocks import Scaled
from surrokit.coordinates.distributions import quantiles
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.coordinates.plausible import Plausible
from surrokit.coordinates.transforms import Transform
from surrokit.targets.bounds import parameters_of, transform_of
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.observed.energy import WithScales
from surrokit.types import FloatArray

REACH = 2.0
"""How far from zero on the line chains start where nothing is declared, as in Stan."""

_FAR = 100.0
"""Declared scales beyond which, or below the inverse of which, the usual place is left."""

_ABOUT_ZERO = 2.0
"""Spreads from zero up to which a wide prior says no more than that a number is not large."""

_PARTS = (0.16, 0.84)
"""Of a prior, its quantiles between which the mass is expected: a standard deviation both ways."""


def expected(target: Potential) -> tuple[FloatArray, FloatArray]:
    """Return the centre and spread of each number in a target's sampling coordinates, (dim,) each.

    They are 0 and 1 where nothing is declared, where starts about zero reach what is, and where
    the coordinates are of like scale already.

    Parameters
    ----------
    target
        In the coordinates of the line, or in those of like scale.
    """
    of, parameters = transform_of(target), parameters_of(target)
    if isinstance(of, Scaled | ModelMap) or of.n_user != parameters.dim:
        return np.zeros(target.dim), np.ones(target.dim)
    low, high = _declared(target, parameters)
    centre, spread = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    away = np.abs(centre)
    with np.errstate(invalid="ignore"):  # NaN where nothing is declared
        far = (spread > _FAR) | (spread < 1.0 / _FAR) | (away > _FAR * spread)
        far |= (away > REACH) & (_ABOUT_ZERO * away > spread)
    return np.where(far, centre, 0.0), np.where(far, spread, 1.0)


def _declared(target: Potential, parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """Return ends of the range of each number on the line, NaN where nothing is declared."""
    plausible = _plausible(target)
    if plausible is not None:
        return _on_line(parameters, plausible.lower, plausible.upper)
    ends = np.full((2, parameters.dim), np.nan)
    for name, where in parameters.slices().items():
        spec = parameters.specs[name]
        found = None if spec.constraint else quantiles(spec.prior, _PARTS, spec.bounds, spec.size)
        if found is not None:
            ends[:, where] = found
    ends = np.where(np.isnan(ends), _normal_ends(target, parameters), ends)
    low, high = _on_line(parameters, *ends)
    with np.errstate(invalid="ignore"):  # one that is wide about 0 is vague, and says no scale
        vague = (high - low >= 2.0 * _FAR) & (low <= 0.0) & (high >= 0.0)
    return np.where(vague, np.nan, low), np.where(vague, np.nan, high)


def _within(target: Any) -> Iterator[Any]:
    """Return a target or an energy, and all that it wraps."""
    while target is not None:
        yield target
        target = getattr(target, "inner", None)


def _plausible(target: Any) -> Plausible | None:
    found = (getattr(each, "plausible", None) for each in _within(target))
    return next((each for each in found if isinstance(each, Plausible)), None)


def _normal_ends(target: Any, parameters: Parameters) -> FloatArray:
    """Return quantiles of the normal prior of an energy, shape (2, dim), NaN where it has none."""
    ends, n = np.full((2, parameters.dim), np.nan), parameters.dim
    energy = target.energy if FORWARD in target.capabilities else None
    found = (getattr(each, "prior", None) for each in _within(energy))
    prior = next((each for each in found if each is not None), None)
    if isinstance(prior, WithScales):  # scales of errors come after the user's own numbers
        n = prior.count
        prior = prior.prior
    if not isinstance(prior, GaussianPrior):
        return ends
    from scipy import stats  # late: importing the package stays fast

    bounds = zip(*parameters.bounds(), strict=True)
    mean, sd = np.broadcast_to(prior.mean, n), np.broadcast_to(prior.sd, n)
    for i, (middle, width, limits) in enumerate(zip(mean, sd, bounds, strict=False)):
        own = quantiles(stats.norm(middle, width), _PARTS, limits, 1) if width < np.inf else None
        if own is not None:
            ends[:, i] = own[:, 0]
    return ends


def _on_line(
    parameters: Parameters, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return ends on the line, shape (free,) each, of ends in the user's coordinates."""
    parts = [
        _ends_on_line(parameters.specs[name], low[where], high[where])
        for name, where in parameters.slices().items()
    ]
    first, last = (np.concatenate(part) for part in zip(*parts, strict=True))
    return first, last


def _ends_on_line(
    spec: Parameter, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    if spec.constraint is not None:
        return np.full(spec.free, np.nan), np.full(spec.free, np.nan)
    of = Transform.of(Parameters({"it": spec}))
    with np.errstate(invalid="ignore", divide="ignore"):
        first, last = of.to_unbounded(low), of.to_unbounded(high)
    least, most = np.minimum(first, last), np.maximum(first, last)
    known = np.isfinite(least) & np.isfinite(most) & (most > least)
    return np.where(known, least, np.nan), np.where(known, most, np.nan)
