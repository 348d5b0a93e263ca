"""Exploration in rounds: exact evaluations where the surrogate of those so far has its mass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias, cast

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
from surrokit.errors import SurrogateFitError
from surrokit.exploring import (
    demand_warmup,
    evaluate_alone,
    evaluate_with_gradients,
    idle,
    next_of,
)
from surrokit.interfaces import (
    ChainState,
    Correction,
    Evaluations,
    Explored,
    Explorer,
    Findings,
    Past,
    Sampler,
    Start,
    StepInfo,
    Tuning,
)
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential
from surrokit.types import Capabilities, FloatArray
from surrokit_learning.designs import Box, normal_design, optional_box, suits_one_side
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
from surrokit_learning.modes_found import chains_at
from surrokit_learning.modes_search import Limits, ModeSearch, unnoticed
from surrokit_learning.region import OFFERED, Tempered, cautious
from surrokit_learning.surrogate_draws import (
    SurrogateDraws,
    design_below,
    mode_of,
    surrogate_draws,
)
from surrokit_learning.survey import Survey

Begins: TypeAlias = Literal["auto", "mode", "sobol", "burst"]
"""How the first points are found."""

SEARCHED = 0.1
"""Part of the evaluations that may be spent to look for other modes than the first one found."""

LAST_TRANSITIONS = 150
"""Transitions on the last surrogate, on which the run's own sampler is tuned."""

TELLING = 0.1
"""Predicted acceptance from which on the covariance of a surrogate's draws is used."""

MOBILE, FREE = 0.1, 0.5
"""Parts of the moves on a surrogate that must be accepted if its draws are to say anything, and to
judge it. Where most would leave the region of the points seen, the mass is elsewhere."""

WITHIN, OUTER = 0.5, 0.6
"""Predicted acceptance from which on rounds look about the surrogate's mass as well, and the part
of a batch that they spend on it. At first, and once V is good, few draws go with them."""

UNSURE = 0.6
"""Predicted acceptance below which sub-chains find their length alone, and modes are in doubt."""


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
    burst
        The explorer that finds the first points with ``start="burst"``.
    start
        ``"mode"``: a search for the mode from the best start, and draws from the Laplace
        approximation there; it needs gradients. ``"sobol"``: points spread over a box.
        ``"burst"``: whatever another explorer evaluates. ``"auto"``: ``"mode"`` where gradients are
        evaluated, else ``"sobol"``.
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
        Starts at most from which to search for modes; None for as many as a part of the evaluations
        allows (:data:`~surrokit_learning.rounds.SEARCHED`), three at least. One is enough where the
        target says that it is convex.
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
    burst: Explorer
    start: Begins = attrs.field(default="auto", validator=one_of("auto", "mode", "sobol", "burst"))
    gradients: bool | None = None
    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    batch: int = attrs.field(default=20, validator=positive_integer)
    acceptance: float = attrs.field(default=0.9, validator=fraction)
    searches: int | None = attrs.field(default=None, validator=optional_positive_integer)
    patience: int | None = attrs.field(default=None, validator=optional_positive_integer)
    transitions: int = attrs.field(default=60, validator=positive_integer)
    box: Box | None = attrs.field(default=None, converter=optional_box)
    scale: float = attrs.field(default=2.0, validator=positive)

    @property
    def needs(self) -> Capabilities:
        """Gradients, if a setting asks for them, and what the burst needs."""
        needs = self.burst.needs if self.start == "burst" else frozenset()
        by_gradient = self.start == "mode" or self.gradients is True
        return needs | {GRADIENT} if by_gradient else needs

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Yield after each part of the search, of the first points, and each round.

        Raises
        ------
        ConfigurationError
            If the warm-up has no iteration for it.
        """
        demand_warmup("rounds", start.warmup)
        return _Exploration(self, start).run(rng)


class _Exploration:
    """Rounds on one target, and what they may still evaluate."""

    def __init__(self, settings: Rounds, start: Start) -> None:
        self.settings, self.start, self.exact = settings, start, start.potential
        chains, dim = start.positions.shape
        offered, wanted = GRADIENT in self.exact.capabilities, settings.gradients
        self.by_gradients = offered if wanted is None else wanted
        price = calls_per_gradient(self.exact) if self.by_gradients else 1
        self.by_differences = price > 1
        usual: Begins = "mode" if self.by_gradients else "sobol"
        self.begins = usual if settings.start == "auto" else settings.start
        at = ChainState(positions=start.positions, values=np.empty(0), cache={})
        self.known = Survey(self.exact, at, by_gradients=self.by_gradients, batch=settings.batch)
        self.queue = Queue(positions=np.empty((0, dim)), expected=np.empty(0))
        self.n_first = 0  # points of the first design that were evaluated
        self.approximated = 0.0  # predicted acceptance of draws of the Laplace approximation
        self.checked = 0  # rounds that known evaluations stand for
        self.judgements: list[Judgement] = []
        self.tuning: Tuning | None = None
        self.at_draws = self.finished = False
        self.unfitted = False  # whether there are points that no surrogate has learnt from
        self.seed = self.steps = self.evaluated = 0
        calls = self.affordable = None if start.calls is None else max(start.calls // price, 1)
        self.most = self._most(chains)
        self.spare = 0  # evaluations more where the surrogate lacks a part of the target's mass
        if settings.evaluations is None:
            room = self.most if calls is None else calls // 2 - self.most
            self.spare = max(min(self.most, room), 0)

    # --- the iterations ---

    def run(self, rng: np.random.Generator) -> Iterator[Explored]:
        """Yield after each iteration."""
        if self.start.past is not None:
            yield from self._recall(self.start.past, rng)
        elif self.begins == "burst":
            yield from self._burst(rng)
        else:
            yield from self._search(rng)
            yield from self._design(rng)
        while not self.finished:
            self._next(rng)
            if not len(self.queue):  # there was no surrogate, or none to draw from
                self._queue_nearby(rng)
            step = self._evaluate_batch(rng)[1]
            self._end_if_due(unfitted=True)
            yield self._learn(step)

    def _next(self, rng: np.random.Generator) -> None:
        self.seed, self.steps = int(rng.integers(2**62)), self.steps + 1

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
        self._look(surrogate)
        yield self._explored(idle(len(self.start.positions)))

    def _burst(self, rng: np.random.Generator) -> Iterator[Explored]:
        """Let another explorer find the first points, with half of all that may be spent."""
        start, known, parts = self.start, self.known, list[Evaluations]()

        def evaluated() -> Evaluations:
            parts.append(start.evaluated())
            return parts[-1]

        half = max(start.warmup // 2, 1)
        within = attrs.evolve(start, warmup=half, calls=None, evaluated=evaluated)
        steps = iter(self.settings.burst.explore(within, rng))
        known.chains, enough = next_of(steps).findings.chains, False
        yield self._explored()
        while not enough:
            self._next(rng)
            each = next_of(steps)
            known.chains, known.covariance = each.findings.chains, each.findings.covariance
            evaluated()
            everything = Evaluations.join(parts, known.dim)
            parts.clear()
            self.evaluated += len(everything)
            enough = each.done or 2 * self.evaluated >= self.most or 2 * self.steps >= start.warmup
            if enough:
                self._end_if_due(unfitted=True)
            rows = Evaluations.empty(known.dim) if each.rows is None else each.rows
            yield self._learn(each.step, everything, rows)

    def _search(self, rng: np.random.Generator) -> Iterator[Explored]:
        """Evaluate the starts, and search for modes from there, if that is how to begin."""
        at = self.start.positions
        # where a gradient is made of values, starts alone are not worth it
        if self.by_gradients and not self.by_differences:
            chains = chains_at(self.exact, at)
        else:
            values = evaluate_alone(self.exact, at)
            chains = ChainState(positions=at, values=values, cache={"value": values})
        self.known.chains, self.evaluated = chains, len(at)
        yield self._explored()
        if self.begins == "mode":
            self.known.search_by(self._mode_search(chains))
        search, over = self.known.search, False
        while search is not None and not over:
            self._next(rng)
            before = search.n_evaluated
            search.step(np.random.default_rng(self.seed))
            if 2 * self.steps >= self.start.warmup:
                search.stop()
            self.evaluated += search.n_evaluated - before
            if self.settings.evaluations is None:
                self.most += search.n_evaluated - before  # a search shortens no exploration
            self.known.mode, over = search.best, search.over
            if over:
                self._count_known()
            yield self._learn(idle(len(at)))

    def _count_known(self) -> None:
        """Begin with rounds at once where what is known by now is as much as a round would tell."""
        self.n_first = self.known.n_plausible
        enough = self.n_first >= max(self.known.enough, self.settings.batch)
        if enough:
            self.approximated, self.checked = 1.0, 1
        self._end_if_due(unfitted=enough)

    def _mode_search(self, chains: ChainState) -> ModeSearch:
        """Return searches from chains, the first of them from the best that is known already.

        A search is cut short only where the surrogate of known evaluations agrees with the target
        at what the search has evaluated, at its start at least, and leads to a mode that is found.
        """
        starts, values, surrogate = chains.positions, chains.values, None
        known = self.start.known
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
        return ModeSearch(self.exact, starts, values, self._search_limits(), surrogate)

    def _design(self, rng: np.random.Generator) -> Iterator[Explored]:
        """Evaluate as many points as a surrogate needs before its draws mean anything."""
        enough = self.checked > 0
        while not (enough or self.finished):
            self._next(rng)
            if not len(self.queue):
                self._queue_first(rng)
            log_weights, step = self._evaluate_batch(rng, moves=self.begins != "sobol")
            self.approximated = predicted_acceptance(log_weights)
            self.n_first += len(log_weights)
            enough = self.n_first >= self.known.enough
            self._end_if_due(unfitted=enough)
            yield self._learn(step)

    def _learn(
        self,
        step: StepInfo | None,
        evaluated: Evaluations | None = None,
        rows: Evaluations | None = None,
    ) -> Explored:
        """Return the iteration, once its evaluations are known and a surrogate of them looked at.

        Those are what the run has evaluated, and all are rows to learn from, unless they are given.
        """
        if evaluated is None or rows is None:
            evaluated = rows = self.start.evaluated()
        rows = self.known.add(evaluated, rows)
        if not self.unfitted:
            return self._explored(step, rows)
        self._look(self.start.fit(rows))
        return self._explored(step)

    def _explored(self, step: StepInfo | None = None, rows: Evaluations | None = None) -> Explored:
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

    # --- what may be evaluated ---

    def _most(self, chains: int) -> int:
        """Return how many evaluations to make at most, for so many chains."""
        if self.settings.evaluations is not None:
            return max(self.settings.evaluations, chains + 1)
        most = 100 + 10 * self.known.dim if self.by_gradients else 200 + 20 * self.known.dim
        if self.affordable is None or self.begins != "mode":
            return most
        return min(most, max(self.affordable // 2, chains + 1))  # half is left to what follows

    def _search_limits(self) -> Limits:
        """Return what a search for modes may evaluate."""
        most, affordable, given = self._most(0), self.affordable, self.settings.evaluations
        limit = self.most // 2
        if given is None:
            limit = 2 * most if affordable is None else min(2 * most, affordable // 2)
        later = SEARCHED * (most if affordable is None else affordable)
        return Limits(
            total=limit - len(self.start.positions),
            later=later,
            searches=self.settings.searches,
            spare=int(2 * later) if given is None else 0,
            beside=unnoticed(affordable),
        )

    def _end_if_due(self, *, unfitted: bool = False) -> None:
        """Finish if all is spent, V is good, or nothing is gained; else note unfitted points."""
        # one batch of points may be lucky, and without gradients often is
        rounds = 1 if self.by_gradients else 3
        judgements, trusted = self.judgements, self.queue.trusted
        last = [each.acceptance for each in judgements[-rounds:]]
        good = len(last) == rounds and bool(np.mean(last) >= self.settings.acceptance) and trusted
        convex = CONVEX in self.exact.capabilities
        good = good and (
            is_clear(judgements, convex=convex, before=self.checked) or not self._n_outer
        )
        patience = self.settings.patience or (3 if self.by_gradients else 10)
        spent = self.steps >= self.start.warmup or self.evaluated >= self.most
        self.unfitted = unfitted
        if spent or good or (trusted and is_no_gain(judgements, patience)):
            if (acceptance_by(judgements) or 0.0) < UNSURE:
                self.known.doubt(np.random.default_rng(self.seed))
            self.finished = self.unfitted = True

    # --- evaluations ---

    def _queue_first(self, rng: np.random.Generator) -> None:
        """Queue more of the first points."""
        known, settings = self.known, self.settings
        left = max(known.enough - self.n_first, known.few)
        if self.begins == "sobol":
            design = known.fill_box(left, settings.box, settings.scale, rng)
        else:
            design = known.fill_modes(left, settings.scale, rng)
        self.queue = self.queue.refill(design)

    def _queue_nearby(self, rng: np.random.Generator) -> None:
        """Queue points about the best ones so far."""
        try:
            region, n = self.known.region, self.settings.batch
        except SurrogateFitError:
            return self._queue_first(rng)
        design = normal_design(region.centre, region.covariance, n, rng)
        self.queue = self.queue.refill(design)
        return None

    def _evaluate_batch(
        self, rng: np.random.Generator, *, moves: bool = True
    ) -> tuple[FloatArray, StepInfo]:
        """Evaluate the next batch of the queue, judge what it was drawn from, move the chains.

        Return the log weights of the points, -inf where they move no chains, and what the chains
        did.
        """
        n = max(min(self.settings.batch, self.most - self.evaluated), 1)
        queue = self.queue.take(self.known.promising(self.queue.positions))
        now, self.queue = queue.take(slice(n)), queue.take(slice(n, None))
        values = self._values(now)
        log_weights = difference(now.expected, values) if moves else np.full(len(now), -np.inf)
        self.evaluated += len(now)
        if now.judges:
            judgement = Judgement.of(now, values)
            self.judgements.append(judgement)
            if judgement.missed:
                more = min(len(now), self.spare)
                self.most, self.spare = self.most + more, self.spare - more
            if judgement.acceptance >= TELLING:
                self.known.covariance = now.covariance
        return log_weights, self.known.move_chains(now.positions, values, log_weights, rng)

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
            if hessian is not None and suits_one_side(hessian):
                exact = cast(Any, exact).one_sided(np.diag(hessian))
        return evaluate_with_gradients(exact, at)[0]

    # --- draws on a surrogate ---

    def _look(self, surrogate: Potential | None) -> None:
        """Look where a surrogate has its mass: for the next round, or for the run at the end."""
        if surrogate is None or not len(self.known.seen):
            return
        rng = np.random.default_rng(self.seed)
        try:
            if self.finished:
                self._settle(surrogate, rng)
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

    def _cautious(self, surrogate: Potential) -> Potential:
        """Return the surrogate, or what is to be drawn from as long as it is not to be trusted."""
        if self.by_gradients or not self.settings.sampler.needs <= OFFERED:
            return surrogate
        error = self.judgements[-1].spread if self.judgements else None
        return cautious(
            surrogate, self.known.region, self.known.seen, error, self.queue.temperature
        )

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
        shown, settings, batch = self._cautious(surrogate), self.settings, self.settings.batch
        # draws of the next surrogate are expected to be as good as the last ones
        good = self.judgements[-1].acceptance if self.judgements else self.approximated
        n_outer = self._n_outer if good >= WITHIN else 0
        draws = self._draw(shown, settings.sampler, settings.transitions, rng, n_outer)
        if draws.accepted < MOBILE:  # most of them were evaluated before
            below = (
                design_below(surrogate, self.known.seen, batch, rng) if self.by_gradients else None
            )
            if below is not None:
                self.queue = self.queue.refill(below)
            return
        inner = np.arange(batch)
        if draws.outer is not None:
            first = not self.judgements and self.known.several is None
            few = JUDGES if first or good >= settings.acceptance else batch
            few = min(few, batch - len(draws.outer))
            # a round that lost one of its few judges on the way would not be judged
            likely = self.known.promising(draws.positions)
            inner = self.known.share_out(np.flatnonzero(likely), draws.positions, few)
        self.queue = attrs.evolve(
            Queue.of(draws, surrogate, inner),
            covariance=self.known.covariance if draws.covariance is None else draws.covariance,
            temperature=shown.temperature if isinstance(shown, Tempered) else 1.0,
            trusted=shown is surrogate and draws.accepted >= FREE,
        )

    def _settle(self, surrogate: Potential, rng: np.random.Generator) -> None:
        """Tune the run's own sampler on the last surrogate."""
        draws = self._draw(surrogate, self.settings.tuned, LAST_TRANSITIONS, rng)
        tuning = draws.tuning
        if draws.covariance is not None:
            tuning = attrs.evolve(tuning, covariance=draws.covariance)
        if (acceptance_by(self.judgements) or 0.0) < UNSURE:
            tuning = attrs.evolve(tuning, length=None)
        if self.known.mode is None:
            self.known.mode = mode_of(surrogate, self.known.best)
        if draws.covariance is not None:
            self.known.covariance = draws.covariance
        self.tuning = tuning if draws.accepted >= MOBILE else None
