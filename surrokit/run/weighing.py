"""Weighted answers: rounds of draws from the surrogate, evaluated, corrected and learnt from."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import attrs
import numpy as np

from surrokit.capabilities import COVARIANCE
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import NumericalError, SurrogateFitError
from surrokit.interfaces import (
    ChainState,
    Evaluations,
    Findings,
    Stage,
    Status,
    StepInfo,
    SurrogateSample,
    Weigher,
)
from surrokit.kernel.jumps import jumps_of
from surrokit.limits import WEIGHING, one_thread
from surrokit.model.model import calls_per_gradient, model_of
from surrokit.plan.plan import Plan
from surrokit.potentials import CovariancePotential, Potential, straight_of, unnormalized_of
from surrokit.result.records import Weights
from surrokit.run.book import Book
from surrokit.run.learning import Learning
from surrokit.surrogate.umbrella import Edges
from surrokit.types import Capabilities, FloatArray
from surrokit.weighted.answer import Answer
from surrokit.weighted.normalizer import bridge
from surrokit.weighted.round import Estimate, Round
from surrokit.weighted.rounds import (
    FEWEST,
    CrossFit,
    EvaluatedDraws,
    LookedAt,
    choose,
    complaint,
    complaint_about_draws,
    complaint_about_errors,
    complaint_about_noise,
    complaint_about_process,
    cross_fit,
    disagreement,
    is_worth_it,
    parts_of,
    predict_variances,
    realisations_of,
)

PATIENCE = 3
"""Rounds in a row that may fail before chains continue."""

FEWEST_A_CHAIN = 50
"""Calls for each chain below which the surrogate's own draws say more than those of chains."""

EDGES, INSIDE = 4, 0.99
"""Edges of the surrogate's mass that a round evaluates, beside its draws; and the part of draws
at which V is at most what the way out leads to."""

LARGEST_PART = 0.1
"""Part of the surrogate's draws that a round evaluates at most; else they would not be about
independent."""

TOO_FEW_CALLS, MOST_TRIED = "too few calls were left to evaluate any", 1000
"""Why there are no answers where an exploration has used up the calls; and sizes of rounds among
which the least is looked for."""

_MORE = "weighed with more evaluations"

MOST_ROUNDS = 30
"""Rounds after which the answers are what they are."""


NOWHERE = "the surrogate's density is zero wherever chains are"
UNSURE = (
    "values have noise, and the surrogate does not say how sure it is of U; use "
    "surrogate='quadratic-gp'"
)
"""Why there are no answers from another surrogate of values with noise."""

MOST_LEARNT = 1000
"""Values with noise after which a process learns nothing more."""


class Weighing:
    """Rounds of weighted answers, as long as they are accepted.

    Parameters
    ----------
    plan
        One whose correction is a weigher.
    """

    def __init__(
        self,
        plan: Plan,
        weigher: Weigher,
        book: Book,
        learning: Learning,
        target: RecordingPotential,
        rng: np.random.Generator,
    ) -> None:
        self._accepted: list[_Accepted] = []
        self._reason: str | None = "no round came to its end"
        self._rejected = 0
        self._recipe, self._sampler, self._weigher = plan.recipe, plan.sampler, weigher
        self._book, self._learning, self._target, self._rng = book, learning, target, rng
        self._sample: SurrogateSample | None = None  # of the surrogate that values with noise fit

    @property
    def answer(self) -> Answer | None:
        """What the rounds that are accepted say; None where there are none."""
        if not self._accepted:
            return None
        rounds = tuple(each.corrected_round for each in self._accepted)
        return Answer(rounds=rounds, calls=self._target.n_calls)

    def run(self, found: Findings, deploy: Callable[[str], None]) -> bool:
        """Weigh until the answers are good enough; return False where chains continue.

        Parameters
        ----------
        deploy
            Fits a new surrogate, for a reason.
        """
        book, learning = self._book, self._learning
        self._note()
        book.enter(WEIGHING)
        failed, before, learnt = 0, 0, learning.n_observed
        knows = not self._has_noise or COVARIANCE in _offers(learning.surrogate)
        if not knows:
            self._reason = UNSURE
            self._note()
        try:
            while knows and len(self._accepted) < MOST_ROUNDS:
                if failed >= PATIENCE and self._suits_chains:
                    break
                before = self._next_size(before)
                if not before:
                    if not (self._accepted or self._has_noise):
                        self._recall(found)
                    break
                if learning.n_observed > learnt:
                    deploy(_MORE)
                    learnt = learning.n_observed
                if not _is_finite(learning.surrogate, found.chains.positions):
                    self._reason = NOWHERE
                    self._note()
                    break
                correct = self._round_of_noise if self._has_noise else self._round
                doubt = self._reason = correct(found, before)
                self._note()
                if doubt is None:
                    assert book.weights is not None
                    doubt = self._reason = complaint_about_errors(book.weights.figures)
                    if doubt is not None:
                        self._forget()
                if doubt is not None:
                    self._rejected += 1
                    self._note()
                book.add_round(self._aim)
                failed = 0 if doubt is None else failed + 1
                if doubt is None and self._is_enough():
                    break
            if learning.n_observed > learnt:  # the run's surrogate has learnt from all
                deploy(_MORE)
            if not self._accepted and self._suits_chains:
                book.begin_chains()
            elif not knows:
                book.stopping.cut("surrogate")
        except BaseException:
            self._drop_unfinished()
            raise
        return bool(self._accepted) or not self._suits_chains

    @property
    def _has_noise(self) -> bool:
        """Whether values do not correct; estimates of the density with the right mean do."""
        noise = self._target.noise
        return noise is not None and not noise.is_unbiased

    def _drop_unfinished(self) -> None:
        """Forget what is recorded of a round that something cut short."""
        self._book.keep_first(self._n_evaluated // self._recipe.chains)
        self._note()

    def _next_size(self, before: int) -> int:
        """Return how many draws the next round evaluates, the same of each chain; 0 for none."""
        chains, left = self._recipe.chains, min(self._calls_left - EDGES, self._draws_left)
        whole = left - left % chains if left < math.inf else left
        learnt = self._learning.n_observed
        n = self._weigher.next_size(learnt, before, max(whole, 0))
        if not n and self._calls_left < self._draws_left:
            if not (self._rejected or self._accepted):
                sizes = range(chains, MOST_TRIED, chains)
                least = next((k for k in sizes if self._weigher.next_size(learnt, 0, k)), math.inf)
                more = least + EDGES - self._calls_left
                self._reason = f"{TOO_FEW_CALLS}; at least {more:.0f} more are needed"
                self._note()
            timed = self._book.stopping.budget.calls is None
            self._book.stopping.cut("max_seconds" if timed else "max_calls")
        return -(-n // chains) * chains

    def _note(self) -> None:
        """Write down what there is by now."""
        self._book.weights = Weights(
            answer=self.answer,
            reason=self._reason,
            rejected=self._rejected,
            of_surrogates=tuple(each.constant for each in self._accepted),
            unnormalized=unnormalized_of(self._target.target),
        )

    @property
    def _suits_chains(self) -> bool:
        """Whether enough calls are left for chains to tell anything."""
        return self._calls_left >= FEWEST_A_CHAIN * self._recipe.chains

    @property
    def _calls_left(self) -> float:
        most = self._book.stopping.budget.calls
        if most is None:  # as many as its seconds suffice for
            most = self._recipe.budget.calls
        return math.inf if most is None else most - self._target.n_calls

    @property
    def _draws_left(self) -> float:
        wanted = self._book.wanted
        if wanted is None:
            return math.inf
        return wanted * self._recipe.chains - self._n_evaluated

    @property
    def _n_evaluated(self) -> int:
        """Evaluated draws in rounds that are accepted."""
        return sum(len(each.round) for each in self._accepted)

    def _round_of_noise(self, found: Findings, n: int) -> str | None:
        """Draw, evaluate, learn and draw again; return why that is not accepted, or None.

        Values with noise correct nothing: the answer is what a process makes of all of them, with
        what it does not know as error. New values say whether it is right.
        """
        process = self._learning.surrogate
        assert process is not None
        sample = self._sample or self._draw(found, process)
        with self._book.clock.phase("sampling"), one_thread():
            evaluations = choose(sample, min(n, _most(sample, self._recipe.chains)), self._rng)
        positions = evaluations.positions
        values, rows = self._evaluate(positions)
        noise = np.zeros(len(values)) if rows.noise_sd is None else rows.noise_sd
        doubt = complaint_about_noise(cast(CovariancePotential, process), positions, values, noise)
        with contextlib.suppress(SurrogateFitError):  # then it stays as it was
            process = self._learning.surrogate = self._learning.fit()
        self._sample = sample = self._draw(found, process)
        with self._book.clock.phase("sampling"), one_thread():
            realisations = realisations_of(sample, cast(CovariancePotential, process), self._rng)
        doubt = (
            doubt or complaint_about_draws(sample, process) or complaint_about_process(realisations)
        )
        if doubt is not None:
            self._forget()
            self._record(positions, values, "warmup")
            return doubt
        self._record(positions, values, "sampling")
        evaluated = self._target.transform.to_bounded(positions)
        evaluated = np.concatenate([*(each.round.evaluated for each in self._accepted), evaluated])
        with self._book.clock.phase("sampling"), one_thread():
            fresh = Round(
                draws=self._target.transform.to_bounded(sample.positions),
                evaluated=evaluated,
                log_weights=np.zeros(len(evaluated)),
                learnt=self._learning.n_observed,
                realisations=realisations,
            )
            constant = _bridge(process, sample, self._rng)
        self._accepted[:] = [
            _Accepted(
                round=fresh,
                constant=constant,
                sample=sample,
                evaluations=evaluations,
                predictive_variance=fresh.predictive_variance,
            )
        ]
        return None

    def _draw(self, found: Findings, surrogate: Potential) -> SurrogateSample:
        """Return draws of a surrogate, by chains that begin where the exploration has ended."""
        with self._book.clock.phase("sampling"), one_thread():
            about, covariance = found.chains.positions, found.covariance
            return self._weigher.draw(surrogate, self._sampler, about, covariance, self._rng)

    def _round(self, found: Findings, n: int) -> str | None:
        """Draw, evaluate and correct; return why that is not accepted, or None."""
        surrogate, recipe, clock = self._learning.surrogate, self._recipe, self._book.clock
        assert surrogate is not None
        sample = self._draw(found, surrogate)
        with clock.phase("sampling"), one_thread():
            n = min(n, _most(sample, recipe.chains))
            evaluations = choose(sample, n, self._rng)
            at, v = sample.flat, sample.values.ravel()
            edges = Edges.of(at, v, surrogate, EDGES, self._rng, inside=INSIDE)
            doubt = complaint_about_draws(sample, surrogate)
        positions = evaluations.positions
        learnt, state = self._learning.n_observed, self._learning.state()
        exact, rows = self._evaluate(np.concatenate([positions, edges.positions]))
        values, at_edges = np.split(exact, [len(positions)])
        fresh = self._weigh(sample, evaluations, values, learnt)
        doubt = doubt or _edge_doubt(edges, at_edges, fresh)
        make_others = partial(self._cross_fit, fresh, sample, evaluations, state, rows)
        apart = others = None
        if doubt is None and (doubt := complaint(fresh)) is not None and len(fresh) < FEWEST:
            # no round follows one so small, but surrogates of the rest of it may predict each part
            others = make_others()
            if others is not None:
                doubt = complaint(others.apply(fresh))
        if doubt is None and self._accepted:
            apart = disagreement(self._accepted[-1].round, fresh)
        if doubt is not None or apart is not None:
            self._forget()
        if doubt is not None:
            self._record(positions, values, "warmup")
            return doubt
        self._accept(fresh, surrogate, sample, evaluations, values)
        accepted = attrs.evolve(self._accepted[-1], others=others or make_others())
        self._accepted = self._predict_variances([*self._accepted[:-1], accepted], surrogate)
        return apart

    def _weigh(
        self,
        sample: SurrogateSample,
        evaluations: EvaluatedDraws,
        exact: FloatArray,
        learnt: int,
    ) -> Round:
        """Return draws of a surrogate and evaluations, with the weights that U there gives."""
        to_bounded, looked_at = self._target.transform.to_bounded, LookedAt.of(sample)
        return Round(
            draws=to_bounded(sample.positions),
            looked_at=to_bounded(looked_at.positions),
            looked_at_weights=looked_at.weights,
            evaluated=to_bounded(evaluations.positions),
            log_weights=evaluations.weigh(exact),
            log_surrogate_weights=evaluations.log_surrogate_weights,
            learnt=learnt,
        )

    def _accept(
        self,
        fresh: Round,
        surrogate: Potential,
        sample: SurrogateSample,
        evaluations: EvaluatedDraws,
        values: FloatArray,
    ) -> None:
        """Accept a round at once, so that an interrupt of what follows loses no evaluation."""
        with self._book.clock.phase("sampling"), one_thread():
            constant = _bridge(surrogate, sample, self._rng)
        self._record(evaluations.positions, values, "sampling")
        accepted = _Accepted(
            round=fresh,
            constant=constant,
            sample=sample,
            evaluations=evaluations,
            predictive_variance=fresh.predictive_variance,
        )
        self._accepted.append(accepted)
        self._keep_densities(evaluations, float(constant.value))

    def _keep_densities(self, evaluations: EvaluatedDraws, log_constant: float) -> None:
        """Let a model that has other posteriors keep the density of what was drawn."""
        model, transform = model_of(self._target.target), self._target.transform
        # scales of errors are no numbers of the model's, which would have a density of its own
        if model.memo is not None and model.shared and model.columns is None:
            at, logs = evaluations.positions, -evaluations.values - log_constant
            logs = logs - evaluations.log_surrogate_weights - transform.log_jacobian(at)
            model.memo.add_drawn(transform.to_bounded(at), logs)

    def _recall(self, found: Findings) -> None:
        """Correct by draws for earlier questions, where the model has kept their density."""
        known = self._recipe.evaluations
        if known is None or known.log_densities is None:
            return
        drawn = known.take(np.isfinite(known.log_densities))
        once = np.sort(np.unique(drawn.positions, axis=0, return_index=True)[1])
        drawn = drawn.take(once[len(once) % self._recipe.chains :])
        if len(drawn) < FEWEST:
            return
        try:
            accepted = self._correct_by(drawn, known, found)
        except (SurrogateFitError, NumericalError) as error:
            accepted = str(error)
        if isinstance(accepted, str):
            self._reason = f"{self._reason}. What is known does not answer: {accepted}"
        else:
            if drawn.outputs is not None:
                self._target.calls_made.recent.add(drawn.positions, {"outputs": drawn.outputs})
            self._record(drawn.positions, drawn.values, "sampling")
            self._reason = None
            self._accepted.append(accepted)
        self._note()

    def _correct_by(
        self, drawn: Evaluations, known: Evaluations, found: Findings
    ) -> _Accepted | str:
        """Return a round of positions that were evaluated before, or why it is not accepted.

        All surrogates know them, so that each part is corrected by one that has not learnt from it.
        """
        surrogate = self._learning.surrogate
        assert surrogate is not None
        with self._book.clock.phase("sampling"), one_thread():
            sample = self._draw(found, surrogate)
            values = np.asarray(surrogate.value(drawn.positions))
        evaluations = EvaluatedDraws(
            positions=drawn.positions, values=values, log_densities=drawn.log_densities
        )
        doubt = complaint_about_draws(sample, surrogate)
        if doubt is not None:
            return doubt
        surrogates = [
            self._learning.fit_to(_leave_out(known, each)) for each in parts_of(evaluations)
        ]
        fresh = self._weigh(sample, evaluations, drawn.values, len(known))
        with self._book.clock.phase("sampling"), one_thread():
            others = cross_fit(sample, evaluations, surrogates)
            doubt = others.complaint or complaint(others.apply(fresh))
            if doubt is not None:
                return doubt
            constant = _bridge(surrogate, sample, self._rng)
        return _Accepted(
            round=fresh,
            constant=constant,
            sample=sample,
            evaluations=evaluations,
            predictive_variance=fresh.predictive_variance,
            others=others,
        )

    def _cross_fit(
        self,
        found: Round,
        sample: SurrogateSample,
        evaluations: EvaluatedDraws,
        state: Mapping[str, Any],
        rows: Evaluations,
    ) -> CrossFit | None:
        """Return what surrogates say of a round that have learnt from parts of it, if it gains."""
        if not is_worth_it(found):
            return None
        try:
            surrogates = [
                self._learning.fit_from(state, _leave_out(rows, each))
                for each in parts_of(evaluations)
            ]
        except SurrogateFitError:
            return None
        with self._book.clock.phase("sampling"), one_thread():
            others = cross_fit(sample, evaluations, surrogates)
        return others if others.improves(found) else None

    def _predict_variances(self, accepted: list[_Accepted], latest: Potential) -> list[_Accepted]:
        """Return rounds as a surrogate sees them that has learnt from all evaluations."""
        with contextlib.suppress(SurrogateFitError):  # then there is nothing new to be said
            latest = self._learning.fit()
        with self._book.clock.phase("sampling"), one_thread():
            return [each.seen_from(latest) for each in accepted]

    def _evaluate(self, positions: FloatArray) -> tuple[FloatArray, Evaluations]:
        """Return U at positions (n, dim), and all that follows from this; learn from it."""
        target, learning = self._target, self._learning
        uses_gradients = learning.uses_derivatives and calls_per_gradient(target) == 1
        target.keep_evaluations(True, jacobians=learning.uses_jacobians)
        with self._book.clock.phase("sampling"), target.evaluating_gradients(uses_gradients):
            values = target.value(positions)
        rows = target.drain()
        learning.observe(rows)
        return values, rows

    def _record(self, positions: FloatArray, values: FloatArray, stage: Stage) -> None:
        """Record what was evaluated, as draws of the run only where it is accepted."""
        chains = self._recipe.chains
        for at in range(0, len(positions), chains):
            state = _state(positions[at : at + chains], values[at : at + chains])
            self._book.add(stage, state, _still(chains), None, explored=False)

    def _forget(self) -> None:
        """Turn draws so far into warm-up: what was accepted before is in doubt too."""
        self._accepted.clear()
        self._book.begin_again()

    @property
    def _aim(self) -> float | None:
        """The largest error that is good enough, in posterior sds; None where none is."""
        budget = self._book.stopping.budget
        if budget.target_mcse is None and budget.target_ess is None and self._book.wanted is None:
            return self._weigher.aim
        return budget.target_mcse

    def _is_enough(self) -> bool:
        """Return whether two rounds agree on answers that are good enough."""
        if self._has_noise and self._learning.n_observed >= MOST_LEARNT:
            return True
        if len(self._accepted) < 2 and not self._has_noise:
            return False
        stopping, weights, aim = self._book.stopping, self._book.weights, self._aim
        assert weights is not None
        figures, least = weights.figures, stopping.budget.target_ess
        if least is not None and np.min(figures.effective) >= least:
            stopping.judge("target_ess")
            return True
        enough = aim is not None and np.max(figures.relative_error) <= aim
        if enough:
            stopping.judge("target_mcse")
        return bool(enough)


@attrs.frozen(kw_only=True, eq=False)
class _Accepted:
    """A round that is accepted, with what it takes to look at it again.

    Parameters
    ----------
    constant
        Logarithm of its surrogate's normalising constant.
    sample, evaluations
        Its draws, and what was evaluated, in the sampling coordinates.
    predictive_variance : ndarray of shape (chains, m)
        What the latest surrogate says of its weights.
    log_mass
        Logarithm of their mean, where it is a process.
    others
        What surrogates say that have learnt from parts of it; None where nothing is gained.
    """

    round: Round
    constant: Estimate
    sample: SurrogateSample
    evaluations: EvaluatedDraws
    predictive_variance: FloatArray
    log_mass: float = math.nan
    others: CrossFit | None = None

    @property
    def corrected_round(self) -> Round:
        """The round, whose errors are at least what the latest surrogate predicts."""
        variance, log_mass = self.predictive_variance, self.log_mass
        found = attrs.evolve(self.round, predictive_variance=variance, log_mass=log_mass)
        return found if self.others is None else self.others.apply(found)

    def seen_from(self, latest: Potential) -> _Accepted:
        """Return the round as another surrogate sees it."""
        density_ratios = None if self.others is None else self.others.density_ratios
        late = predict_variances(self.sample, self.evaluations, latest, density_ratios)
        log_mass = LookedAt.of(self.sample).log_mass(latest)
        return attrs.evolve(self, predictive_variance=late, log_mass=log_mass)


def _offers(surrogate: Potential | None) -> Capabilities:
    return frozenset() if surrogate is None else surrogate.capabilities


def _leave_out(rows: Evaluations, positions: FloatArray) -> Evaluations:
    """Return the rows that are at none of these positions."""
    left_out = {each.tobytes() for each in positions}
    return rows.take(np.array([each.tobytes() not in left_out for each in rows.positions]))


def _edge_doubt(edges: Edges, exact: FloatArray, found: Round) -> str | None:
    """Return at how many edges the target goes on though the surrogate ends, or None."""
    known = found.log_ratios[np.isfinite(found.log_ratios)]
    missed = edges.missed(exact, float(np.median(known))) if len(known) else 0
    if not missed:
        return None
    return f"the target goes on at {missed} of {len(edges)} places where the surrogate ends"


def _most(sample: SurrogateSample, chains: int) -> int:
    """Return how many draws may be evaluated at most, the same of each chain of the run."""
    most = int(LARGEST_PART * sample.values.size)
    return most - most % chains


def _state(positions: FloatArray, values: FloatArray) -> ChainState:
    return ChainState(positions=positions, values=values, cache={})


def _still(chains: int) -> StepInfo:
    """Return the info of draws on which nothing was decided."""
    missing = np.full(chains, np.nan)
    return StepInfo(
        accepted=np.ones(chains, dtype=bool),
        acceptance=missing,
        path_acceptance=missing,
        status=np.full(chains, int(Status.OK)),
        divergent=np.zeros(chains, dtype=bool),
        n_steps=np.zeros(chains, dtype=np.int64),
    )


def _bridge(surrogate: Potential, sample: SurrogateSample, rng: np.random.Generator) -> Estimate:
    """Return the logarithm of a surrogate's normalising constant, by its draws."""
    straight, law = straight_of(surrogate), jumps_of(surrogate)
    draws = straight.apply(sample.flat).reshape(sample.positions.shape)
    values = sample.values + straight.volume(sample.positions)
    return bridge(straight.potential.value, draws, rng, values=values, law=law)


def _is_finite(surrogate: Potential | None, positions: FloatArray) -> bool:
    """Return whether chains on a surrogate can begin at some of the positions (n, dim)."""
    with np.errstate(all="ignore"):
        return surrogate is None or bool(np.isfinite(surrogate.value(positions)).any())
