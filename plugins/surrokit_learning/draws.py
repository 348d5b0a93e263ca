"""Where to evaluate: first designs, and draws of a surrogate in and about the mass it has seen."""

from __future__ import annotations

import itertools

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.errors import NumericalError
from surrokit.interfaces import ChainState, Correction, Evaluations, Sampler, Tuning
from surrokit.kernel.jumps import modes_of
from surrokit.kernel.kernel import STEPS, Binding, follow, warm_up
from surrokit.limits import one_thread
from surrokit.mode.descent import descend
from surrokit.potentials import Potential, with_gradient
from surrokit.surrogate.umbrella import Edges, Umbrella
from surrokit.surrogate.whitening import Whitening, cholesky_factor
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_learning.modes_found import WIDE

# --- first points ---


def spread_evenly(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Return a Latin hypercube, (n, dim): each coordinate has one number in each n-th of 0 to 1.

    A Sobol sequence would do as well, but SciPy's takes longer to import than many an exploration
    lasts.
    """
    strata = rng.permuted(np.tile(np.arange(n)[:, None], dim), axis=0)
    return np.asarray((strata + rng.uniform(1e-9, 1.0 - 1e-9, (n, dim))) / max(n, 1))


def normal_design(
    centres: FloatArray, covariances: FloatArray, n: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return n draws from normals of means (k, dim), as many of each but for rounding, shuffled.

    With them comes -log density at each but for a constant. Those of a normal are evenly spread.
    """
    from scipy.special import ndtri

    dim, positions, potentials = centres.shape[1], [], []
    for i, (centre, covariance) in enumerate(zip(centres, covariances, strict=True)):
        m = len(range(i, n, len(centres)))
        normals = ndtri(spread_evenly(m, dim, rng))
        positions.append(centre + normals @ cholesky_factor(covariance).T)
        # where two of them overlap this is too large, by log 2 at most
        width = 0.5 * np.linalg.slogdet(covariance)[1] - np.log(max(m, 1))
        potentials.append(0.5 * np.square(normals).sum(axis=1) + width)
    order = rng.permutation(n) if len(centres) > 1 else np.arange(n)
    return np.concatenate(positions)[order], np.concatenate(potentials)[order]


# --- where a surrogate is trusted ---


@attrs.frozen(kw_only=True, eq=False)
class Region:
    """An ellipsoid |z| <= radius, in the coordinates z of a whitening."""

    whitening: Whitening
    radius: float

    @property
    def covariance(self) -> FloatArray:
        """That of the whitening, shape (dim, dim)."""
        return np.asarray(self.whitening.factor @ self.whitening.factor.T)

    def holds(self, positions: FloatArray) -> BoolArray:
        """Return which of ``positions (n, dim)`` lie inside."""
        with np.errstate(all="ignore"):
            return np.asarray(_lengths(self.whitening, positions) <= self.radius)


def _lengths(whitening: Whitening, positions: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.square(whitening.apply(positions)).sum(axis=1)))


def find_region(seen: Evaluations, covariance: FloatArray | None, *, by_values: bool) -> Region:
    """Return where a surrogate of the points seen is trusted, and the next ones may lie.

    There is at least one, with a finite value. ``covariance (dim, dim)`` is what is known of the
    target's. Values alone tell nothing of what lies beyond the points, so these are then weighted
    by exp(-U / T), with T the lowest temperature at which there are enough of them. Draws may go
    1.3 times as far as the farthest point that is plausible, or as draws of a normal target are.
    SurrogateFitError is raised where points are too far apart for double precision.
    """
    dim = seen.positions.shape[1]
    usual = float(np.sqrt(dim)) + 2.0
    if by_values:
        weights = np.exp((seen.values.min() - seen.values) / lowest_temperature(seen))
        whitening = Whitening.of(seen.positions, weights, drops_noise=True)
        return Region(whitening=whitening, radius=1.3 * usual)
    if covariance is None:
        covariance = np.diag(seen.positions.var(axis=0) + np.finfo(np.float64).tiny)
    chosen = seen.positions[_plausible(seen.values, dim)]
    whitening = Whitening(mean=chosen.mean(axis=0), factor=cholesky_factor(covariance))
    farthest = float(_lengths(whitening, chosen).max())
    return Region(whitening=whitening, radius=1.3 * max(farthest, usual))


def _plausible(values: FloatArray, dim: int) -> BoolArray:
    """Return which points, of those not far above the least one, or of the lowest, tell of mass."""
    finite = np.isfinite(values)
    chosen = finite & (values <= float(values[finite].min()) + dim + WIDE)
    wanted = min(int(finite.sum()), dim + 5)
    if chosen.sum() < wanted:
        chosen = np.zeros(len(values), dtype=bool)
        chosen[np.argsort(values, kind="stable")[:wanted]] = True
    return np.asarray(chosen)


def lowest_temperature(seen: Evaluations) -> float:
    """Return the lowest temperature T, at least 1, at which points seen count as 1.5 dim of them.

    With weights w = exp(-U / T), points count as (sum w)^2 / sum w^2 (Kong 1992).
    """
    excess, n = seen.values - seen.values.min(), 1.5 * seen.positions.shape[1]

    def suffices(temperature: float) -> bool:
        weights = np.exp(-excess / temperature)
        return bool(np.square(weights.sum()) >= n * np.square(weights).sum())

    low, high = 1.0, max(float(excess.max()), 1.0)
    if suffices(low):
        return low
    while high > 1.01 * low and suffices(high):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


@attrs.frozen(kw_only=True, eq=False)
class Confined:
    """A potential inside a region; outside it is infinite."""

    potential: Potential
    region: Region
    capabilities: Capabilities = frozenset()

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the potential, shape (n,), at positions of shape (n, dim)."""
        values = np.full(len(positions), np.inf)
        inside = self.region.holds(positions)
        if inside.any():
            values[inside] = self.potential.value(positions[inside])
        return values


@attrs.frozen(kw_only=True, eq=False)
class Tempered:
    """V / T + pull |z|^2 / 2: V flattened, and drawn to the region of the points.

    At a pull of 0 V is only flattened; at 1 a linear V moves the region's normal distribution down
    the slope, and no farther.
    """

    potential: Potential
    temperature: float
    whitening: Whitening
    pull: float

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """A gradient, if V has one."""
        return self.potential.capabilities & {GRADIENT}

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at positions of shape (n, dim)."""
        squares = np.square(self.whitening.apply(positions)).sum(axis=1)
        values = self.potential.value(positions)
        return np.asarray(values / self.temperature + 0.5 * self.pull * squares)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = with_gradient(self.potential).value_and_gradient(positions)
        z = self.whitening.apply(positions)
        pulled = 0.5 * self.pull * np.square(z).sum(axis=1)
        slopes = gradients / self.temperature + self.pull * self.whitening.pull(z)
        return np.asarray(values / self.temperature + pulled), np.asarray(slopes)


def cautious(
    surrogate: Potential, region: Region, seen: Evaluations, error: float | None, before: float
) -> tuple[Potential, float]:
    """Return a surrogate V of values, flattened and held back as far as it is wrong, and T.

    That is by the spread of the last V - U in nats, None before there is any, and the temperature
    T of those draws ``before``. Below 1.5 nats V is drawn from as it is.
    """
    if error is not None and error < 1.5:
        return surrogate, 1.0
    highest = lowest_temperature(seen)
    hot = highest if error is None else max(1.0, min(highest, error))
    pull = 1.0 if error is None else min(1.0, error / before)
    flat = Tempered(potential=surrogate, temperature=hot, whitening=region.whitening, pull=pull)
    return flat, hot


# --- draws of a surrogate ---

EDGES = 4
"""Edges of the mass that are looked at; the other positions are draws under the umbrella."""


STEPS_EACH = 200
"""Steps of paths for each transition, after which draws of a surrogate end early."""


@attrs.frozen(kw_only=True, eq=False)
class SurrogateDraws:
    """Where chains on a surrogate V ended, and V there, shapes (n, dim) and (n,)."""

    positions: FloatArray
    values: FloatArray
    covariance: FloatArray | None  # of the draws; None where they hardly moved
    tuning: Tuning  # what the sampler needs on this surrogate
    accepted: float  # part of the moves that were accepted on V, over the second half
    outer: Edges | None = None  # positions about the mass of V; None where nobody asked


def surrogate_draws(
    surrogate: Potential,
    sampler: Sampler,
    correction: Correction,
    *,
    region: Region,
    starts: FloatArray,
    n_transitions: int,
    rng: np.random.Generator,
    n_outer: int = 0,
) -> SurrogateDraws:
    """Run a sampler on a surrogate V from ``starts (n, dim)``, tuned on the way.

    Moves out of a region where V is trusted are rejected, and tuning begins with its covariance.
    ``n_outer`` positions about the mass of V are looked for as well. On a V so rough that paths
    have very many steps (:data:`STEPS_EACH`) there are fewer transitions, and no such look.
    """
    moves = Binding(sampler, surrogate, len(starts))
    decider = correction.bind(Confined(potential=surrogate, region=region))
    modes = modes_of(surrogate)
    covariance = region.covariance if modes is None else modes.covariance_within
    moves.tune(n_transitions, covariance=covariance, step_size=None)
    kept, accepted = [], []
    most = left = STEPS_EACH * n_transitions
    with one_thread():
        for i, (state, info) in enumerate(warm_up(moves, decider, starts, n_transitions, rng)):
            left -= int(np.max(info.n_steps))
            if 2 * i >= n_transitions or 2 * left < most:
                kept.append(state.positions)
                accepted.append(info.accepted)
            if left < 0:
                moves.end_tuning()
                break
        tuning, positions, outer = moves.tuning, state.positions, None
        if n_outer and left >= 0:
            kernel = sampler.kernel, tuning, correction
            positions, outer = look_around(
                surrogate, *kernel, region=region, starts=positions, n=n_outer, rng=rng
            )
    return SurrogateDraws(
        positions=positions,
        values=surrogate.value(positions),
        covariance=tuning.covariance if sampler.tunes else _covariance(np.concatenate(kept)),
        tuning=tuning,
        accepted=float(np.mean(accepted)),
        outer=outer,
    )


def _covariance(draws: FloatArray) -> FloatArray | None:
    """Return the covariance, shrunk to its diagonal; None if a coordinate hardly moved."""
    n, dim = draws.shape
    covariance = np.cov(draws, rowvar=False).reshape(dim, dim)
    variance = np.diag(covariance).copy()
    if not (np.isfinite(covariance).all() and (variance > 0).all()):
        return None
    weight = n / (n + 5.0 + dim)
    return np.asarray(weight * covariance + (1.0 - weight) * np.diag(variance))


def look_around(
    surrogate: Potential,
    sampler: Sampler,
    tuning: Tuning,
    correction: Correction,
    *,
    region: Region,
    starts: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, Edges]:
    """Return draws of a surrogate V by chains with shorter steps, and positions about its mass.

    Draws of V say how good V is where it has its mass. Where the target has more, V is too high,
    and has no draws. The chains start at draws of V, ``starts (chains, dim)``; they are 60, as many
    draws at once cost little more than few.
    """

    def draw(potential: Potential, starts: FloatArray) -> list[ChainState]:
        decider = correction.bind(Confined(potential=potential, region=region))
        cache = sampler.bind(potential, tuning).cache(starts)
        state = decider.start(starts, cache, potential)
        chains = follow(sampler, potential, tuning, decider, state, rng)
        return list(itertools.islice(chains, 20 * len(STEPS)))

    states = draw(surrogate, starts[np.arange(60) % len(starts)])
    draws = np.concatenate([each.positions for each in states])
    values = np.concatenate([each.values for each in states])
    edges = Edges.of(draws, values, surrogate, min(EDGES, n), rng)
    last = states[-1].positions
    far = draw(Umbrella.about(surrogate, values), last)[-1].positions
    far, modes = far[rng.permutation(len(far))], modes_of(surrogate)
    if modes is not None:  # also the arms of a mode that few draws are at
        far = far[np.argsort(modes.turns(far), kind="stable")]
    chosen = far[: n - len(edges)]
    outer = attrs.evolve(
        edges,
        positions=np.concatenate([edges.positions, chosen]),
        values=np.concatenate([edges.values, surrogate.value(chosen)]),
    )
    return last[: len(starts)], outer


def mode_of(surrogate: Potential, start: FloatArray) -> FloatArray:
    """Return the mode of a surrogate, or where there is none to be found, the start (dim,)."""
    if GRADIENT not in surrogate.capabilities:
        return start
    try:
        # a surrogate's gradients cost no exact calls, whatever they are made of
        found = descend(surrogate, start)
    except NumericalError:
        return start
    return found.position if found.converged else start
