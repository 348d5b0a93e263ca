"""What rounds know of a target: points, modes, the covariance, and where its chains are.

A surrogate learns nothing of where the target fails, and goes on to propose points there. So where
failures are frequent, a classifier learns from failed and from good points which of the next ones
would fail, and these are left out. It only chooses points; what is accepted, the target decides.
"""

from __future__ import annotations

from typing import TypeAlias, cast

import attrs
import numpy as np

from surrokit.capabilities import INITIAL
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.exploring import idle
from surrokit.interfaces import ChainState, Evaluations, Past, StepInfo
from surrokit.modes import Modes
from surrokit.potentials import InitialPotential, Potential
from surrokit.surrogate.training import near_least
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_learning.approach import begin_about, quotas
from surrokit_learning.draws import (
    Region,
    box_design,
    find_region,
    mixed_design,
    normal_design,
)
from surrokit_learning.judgement import resample
from surrokit_learning.modes_found import WIDE, inverse_curvature
from surrokit_learning.modes_search import ModeSearch

Box: TypeAlias = tuple[FloatArray, FloatArray]
"""Lower and upper corner, each of shape (dim,), or (): one number for every coordinate."""

FEWEST = 20
"""Points that must have failed, and a tenth of all at least, for a classifier to be learnt."""


class Survey:
    """What is known of a target so far.

    Points ``seen`` have finite values, and gradients where they were evaluated; ``failed (k, dim)``
    have none. At the ``mode (dim,)`` is the least potential found, or it is None; so it is where
    mass may lie elsewhere.
    """

    def __init__(
        self, exact: Potential, chains: ChainState, *, by_gradients: bool, batch: int
    ) -> None:
        self.exact, self.chains, self.dim, self.by_gradients = (
            exact,
            chains,
            exact.dim,
            by_gradients,
        )
        self.seen, self.failed = Evaluations.empty(self.dim), np.empty((0, self.dim))
        self.search: ModeSearch | None = None
        self.covariance: FloatArray | None = None
        self.mode: FloatArray | None = None
        # beside the search by gradients half a batch tells enough
        self.few = max(batch // 2, 1) if by_gradients else batch
        self._starts: ChainState | None = None  # where chains were before a search
        self._withheld: Evaluations | None = None  # of a search, until it is over
        self._believed = True  # that mass is about the modes
        self._box: Box | None = None
        self._known_values = np.empty(0)  # of evaluations that were made before

    def recall(self, past: Past) -> None:
        """Begin with draws of earlier runs, and put the chains at some of them."""
        rows = np.linspace(0, len(past) - 1, len(self.chains.positions)).astype(np.int64)
        self.chains = ChainState(positions=past.positions[rows], values=past.values[rows], cache={})
        self.seen = Evaluations(positions=past.positions, values=past.values)
        self.covariance = np.cov(past.positions, rowvar=False).reshape(self.dim, self.dim)

    def recall_rows(self, known: Evaluations) -> None:
        """Begin with evaluations that the learner has observed."""
        self.seen = _without_outputs(known)
        self._known_values = self.seen.values

    @property
    def n_plausible(self) -> int:
        """How many of the known evaluations lie no higher above the mode than plausible points."""
        if self.search is None or self.search.lowest is None:
            return 0
        return int((self._known_values <= self.search.lowest.value + self.dim + WIDE).sum())

    def search_by(self, search: ModeSearch) -> None:
        """Search for modes from where the chains are."""
        self.search, self._starts = search, self.chains
        self._withheld = Evaluations.empty(self.dim)

    # --- what is known ---

    @property
    def hessian(self) -> FloatArray | None:
        """Second derivatives at the mode, or what stands for them, where known."""
        lowest = None if self.search is None else self.search.lowest
        return None if lowest is None else lowest.hessian

    @property
    def modes(self) -> Modes | None:
        """The modes that were found; None where they were not looked for."""
        found = None if self.search is None else self.search.found
        return None if found is None else attrs.evolve(found, believed=self._believed)

    @property
    def several(self) -> Modes | None:
        """The modes that matter, if these are two or more; no more than there are chains."""
        modes = self.modes
        if modes is None or modes.matters.sum() < 2:
            return None
        heaviest = np.argsort(-modes.masses, kind="stable")[: max(len(self.chains.values), 2)]
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
        return find_region(self.seen, self.covariance, by_values=not self.by_gradients)

    def promising(self, positions: FloatArray) -> BoolArray:
        """Return at which positions (k, dim) the target is not likely to fail."""
        return promising(self.seen.positions, self.failed, positions)

    def share_out(self, order: IntArray, positions: FloatArray, n: int) -> IntArray:
        """Return n rows of positions, the first of an order, of each of several modes by weight."""
        modes = self.several
        if modes is None or not len(order):
            return order[:n]
        labels = modes.nearest(positions[order])
        ranks = np.array([np.sum(labels[:i] == label) for i, label in enumerate(labels)])
        # one of each mode, then what is due to each, then what is left
        turn = (ranks > 0) + 1 * (ranks >= quotas(modes.masses, n)[labels])
        return np.asarray(order[np.argsort(turn, kind="stable")[:n]])

    # --- what is learnt ---

    def add(self, evaluated: Evaluations) -> Evaluations:
        """Take note of evaluations, and return those that are to be learnt from.

        All of them, but for those from the way to modes that lie far above, which wait until the
        search is over. They say nothing of where the target has its mass, and the outputs
        of a forward map may be so large there that no weight makes up for it.
        """
        failed = evaluated.positions[~np.isfinite(evaluated.values)]
        self.failed = np.vstack([self.failed, failed])
        self.seen = Evaluations.join([self.seen, _without_outputs(evaluated)], self.dim)
        if self._withheld is None or self.search is None:
            return evaluated
        self._withheld = Evaluations.join([self._withheld, evaluated], self.dim)
        if not self.search.over:
            return Evaluations.empty(self.dim)
        withheld, self._withheld = self._withheld, None
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

    def doubt(self, rng: np.random.Generator) -> None:
        """Put chains back to their starts if no mass is about the modes.

        Searches may have ended in the narrow end of a funnel, and chains that go on without a
        surrogate would not come out of it. Gradients at some draws are evaluated.
        """
        modes, starts = self.modes, self._starts
        if modes is None or starts is None or not np.isfinite(starts.values).all():
            return
        chains = attrs.evolve(starts, cache={})
        if not begin_about(self.exact, modes, chains, rng)[1].believed:
            self.chains, self.mode, self.covariance = chains, None, None
            self._believed = False

    # --- where to evaluate next ---

    @property
    def enough(self) -> int:
        """How many points a surrogate needs before its draws mean anything."""
        modes, dim = self.several, self.dim
        if self.by_gradients:
            return max(self.few, (dim + 5) * (1 if modes is None else len(modes)))
        return max(self.few, min((dim + 1) * (dim + 2) // 2 + 5, 4 * dim))

    def fill_box(
        self, n: int, box: Box | None, scale: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return n points in a box; without one, where the target expects itself to be."""
        if self._box is None:
            self._box = lower, upper = self._find_box(box, scale, rng)
            self.covariance = np.diag(np.square(upper - lower) / 12.0)
        return box_design(*self._box, n, rng), np.zeros(n)

    def _find_box(self, box: Box | None, scale: float, rng: np.random.Generator) -> Box:
        """Return the box given, or one where the target expects itself to be."""
        for corner in box or ():
            if corner.shape not in ((), (self.dim,)):
                raise ConfigurationError(
                    f"box must have corners of {self.dim} numbers, got shape {corner.shape}; pass "
                    "(lower, upper), each a number or an array of one number for each coordinate"
                )
        if box is not None:
            lower, upper = (np.broadcast_to(corner, self.dim).copy() for corner in box)
            return lower, upper
        if INITIAL in self.exact.capabilities:
            draws = cast(InitialPotential, self.exact).initial(rng, 500)
            # uniform points then have the standard deviations of the draws
            centre, half = draws.mean(axis=0), np.sqrt(3.0) * draws.std(axis=0)
            if (half > 0).all():
                return centre - half, centre + half
        return self.best - scale, self.best + scale

    def fill_modes(
        self, n: int, scale: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Return n points about the mode, or all of several; fewer where little is known of it."""
        modes = self.several
        if modes is not None:
            self.covariance = modes.covariance
            return mixed_design(modes.positions, modes.covariances, n, rng)
        if self.hessian is None:  # the covariance is better known with every batch
            n = self.few
        self.covariance = self._first_covariance(scale)
        return normal_design(self.best, self.covariance, n, rng)

    def _first_covariance(self, scale: float) -> FloatArray:
        """Return that of a Laplace approximation, or what gradients make of it."""
        if self.hessian is not None:
            return inverse_curvature(self.hessian)
        if self.seen.gradients is not None:
            with np.errstate(over="ignore"):  # far from a mode
                near = np.isfinite(np.square(self.seen.gradients)).all(axis=1)
            rows = self.seen.take(np.asarray(near))
            if len(rows) >= 2 and rows.gradients is not None:
                typical = self.dim + 20.0  # far rows count little
                excess = np.maximum(rows.values - rows.values.min(), typical)
                weights = (typical / excess) ** 4
                try:
                    whitening = Whitening.of_gradients(rows.positions, rows.gradients, weights)
                    return np.asarray(whitening.factor @ whitening.factor.T)
                except SurrogateFitError:
                    pass
        if self.covariance is not None:
            return self.covariance
        if self.modes is not None:
            return np.asarray(self.modes.covariances[0])
        return np.asarray(np.square(scale) * np.eye(self.dim))


def _without_outputs(rows: Evaluations) -> Evaluations:
    """Return finite values and their gradients."""
    kept = Evaluations(positions=rows.positions, values=rows.values, gradients=rows.gradients)
    return kept.take(np.asarray(np.isfinite(rows.values)))


def promising(good: FloatArray, failed: FloatArray, positions: FloatArray) -> BoolArray:
    """Return at which positions (k, dim) a target is not likely to fail; all if it is at each.

    It did not at ``good (n, dim)``, and did at ``failed (m, dim)``.
    """
    every = np.ones(len(positions), dtype=bool)
    few = len(failed) < max(FEWEST, 0.1 * (len(failed) + len(good)))
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
