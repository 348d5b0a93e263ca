"""Plain parts to combine with the part under test.

They are simple enough to be verified by reading, and not fast.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import attrs
import numpy as np

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
from surrokit.testing.targets import Gaussian, of_form, of_trace
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class ReferenceCorrection:
    """Metropolis-Hastings by an exact potential, evaluated at every proposal; bound already."""

    potential: Potential

    def prepare(self, near: FloatArray) -> Self:  # noqa: ARG002
        """Return itself."""
        return self

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


def proposal_at(positions: FloatArray, log_correction: FloatArray, **others: Any) -> Proposal:
    """Return a proposal to positions (n, dim) with c (n,); by default all moves ended well."""
    return Proposal(positions=positions, log_correction=log_correction, **others)


@attrs.frozen(kw_only=True, eq=False)
class LeaningWalk(PlainSampler):
    """A random walk that leans to the right: q' = q + scale (z + lean), with its exact c."""

    scale: float = 0.7
    lean: float = 0.5

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once."""
        move = rng.standard_normal(state.positions.shape)
        # the reverse move takes the normal draw -move - 2 lean
        back = move + 2.0 * self.lean
        log_correction = 0.5 * (np.square(move) - np.square(back)).sum(axis=1)
        return proposal_at(state.positions + self.scale * (move + self.lean), log_correction)


@attrs.frozen(kw_only=True, eq=False)
class OneSidedWalk(PlainSampler):
    """A walk that steps more often to one side than to the other in the first coordinate.

    A step goes to the right with probability p, else to the left, by a gamma-distributed length.
    The second coordinate moves symmetrically. c is log((1 - p) / p) after a step to the right, and
    the negative of that after a step to the left.
    """

    rightward: float = 0.8

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once."""
        n = len(state.positions)
        right = rng.random(n) < self.rightward
        move = rng.standard_normal((n, 2))
        move[:, 0] = np.where(right, 1.0, -1.0) * rng.gamma(2.0, 0.5, n)
        odds = np.log((1.0 - self.rightward) / self.rightward)
        return proposal_at(state.positions + move, np.where(right, odds, -odds))


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
    return proposal_at(
        positions,
        values - state.cache["value"],
        moved=moved,
        cache={"value": values},
        source=potential,
        log_path_ratio=np.zeros(len(values)),
    )


@attrs.frozen(kw_only=True, eq=False)
class IndependentDraws(PlainSampler):
    """Draws from a normal surrogate V, whatever potential is bound: c = V(q') - V(q).

    A share ``idle`` of chains does not move at all.
    """

    surrogate: Gaussian
    idle: float = 0.0

    @property
    def potential(self) -> Potential | None:
        """V."""
        return self.surrogate

    def cache(self, positions: FloatArray) -> Cache:
        """Return V at positions (n, dim)."""
        return {"value": self.surrogate.value(positions)}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Draw a new position for every chain that is not idle."""
        n = len(state.positions)
        moved = rng.random(n) >= self.idle
        positions = np.where(moved[:, None], self.surrogate.sample(rng, n), state.positions)
        values = self.surrogate.value(positions)
        return moved_on(self.surrogate, state, positions, values, moved)


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
    """The metric G(q) = [[a, c], [c, b]], in which a, b and c are waves in q.

    a = 1.2 + sin(q1) / 2, b = 0.9 + 0.3 cos(q2), c = sin(q1 + q2) / 4. G is positive definite
    everywhere, and needs no potential. ``products`` says whether it offers G u without the matrix,
    as metrics of networks do.
    """

    products: bool = True

    needs: ClassVar[Capabilities] = frozenset()
    tunable: ClassVar[bool] = False

    def adapt(self, covariance: FloatArray) -> Self:  # noqa: ARG002
        """Return itself."""
        return self

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:  # noqa: ARG002
        """Return G as ``mass``, shape (n, 2, 2)."""
        first, second = positions.T
        matrix = np.empty((len(positions), 2, 2))
        matrix[:, 0, 0] = 1.2 + 0.5 * np.sin(first)
        matrix[:, 1, 1] = 0.9 + 0.3 * np.cos(second)
        matrix[:, 0, 1] = matrix[:, 1, 0] = 0.25 * np.sin(first + second)
        return {"mass": matrix}

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G), shape (n, 2)."""
        del potential
        inverse = np.asarray(np.linalg.inv(cache["mass"]), dtype=np.float64)
        return of_trace(_slopes(positions), inverse)

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u, shape (n, 2)."""
        del potential, cache
        return of_form(_slopes(positions), velocities)

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


def _slopes(positions: FloatArray) -> FloatArray:
    """Return d_k G_ij, shape (n, 2, 2, 2) with k last."""
    first, second = positions.T
    slopes = np.zeros((len(positions), 2, 2, 2))
    slopes[:, 0, 0, 0] = 0.5 * np.cos(first)
    slopes[:, 1, 1, 1] = -0.3 * np.sin(second)
    slopes[:, 0, 1] = slopes[:, 1, 0] = 0.25 * np.cos(first + second)[:, None]
    return slopes
