"""Whether mass lies about modes, which a few draws about them tell, and chains that begin there."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.explorer import Modes
from surrokit.exploring.standing import evaluate_with_gradients
from surrokit.interfaces import ChainState
from surrokit.potentials import Potential
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_learning.region.independence import quotas
from surrokit_learning.region.region import cholesky_factor

SPREAD = 2.0
"""Standard deviations of the Laplace approximation's that chains begin at: farther apart than
draws, or else a comparison of chains could not see that they have yet to spread."""

ROOM = 10.0
"""Nats, beside one for each dimension, by which U may exceed what an approximation foretells."""

HALVINGS = 6
"""How often a start that exceeds it is moved half of the way to its mode."""

KEPT = 0.2
"""Part of such a move that at least half of the starts about a mode must keep, or else it is asked
whether it is a neck."""

STEEP = 0.5
"""Nats for each dimension, which draws have above their mode, that a step from such a mode would
still gain by its own covariance, where it is a neck. Searches also end there: in a hierarchical
model whose scale goes to 0 the density has no bound, and next to no mass is about. In a shape that
is merely unlike a normal one they end where it is nearly level."""


def begin_about(
    exact: Potential, modes: Modes, chains: ChainState, rng: np.random.Generator
) -> tuple[ChainState, Modes]:
    """Return chains at draws about the modes that matter, and the modes.

    Chains stay where they are, and no mode is believed, where one of these or the deepest is a
    neck. It pays for a gradient of each chain, and for some more where draws about modes are far
    above what was foretold.

    Parameters
    ----------
    exact
        The target.
    modes
        Those that were found, the deepest first.
    chains
        Where chains are.
    rng
        Generator of the draws.
    """
    n = len(chains.values)
    of = _shares(modes, n)
    now, parts = _about(exact, modes, of, rng)
    kept = {int(k): float(np.median(parts[of == k])) for k in np.unique(of)}
    if 0 not in kept:  # the deepest
        deepest = _about(exact, modes, np.zeros(n, dtype=np.int64), rng)[1]
        kept[0] = float(np.median(deepest))
    doubtful = [k for k, part in kept.items() if part < KEPT]
    steep = STEEP * modes.positions.shape[1]
    if doubtful and _gains(exact, modes.take(np.array(doubtful))).max() > steep:
        return chains, attrs.evolve(modes, believed=False)
    return now, modes


def _gains(exact: Potential, modes: Modes) -> FloatArray:
    """Return what a Newton step from each mode would gain, shape (k,), by its covariance."""
    slopes = chains_at(exact, modes.positions).cache["gradient"]
    return np.asarray(0.5 * np.einsum("ki,kij,kj->k", slopes, modes.covariances, slopes))


def chains_at(exact: Potential, positions: FloatArray) -> ChainState:
    """Return chains at positions (n, dim); U is infinite where anything failed."""
    values, gradients = evaluate_with_gradients(exact, positions)
    cache = {"value": values, "gradient": gradients}
    return ChainState(positions=positions, values=values, cache=cache)


def _about(
    exact: Potential, modes: Modes, of: IntArray, rng: np.random.Generator
) -> tuple[ChainState, FloatArray]:
    """Return chains at draws about modes ``of (n,)``, and what part (n,) is left of moves."""
    dim = modes.positions.shape[1]
    normals = SPREAD * rng.standard_normal((len(of), dim))
    expected = modes.values[of] + 0.5 * np.square(normals).sum(axis=1)
    factors = np.stack([cholesky_factor(covariance) for covariance in modes.covariances])
    moves = np.einsum("nij,nj->ni", factors[of], normals)
    now, parts = chains_at(exact, modes.positions[of] + moves), np.ones(len(of))
    for i in range(1, HALVINGS + 1):
        over = np.asarray(~(now.values <= expected + ROOM + dim))
        if not over.any():
            break
        parts[over] = 0.5**i if i < HALVINGS else 0.0
        moved = modes.positions[of[over]] + parts[over, None] * moves[over]
        now = _put(now, over, chains_at(exact, moved))
    return now, parts


def _shares(modes: Modes, n: int) -> IntArray:
    """Return the mode (n,) that each chain begins at, by how many searches led there."""
    shares = np.where(modes.matters, modes.ended, 0)
    heaviest = np.argsort(-shares, kind="stable")[: min(n, int(np.count_nonzero(shares)))]
    counts = quotas(shares[heaviest] / shares[heaviest].sum(), n)
    return np.repeat(heaviest, counts)


def _put(chains: ChainState, rows: BoolArray, others: ChainState) -> ChainState:
    """Return chains of which some rows are others."""

    def put(into: FloatArray, these: FloatArray) -> FloatArray:
        into = into.copy()
        into[rows] = these
        return into

    return ChainState(
        positions=put(chains.positions, others.positions),
        values=put(chains.values, others.values),
        cache={name: put(array, others.cache[name]) for name, array in chains.cache.items()},
    )
