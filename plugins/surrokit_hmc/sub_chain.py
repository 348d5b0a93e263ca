"""Sub-chains: many transitions on a surrogate for one exact call."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.arguments import optional_positive_integer
from surrokit.interfaces import ChainState, Excursion, Kernel, Proposal, Sampler, Status, Tuning
from surrokit.kernel.hamiltonian import DIVERGENCE, choose, metropolis
from surrokit.kernel.jumps import Jumps, jumps_of
from surrokit.kernel.kernel import latest
from surrokit.kernel.tuning import FIRST_LENGTH
from surrokit.limits import check_deadline
from surrokit.potentials import Potential
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class SubChain(Sampler):
    """k transitions of a kernel, each accepted on V, and then one proposal with c = V(q') - V(q).

    The surrogate transition method (Liu 2001, "Monte Carlo Strategies in Scientific Computing",
    section 9.4.3), or delayed acceptance (Christen and Fox 2005, doi:10.1198/106186005X76983).
    Every transition is reversible for exp(-V) and draws whatever it needs afresh; what all chains
    share, such as a number of steps, is the same in the first transition and in the last, in the
    second and in the last but one; so k of them are reversible, too. That holds for a fixed k
    only: a k that depends on the path, such as stopping at the first move, biases the draws.

    On a V of several modes a jump between them, accepted on V as well, comes before and after every
    transition, so that the order is the same from either end.

    Parameters
    ----------
    kernel
        Makes the moves. One that moves without a potential, such as a random walk, is accepted on
        V all the same.
    length
        k; None leaves it to be tuned.

    Raises
    ------
    ConfigurationError
        If the length is not a whole number of at least 1.
    """

    kernel: Sampler
    length: int | None = attrs.field(default=None, validator=optional_positive_integer)

    @property
    def needs(self) -> Capabilities:
        """What the kernel needs."""
        return self.kernel.needs

    @property
    def tunes(self) -> frozenset[str]:
        """What the kernel leaves free, and the length unless it was given."""
        own = frozenset({"length"}) if self.length is None else frozenset()
        return self.kernel.tunes | own

    @property
    def target_acceptance(self) -> float:
        """The kernel's; on V."""
        return self.kernel.target_acceptance

    @property
    def largest_step(self) -> float:
        """The kernel's."""
        return self.kernel.largest_step

    @property
    def metric(self) -> object:
        """The kernel's, if it has one."""
        return self.kernel.metric

    @property
    def caches_metric(self) -> bool:
        """Whether the kernel's caches depend on the covariance."""
        return self.kernel.caches_metric

    def bind(self, potential: Potential, tuning: Tuning) -> SubChainKernel:
        """Return sub-chains on V, of ``tuning.length`` transitions unless a length was given."""
        free = self.length is None
        return SubChainKernel(
            potential=potential,
            kernel=self.kernel.bind(potential, tuning),
            n_transitions=self.length or tuning.length or FIRST_LENGTH,
            jumps=jumps_of(potential),
            whitener=self._whitener(tuning.covariance) if free else None,
        )

    @latest
    def _whitener(self, covariance: FloatArray) -> FloatArray:
        factor = np.linalg.cholesky(covariance)
        return np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True).T)


@attrs.frozen(kw_only=True, eq=False)
class SubChainKernel(Kernel):
    """Sub-chains of transitions of a kernel on one V."""

    potential: Potential  # V
    kernel: Kernel  # makes the moves, on V
    n_transitions: int  # the number k in use
    jumps: Jumps | None  # between the modes of V, before and after every transition
    # L^-T (dim, dim), with which rows turn to units of the tuned covariance L L^T; None where
    # nobody needs to know how far sub-chains get
    whitener: FloatArray | None

    @property
    def step(self) -> float | None:
        """The kernel's step size."""
        return self.kernel.step

    def cache(self, positions: FloatArray) -> Cache:
        """Return what the kernel keeps for positions of shape (n, dim), and V there."""
        kept = self.kernel.cache(positions)
        if "value" in kept and self.kernel.potential is not None:
            return kept
        return {**kept, "value": self.potential.value(positions)}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Follow the sub-chain of every chain."""
        path, length = _Path(self.potential, state), self.n_transitions
        seen = [path.state]
        for i, kernel in enumerate(self._kernels(length, rng), start=1):
            check_deadline()
            path.jump(self.jumps, kernel, rng)
            path.follow(kernel.propose(path.state, rng), rng)
            if i & (i - 1) == 0:  # a power of two
                seen.append(path.state)
        path.jump(self.jumps, self.kernel, rng)
        end, value = path.state.positions, path.state.cache["value"]
        mean = np.maximum(path.acceptance / length, 1e-300)  # so that no logarithm is of zero
        return Proposal(
            positions=end,
            log_correction=np.where(path.moved, value - state.cache["value"], 0.0),
            moved=path.moved,
            status=np.where(np.isnan(value), Status.NOT_FINITE, Status.OK),
            cache=path.state.cache,
            source=self.potential,
            log_path_ratio=np.log(mean),
            n_steps=path.n_steps,
            divergent=path.divergent,
            excursion=self._excursion(seen),
            keeps_source=True,
        )

    def _kernels(self, length: int, rng: np.random.Generator) -> list[Kernel]:
        """Return a kernel for each transition, the same from either end.

        Chains share what a kernel draws, such as the number of steps, to stay one batch. Given
        these numbers two transitions of different ones are not reversible; a palindrome is.
        """
        draw: Callable[[np.random.Generator], Kernel] | None
        draw = getattr(self.kernel, "draw_shared", None)
        if draw is None:
            return [self.kernel] * length
        half = [draw(rng) for _ in range((length + 1) // 2)]
        return half + half[: length // 2][::-1]

    def _excursion(self, seen: list[ChainState]) -> Excursion | None:
        if self.whitener is None:
            return None
        start, *later = seen
        whites = [(then.positions - start.positions) @ self.whitener for then in later]
        squares = [np.einsum("nd,nd->n", white, white) for white in whites]
        return Excursion(
            jumps=np.stack(squares, axis=1) / (2.0 * start.positions.shape[1]),
            values=np.stack([then.values for then in seen], axis=1),
        )


class _Path:
    """Where the sub-chains are, V in the cache of their state, and what happened on their way."""

    def __init__(self, potential: Potential, state: ChainState) -> None:
        n = len(state.positions)
        self.potential = potential
        # what a kernel takes for exact values are those of V
        self.state = attrs.evolve(state, values=state.cache["value"])
        self.moved: BoolArray = np.zeros(n, dtype=bool)
        self.divergent: BoolArray = np.zeros(n, dtype=bool)
        self.acceptance: FloatArray = np.zeros(n)
        self.n_steps: IntArray = np.zeros(n, dtype=np.int64)

    def jump(self, jumps: Jumps | None, kernel: Kernel, rng: np.random.Generator) -> None:
        """Jump if V has several modes; no jump informs the tuning of the kernel."""
        if jumps is not None:
            self._decide(jumps.propose(kernel, self.state, rng), rng)

    def follow(self, proposal: Proposal, rng: np.random.Generator) -> None:
        """Accept a proposal of the kernel on V, or stay."""
        acceptance, ok, inside = *self._decide(proposal, rng), proposal.log_path_ratio
        if inside is not None:  # of a kernel that accepts and rejects inside this is what it tunes
            inside = np.where(ok & ~np.isnan(inside), inside, -np.inf)
            acceptance = np.exp(np.minimum(inside, 0.0))
            self.divergent = self.divergent | (inside < -DIVERGENCE)
        if proposal.divergent is not None:
            self.divergent = self.divergent | proposal.divergent
        self.acceptance = self.acceptance + acceptance
        self.n_steps = self.n_steps + proposal.n_steps

    def _decide(self, proposal: Proposal, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        """Accept a proposal on V, or stay; return the acceptance, and which could be accepted."""
        state, ok, cache = self.state, proposal.status == Status.OK, proposal.cache
        with np.errstate(all="ignore"):
            if proposal.source is not self.potential:
                value = np.full(len(ok), np.inf)
                value[ok] = self.potential.value(proposal.positions[ok])
                cache = {**cache, "value": value}
            log_ratio = state.values - cache["value"] + proposal.log_correction
        accepted, acceptance = metropolis(np.where(ok, log_ratio, -np.inf), rng)
        self.moved = self.moved | (accepted & proposal.moved)
        self.state = ChainState(
            positions=choose(accepted, proposal.positions, state.positions),
            values=choose(accepted, cache["value"], state.values),
            cache={name: choose(accepted, new, state.cache[name]) for name, new in cache.items()},
        )
        return acceptance, ok
