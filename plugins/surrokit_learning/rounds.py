"""Exploration in rounds: exact evaluations where the surrogate of those so far has its mass."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, cast

import attrs
import numpy as np

from surrokit.arguments import (
    fraction,
    one_of,
    optional_positive_integer,
    positive,
    positive_integer,
)
from surrokit.capabilities import CONVEX, GRADIENT, require
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.exploring import demand_warmup, evaluate_alone, evaluate_with_gradients, idle
from surrokit.interfaces import (
    ChainState,
    Correction,
    Evaluations,
    Explored,
    Findings,
    Past,
    Sampler,
    Start,
    StepInfo,
    Tuning,
)
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential
from surrokit.targets.differences import RISE
from surrokit.types import Capabilities, FloatArray
from surrokit_learning.approach import chains_at
from surrokit_learning.draws import (
    SurrogateDraws,
    Tempered,
    cautious,
    mode_of,
    normal_design,
    surrogate_draws,
)
from surrokit_learning.judgement import (
    JUDGES,
    Judgement,
    Queue,
    acceptance_by,
    difference,
    is_clear,
    is_no_gain,
    predicted_acceptance,
    resample,
)
from surrokit_learning.modes_found import inverse_curvature
from surrokit_learning.modes_search import Limits, ModeSearch
from surrokit_learning.survey import Box, Survey

OUTER = 0.6
"""Part of a batch that lies about the surrogate's mass, once V is good within."""

MOBILE, FREE = 0.1, 0.5
"""Parts of the moves on a surrogate that must be accepted if its draws are to say anything, and to
judge it. Where most would leave the region of the points seen, the mass is elsewhere."""

UNSURE = 0.6
"""Predicted acceptance below which sub-chains find their length alone, and modes are in doubt."""


def _box(value: tuple[FloatArray | float, FloatArray | float] | None) -> Box | None:
    if value is None:
        return None
    try:
        lower, upper = (np.asarray(corner, dtype=np.float64) for corner in value)
        right = bool((np.isfinite(lower) & np.isfinite(upper) & (lower < upper)).all())
    except (TypeError, ValueError):
        right = False
    if not right:
        raise ConfigurationError(
            f"box must be a pair of corners with every lower number below its upper one, got "
            f"{value!r}; pass (lower, upper) in the sampling coordinates"
        )
    return lower, upper


@attrs.frozen(kw_only=True, eq=False)
class Rounds:
    """Evaluate where the surrogate has its mass, learn, and look where it has it now.

    The first points lie about the mode, or in a box where there are no gradients. Then each round
    runs a sampler on the surrogate, which is free, evaluates the target where its chains end, and
    so sees, at points that the surrogate has not learnt from, what the exact decision will make of
    its draws. It ends when that is good enough. Where draws of earlier runs say that a surrogate of
    all their evaluations is good, nothing is evaluated.

    Parameters
    ----------
    sampler, correction
        The kernel that draws from the surrogate.
    tuned
        The sampler to tune on the last surrogate: the run's own.
    start
        ``"mode"``: a search for the mode from the best start, and draws from the Laplace
        approximation there; it needs gradients. ``"sobol"``: points spread over a box.
        ``"auto"``: ``"mode"`` where gradients are evaluated, else ``"sobol"``.
    gradients
        Whether points are evaluated with their gradients (of forward maps: Jacobians); None for
        where the target offers them.
    evaluations
        Exact evaluations at most; None for 100 + 10 dim with gradients, beside those of the search
        for the mode, and 200 + 20 dim without.
    batch
        Points in a round.
    acceptance
        Predicted acceptance of independent draws that is good enough; without gradients on average
        over three rounds.
    searches
        Starts at most from which to search for modes; None for as many as a tenth of the
        evaluations allows, three at least. One is enough where the target says that it is convex.
    patience
        Rounds after which to stop if they are no better than as many before them; None for 3 with
        gradients and 10 without.
    transitions
        Of each chain on the surrogate in a round.
    box
        Lower and upper corners, in the sampling coordinates, of the box that ``"sobol"`` fills.
    scale
        Half the box's width about the best start, where there is neither a box nor a target that
        draws starting positions of its own.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    sampler: Sampler
    correction: Correction
    tuned: Sampler
    start: Literal["auto", "mode", "sobol"] = attrs.field(
        default="auto", validator=one_of("auto", "mode", "sobol")
    )
    gradients: bool | None = None
    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    batch: int = attrs.field(default=20, validator=positive_integer)
    acceptance: float = attrs.field(default=0.9, validator=fraction)
    searches: int | None = attrs.field(default=None, validator=optional_positive_integer)
    patience: int | None = attrs.field(default=None, validator=optional_positive_integer)
    transitions: int = attrs.field(default=60, validator=positive_integer)
    box: Box | None = attrs.field(default=None, converter=_box)
    scale: float = attrs.field(default=2.0, validator=positive)

    @property
    def needs(self) -> Capabilities:
        """A gradient, if a setting asks for it."""
        by_gradient = self.start == "mode" or self.gradients is True
        return frozenset({GRADIENT}) if by_gradient else frozenset()

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Draw on the surrogate, evaluate there, judge it by that, fit it anew, until it is good.

        Yield after each part of the search for modes, of the first points, and each round.

        Raises
        ------
        ConfigurationError
            If the warm-up has no iteration for it.
        """
        demand_warmup("rounds", start.warmup)
        return _Exploration(self, start).run(rng)


class _Exploration:
    """Rounds on one target: what they know, and what they may still evaluate."""

    def __init__(self, settings: Rounds, start: Start) -> None:
        self.settings, self.start, self.exact = settings, start, start.potential
        chains, dim = start.positions.shape
        offered, wanted = GRADIENT in self.exact.capabilities, settings.gradients
        self.by_gradients = offered if wanted is None else wanted
        price = calls_per_gradient(self.exact) if self.by_gradients else 1
        self.by_differences = price > 1
        usual = "mode" if self.by_gradients else "sobol"
        self.begins = usual if settings.start == "auto" else settings.start
        at = ChainState(positions=start.positions, values=np.empty(0), cache={})
        self.known = Survey(self.exact, at, by_gradients=self.by_gradients, batch=settings.batch)
        self.queue = Queue.empty(dim)
        self.may_fit = False  # whether there are points enough for a surrogate
        self.n_first = 0  # points of the first design that were evaluated
        self.approximated = 0.0  # predicted acceptance of draws of the Laplace approximation
        self.checked = 0  # rounds that known evaluations stand for
        self.judgements: list[Judgement] = []
        self.tuning: Tuning | None = None
        self.at_draws = self.finished = False
        self.seed = self.steps = self.evaluated = 0
        self.affordable = None if start.calls is None else max(start.calls // price, 1)
        # half of the calls is left to what follows
        self.half = math.inf if self.affordable is None else self.affordable // 2
        self.usual = 100 + 10 * dim if self.by_gradients else 200 + 20 * dim
        if settings.evaluations is not None:
            self.most = max(settings.evaluations, chains + 1)
        else:
            self.most = self.usual
            if self.begins == "mode":
                self.most = int(min(self.usual, max(self.half, chains + 1)))

    def run(self, rng: np.random.Generator) -> Iterator[Explored]:
        """Yield after each iteration."""
        if self.start.past is not None:
            yield from self._recall(self.start.past, rng)
        else:
            yield from self._search(rng)
        while not self.finished:
            self._next(rng)
            if not len(self.queue):  # there was no surrogate, or none to draw from
                self._queue_design(rng)
            step = self._evaluate_and_judge(rng)
            self.finished = self._is_over()
            yield self._fit_and_draw(step)

    def _next(self, rng: np.random.Generator) -> None:
        self.seed, self.steps = int(rng.integers(2**62)), self.steps + 1

    def _fit_and_draw(self, step: StepInfo) -> Explored:
        """Fit a surrogate to what is known, and queue draws of it; or tune the sampler at last."""
        rows = self.known.add(self.start.evaluated())
        if not (self.finished or self.may_fit):
            return self._explored(step, rows)
        self._look(self.start.fit(rows))
        return self._explored(step)

    def _explored(self, step: StepInfo | None = None, rows: Evaluations | None = None) -> Explored:
        """Return the iteration, with rows that no surrogate has learnt from."""
        known, last = self.known, self.judgements[-1:]
        found = Findings(
            chains=known.chains,
            covariance=known.covariance,
            step_size=None if self.tuning is None else self.tuning.step_size,
            mode=known.mode,
            tuning=self.tuning,
            acceptance=acceptance_by(self.judgements),
            missed=sum(each.missed or 0 for each in last),
            modes=known.modes,
            at_draws=self.at_draws,
        )
        return Explored(findings=found, step=step, rows=rows, done=self.finished)

    # --- how it begins ---

    def _recall(self, past: Past, rng: np.random.Generator) -> Iterator[Explored]:
        """Begin at draws of earlier runs; end if their evaluations make a good surrogate."""
        self.known.recall(past)
        yield self._explored()
        self._next(rng)
        surrogate = self.start.fit(self.start.evaluated())
        if surrogate is not None:
            self.judgements.append(Judgement.at_draws(past, surrogate))
            self.finished = self.judgements[0].acceptance >= self.settings.acceptance
            self.at_draws = self.finished
        self.may_fit = True
        self._look(surrogate)
        yield self._explored(idle(len(self.start.positions)))

    def _search(self, rng: np.random.Generator) -> Iterator[Explored]:
        """Evaluate the starts, and search for modes from there, if that is how to begin."""
        at, known = self.start.positions, self.known
        # where a gradient is made of values, starts alone are not worth it
        if self.by_gradients and not self.by_differences:
            known.chains = chains_at(self.exact, at)
        else:
            values = evaluate_alone(self.exact, at)
            known.chains = ChainState(positions=at, values=values, cache={"value": values})
        self.evaluated = len(at)
        yield self._explored()
        if self.begins != "mode":
            return
        search, over = self._mode_search(known.chains), False
        known.search_by(search)
        while not over:
            self._next(rng)
            before = search.n_evaluated
            search.step(np.random.default_rng(self.seed))
            if 2 * self.steps >= self.start.warmup:
                search.stop()
            self.evaluated += search.n_evaluated - before
            if self.settings.evaluations is None:
                self.most += search.n_evaluated - before  # a search shortens no exploration
            known.mode, over = search.best, search.over
            if over:
                self.n_first = known.n_plausible
                # rounds begin at once where what is known is as much as a round would tell
                self.may_fit = self.n_first >= max(known.enough, self.settings.batch)
                self.approximated, self.checked = float(self.may_fit), int(self.may_fit)
                self.finished = self._is_over()
            yield self._fit_and_draw(idle(len(at)))

    def _mode_search(self, chains: ChainState) -> ModeSearch:
        """Return searches from chains, the first of them from the best that is known already.

        A search is cut short only where the surrogate of known evaluations agrees with the target
        at what the search has evaluated, at its start at least, and leads to a mode that is found.
        """
        starts, values, surrogate = chains.positions, chains.values, None
        known, given = self.start.known, self.settings.evaluations
        if known is not None and self.by_gradients and len(known):
            self.known.recall_rows(known)
            lowest = int(np.argmin(known.values))
            best = known.positions[lowest]
            surrogate = self.start.fit(Evaluations.empty(self.known.dim))
            if surrogate is not None and GRADIENT in surrogate.capabilities:
                best = mode_of(surrogate, best)
            else:
                surrogate = None
            starts = np.vstack([best, starts])
            values = np.append(min(known.values[lowest], values.min()) - 1.0, values)
        most = given or min(self.usual, max(self.half, 1))
        later = 0.1 * (most if self.affordable is None else self.affordable)
        limit = self.most // 2 if given is not None else int(min(2 * most, self.half))
        limits = Limits(
            total=limit - len(chains.positions),
            later=later,
            searches=self.settings.searches,
            spare=int(2 * later) if given is None else 0,
            beside=Limits.unnoticed(self.affordable),
        )
        return ModeSearch(self.exact, starts, values, limits, surrogate)

    # --- a round ---

    def _queue_design(self, rng: np.random.Generator) -> None:
        """Queue more of the first points, or points about the best ones so far."""
        known, settings = self.known, self.settings
        if self.may_fit:
            try:
                mean, covariance = known.region.whitening.mean, known.region.covariance
            except SurrogateFitError:
                pass
            else:
                design = normal_design(mean, covariance, settings.batch, rng)
                self.queue = self.queue.refill(*design)
                return
        left = max(known.enough - self.n_first, known.few)
        if self.begins == "sobol":
            design = known.fill_box(left, settings.box, settings.scale, rng)
        else:
            design = known.fill_modes(left, settings.scale, rng)
        self.queue = self.queue.refill(*design)

    def _evaluate_and_judge(self, rng: np.random.Generator) -> StepInfo:
        """Evaluate the next batch, judge what it was drawn from, and move chains by importance."""
        n = max(min(self.settings.batch, self.most - self.evaluated), 1)
        queue = self.queue.take(self.known.promising(self.queue.positions))
        now, self.queue = queue.take(slice(n)), queue.take(slice(n, None))
        values = self._values(now)
        self.evaluated += len(now)
        if now.judges:
            judgement = Judgement.of(now, values)
            self.judgements.append(judgement)
            if judgement.acceptance >= 0.1:  # or else the covariance of the draws tells nothing
                self.known.covariance = now.covariance
        log_weights = difference(now.expected, values)
        if not self.may_fit:
            if self.begins == "sobol":  # points spread over a box are no draws
                log_weights = np.full(len(now), -np.inf)
            self.approximated = predicted_acceptance(log_weights)
            self.n_first += len(now)
            self.may_fit = self.n_first >= self.known.enough
        return self.known.move_chains(now.positions, values, log_weights, rng)

    def _values(self, points: Queue) -> FloatArray:
        """Return U at points (n, dim), with gradients for who learns, where these help.

        Where gradients are made of values, values judge first: if they say that the surrogate is
        good, there is nothing to be learnt.
        """
        exact, at, hessian = self.exact, points.positions, self.known.hessian
        if not self.by_gradients:
            return evaluate_alone(exact, at)
        if self.by_differences:
            if points.trusted and points.judges:
                values = evaluate_alone(exact, at)
                judgement = Judgement.of(points, values)
                if judgement.acceptance >= self.settings.acceptance and not judgement.missed:
                    return values
            if hessian is not None and _suits_one_side(hessian):
                exact = cast(Any, exact).one_sided(np.diag(hessian))
        return evaluate_with_gradients(exact, at)[0]

    def _is_over(self) -> bool:
        """Return whether all is spent, V is good, or nothing is gained."""
        # one batch of points may be lucky, and without gradients often is
        rounds = 1 if self.by_gradients else 3
        judgements, trusted = self.judgements, self.queue.trusted
        last = [each.acceptance for each in judgements[-rounds:]]
        good = len(last) == rounds and bool(np.mean(last) >= self.settings.acceptance) and trusted
        if good and self._n_outer:
            convex = CONVEX in self.exact.capabilities
            good = is_clear(judgements, convex=convex, before=self.checked)
        patience = self.settings.patience or (3 if self.by_gradients else 10)
        spent = self.steps >= self.start.warmup or self.evaluated >= self.most
        if not (spent or good or (trusted and is_no_gain(judgements, patience))):
            return False
        if (acceptance_by(judgements) or 0.0) < UNSURE:
            self.known.doubt(np.random.default_rng(self.seed))
        return True

    # --- draws on a surrogate ---

    def _look(self, surrogate: Potential | None) -> None:
        """Look where a surrogate has its mass: for the next round, or for the run at the end."""
        if surrogate is None or not len(self.known.seen):
            return
        rng = np.random.default_rng(self.seed)
        try:
            if self.finished:
                self._tune(surrogate, rng)
            else:
                self._aim(surrogate, rng)
        except SurrogateFitError:  # the points lie too far apart to say where to draw
            pass

    @property
    def _n_outer(self) -> int:
        """Points of a round that lie about the mass of a surrogate that is good within.

        None where it learns from values alone, which say nothing of what lies beyond.
        """
        looks = self.by_gradients and self.settings.sampler.kernel.needs <= {GRADIENT}
        n = self.settings.batch
        return max(min(int(OUTER * n), n - JUDGES), 0) if looks else 0

    def _draw(
        self,
        surrogate: Potential,
        sampler: Sampler,
        n_transitions: int,
        rng: np.random.Generator,
        n_outer: int = 0,
    ) -> SurrogateDraws:
        require(
            "the sampler of explorer 'rounds'",
            sampler.needs,
            surrogate.capabilities,
            "the surrogate",
            "use another sampler, or another surrogate",
        )
        seen, region, batch = self.known.seen, self.known.region, self.settings.batch
        inside = region.holds(seen.positions) & np.isfinite(surrogate.value(seen.positions))
        order = resample(np.where(inside, -seen.values, -np.inf), len(seen), rng)
        rows = self.known.share_out(order, seen.positions, batch)
        return surrogate_draws(
            surrogate,
            sampler,
            self.settings.correction,
            region=region,
            starts=seen.positions[np.resize(rows, batch)],
            n_transitions=n_transitions,
            rng=rng,
            n_outer=n_outer,
        )

    def _aim(self, surrogate: Potential, rng: np.random.Generator) -> None:
        """Queue draws from the surrogate, and points about its mass once it is good within."""
        known, settings, batch, shown = self.known, self.settings, self.settings.batch, surrogate
        if not self.by_gradients and settings.sampler.needs <= {GRADIENT}:
            error = self.judgements[-1].spread if self.judgements else None
            shown = cautious(surrogate, known.region, known.seen, error, self.queue.temperature)
        # draws of the next surrogate are expected to be as good as the last ones
        good = self.judgements[-1].acceptance if self.judgements else self.approximated
        # at first few draws go with points about the mass
        n_outer = self._n_outer if good >= 0.5 else 0
        draws = self._draw(shown, settings.sampler, settings.transitions, rng, n_outer)
        if draws.accepted < MOBILE:  # most of them were evaluated before
            return
        inner = np.arange(batch)
        if draws.outer is not None:
            first = not self.judgements and known.several is None
            few = JUDGES if first or good >= settings.acceptance else batch
            few = min(few, batch - len(draws.outer))
            # a round that lost one of its few judges on the way would not be judged
            likely = known.promising(draws.positions)
            inner = known.share_out(np.flatnonzero(likely), draws.positions, few)
        self.queue = attrs.evolve(
            Queue.of(draws, surrogate, inner),
            covariance=known.covariance if draws.covariance is None else draws.covariance,
            temperature=shown.temperature if isinstance(shown, Tempered) else 1.0,
            trusted=shown is surrogate and draws.accepted >= FREE,
        )

    def _tune(self, surrogate: Potential, rng: np.random.Generator) -> None:
        """Tune the run's own sampler on the last surrogate."""
        draws, known = self._draw(surrogate, self.settings.tuned, 150, rng), self.known
        tuning = draws.tuning
        if known.mode is None:
            known.mode = mode_of(surrogate, known.best)
        if draws.covariance is not None:
            tuning = attrs.evolve(tuning, covariance=draws.covariance)
            known.covariance = draws.covariance
        if (acceptance_by(self.judgements) or 0.0) < UNSURE:
            tuning = attrs.evolve(tuning, length=None)
        self.tuning = tuning if draws.accepted >= MOBILE else None


def _suits_one_side(hessian: FloatArray) -> bool:
    """Return whether differences to one side will do, by a matrix (dim, dim) at the mode.

    Curvatures in the bulk are taken to differ by 30 % from those at the mode. Then a gradient may
    be off by 0.02 where a standard deviation is one unit: errors of correlated parameters add up.
    """
    diagonal = np.diag(hessian)
    if not (diagonal > 0.0).all():
        return False
    bent = 0.5 * 0.3 * np.sqrt(2.0 * RISE * diagonal)
    return bool(np.sqrt(bent @ np.abs(inverse_curvature(hessian)) @ bent) <= 0.02)
