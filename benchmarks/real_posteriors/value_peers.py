"""emcee, pocoMC, nautilus and PyVBMC with their default settings, from values alone.

Each must be told where to look, and is told what the reference knows: centre and scale of each
coordinate on the whole line. So these samplers begin with more than surrokit is given. A box of ten
scales about the centre is the prior of those that need one; the posteriors' own priors, some of
them improper, are in the density."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import attrs
import numpy as np

from real_posteriors.ours import Drawn
from real_posteriors.targets import Posterior
from surrokit.types import FloatArray

Settings: TypeAlias = Mapping[str, Any]
NO_SETTINGS: Settings = MappingProxyType({})

HALF_BOX, PLAUSIBLE = 10.0, 3.0
"""In scales about the centre: the box, and where the bulk may be."""

LOWEST = -1e10
"""Log density in place of what is not finite."""

WALKERS_A_DIMENSION, FEWEST_WALKERS, STEPS, DISCARDED = 4, 32, 5000, 1000
"""emcee has no defaults for these."""

DRAWN_OF_APPROXIMATION = 4000
"""Draws of PyVBMC's normal mixture, which are independent."""


@attrs.define
class Counted:
    """The log density on the line, of rows; counts them."""

    value: Callable[[FloatArray], FloatArray]
    calls: int = 0

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return log densities (n,) of rows (n, dim)."""
        self.calls += len(rows)
        found = -self.value(np.ascontiguousarray(rows, dtype=np.float64))
        return np.where(np.isfinite(found), found, LOWEST)


@attrs.frozen(kw_only=True, eq=False)
class Looking:
    """A posterior as a black box, and where to look for it."""

    target: Any
    density: Counted
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def at(cls, posterior: Posterior) -> Looking:
        """Return it, with its functions compiled."""
        target = posterior.values_alone()
        centre, scale = posterior.typical_range()
        for n in (4, 16, 64):
            target.value(np.tile(centre, (n, 1)))
        return cls(target=target, density=Counted(target.value), centre=centre, scale=scale)

    def within(self, scales: float) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of so many scales about the centre."""
        return self.centre - scales * self.scale, self.centre + scales * self.scale

    def hand_over(self, z: FloatArray, before: int, began: float, **settings: Any) -> Drawn:
        """Return draws of shape (chains, draws, dim) on the line in the user's coordinates."""
        seconds = time.perf_counter() - began
        flat = self.target.transform.to_bounded(z.reshape(-1, z.shape[-1]))
        return Drawn(
            draws=flat.reshape(z.shape),
            calls_before={"value": before},
            calls={"value": self.density.calls},
            seconds=seconds,
            **settings,
        )


def emcee_ensemble(posterior: Posterior, seed: int) -> Drawn:
    """Run emcee with its own moves, from the plausible range."""
    import emcee

    look = Looking.at(posterior)
    dim = posterior.case.dim
    walkers = max(FEWEST_WALKERS, WALKERS_A_DIMENSION * dim)
    rng = np.random.default_rng(seed)
    began = time.perf_counter()
    sampler = emcee.EnsembleSampler(walkers, dim, look.density, vectorize=True)
    sampler.random_state = np.random.RandomState(seed).get_state()
    starts = look.centre + look.scale * rng.standard_normal((walkers, dim))
    state = sampler.run_mcmc(starts, DISCARDED)
    before = look.density.calls
    sampler.reset()
    sampler.run_mcmc(state, STEPS - DISCARDED)
    z = sampler.get_chain()
    times = emcee.autocorr.integrated_time(z, tol=0)
    ess = z[..., 0].size / float(np.max(times))
    return look.hand_over(z.swapaxes(0, 1), before, began, ess=ess)


def pocomc_particles(
    posterior: Posterior, seed: int, made: Settings = NO_SETTINGS, **run: Any
) -> Drawn:
    """Run pocoMC, ``made`` and ``run`` with settings; particles are resampled by their weights."""
    import pocomc
    from scipy.stats import uniform

    look = Looking.at(posterior)
    lower, upper = look.within(HALF_BOX)
    prior = pocomc.Prior([uniform(a, b - a) for a, b in zip(lower, upper, strict=True)])
    began = time.perf_counter()
    sampler = pocomc.Sampler(prior, look.density, vectorize=True, random_state=seed, **made)
    sampler.run(progress=False, **run)
    points, weights, *_ = sampler.posterior()
    return _from_weights(look, points, np.log(weights), began, seed)


def nautilus_nested(
    posterior: Posterior, seed: int, made: Settings = NO_SETTINGS, **run: Any
) -> Drawn:
    """Run nautilus, ``made`` and ``run`` with settings; points are resampled by their weights."""
    import nautilus

    look = Looking.at(posterior)
    lower, upper = look.within(HALF_BOX)
    began = time.perf_counter()
    sampler = nautilus.Sampler(
        lambda cube: lower + (upper - lower) * cube,
        look.density,
        n_dim=posterior.case.dim,
        pass_dict=False,
        vectorized=True,
        seed=seed,
        **made,
    )
    sampler.run(verbose=False, **run)
    points, log_weights, _ = sampler.posterior()
    return _from_weights(look, points, log_weights, began, seed)


def _from_weights(
    look: Looking, points: FloatArray, log_weights: FloatArray, began: float, seed: int
) -> Drawn:
    weights = np.exp(log_weights - np.max(log_weights))
    weights /= weights.sum()
    ess = 1.0 / float(np.square(weights).sum())
    # ten times as many as are effective: what resampling adds to the error is small
    size = int(10 * ess)
    chosen = np.random.default_rng(seed).choice(len(points), size=size, p=weights)
    calls = look.density.calls
    return look.hand_over(points[chosen][None], calls, began, chains=False, ess=ess)


def pyvbmc_variational(posterior: Posterior, seed: int) -> Drawn:
    """Run PyVBMC; its draws are those of an approximation, not of the posterior."""
    import pyvbmc

    look = Looking.at(posterior)
    lower, upper = look.within(PLAUSIBLE)
    # the package draws from NumPy's global generator
    np.random.seed(seed)  # noqa: NPY002
    began = time.perf_counter()
    vbmc = pyvbmc.VBMC(
        lambda z: float(look.density(np.atleast_2d(z))[0]),
        look.centre[None],
        plausible_lower_bounds=lower[None],
        plausible_upper_bounds=upper[None],
        options={"display": "off"},
    )
    found, results = vbmc.optimize()
    z, _ = found.sample(DRAWN_OF_APPROXIMATION)
    doubt = () if results["success_flag"] else ("the variational solution is not stable",)
    size = float(DRAWN_OF_APPROXIMATION)
    calls = look.density.calls
    return look.hand_over(z[None], calls, began, chains=False, ess=size, warnings=doubt)
