"""Simulated data: the energy that draws them, and draws of priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.capabilities import FORWARD
from surrokit.coordinates.distributions import quantiles
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.model.model import Wrapper
from surrokit.potentials import Potential
from surrokit.targets.energies import ObservedEnergy
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray


def observed_energy(exact: Potential) -> ObservedEnergy:
    """Return the energy of a target's data, in the user's coordinates.

    CapabilityError is raised if it has none from which data can be drawn.
    """
    inner: Any = exact
    while isinstance(inner, Wrapper):
        inner = inner.inner
    energy = getattr(inner, "energy", None) if FORWARD in exact.capabilities else None
    if not isinstance(energy, ObservedEnergy):
        raise CapabilityError(
            "simulated data need a forward map with errors that can be drawn; make the "
            "target by model.posterior or surrokit.forward_potential, with data and noise_sd"
        )
    return energy


Law: TypeAlias = Callable[[np.random.Generator, int], FloatArray]
"""Draws the numbers of a parameter, shape (n, size)."""


def prior_laws(
    parameters: Parameters, energy: ObservedEnergy, given: Mapping[str, Any]
) -> list[Law]:
    """Return what draws each parameter: distributions that are given, or the target's own.

    ConfigurationError is raised if one cannot be drawn from.
    """
    parameters.demand(given)
    known = dict.fromkeys(parameters.specs)
    for where, prior in energy.prior.parts:
        for name, place in parameters.slices().items():
            if where.start <= place.start and place.stop <= where.stop:
                inside = slice(place.start - where.start, place.stop - where.start)
                known[name] = _distribution(prior, inside, where.stop - where.start)
    laws = []
    for name, spec in parameters.specs.items():
        law = given.get(name, spec.prior or known[name])
        if law is None and np.isfinite(spec.bounds).all() and spec.constraint is None:
            law = _Uniform(*spec.bounds)
        drawn = None
        if law is not None and spec.constraint is None:
            drawn = quantiles(law, (0.5,), spec.bounds, spec.size)
        if drawn is None or not np.isfinite(drawn).all():
            raise ConfigurationError(
                f"no prior of {name!r} can be drawn from; give prior={{{name!r}: a frozen "
                "distribution of scipy.stats}, or a run of the target as prior"
            )
        laws.append(_drawing(law, spec.bounds, spec.size))
    return laws


def _drawing(law: Any, bounds: tuple[float, float], size: int) -> Law:
    def draw(rng: np.random.Generator, n: int) -> FloatArray:
        found = quantiles(law, rng.random((n, size)), bounds, size)
        assert found is not None
        return found

    return draw


def _distribution(prior: Any, inside: slice, size: int) -> Any:
    """Return the distribution of some numbers of a prior; None where it is not known."""
    if not isinstance(prior, GaussianPrior):
        return None
    from scipy.stats import norm  # late: importing the package stays fast

    mean, sd = (np.broadcast_to(each, (size,))[inside] for each in (prior.mean, prior.sd))
    return norm(mean, sd) if np.isfinite(sd).all() else None


@attrs.frozen
class _Uniform:
    """The uniform distribution between bounds, as a flat prior there is."""

    lower: float
    upper: float

    def support(self) -> tuple[float, float]:
        return self.lower, self.upper

    def ppf(self, part: FloatArray) -> FloatArray:
        return self.lower + part * (self.upper - self.lower)
