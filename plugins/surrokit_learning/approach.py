"""The way of an exact sampler's chains to where the mass is: searches, then draws about modes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.exploring import demand_warmup, evaluate_with_gradients, idle
from surrokit.interfaces import ChainState, Explored, Findings, Start
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.surrogate.whitening import cholesky_factor
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_learning.modes_search import Limits, ModeSearch


@attrs.frozen(kw_only=True, eq=False)
class Approach:
    """Search for modes from where the chains are, and begin at draws about those found.

    The searches are optimisation paths, as in Pathfinder (Zhang, Carpenter, Gelman and Vehtari
    2022, arXiv:2108.03782), and their ends and curvature say where the mass is and how wide. Each
    mode that matters keeps chains, in proportion to how many searches led to it. Where there is no
    mass about a mode, as in the narrow end of a funnel, chains stay at their starts.

    The searches evaluate 50 gradients for each chain and 10 more for each dimension at most, and
    twice as many again for each mode after the first while more may be found; but a quarter of the
    calls that a budget leaves.
    """

    @property
    def needs(self) -> Capabilities:
        """A gradient."""
        return frozenset({GRADIENT})

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Search for half of the warm-up at most, and put chains about the modes; see the protocol.

        Raises
        ------
        ConfigurationError
            If the warm-up has no iteration for it.
        """
        demand_warmup("approach", start.warmup)
        exact, n = start.potential, len(start.positions)
        chains, modes = chains_at(exact, start.positions), None
        search = ModeSearch(exact, start.positions, chains.values, self.limits(start))
        yield Explored(findings=Findings(chains=chains))
        for left in reversed(range(max(start.warmup // 2, 1))):
            search.step(rng)
            done, found = search.over or not left, Findings(chains=chains)
            if done and (modes := search.found) is not None:
                chains, modes = begin_about(exact, modes, chains, rng)
                found = Findings(chains=chains, modes=modes)
                if modes.reliable:
                    near = modes.covariances[modes.nearest(chains.positions)].mean(axis=0)
                    found = attrs.evolve(found, covariance=near, mode=modes.positions[0])
            yield Explored(findings=found, step=idle(n), rows=start.evaluated(), done=done)
            if done:
                return

    def limits(self, start: Start) -> Limits:
        """Return what the searches may evaluate."""
        chains, dim = start.positions.shape
        most = 50 * chains + 10 * dim
        all_of_them = math.inf if start.calls is None else max(start.calls // 4, 1)
        spare, most = 2 * most, int(min(most, all_of_them))
        beside = Limits.unnoticed(start.calls)
        return Limits(total=most, later=most / 2, spare=spare, most=all_of_them, beside=beside)


def chains_at(exact: Potential, positions: FloatArray) -> ChainState:
    """Return chains at positions (n, dim); U is infinite where anything failed."""
    values, gradients = evaluate_with_gradients(exact, positions)
    cache = {"value": values, "gradient": gradients}
    return ChainState(positions=positions, values=values, cache=cache)


def begin_about(
    exact: Potential, modes: Modes, chains: ChainState, rng: np.random.Generator
) -> tuple[ChainState, Modes]:
    """Return chains at draws about the modes that matter, and the modes, that of least U first.

    High ones keep chains where volumes are not known: draws are to tell what mass is there.

    Chains stay where they are, and modes are not ``reliable``, where one of these or the deepest is
    in a funnel: there searches end where the density has no bound, and next to no mass is
    about. A Newton step from there would still gain half a nat for each dimension, where in a shape
    that is merely unlike a normal one it is nearly level. A gradient is evaluated for each chain,
    and some more where draws about modes are far above what was predicted.
    """
    n, dim = chains.positions.shape
    shares = np.where(modes.matters | modes.doubtful, modes.ended, 0)
    heaviest = np.argsort(-shares, kind="stable")[: min(n, int(np.count_nonzero(shares)))]
    of = np.repeat(heaviest, quotas(shares[heaviest] / shares[heaviest].sum(), n))
    now, parts = _about(exact, modes, of, rng)
    kept = {int(k): float(np.median(parts[of == k])) for k in np.unique(of)}
    if 0 not in kept:  # the deepest
        deepest = _about(exact, modes, np.zeros(n, dtype=np.int64), rng)[1]
        kept[0] = float(np.median(deepest))
    doubtful = [k for k, part in kept.items() if part < 0.2]
    if doubtful:
        few = modes.take(np.array(doubtful))
        slopes = chains_at(exact, few.positions).cache["gradient"]
        gains = 0.5 * np.einsum("ki,kij,kj->k", slopes, few.covariances, slopes)
        if gains.max() > 0.5 * dim:
            return chains, attrs.evolve(modes, reliable=False)
    return now, modes


def _about(
    exact: Potential, modes: Modes, of: IntArray, rng: np.random.Generator
) -> tuple[ChainState, FloatArray]:
    """Return chains at draws about modes ``of (n,)``, and what part (n,) is left of moves."""
    dim = modes.positions.shape[1]
    normals = 2.0 * rng.standard_normal((len(of), dim))
    expected = modes.values[of] + 0.5 * np.square(normals).sum(axis=1)
    factors = np.stack([cholesky_factor(covariance) for covariance in modes.covariances])
    moves = np.einsum("nij,nj->ni", factors[of], normals)
    at, parts = modes.positions[of] + moves, np.ones(len(of))
    values, gradients = map(np.array, evaluate_with_gradients(exact, at))
    for part in (0.5, 0.25, 0.125, 0.0625, 0.03125, 0.0):
        over = np.asarray(~(values <= expected + 10.0 + dim))
        if not over.any():
            break
        parts[over] = part
        at[over] = modes.positions[of[over]] + part * moves[over]
        values[over], gradients[over] = evaluate_with_gradients(exact, at[over])
    cache = {"value": values, "gradient": gradients}
    return ChainState(positions=at, values=values, cache=cache), parts


def quotas(shares: FloatArray, n: int) -> IntArray:
    """Return how many of n to take of each kind: by its share (k,), and one at least."""
    counts = np.ones(len(shares), dtype=np.int64)
    for _ in range(n - len(shares)):  # the one with least of what is due comes next
        counts[np.argmin((counts + 0.5) / np.maximum(shares, 1e-12))] += 1
    return counts
