"""Surrogates that learn from a part of a round's payments, and are corrected by the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import SurrogateSample
from surrokit.types import FloatArray, IntArray
from surrokit.weighted.correction import Values, correct
from surrokit.weighted.paid.payments import Payments, compare
from surrokit.weighted.round import Round

FOLDS = 5
"""Parts of a round's payments; as many surrogates are fitted."""

PART = 0.2
"""Variance of the correction of a usual mean, over that of the mean of all draws, up to which
nothing is to be gained."""

LARGEST_SPREAD = 1.0
"""Variance of the ratio of two surrogates' densities, about one, above which draws of the one say
little of the other."""


@attrs.frozen(kw_only=True, eq=False)
class CrossFit:
    """What surrogates say of a round that each have learnt from all of its payments but one part.

    The surrogate of part k is V_k, and r_k the density of V_k over that of V, whose draws a round
    has. Payments of part k are new to V_k, so that they may correct it: with e_k = r_k e, the
    density of V_k over that of the payments, the mean of f under the target is

        mean over k of [E_V r_k f + mean over part k of (w - e_k) f],

    the first by the round's draws, for no exact call. It is unbiased given V for any V_k that has
    not seen part k, and better than what V alone gives by as much as V_k is closer to the target.
    This is cross-fitting (Chernozhukov et al. 2018, doi:10.1111/ectj.12097).

    Parameters
    ----------
    tilts : ndarray of shape (folds, chains, m)
        r_k at every j-th draw of each chain, of mean one for each k.
    log_evens : ndarray of shape (n,)
        Log of e_k for each payment, with its own k.
    """

    tilts: FloatArray
    log_evens: FloatArray

    def apply(self, found: Round) -> Round:
        """Return the round as it is with these surrogates in place of its own."""
        counts = np.bincount(_fold_of(len(found)), minlength=len(self.tilts)) / len(found)
        tilt = np.tensordot(counts, self.tilts, axes=1)
        return attrs.evolve(found, log_evens=self.log_evens, tilt=tilt)

    def improves(self, found: Round) -> bool:
        """Return whether a round gains by them, for all that it shows."""
        spread = np.square(self.tilts - 1.0).mean(axis=(1, 2)).max()
        return bool(spread <= LARGEST_SPREAD and self.apply(found).variance < found.variance)


def is_worth_it(found: Round) -> bool:
    """Return whether what a round corrects makes up enough of its errors."""
    if len(found) < 2 * FOLDS:
        return False
    told = correct(found, Values(draws=found.draws, paid=found.paid))
    return bool(np.median(told.of_correction) > PART * np.median(told.of_chains))


def parts_of(payments: Payments) -> Iterator[FloatArray]:
    """Yield the positions of each part, shape (n, dim), that one surrogate must not know."""
    folds = _fold_of(len(payments))
    return (payments.positions[folds == fold] for fold in range(FOLDS))


def cross_fit(
    sample: SurrogateSample, payments: Payments, surrogates: Sequence[Potential]
) -> CrossFit:
    """Return what surrogates say of a round that have learnt from its other payments.

    Parameters
    ----------
    sample
        Draws of the round's surrogate V.
    payments
        What was paid for.
    surrogates
        One for each of :func:`parts_of` the payments, that has learnt from the others.
    """
    folds, log_evens, tilts = _fold_of(len(payments)), payments.log_evens, []
    for fold, surrogate in enumerate(surrogates):
        own = folds == fold
        ratios, level = compare(sample, surrogate)
        tilts.append(ratios)
        here = payments.values[own] - surrogate.value(payments.positions[own])
        log_evens[own] += here - level
    return CrossFit(tilts=np.array(tilts), log_evens=log_evens)


def _fold_of(n: int) -> IntArray:
    """Return the part of each of n payments: each part is spread over all chains and tails."""
    return np.arange(n) % FOLDS
