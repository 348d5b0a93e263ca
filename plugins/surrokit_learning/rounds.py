"""Exploration in rounds: exact evaluations where the surrogate of those so far has its mass."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from surrokit.arguments import fraction, optional_positive_integer, positive_integer
from surrokit.capabilities import CONVEX, FORWARD, GRADIENT, require
from surrokit.errors import SurrogateFitError
from surrokit.exploring import demand_warmup, evaluate_alone, evaluate_with_gradients, idle
from surrokit.interfaces import (
    Correction,
    Evaluations,
    Explored,
    Sampler,
    Start,
    StepInfo,
)
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential, offers_curvatures, with_forward
from surrokit.surrogate.quality import fit_quality_of
from surrokit.targets.differences import RISE
from surrokit.targets.estimates import noise_of
from surrokit.types import Capabilities, FloatArray
from surrokit_learning.approach import chains_at
from surrokit_learning.draws import (
    SurrogateDraws,
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
    predicted_acceptance,
    resample,
)
from surrokit_learning.modes_found import WIDE, inverse_curvature
from surrokit_learning.modes_search import Limits, ModeSearch
from surrokit_learning.secant import search_by_outputs
from surrokit_learning.survey import Survey

Steps: TypeAlias = Generator[Explored, None, Queue]
"""Iterations, and what is to be evaluated after them."""

OUTER = 0.6
"""Part of a batch that lies about the surrogate's mass, once V is good within."""

MOBILE, FREE = 0.02, 0.5
"""Parts of the moves on a surrogate that must be accepted if its draws are to say anything, and to
judge it. Where most would leave the region of the points seen, the mass is elsewhere."""

WORTH = 4
"""Draws that gradients of a round win for each one that a surrogate would lose by a rejection: a
chain is often rejected again and again, and a round takes away about half of that."""

UNSURE = 0.6
"""Predicted acceptance below which sub-chains find their length alone, and modes are in doubt."""


@attrs.frozen(kw_only=True, eq=False)
class Rounds:
    """Evaluate where the surrogate has its mass, learn, and look where it has it now.

    The first points are draws of the Laplace approximation at modes that searches find from the
    chains' starts. Without gradients they are spread over a box: where the target expects itself to
    be, or 2 to either side of the best start. Where these lie far above each other, searches by the
    outputs of a forward map lead to modes, three unless ``searches`` is given, and the next points
    lie about these. Then each round runs a sampler on the surrogate, which is free, evaluates the
    target where its chains end, and so sees, at points that the surrogate has not learnt from, what
    the exact decision will make of its draws. It ends when that is good enough. Where draws of
    earlier runs say that a surrogate of all their evaluations is good, nothing is evaluated.

    Parameters
    ----------
    sampler, correction
        The kernel that draws from the surrogate.
    tuned
        The sampler to tune on the last surrogate: the run's own.
    gradients
        Whether points are evaluated with their gradients (of forward maps: Jacobians); None for
        where the target offers them.
    evaluations
        Exact evaluations at most; None for 100 + 10 dim with gradients, beside those of the search
        for the mode, and 200 + 20 dim without.
    batch
        Points in a round; of several modes five for each at least.
    acceptance
        Predicted acceptance of independent draws that is good enough; without gradients on average
        over three rounds.
    searches
        Starts at most from which to search for modes; None for as many as a tenth of the
        evaluations allows, three at least. One is enough where the target says that it is convex.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    sampler: Sampler
    correction: Correction
    tuned: Sampler
    gradients: bool | None = None
    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    batch: int = attrs.field(default=20, validator=positive_integer)
    acceptance: float = attrs.field(default=0.9, validator=fraction)
    searches: int | None = attrs.field(default=None, validator=optional_positive_integer)

    @property
    def needs(self) -> Capabilities:
        """A gradient, if a setting asks for it."""
        return frozenset({GRADIENT}) if self.gradients else frozenset()

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Draw on the surrogate, evaluate there, judge it by that, fit it anew, until it is good.

        Yield after each part of the search for modes, of the first points, and each round.

        Raises
        ------
        ConfigurationError
            If the warm-up has no iteration for it.
        """
        demand_warmup("rounds", start.warmup)
        known = self._survey(start)
        recalls = start.past is not None or known.suffices(start.known)
        # of a cheap model there is a surrogate before anything is evaluated
        has_cheap = bool(getattr(start.potential, "cheap", ()))
        first = start.fit(Evaluations.empty(known.dim)) if has_cheap and not recalls else None
        if first is not None and GRADIENT in first.capabilities and start.known is None:
            queue = yield from self._follow(first, known, start, rng)
        else:
            queue = yield from (self._recall if recalls else self._search)(known, start, rng)
        # the time of a round, and not the calls, grows with the number of modes
        n_modes = 1 if known.several is None else len(known.several)
        wide = attrs.evolve(self, batch=max(self.batch, JUDGES * n_modes))
        yield from wide._go_on(known, start, queue, rng)

    def _go_on(
        self, known: Survey, start: Start, queue: Queue, rng: np.random.Generator
    ) -> Iterator[Explored]:
        """Make rounds until V is good, or all is spent."""
        while not known.over:
            if not len(queue):  # there was no surrogate, or none to draw from
                queue = queue.refill(*known.design(rng))
            n = max(min(self.batch, known.left), 1)
            likely = queue.take(known.promising(queue.positions))
            now, queue = likely.take(slice(n)), likely.take(slice(n, None))
            values = self._evaluate(known, now)
            step = _judge(known, now, values, rng)
            known.over = self._is_over(known, start, queue, rng)
            queue, rows = self._learn(known, start, queue, rng)
            yield known.explored(step, rows)

    # --- how it begins ---

    def _survey(self, start: Start) -> Survey:
        exact = start.potential
        offered = GRADIENT in exact.capabilities
        by_gradients = offered if self.gradients is None else self.gradients
        price = calls_per_gradient(exact) if by_gradients else 1
        known = Survey(exact, start.positions, by_gradients=by_gradients, batch=self.batch)
        usual = 100 + 10 * known.dim if by_gradients else 200 + 20 * known.dim
        affordable = None if start.calls is None else max(start.calls // price, 1)
        known.price, known.n_draws = price, 4000 if start.calls is None else start.calls
        least, half = len(start.positions) + 1, usual if affordable is None else affordable // 2
        if self.evaluations is not None:
            known.left = max(self.evaluations, least)
        else:  # half of the calls is left to what follows
            known.left = usual if not by_gradients else min(usual, max(half, least))
            known.most = np.inf if affordable is None else max(half, least)
        most = self.evaluations or min(usual, max(half, 1))
        total = known.left // 2 if self.evaluations else 2 * most
        total = total if self.evaluations or affordable is None else min(total, half)
        later = 0.1 * (most if affordable is None else affordable)
        few = Limits.unnoticed(affordable)
        known.limits = Limits(
            total=total - len(start.positions),
            later=later,
            searches=self.searches,
            spare=0 if self.evaluations else max(int(4 * later), 2 * few),
            most=np.inf if affordable is None else half - len(start.positions),
            beside=few,
        )
        return known

    def _recall(self, known: Survey, start: Start, rng: np.random.Generator) -> Steps:
        """Begin with what is known; end if that makes a good surrogate.

        It is judged by draws of earlier runs, or else by the rows that it has held out. A round is
        left to what follows where half of the calls does not make one. The target is searched
        where the surrogate has mass beyond what is known.
        """
        past = start.past
        if past is not None:
            known.recall(past)
        else:
            known.recall_rows(cast(Evaluations, start.known), rng)
        yield known.explored()
        surrogate = start.fit(start.evaluated())
        if past is None and (surrogate is None or known.leads_away(surrogate, start.positions)):
            return (yield from self._search(known, start, rng))
        known.ready, known.steps = True, 1
        quality = None if surrogate is None else fit_quality_of(surrogate)
        if surrogate is not None and past is not None:
            known.judged.append(Judgement.at_draws(past, surrogate))
        elif quality is not None:
            known.judged.append(Judgement.held_out(quality))
        is_good = bool(known.judged) and known.judged[0].acceptance >= self.acceptance
        known.over = is_good or (past is None and known.left < self.batch)
        known.at_draws = known.over and past is not None
        queue = self._look(surrogate, known, Queue.empty(known.dim), rng)
        yield known.explored(idle(len(start.positions)))
        return queue

    def _follow(
        self, first: Potential, known: Survey, start: Start, rng: np.random.Generator
    ) -> Steps:
        """Begin at draws of a surrogate that needs no evaluation, about the modes that it has."""
        at = start.positions
        values = evaluate_alone(start.potential, at)
        known.chains = attrs.evolve(known.chains, values=values, cache={"value": values})
        n, dim = at.shape
        known.left -= n
        known.few_judge = known.left < self.batch
        yield known.explored()
        limits = Limits(total=50 * n + 10 * dim, later=25.0 * n, spare=100 * n)
        heights, modes = evaluate_alone(first, at), None
        if np.isfinite(heights).all():  # or else it fails where chains start
            search = ModeSearch(first, at, heights, limits)
            while not search.over:
                search.step(rng)
            modes = search.found
        rows, queue = start.evaluated(), Queue.empty(dim)
        if modes is None:
            start.fit(rows)
            return (yield from self._search(known, start, rng))
        centres = modes.positions[modes.matters]
        design, _ = normal_design(centres, modes.covariances[modes.matters], 3 * self.batch, rng)
        known.seen = Evaluations(positions=design, values=evaluate_alone(first, design))
        known.covariance = modes.covariances[0]
        known.ready, known.steps, known.approximated = True, 1, 0.5
        known.over = known.left < JUDGES  # what follows judges
        queue = self._look(first, known, queue, rng)
        known.seen = Evaluations.empty(dim)  # it holds nothing that was evaluated
        yield known.explored(idle(n), known.add(rows))
        return queue

    def _search(self, known: Survey, start: Start, rng: np.random.Generator) -> Steps:
        """Evaluate the starts, and search for modes from there, if that is how to begin."""
        at, exact, queue = start.positions, start.potential, Queue.empty(known.dim)
        # where a gradient is made of values, starts alone are not worth it
        if known.by_gradients and known.price == 1:
            known.chains = chains_at(exact, at)
        else:
            values = evaluate_alone(exact, at)
            known.chains = attrs.evolve(known.chains, values=values, cache={"value": values})
        known.left -= len(at)
        yield known.explored()
        if not known.by_gradients:
            return (yield from self._descend(known, start, rng)) if _has_outputs(exact) else queue
        search = known.search = self._mode_search(known, start)
        while not search.over:
            before, known.steps = search.n_evaluated, known.steps + 1
            search.step(rng)
            search.over = search.over or 2 * known.steps >= start.warmup
            if self.evaluations is not None:  # else a search shortens no exploration
                known.left -= search.n_evaluated - before
            known.mode = search.best
            if search.over:
                known.end_search()
                known.over = self._is_over(known, start, queue, rng)
            queue, rows = self._learn(known, start, queue, rng)
            yield known.explored(idle(len(at)), rows)
        return queue

    def _descend(self, known: Survey, start: Start, rng: np.random.Generator) -> Steps:
        """Evaluate first points, and go to modes by outputs where few lie near their heights."""
        first, queue = max(self.batch // 2, 1), Queue.empty(known.dim).refill(*known.design(rng))
        scales = np.sqrt(np.diag(cast(FloatArray, known.covariance)))
        now, queue = queue.take(slice(first)), queue.take(slice(first, None))
        rows = yield from _with_outputs(known, start, now.positions)
        known.n_first = len(now)
        room = known.left if start.calls is None else min(known.left, start.calls - first)
        near = rows.values <= rows.values.min() + known.dim + WIDE
        lost = rows.outputs is None or not np.isfinite(rows.values).any()
        if lost or near.sum() > known.dim or room < 4 * known.dim:
            return queue
        energy, searches = with_forward(start.potential).energy, self.searches or 3
        search = search_by_outputs(energy, rows, scales, room - 2 * known.dim, searches)
        points = next(search)
        try:
            while True:
                points = search.send((yield from _with_outputs(known, start, points)))
        except StopIteration as end:
            modes = end.value
        known.ready, known.ends = True, modes
        known.covariance = modes.covariance_within
        return queue.refill(*normal_design(modes.positions, modes.covariances, self.batch, rng))

    def _mode_search(self, known: Survey, start: Start) -> ModeSearch:
        """Return searches from chains, the first where a surrogate of what is known is least."""
        starts, values = known.chains.positions, known.chains.values
        if start.known is not None and known.by_gradients and len(start.known):
            known.recall_values(start.known)
            lowest = int(np.argmin(start.known.values))
            best = start.known.positions[lowest]
            surrogate = start.fit(Evaluations.empty(known.dim))
            if surrogate is not None:
                best = mode_of(surrogate, best)
            starts = np.vstack([best, starts])
            values = np.append(min(start.known.values[lowest], values.min()) - 1.0, values)
        return ModeSearch(start.potential, starts, values, known.limits)

    # --- a round ---

    def _evaluate(self, known: Survey, points: Queue) -> FloatArray:
        """Return U at points (n, dim), with gradients for a learner, where these help.

        Where gradients are made of values, values judge first: if they say that the surrogate is
        so good that draws would gain less calls than gradients cost, there is nothing to be learnt.
        """
        exact, at, hessian = known.exact, points.positions, known.hessian
        known.left -= len(points)
        if not known.by_gradients:
            return evaluate_alone(exact, at)
        if known.price > 1:
            if points.trusted and points.judges:
                values = evaluate_alone(exact, at)
                judgement, cost = Judgement.of(points, values), len(points) * known.price
                enough = max(self.acceptance, 1.0 - cost / (WORTH * known.n_draws))
                if judgement.acceptance >= enough and not judgement.missed:
                    return values
            if hessian is not None and _suits_one_side(hessian):
                exact = cast(Any, exact).one_sided(np.diag(hessian))
        return evaluate_with_gradients(exact, at)[0]

    def _is_over(self, known: Survey, start: Start, queue: Queue, rng: np.random.Generator) -> bool:
        """Return whether V is good, or all is spent."""
        # one batch of points may be lucky, and without gradients often is
        rounds = 1 if known.by_gradients else 3
        last = [each.acceptance for each in known.judged[-rounds:]]
        good = len(last) == rounds and bool(np.mean(last) >= self.acceptance) and queue.trusted
        if good and self._n_outer(known):
            once = CONVEX in known.exact.capabilities or known.checked
            good = is_clear(known.judged, once=once)
        if not (good or known.steps >= start.warmup or known.left <= 0):
            return False
        if (acceptance_by(known.judged) or 0.0) < UNSURE:
            known.doubt(start.positions, rng)
        return True

    def _learn(
        self, known: Survey, start: Start, queue: Queue, rng: np.random.Generator
    ) -> tuple[Queue, Evaluations | None]:
        """Return what to evaluate next, by a new surrogate; or rows that none has learnt from."""
        rows = known.add(start.evaluated())
        if not (known.over or known.ready):
            return queue, rows
        return self._look(start.fit(rows, known.several), known, queue, rng), None

    # --- draws on a surrogate ---

    def _look(
        self, surrogate: Potential | None, known: Survey, queue: Queue, rng: np.random.Generator
    ) -> Queue:
        """Look where a surrogate has its mass: for the next round, or for the run at the end."""
        if surrogate is None or not len(known.seen):
            return queue
        try:
            if not known.over:
                return self._aim(surrogate, known, queue, rng)
            self._tune(surrogate, known, rng)
        except SurrogateFitError:  # the points lie too far apart to say where to draw
            pass
        return queue

    def _n_outer(self, known: Survey) -> int:
        """Return how many points of a round lie about the mass; none by values alone."""
        looks = known.by_gradients and not known.few_judge
        looks = looks and self.sampler.kernel.needs <= {GRADIENT}
        return max(min(int(OUTER * self.batch), self.batch - JUDGES), 0) if looks else 0

    def _draw(
        self,
        surrogate: Potential,
        sampler: Sampler,
        known: Survey,
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
        seen, region = known.seen, known.region
        inside = region.holds(seen.positions) & np.isfinite(surrogate.value(seen.positions))
        order = resample(np.where(inside, -seen.values, -np.inf), len(seen), rng)
        rows = known.share_out(order, seen.positions, self.batch)
        return surrogate_draws(
            surrogate,
            sampler,
            self.correction,
            region=region,
            starts=seen.positions[np.resize(rows, self.batch)],
            n_transitions=n_transitions,
            rng=rng,
            n_outer=n_outer,
        )

    def _aim(
        self, surrogate: Potential, known: Survey, queue: Queue, rng: np.random.Generator
    ) -> Queue:
        """Return draws from the surrogate, and points about its mass once it is good within."""
        shown, temperature = surrogate, 1.0
        if not known.by_gradients and self.sampler.needs <= {GRADIENT}:
            error = known.judged[-1].spread if known.judged else None
            shown, temperature = cautious(
                surrogate, known.region, known.seen, error, queue.temperature
            )
        # draws of the next surrogate are expected to be as good as the last ones
        good = known.judged[-1].acceptance if known.judged else known.approximated
        # at first few draws go with points about the mass
        n_outer = self._n_outer(known) if good >= 0.5 else 0
        draws = self._draw(shown, self.sampler, known, 60, rng, n_outer)
        if draws.accepted < MOBILE:  # most of them were evaluated before
            return queue
        inner = np.arange(self.batch)
        if draws.outer is not None:
            first = not known.judged and known.several is None
            few = JUDGES if first or good >= self.acceptance else self.batch
            few = min(few, self.batch - len(draws.outer))
            # a round that lost one of its few judges on the way would not be judged
            likely = known.promising(draws.positions)
            inner = known.share_out(np.flatnonzero(likely), draws.positions, few)
        elif known.few_judge and not known.judged:  # more are taken only where these find it wrong
            inner = inner[:JUDGES]
        return attrs.evolve(
            Queue.of(draws, surrogate, inner),
            covariance=known.covariance if draws.covariance is None else draws.covariance,
            temperature=temperature,
            trusted=shown is surrogate and draws.accepted >= FREE,
        )

    def _tune(self, surrogate: Potential, known: Survey, rng: np.random.Generator) -> None:
        """Tune the run's own sampler on the last surrogate."""
        draws = self._draw(surrogate, self.tuned, known, 150, rng)
        tuning = draws.tuning
        if known.mode is None:
            known.mode = mode_of(surrogate, known.best)
        if draws.covariance is not None:
            tuning = attrs.evolve(tuning, covariance=draws.covariance)
            known.covariance = draws.covariance
        if (acceptance_by(known.judged) or 0.0) < UNSURE:
            tuning = attrs.evolve(tuning, length=None)
        known.tuning = tuning if draws.accepted >= MOBILE else None


def _judge(known: Survey, now: Queue, values: FloatArray, rng: np.random.Generator) -> StepInfo:
    """Judge what points were drawn from by U there (n,), and move chains by importance."""
    known.steps += 1
    if now.judges:
        known.judged.append(Judgement.of(now, values))
        if known.judged[-1].acceptance >= 0.1:  # or else the covariance of draws tells nothing
            known.covariance = now.covariance
    log_weights = difference(now.expected, values)
    if not known.ready:
        if not known.by_gradients:  # points spread over a box are no draws
            log_weights = np.full(len(now), -np.inf)
        known.approximated = predicted_acceptance(log_weights)
        known.n_first += len(now)
        known.ready = known.n_first >= known.enough
    return known.move_chains(now.positions, values, log_weights, rng)


def _with_outputs(
    known: Survey, start: Start, points: FloatArray
) -> Generator[Explored, None, Evaluations]:
    """Evaluate points (n, dim) in an iteration that moves no chain, for the run to learn from."""
    evaluate_alone(start.potential, points)
    found = start.evaluated()
    known.left, known.steps = known.left - len(points), known.steps + 1
    yield known.explored(idle(len(start.positions)), known.add(found))
    return found


def _has_outputs(exact: Potential) -> bool:
    """Return whether a search can go by outputs: exact ones, with known curvatures of U."""
    if FORWARD not in exact.capabilities or noise_of(exact) is not None:
        return False
    return offers_curvatures(with_forward(exact).energy)


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
