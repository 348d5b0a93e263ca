"""Plain parts to combine with the part under test.

They are simple enough to be verified by reading, and not fast.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import attrs
import numpy as np

from surrokit.capabilities import METRICS
from surrokit.coordinates.transforms import products
from surrokit.interfaces import (
    ChainState,
    Decider,
    Kernel,
    Proposal,
    Sampler,
    Status,
    StepInfo,
    Tuning,
)
from surrokit.kernel.hamiltonian import carry_out, metropolis
from surrokit.potentials import Potential
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class ReferenceCorrection(Decider):
    """Metropolis-Hastings by an exact potential, evaluated at every proposal; bound already."""

    potential: Potential

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state at positions (n, dim)."""
        del source
        return ChainState(positions=positions, values=self.potential.value(positions), cache=cache)

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept where log u < U - U' + c."""
        with np.errstate(all="ignore"):
            values = self.potential.value(proposal.positions)
            log_ratio = state.values - values + proposal.log_correction
        log_ratio = np.where(proposal.status == Status.OK, log_ratio, -np.inf)
        return carry_out(state, proposal, values, *metropolis(log_ratio, rng))


def transitions(
    kernel: Kernel, decider: Decider, positions: FloatArray, n: int, rng: np.random.Generator
) -> tuple[FloatArray, float]:
    """Apply n transitions to every row; return the ends (n_chains, dim) and the mean acceptance."""
    state = decider.start(positions, kernel.cache(positions), kernel.potential)
    acceptance = []
    for _ in range(n):
        state, info = decider.decide(state, kernel.propose(state, rng), rng)
        acceptance.append(info.move_probability.mean())
    return state.positions, float(np.mean(acceptance))


@attrs.frozen(kw_only=True, eq=False)
class PlainSampler(Sampler, Kernel):
    """Base of samplers with nothing to tune that use no potential: each is its own kernel."""

    needs: ClassVar[Capabilities] = frozenset()
    tunes: ClassVar[frozenset[str]] = frozenset()
    target_acceptance: ClassVar[float] = 0.5
    uses_potential: ClassVar[bool] = False

    def bind(self, potential: Potential, tuning: Tuning) -> Self:  # noqa: ARG002
        """Return itself."""
        return self


@attrs.frozen(kw_only=True, eq=False)
class LeaningWalk(PlainSampler):
    """A random walk that leans to the right: q' = q + scale (z + lean), with its exact c."""

    scale: float = 0.7
    lean: float = 0.5

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once."""
        move = rng.standard_normal(state.positions.shape)
        back = move + 2.0 * self.lean  # what the reverse move draws, turned
        log_correction = 0.5 * (np.square(move) - np.square(back)).sum(axis=1)
        positions = state.positions + self.scale * (move + self.lean)
        return Proposal(positions=positions, log_correction=log_correction)


def moved_on(
    potential: Potential,
    state: ChainState,
    positions: FloatArray,
    values: FloatArray,
    moved: BoolArray,
) -> Proposal:
    """Return the proposal of moves that are reversible for exp(-V): c = V(q') - V(q).

    V is the potential, and ``values`` are those of V at the ends of the moves.
    """
    return Proposal(
        positions=positions,
        log_correction=values - state.cache["value"],
        moved=moved,
        cache={"value": values},
        source=potential,
        log_path_ratio=np.zeros(len(values)),
    )


@attrs.frozen(kw_only=True, eq=False)
class SubChain(PlainSampler):
    """Some random-walk transitions on a surrogate V, then c = V(q') - V(q).

    ``scale`` is the standard deviation of a move.
    """

    uses_potential: ClassVar[bool] = True

    length: int = 4
    scale: float = 1.5
    potential: Any = None

    def bind(self, potential: Potential, tuning: Tuning | None = None) -> Self:  # noqa: ARG002
        """Return the sub-chains on V."""
        return attrs.evolve(self, potential=potential)

    def cache(self, positions: FloatArray) -> Cache:
        """Return V at positions (n, dim)."""
        return {"value": self.potential.value(positions)}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Follow every sub-chain on V."""
        positions, values = state.positions, state.cache["value"]
        moved = np.zeros(len(values), dtype=bool)
        for _ in range(self.length):
            new = positions + self.scale * rng.standard_normal(positions.shape)
            new_values = self.potential.value(new)
            with np.errstate(invalid="ignore"):
                accepted = metropolis(values - new_values, rng)[0] & self.goes_on(moved)
            positions = np.where(accepted[:, None], new, positions)
            values = np.where(accepted, new_values, values)
            moved = moved | accepted
        return moved_on(self.potential, state, positions, values, moved)

    def goes_on(self, moved: BoolArray) -> BoolArray:
        """Return which chains may still move: all, whatever they did."""
        return np.ones_like(moved)


@attrs.frozen(eq=False)
class ConstantMetric:
    """Independent masses, not all equal: M^-1 = diag(0.6, 1.7)."""

    tunable: ClassVar[bool] = False
    inverse: ClassVar[FloatArray] = np.array([0.6, 1.7])

    def adapt(self, covariance: FloatArray) -> Self:  # noqa: ARG002
        """Return itself."""
        return self

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta from N(0, M), shape (n, 2)."""
        return np.asarray(rng.standard_normal((n, dim)) / np.sqrt(self.inverse))

    def velocity(self, momenta: FloatArray) -> FloatArray:
        """Return M^-1 p, shape (n, 2)."""
        return np.asarray(momenta * self.inverse)

    def energy(self, momenta: FloatArray) -> FloatArray:
        """Return p^T M^-1 p / 2, shape (n,)."""
        return np.asarray(0.5 * (np.square(momenta) * self.inverse).sum(axis=1))

    def longest_scale(self, covariance: FloatArray) -> float:
        """Return the largest standard deviation in units of this metric."""
        scale = np.sqrt(self.inverse)
        return float(np.sqrt(np.linalg.eigvalsh(covariance / np.outer(scale, scale))[-1]))


@attrs.frozen(eq=False)
class CurvedMetric:
    """The metric G(q) of its potential, with 1 + q1^2 / 4 on the diagonal besides.

    ``products`` says whether it offers G u without the matrix, as metrics of networks do.
    """

    products: bool = True

    needs: ClassVar[Capabilities] = METRICS
    tunable: ClassVar[bool] = False

    def adapt(self, covariance: FloatArray) -> Self:  # noqa: ARG002
        """Return itself."""
        return self

    def factor(self, potential: Any, positions: FloatArray) -> Cache:
        """Return G as ``mass``, shape (n, 2, 2)."""
        more = 1.0 + 0.25 * np.square(positions[:, 0])
        return {"mass": potential.metric(positions) + more[:, None, None] * np.eye(2)}

    def log_determinant_gradient(
        self, potential: Any, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G), shape (n, 2)."""
        inverse = np.asarray(np.linalg.inv(cache["mass"]), dtype=np.float64)
        found: FloatArray = potential.metric_trace_gradient(positions, inverse)
        found[:, 0] += 0.5 * positions[:, 0] * np.trace(inverse, axis1=1, axis2=2)
        return found

    def form_gradient(
        self, potential: Any, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u, shape (n, 2)."""
        del cache
        found: FloatArray = potential.metric_form_gradient(positions, velocities)
        found[:, 0] += 0.5 * positions[:, 0] * np.square(velocities).sum(axis=1)
        return found

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, 2)."""
        normals = rng.standard_normal(cache["mass"].shape[:2])
        return products(np.asarray(np.linalg.cholesky(cache["mass"]), dtype=float), normals)

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, 2)."""
        return products(np.asarray(np.linalg.inv(cache["mass"]), dtype=float), momenta)

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, 2)."""
        return products(cache["mass"], velocities)

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return log det G / 2 + p^T G^-1 p / 2, shape (n,)."""
        squares = (momenta * self.velocity(cache, momenta)).sum(axis=1)
        return np.asarray(0.5 * (np.linalg.slogdet(cache["mass"])[1] + squares))

    def approximate_product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray | None:
        """Return G u, shape (n, 2); None without products."""
        mass = self.factor(potential, positions)["mass"]
        return products(mass, vectors) if self.products else None
