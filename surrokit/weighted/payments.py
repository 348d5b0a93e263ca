"""Where a round pays for the exact potential: at draws of a surrogate, and farther out."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import SurrogateSample
from surrokit.types import FloatArray, IntArray

OUTER = 0.5
"""Part of the payments that goes to draws farther out, where there are such."""


@attrs.frozen(kw_only=True, eq=False)
class Payments:
    """Positions to pay for, and how likely they were.

    Draws of a surrogate V cannot tell what V lacks. Where V is too high it has few draws, and
    weights would look good while a part of the target is missing. So half of the payments go to
    draws of a wider density. All are draws of one known mixture (defensive importance sampling:
    Hesterberg 1995, doi:10.1080/00401706.1995.10484303; parts of fixed sizes after Veach and Guibas
    1995, doi:10.1145/218380.218498).

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        In the sampling coordinates.
    values : ndarray of shape (n,)
        V there.
    log_evens : ndarray of shape (n,)
        Log of the surrogate's density over the mixture's.
    """

    positions: FloatArray
    values: FloatArray
    log_evens: FloatArray

    def __len__(self) -> int:
        return len(self.positions)

    def weigh(self, exact: FloatArray) -> FloatArray:
        """Return log weights, shape (n,), by U there: log of the target's density over q."""
        with np.errstate(invalid="ignore"):
            weights = self.values - exact + self.log_evens
        return np.where(np.isinf(exact), -np.inf, weights)


def choose(
    sample: SurrogateSample, surrogate: Potential, n: int, rng: np.random.Generator
) -> Payments:
    """Return n positions to pay for.

    Parameters
    ----------
    sample
        Draws of the surrogate.
    surrogate
        V.
    n
        At least one, and far fewer than draws.
    rng
        Generator.
    """
    flat, outer = sample.flat, sample.outer
    if outer is None:
        inner = _thin(len(flat), n, rng)
        return Payments(
            positions=flat[inner], values=sample.values.ravel()[inner], log_evens=np.zeros(n)
        )
    n_outer = min(int(OUTER * n), len(outer.positions))
    parts = [flat[_thin(len(flat), n - n_outer, rng)]]
    parts.append(outer.positions[_thin(len(outer.positions), n_outer, rng)])
    positions = np.concatenate(parts)
    values = np.asarray(surrogate.value(positions))
    share = n_outer / n
    return Payments(
        positions=positions,
        values=values,
        log_evens=-np.log(1.0 - share + share * outer.chances(values)),
    )


def _thin(size: int, n: int, rng: np.random.Generator) -> IntArray:
    """Return n different ones of at least as many draws, as far apart as can be."""
    at = ((np.arange(n) + rng.random()) / max(n, 1) * size).astype(np.int64)
    return np.minimum(at, size - 1)
