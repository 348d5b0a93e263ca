"""What a round of exact evaluations says of the surrogate that it was drawn from."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.explorer import Past
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit_learning.region.independence import predicted_acceptance, spread
from surrokit_learning.rounds.queue import Queue

TOO_HIGH = 1.0
"""Nats by which V may be above U in its outskirts, where the target is as likely as at draws."""

CLEAR, CLOSE = 3, 2
"""Rounds in a row that must miss nothing about the surrogate's mass, and how many are enough if it
is right all about. One is easily lucky where an arm of the target is thin."""

RIGHT = 0.25
"""Nats by which a surrogate that is right all about its mass is off anywhere there at most. Where
an arm has yet to be seen, it is off by more at some of a dozen points."""

RISE, FALL = 0.02, 0.9
"""Rounds are a gain if their mean acceptance is so much above that of those before, or the spread
falls to such a part."""


@attrs.frozen(kw_only=True)
class Judgement:
    """The judgement of one round.

    Parameters
    ----------
    acceptance : float
        Predicted acceptance of independent draws.
    spread : float
        Of V - U, in nats.
    missed : int, optional
        In how many places the target goes on though the surrogate ends; None where nobody looked.
    off : float, optional
        By how much V is off at most about the mass, in nats; None where nobody looked.
    """

    acceptance: float
    spread: float
    missed: int | None = None
    off: float | None = None

    @classmethod
    def of(cls, queue: Queue, exact: FloatArray) -> Judgement:
        """Return the judgement of a queue whose points judge, by U there, shape (n,)."""
        errors = difference(queue.predicted, exact)
        inner = errors[~queue.is_outer]
        judged = cls(acceptance=predicted_acceptance(inner), spread=spread(inner))
        if not queue.is_outer.any() or not np.isfinite(inner).any():
            return judged
        offset = float(np.median(inner[np.isfinite(inner)]))
        values, outskirts = exact[queue.is_outer], queue.outskirts
        return attrs.evolve(
            judged,
            missed=outskirts.missed(values, offset, TOO_HIGH),
            off=outskirts.off(values, offset),
        )

    @classmethod
    def at_draws(cls, past: Past, surrogate: Potential) -> Judgement:
        """Return the judgement of a surrogate by draws of the target."""
        errors = difference(surrogate.value(past.positions), past.values)
        # either of two densities may be the target: as often are draws of the other accepted
        return cls(acceptance=predicted_acceptance(-errors), spread=spread(errors))


def difference(predicted: FloatArray, values: FloatArray) -> FloatArray:
    """Return V - U (n,), -inf where U is not finite."""
    finite = np.isfinite(values)
    return np.where(finite, predicted - np.where(finite, values, 0.0), -np.inf)


def foretold(judgements: tuple[Judgement, ...]) -> float | None:
    """Return the predicted acceptance by the last rounds; None before the first.

    Rounds that look about the mass have fewer draws, so that up to three of them are believed.
    """
    if not judgements:
        return None
    looked = [each.missed is not None for each in judgements[-CLEAR:]]
    n = looked[::-1].index(False) if False in looked else len(looked)
    return float(np.mean([each.acceptance for each in judgements[-max(n, 1) :]]))


def is_clear(judgements: tuple[Judgement, ...], *, convex: bool) -> bool:
    """Return whether the last rounds looked about the mass and found nothing.

    A convex target has no arms, and one such round is enough.
    """

    def are_clear(n: int, most_off: float) -> bool:
        last = judgements[-n:]
        clear = [x.missed == 0 and x.off is not None and x.off <= most_off for x in last]
        return len(last) == n and all(clear)

    return are_clear(1 if convex else CLEAR, np.inf) or are_clear(CLOSE, RIGHT)


def is_no_gain(judgements: tuple[Judgement, ...], patience: int) -> bool:
    """Return whether the last rounds were no better than as many before them."""
    if len(judgements) < 2 * patience or judgements[-1].missed:
        return False
    # means, as each round has but a batch of points to tell
    before, since = judgements[-2 * patience : -patience], judgements[-patience:]
    more = np.mean([each.acceptance for each in since]) - np.mean([e.acceptance for e in before])
    wide, narrow = (np.median([each.spread for each in part]) for part in (before, since))
    return bool(more < RISE and narrow > FALL * wide)
