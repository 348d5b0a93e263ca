"""What exact values at draws of a surrogate say of it."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.interfaces import Past
from surrokit.potentials import Potential
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.umbrella import Edges
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_learning.draws import SurrogateDraws

JUDGES = 5
"""Draws that say something of a surrogate; the last round may have fewer."""

CLEAR = 3
"""Rounds in a row that must miss nothing about the surrogate's mass. One is easily lucky where an
arm of the target is thin."""


@attrs.frozen(kw_only=True, eq=False)
class Queue:
    """Points (k, dim) to be evaluated, and what they were drawn from, each of shape (k,)."""

    positions: FloatArray
    expected: FloatArray  # potential that they are draws of; -inf where no chain shall move there
    predicted: FloatArray  # the surrogate V there; NaN where they are no draws of a surrogate
    is_outer: BoolArray  # which are no draws of V, but lie about its mass
    typical: float = np.inf  # V that most of its draws do not exceed, where there are outer points
    covariance: FloatArray | None = None  # of the draws, for once the target agrees with them
    temperature: float = 1.0  # T, where they are draws of V / T
    trusted: bool = False  # whether they are draws of V itself

    @classmethod
    def empty(cls, dim: int) -> Queue:
        """Return one without points."""
        none = np.empty(0)
        return cls(positions=np.empty((0, dim)), expected=none, predicted=none, is_outer=none == 0)

    @classmethod
    def of(cls, draws: SurrogateDraws, surrogate: Potential, inner: IntArray) -> Queue:
        """Return some draws (rows ``inner``) of a surrogate V, after the points about its mass."""
        positions, expected, outer = draws.positions[inner], draws.values[inner], draws.outer
        predicted = surrogate.value(positions)
        n, k = len(inner), 0 if outer is None else len(outer)
        if outer is not None:
            positions = np.concatenate([outer.positions, positions])
            predicted = np.concatenate([outer.values, predicted])
        return cls(
            positions=positions,
            expected=np.concatenate([np.full(k, -np.inf), expected]),
            predicted=predicted,
            is_outer=np.arange(k + n) < k,
            typical=np.inf if outer is None else outer.typical,
        )

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def judges(self) -> bool:
        """Whether the points are draws of a surrogate, and enough of them to say how good it is."""
        inner = len(self) - int(self.is_outer.sum())
        return inner >= JUDGES and not bool(np.isnan(self.predicted).any())

    def refill(self, positions: FloatArray, expected: FloatArray) -> Queue:
        """Return one with other points (k, dim), which are no draws of a surrogate."""
        none, inner = np.full(len(positions), np.nan), np.zeros(len(positions), dtype=bool)
        return attrs.evolve(
            self, positions=positions, expected=expected, predicted=none, is_outer=inner
        )

    def take(self, rows: slice | BoolArray) -> Queue:
        """Return one with some of the points."""
        names = ("positions", "expected", "predicted", "is_outer")
        return attrs.evolve(self, **{name: getattr(self, name)[rows] for name in names})


@attrs.frozen(kw_only=True)
class Judgement:
    """The judgement of one round."""

    acceptance: float  # predicted, of independent draws
    spread: float  # of V - U, in nats
    # places where the target goes on though the surrogate ends; None where nobody looked
    missed: int | None = None

    @classmethod
    def of(cls, queue: Queue, exact: FloatArray) -> Judgement:
        """Return the judgement of a queue whose points judge, by U there, shape (n,)."""
        errors, outer = difference(queue.predicted, exact), queue.is_outer
        inner = errors[~outer]
        judged = cls(acceptance=predicted_acceptance(inner), spread=spread(inner))
        if not outer.any() or not np.isfinite(inner).any():
            return judged
        offset = float(np.median(inner[np.isfinite(inner)]))
        at, values = queue.positions[outer], queue.predicted[outer]
        edges = Edges(positions=at, values=values, typical=queue.typical)
        return attrs.evolve(judged, missed=edges.missed(exact[outer], offset, too_high=1.0))

    @classmethod
    def held_out(cls, quality: FitQuality) -> Judgement:
        """Return the judgement of a surrogate by rows that it was not fitted to."""
        return cls(acceptance=quality.acceptance, spread=float(np.sqrt(quality.variance)))

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


def acceptance_by(judgements: list[Judgement]) -> float | None:
    """Return the predicted acceptance by the last rounds; None before the first.

    Rounds that look about the mass have fewer draws, so that up to three of them count.
    """
    if not judgements:
        return None
    looked = [each.missed is not None for each in judgements[-CLEAR:]]
    n = looked[::-1].index(False) if False in looked else len(looked)
    return float(np.mean([each.acceptance for each in judgements[-max(n, 1) :]]))


def is_clear(judgements: list[Judgement], *, once: bool) -> bool:
    """Return whether the last rounds looked about the mass and found nothing.

    ``once`` is enough where a convex target has no arms, or where evaluations were known before.
    """
    last = judgements[-1 if once else -CLEAR :]
    return len(last) == (1 if once else CLEAR) and all(each.missed == 0 for each in last)


def predicted_acceptance(differences: FloatArray) -> float:
    """Return the mean probability of accepting an independent draw of the surrogate.

    With w = exp(V - U), a chain at a draw of the target accepts a draw of the surrogate with
    probability min(1, w' / w) on average over E[min(w, w')] / E[w], both drawn from the surrogate
    (Liu 1996, doi:10.1007/BF00162521).

    Differences (n,) are V - U at independent draws of the surrogate, in nats, -inf where the target
    cannot be evaluated; an additive constant makes no difference. The result is NaN with fewer than
    two draws, and 0 where the target is finite at none.
    """
    n = len(differences)
    if n < 2:
        return float("nan")
    largest = np.max(differences, initial=-np.inf)
    if not np.isfinite(largest):
        return 0.0
    weights = np.exp(differences - largest)
    # sorted, the lesser of a pair is the earlier one
    ascending = np.sort(weights)
    lesser = float(ascending @ np.arange(n - 1, -1, -1)) / (0.5 * n * (n - 1))
    return lesser / float(weights.mean())


def spread(differences: FloatArray) -> float:
    """Return the standard deviation of V - U, in nats, as far as half of the draws tell it.

    By the quartiles, so that a few draws far out do not hide that the others come nearer.
    """
    finite = differences[np.isfinite(differences)]
    if len(finite) < 2:
        return float("inf")
    low, high = np.quantile(finite, (0.25, 0.75))
    return float(high - low) / 1.349


def resample(differences: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return n distinct rows, or as many as there are, drawn by exp(V - U); none where it is 0."""
    noise = rng.gumbel(size=len(differences))  # the largest sums are a draw without replacement
    keys = np.where(np.isfinite(differences), differences + noise, -np.inf)
    order = np.argsort(-keys, kind="stable")
    return np.asarray(order[: min(n, int(np.isfinite(keys).sum()))])
