"""What rounds know of a target: points, modes, the covariance, and where its chains are.

A surrogate learns nothing of where the target fails, and goes on to propose points there. So where
failures are frequent, a classifier learns from failed and from good points which of the next ones
would fail, and these are left out. It only chooses points; what is accepted, the target decides.
"""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from surrokit.capabilities import INITIAL
from surrokit.errors import SurrogateFitError
from surrokit.exploring import idle
from surrokit.interfaces import ChainState, Evaluations, Explored, Findings, Past, StepInfo, Tuning
from surrokit.modes import Modes
from surrokit.potentials import FullPotential, Potential
from surrokit.surrogate.training import near_least
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_learning.approach import begin_about, quotas
from surrokit_learning.draws import Region, find_region, mode_of, normal_design, spread_evenly
from surrokit_learning.judgement import Judgement, acceptance_by, resample
from surrokit_learning.modes_found import WIDE, inverse_curvature, predicted_covariance
from surrokit_learning.modes_search import Limits, ModeSearch

APART = 0.1
"""Nats above two modes that lie between them, if they are not one that was found twice."""


class Survey:
    """What is known of a target so far, and how much more may be evaluated.

    Points ``seen`` have finite values, and gradients where they were evaluated; ``failed (k, dim)``
    have none. At the ``mode (dim,)`` is the least potential found, or it is None; so it is where
    mass may lie elsewhere.
    """

    limits: Limits  # of the search
    left: int = 0  # evaluations that may be made
    most: float = 0.0  # of them for any number of modes; 0 where ``left`` was given
    steps: int = 0  # iterations so far
    over: bool = False
    price: int = 1  # calls of a point with what is learnt there: values make up differences
    n_draws: int = 4000  # usual ones, or as many as may be evaluated
    ready: bool = False  # whether there are points enough for a surrogate
    n_first: int = 0  # points before that
    approximated: float = 0.0  # predicted acceptance of draws of the Laplace approximation
    few_judge: bool = False  # whether a few draws of a cheap model judge it, and no point about it
    checked: bool = False  # whether evaluations that were known suffice for a surrogate
    at_draws: bool = False  # whether chains are at draws of the target
    search: ModeSearch | None = None
    ends: Modes | None = None  # of searches by outputs alone
    covariance: FloatArray | None = None
    mode: FloatArray | None = None
    tuning: Tuning | None = None

    def __init__(
        self, exact: Potential, positions: FloatArray, *, by_gradients: bool, batch: int
    ) -> None:
        self.exact, self.dim, self.by_gradients, self.batch = exact, exact.dim, by_gradients, batch
        self.chains = ChainState(positions=positions, values=np.empty(0), cache={})
        self.seen, self.failed = Evaluations.empty(self.dim), np.empty((0, self.dim))
        self.judged: list[Judgement] = []
        # beside the search by gradients half a batch tells enough
        self.few = max(batch // 2, 1) if by_gradients else batch
        self._withheld: Evaluations | None = Evaluations.empty(self.dim)  # until a search is over
        self._reliable = True  # that mass is about the modes
        self._known_values = np.empty(0)  # of evaluations that were made before

    def recall(self, past: Past) -> None:
        """Begin with draws of earlier runs, and put the chains at some of them."""
        rows = np.linspace(0, len(past) - 1, len(self.chains.positions)).astype(np.int64)
        self.chains = ChainState(positions=past.positions[rows], values=past.values[rows], cache={})
        self.seen = Evaluations(positions=past.positions, values=past.values)
        self.covariance = np.cov(past.positions, rowvar=False).reshape(self.dim, self.dim)

    def suffices(self, known: Evaluations | None) -> bool:
        """Return whether evaluations that were known are as many as a round, where mass may be."""
        return known is not None and len(_low(known)) >= max(self.enough, self.batch)

    def recall_rows(self, known: Evaluations, rng: np.random.Generator) -> None:
        """Begin with evaluations that were known, and put the chains at some of the lowest."""
        self.seen, low = _without_outputs(known), _low(known)
        rows = np.resize(resample(-low.values, len(low), rng), len(self.chains.positions))
        at = low.positions[rows]
        self.chains = ChainState(positions=at, values=low.values[rows], cache={})
        self.covariance = np.cov(low.positions, rowvar=False).reshape(self.dim, self.dim)

    def leads_away(self, surrogate: Potential, starts: FloatArray) -> bool:
        """Return whether descents on a surrogate end at several modes, or past what is known."""
        ends = np.stack([mode_of(surrogate, at) for at in (self.best, *starts)])
        values = surrogate.value(ends)
        lowest = int(np.argmin(values))
        between = surrogate.value(0.5 * (ends + ends[lowest]))
        try:
            away = ~self.region.holds(ends) | (between > np.maximum(values, values[lowest]) + APART)
        except SurrogateFitError:
            return True
        return bool((away & (values <= values[lowest] + self.dim + WIDE)).any())

    def recall_values(self, known: Evaluations) -> None:
        """Begin a search with evaluations that the learner has observed."""
        self.seen = _without_outputs(known)
        self._known_values = self.seen.values

    def end_search(self) -> None:
        """Begin rounds at once where what is known is as much as a round would tell."""
        lowest, modes = None if self.search is None else self.search.lowest, self.several
        if modes is not None:  # each has edges of its own; rounds end before where V is clear
            more = (len(modes) - 1) * (self.left // 2)
            self.left += int(max(min(more, self.most - self.left), 0))
        if lowest is not None:
            self.n_first = int((self._known_values <= lowest.value + self.dim + WIDE).sum())
        self.ready = self.n_first >= max(self.enough, self.batch)
        self.approximated, self.checked = float(self.ready), self.ready

    # --- what is known ---

    def explored(self, step: StepInfo | None = None, rows: Evaluations | None = None) -> Explored:
        """Return an iteration, with rows that no surrogate has learnt from."""
        found = Findings(
            chains=self.chains,
            covariance=self.covariance,
            step_size=None if self.tuning is None else self.tuning.step_size,
            mode=self.mode,
            tuning=self.tuning,
            acceptance=acceptance_by(self.judged),
            missed=sum(each.missed or 0 for each in self.judged[-1:]),
            modes=self.modes,
            at_draws=self.at_draws,
        )
        return Explored(findings=found, step=step, rows=rows, done=self.over)

    @property
    def hessian(self) -> FloatArray | None:
        """Second derivatives at the mode, or what stands for them, where known."""
        lowest = None if self.search is None else self.search.lowest
        return None if lowest is None else lowest.hessian

    @property
    def modes(self) -> Modes | None:
        """The modes that were found; None where they were not looked for."""
        found = self.ends if self.search is None else self.search.found
        return None if found is None else attrs.evolve(found, reliable=self._reliable)

    @property
    def several(self) -> Modes | None:
        """The modes that matter, if these are two or more, that of the largest mass first."""
        modes = self.modes
        if modes is None or modes.matters.sum() < 2:
            return None
        heaviest = np.argsort(-modes.masses, kind="stable")
        return modes.take(heaviest[modes.matters[heaviest]])

    @property
    def best(self) -> FloatArray:
        """The position, shape (dim,), of the least potential known."""
        if self.mode is not None:
            return self.mode
        values, positions = self.chains.values, self.chains.positions
        if np.min(self.seen.values, initial=np.inf) < values.min():
            values, positions = self.seen.values, self.seen.positions
        return np.asarray(positions[int(np.argmin(values))])

    @property
    def region(self) -> Region:
        """Where a surrogate of the points seen is trusted."""
        covariance, modes = self.covariance, self.several
        if covariance is not None and modes is not None:  # that is within modes
            away = modes.positions - modes.masses @ modes.positions
            covariance = covariance + (away.T * modes.masses) @ away
        return find_region(self.seen, covariance, by_values=not self.by_gradients)

    def promising(self, positions: FloatArray) -> BoolArray:
        """Return at which positions (k, dim) the target is not likely to fail."""
        return promising(self.seen.positions, self.failed, positions)

    def share_out(self, order: IntArray, positions: FloatArray, n: int) -> IntArray:
        """Return n rows of positions, the first of an order, of each of several modes by weight."""
        modes = self.several
        if modes is None or not len(order):
            return order[:n]
        labels, ranks = modes.nearest(positions[order]), modes.turns(positions[order])
        # one of each mode, then what is due to each, then what is left
        turn = (ranks > 0) + 1 * (ranks >= quotas(modes.masses, n)[labels])
        return np.asarray(order[np.argsort(turn, kind="stable")[:n]])

    # --- what is learnt ---

    def add(self, evaluated: Evaluations) -> Evaluations:
        """Take note of evaluations, and return those that are to be learnt from.

        All of them, but for those from the way to modes that lie far above, which wait until the
        search is over. They do not show where the target has its mass, and the outputs
        of a forward map may be so large there that no weight makes up for it.
        """
        failed = evaluated.positions[~np.isfinite(evaluated.values)]
        self.failed = np.vstack([self.failed, failed])
        self.seen = Evaluations.join([self.seen, _without_outputs(evaluated)], self.dim)
        if self.search is None or self._withheld is None:
            return evaluated
        self._withheld = withheld = Evaluations.join([self._withheld, evaluated], self.dim)
        if not self.search.over:
            return Evaluations.empty(self.dim)
        self._withheld = None
        return near_least(withheld)

    def move_chains(
        self,
        positions: FloatArray,
        values: FloatArray,
        log_weights: FloatArray,
        rng: np.random.Generator,
    ) -> StepInfo:
        """Move chains to points chosen by log importance weights, -inf for none; others stay."""
        n = len(self.chains.values)
        rows = self.share_out(resample(log_weights, len(values), rng), positions, n)
        at, u = self.chains.positions.copy(), self.chains.values.copy()
        at[: len(rows)], u[: len(rows)] = positions[rows], values[rows]
        self.chains = ChainState(positions=at, values=u, cache={})
        return idle(n, len(rows))

    def doubt(self, starts: FloatArray, rng: np.random.Generator) -> None:
        """Put chains back to their ``starts (n, dim)`` if no mass is about the modes.

        Searches may have ended in the narrow end of a funnel, and chains that go on without a
        surrogate would not come out of it. Gradients at some draws are evaluated.
        """
        modes = self.modes
        rows = self.seen.find(starts)
        if not self.by_gradients or modes is None or (rows < 0).any():
            return
        chains = ChainState(positions=starts, values=self.seen.values[rows], cache={})
        if not begin_about(self.exact, modes, chains, rng)[1].reliable:
            self.chains, self.mode, self.covariance = chains, None, None
            self._reliable = False

    # --- where to evaluate next ---

    @property
    def enough(self) -> int:
        """How many points a surrogate needs before its draws mean anything."""
        modes, dim = self.several, self.dim
        if self.by_gradients:
            return max(self.few, (dim + 5) * (1 if modes is None else len(modes)))
        return max(self.few, min((dim + 1) * (dim + 2) // 2 + 5, 4 * dim))

    def design(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return points, and the potential that they are draws of but for a constant.

        They are the first ones, or lie about the best so far.
        """
        if self.ready:
            try:
                centre, covariance = self.region.whitening.mean, self.region.covariance
            except SurrogateFitError:
                pass
            else:
                return normal_design(centre[None], covariance[None], self.batch, rng)
        n = max(self.enough - self.n_first, self.few)
        if not self.by_gradients:
            centre, half = self.best, np.full(self.dim, 2.0)
            if INITIAL in self.exact.capabilities:
                draws = cast(FullPotential, self.exact).initial(rng, 500)
                if (draws.std(axis=0) > 0).all():  # uniform points then have their moments
                    centre, half = draws.mean(axis=0), np.sqrt(3.0) * draws.std(axis=0)
            self.covariance = np.diag(np.square(half) / 3.0)
            moves = 2.0 * spread_evenly(n, self.dim, rng) - 1.0
            return centre + half * moves, np.zeros(n)
        modes = self.several
        if modes is not None:
            self.covariance = modes.covariance_within
            return normal_design(modes.positions, modes.covariances, n, rng)
        self.covariance = self._first_covariance()
        if self.hessian is None:  # the covariance is better known with every batch
            n = self.few
        return normal_design(self.best[None], self.covariance[None], n, rng)

    def _first_covariance(self) -> FloatArray:
        """Return that of a Laplace approximation, or what gradients make of it."""
        lowest = None if self.search is None else self.search.lowest
        if lowest is not None and lowest.hessian is not None:
            return inverse_curvature(lowest.hessian)
        if lowest is None or self.seen.gradients is None:
            return 4.0 * np.eye(self.dim)
        rows = self.seen.take(np.asarray(np.isfinite(self.seen.gradients).all(axis=1)))
        return predicted_covariance(lowest.position, lowest.gradient, rows)


def _low(rows: Evaluations) -> Evaluations:
    """Return evaluations not far above the least of them, each position once."""
    rows = rows.take(
        rows.values <= np.min(rows.values, initial=np.inf) + rows.positions.shape[1] + WIDE
    )
    return rows.take(np.sort(np.unique(rows.positions, axis=0, return_index=True)[1]))


def _without_outputs(rows: Evaluations) -> Evaluations:
    """Return finite values and their gradients."""
    kept = Evaluations(positions=rows.positions, values=rows.values, gradients=rows.gradients)
    return kept.take(np.asarray(np.isfinite(rows.values)))


def promising(good: FloatArray, failed: FloatArray, positions: FloatArray) -> BoolArray:
    """Return at which positions (k, dim) a target is not likely to fail; all if it is at each.

    It did not at ``good (n, dim)``, and did at ``failed (m, dim)``.
    """
    every = np.ones(len(positions), dtype=bool)
    # points that must have failed for a classifier to be learnt
    few = len(failed) < max(20, 0.1 * (len(failed) + len(good)))
    if few or not len(positions) or not len(good):
        return every
    from sklearn.svm import SVC

    good, failed = good[-1000:], failed[-1000:]
    with np.errstate(over="ignore", invalid="ignore"):  # searches may have gone very far
        centre, width = good.mean(axis=0), good.std(axis=0)
    width = np.where((width > 0.0) & np.isfinite(width), width, 1.0)

    def standardize(rows: FloatArray) -> FloatArray:
        # where exactly a position is does not matter beyond, and it might overflow
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.nan_to_num((rows - centre) / width, nan=1e3)
        return np.asarray(np.clip(apart, -1e3, 1e3))

    labels = np.arange(len(good) + len(failed)) >= len(good)
    # failures do not depend on chance, so that a point on the wrong side costs much
    classifier = SVC(C=10.0).fit(standardize(np.vstack([good, failed])), labels)
    fine = ~np.asarray(classifier.predict(standardize(positions)), dtype=bool)
    return fine if fine.any() else every
