"""Broken samplers."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import HESSIAN
from surrokit.interfaces import (
    ChainState,
    Kernel,
    Proposal,
    Sampler,
    Status,
    Tuning,
)
from surrokit.kernel.hamiltonian import metropolis
from surrokit.potentials import Potential, with_hessian
from surrokit.testing.parts import SubChain, moved_on
from surrokit.types import BoolArray, Capabilities, FloatArray


@attrs.frozen(eq=False)
class _BrokenSampler:
    """Passes everything on to a sound sampler, and spoils its proposals."""

    inner: Sampler

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def bind(self, potential: Potential, tuning: Tuning) -> Kernel:
        """Return the sound one's kernel, spoilt."""
        return _BrokenKernel(self.inner.bind(potential, tuning), self)

    def propose(self, kernel: Kernel, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Spoil the proposal of the sound one's kernel."""
        return self.spoilt(kernel.propose(state, rng))

    def spoilt(self, proposal: Proposal) -> Proposal:
        """Return a proposal with something wrong; subclasses say what."""
        return proposal


@attrs.frozen(eq=False)
class _BrokenKernel:
    """A sound kernel, and what spoils it."""

    inner: Kernel
    mutant: _BrokenSampler

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move as the mutant does."""
        return self.mutant.propose(self.inner, state, rng)


class KineticEnergyLeftOut(_BrokenSampler):
    """The acceptance ratio forgets K(p) - K(p')."""

    def spoilt(self, proposal: Proposal) -> Proposal:
        """Set c to zero."""
        return attrs.evolve(proposal, log_correction=np.zeros(len(proposal.positions)))


class HidesUnits(_BrokenSampler):
    """Does not say that its caches depend on the covariance, so that they are not remade."""

    @property
    def caches_metric(self) -> bool:
        """Not so."""
        return False


class SignTurned(_BrokenSampler):
    """K(p') - K(p) where K(p) - K(p') is due."""

    def spoilt(self, proposal: Proposal) -> Proposal:
        """Turn the sign of c."""
        return attrs.evolve(proposal, log_correction=-proposal.log_correction)


class RejectsIndefinite(_BrokenSampler):
    """Rejects proposals where the Hessian is not positive definite, which truncates the target."""

    @property
    def needs(self) -> Capabilities:
        """Hessians as well."""
        return self.inner.needs | {HESSIAN}

    def spoilt(self, proposal: Proposal) -> Proposal:
        """Give such proposals a status that says failure."""
        source = proposal.source
        assert source is not None, "make this mutant from a sampler that moves on a potential"
        ok = proposal.status == Status.OK
        hessian = np.broadcast_to(np.eye(2), (len(ok), 2, 2)).copy()
        hessian[ok] = with_hessian(source).hessian(proposal.positions[ok])
        definite = np.linalg.eigvalsh(hessian)[:, 0] > 0
        failed = np.where(definite, proposal.status, int(Status.NOT_CONVERGED))
        return attrs.evolve(proposal, status=failed, moved=proposal.moved & definite)


@attrs.frozen(eq=False)
class RefusesFarPoints(_BrokenSampler):
    """Rejects proposals that are far from the origin, which empties the tails.

    Parameters
    ----------
    inner
        The sound sampler.
    radius
        Where "far" begins, in each coordinate.
    """

    radius: float = 2.5

    def spoilt(self, proposal: Proposal) -> Proposal:
        """Give such proposals a status that says failure."""
        near = (np.abs(proposal.positions) < self.radius).all(axis=1)
        status = np.where(near, proposal.status, int(Status.NOT_FINITE))
        return attrs.evolve(proposal, status=status, moved=proposal.moved & near)


@attrs.frozen(eq=False)
class NetForStuckChains(_BrokenSampler):
    """A safety net: a chain that stood still five times makes a random-walk move instead.

    Each of the two moves is sound. When to take which depends on the path's past, and that biases.

    Parameters
    ----------
    inner
        The sound sampler.
    patience
        How often a chain may stand still.
    """

    patience: int = 5
    _memory: dict[str, Any] = attrs.field(factory=dict, init=False)

    def propose(self, kernel: Kernel, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move as the sound one does, unless stuck."""
        proposal = kernel.propose(state, rng)
        net = state.positions + rng.standard_normal(state.positions.shape)
        stuck = self._times_still(state.positions) >= self.patience
        if not stuck.any():
            return proposal
        positions = np.where(stuck[:, None], net, proposal.positions)
        return attrs.evolve(
            proposal,
            positions=positions,
            log_correction=np.where(stuck, 0.0, proposal.log_correction),
            moved=proposal.moved | stuck,
            status=np.where(stuck, int(Status.OK), proposal.status),
            cache=kernel.cache(positions),
        )

    def _times_still(self, positions: FloatArray) -> FloatArray:
        before = self._memory.get("positions")
        times = np.zeros(len(positions))
        if before is not None and before.shape == positions.shape:
            still = (before == positions).all(axis=1)
            times = np.where(still, self._memory["times"] + 1, 0)
        self._memory.update(positions=positions.copy(), times=times)
        return times


class StopsAtFirstMove(SubChain):
    """A sub-chain that ends at its first accepted move, and so has a path-dependent length.

    With short moves E q^2 comes out too small (0.955 for 1), with long ones too large (1.24).
    """

    def goes_on(self, moved: BoolArray) -> BoolArray:
        """Return the chains that have not moved yet."""
        return ~moved


@attrs.frozen(eq=False)
class EndsWhenMoved(_BrokenSampler):
    """Sub-chains of which each ends as soon as it has moved.

    Parameters
    ----------
    inner
        A sound sampler whose moves are reversible for exp(-V), such as a short sub-chain.
    patience
        How often each chain may try.
    """

    patience: int = 6

    def propose(self, kernel: Kernel, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Ask for proposals until every chain has moved."""
        first = kernel.propose(state, rng)
        moved, positions, cache = first.moved, first.positions, dict(first.cache)
        for _ in range(self.patience - 1):
            new = kernel.propose(state, rng)
            fresh = new.moved & ~moved
            positions = np.where(fresh[:, None], new.positions, positions)
            for name, array in new.cache.items():
                where = fresh.reshape((-1,) + (1,) * (array.ndim - 1))
                cache[name] = np.where(where, array, cache[name])
            moved = moved | fresh
        return attrs.evolve(
            first,
            positions=positions,
            log_correction=cache["value"] - state.cache["value"],
            moved=moved,
            cache=cache,
        )


@attrs.frozen(eq=False)
class ShorterWhereStuck(_BrokenSampler):
    """Tuning that is not frozen: chains that stood still make shorter sub-chains.

    Sub-chains of either length are sound. When to take which depends on the path's past, and that
    biases.

    Parameters
    ----------
    inner
        The sound sampler, with long sub-chains.
    shorter
        Another, on the same potential, with short ones.
    """

    shorter: Sampler

    def bind(self, potential: Potential, tuning: Tuning) -> Kernel:
        """Return both samplers' kernels, of which one moves."""
        kernel, shorter = (one.bind(potential, tuning) for one in (self.inner, self.shorter))
        return _ShorterWhereStuck(kernel, self, shorter)


@attrs.frozen(eq=False)
class _ShorterWhereStuck(_BrokenKernel):
    """Moves by long sub-chains where the last one was accepted, else by short ones."""

    shorter: Kernel
    _memory: dict[str, Any] = attrs.field(factory=dict, init=False)

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move by long sub-chains, where the last one was accepted."""
        before = self._memory.get("positions")
        self._memory["positions"] = state.positions.copy()
        long, short = self.inner.propose(state, rng), self.shorter.propose(state, rng)
        if before is None or before.shape != state.positions.shape:
            return long
        stuck = np.all(before == state.positions, axis=1)
        return attrs.evolve(
            long,
            positions=np.where(stuck[:, None], short.positions, long.positions),
            log_correction=np.where(stuck, short.log_correction, long.log_correction),
            moved=np.where(stuck, short.moved, long.moved),
            cache=self.inner.cache(np.where(stuck[:, None], short.positions, long.positions)),
        )


class NotPalindromic(SubChain):
    """A sub-chain of two different kernels, always in the same order.

    Each leaves exp(-V) as it is and is reversible; one after the other they are not reversible, so
    that c = V(q') - V(q) does not hold.
    """

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move along the first coordinate only, then along the diagonal only."""
        positions, values = state.positions, state.cache["value"]
        for direction in (np.array([1.0, 0.0]), np.array([1.0, 1.0])):
            length = 2.0 * rng.standard_normal((len(values), 1))
            new = positions + length * direction
            new_values = self.potential.value(new)
            with np.errstate(invalid="ignore"):
                accepted, _ = metropolis(values - new_values, rng)
            positions = np.where(accepted[:, None], new, positions)
            values = np.where(accepted, new_values, values)
        everyone = np.ones(len(values), dtype=bool)
        return moved_on(self.potential, state, positions, values, everyone)
