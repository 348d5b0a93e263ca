"""Weighted answers: rounds of draws from the surrogate, paid for, corrected and learnt from."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import rankdata

from surrokit.contracts.counting import calls_per_gradient
from surrokit.contracts.dynamics import Status
from surrokit.contracts.explorer import Findings
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.sampler import ChainState, StepInfo
from surrokit.contracts.schedule import Stage
from surrokit.contracts.weigher import SurrogateSample, Weigher
from surrokit.cost.recording import RecordingPotential
from surrokit.diagnostics import r_hat
from surrokit.plan.recipe import Recipe
from surrokit.result.weights import Weights
from surrokit.run.book import Book
from surrokit.run.learning import Learning
from surrokit.surrogate.border import part_beyond
from surrokit.types import FloatArray, IntArray
from surrokit.weighted.answer import Answer
from surrokit.weighted.figures import Figures
from surrokit.weighted.quality import complaint, disagreement
from surrokit.weighted.round import Round

LARGEST_RHAT = 1.02
"""R-hat of chains on the surrogate above which their draws are not its own."""

MOST_BEYOND = 0.05
"""Part of the surrogate's draws beyond its border above which its mass is not known."""

PATIENCE = 3
"""Rounds in a row that may fail before chains take over."""

TO_TAILS = 0.5
"""Part of the payments that goes to the surrogate's tails."""

RAREST = 1e-3
"""Tail probability of the surrogate beyond which draws are no likelier to be paid for."""

MOST_ROUNDS = 30
"""Rounds after which the answers are what they are."""


class Weighing:
    """Rounds of weighted answers, as long as they are believed.

    Parameters
    ----------
    recipe
        One whose correction is a weigher.
    weigher
        It.
    book, learning
        The run's.
    target
        The exact potential.
    rng
        The run's generator.

    Attributes
    ----------
    rounds
        Those that are believed.
    """

    def __init__(
        self,
        recipe: Recipe,
        weigher: Weigher,
        book: Book,
        learning: Learning,
        target: RecordingPotential,
        rng: np.random.Generator,
    ) -> None:
        self.rounds: list[Round] = []
        self._refused: str | None = None
        self._rejected = 0
        self._recipe, self._weigher = recipe, weigher
        self._book, self._learning, self._target, self._rng = book, learning, target, rng

    @property
    def answer(self) -> Answer | None:
        """What the rounds that are believed say; None where there are none."""
        if not self.rounds:
            return None
        return Answer(rounds=tuple(self.rounds), calls=self._target.paid)

    def run(self, found: Findings, deploy: Callable[[str], None]) -> bool:
        """Weigh until the answers are good enough; return False where chains have to take over.

        Parameters
        ----------
        found
            What the exploration has found.
        deploy
            Fits a new surrogate, for a reason.
        """
        failed, before = 0, 0
        self._book.target.failure_log.draws_begin(self._book.recorder.lately())
        while len(self.rounds) < MOST_ROUNDS:
            before = self._weigher.next_size(self._learning.n_observed, before, self._left)
            before -= before % self._recipe.chains
            if not before:
                if self._recipe.draws is None:
                    self._book.stopping.cut("max_calls")
                break
            doubt = self._refused = self._round(found, before)
            self._rejected += doubt is not None
            self._note()
            failed = 0 if doubt is None else failed + 1
            if failed == PATIENCE:
                return False
            if doubt is None and self._is_enough():
                break
            if self._left >= self._recipe.chains:
                deploy("weighed with more evaluations")
        if self._refused is None and not self.rounds:
            self._refused = "too few calls were left to pay for any"
        self._note()
        return self._refused is None

    def _note(self) -> None:
        """Write down what there is by now."""
        self._book.weights = Weights(
            answer=self.answer, refused=self._refused, rejected=self._rejected
        )

    @property
    def _left(self) -> float:
        """Calls left, and draws left to pay for."""
        budget, recipe = self._book.stopping.budget, self._recipe
        calls = math.inf if budget.max_calls is None else budget.max_calls - self._target.paid
        if recipe.draws is None:
            return calls
        return min(calls, recipe.draws * recipe.chains - sum(map(len, self.rounds)))

    def _round(self, found: Findings, n: int) -> str | None:
        """Draw, pay and correct; return why that is not believed, or None."""
        surrogate, recipe, clock = self._learning.surrogate, self._recipe, self._book.clock
        assert surrogate is not None
        with clock.phase("sampling"):
            about, covariance = found.chains.positions, found.covariance
            sample = self._weigher.draw(surrogate, recipe.sampler, about, covariance, self._rng)
            chances = _chances(sample, n)
            paid = _thin(chances, n, self._rng)
            doubt = self._doubt(sample)
        learnt = self._learning.n_observed
        values = self._pay(sample, paid, believed=doubt is None)
        fresh = Round(
            draws=self._target.transform.to_bounded(sample.positions),
            paid=paid,
            log_weights=sample.values.ravel()[paid] - values,
            learnt=learnt,
            chances=chances[paid],
        )
        doubt = doubt or complaint(fresh)
        if doubt is None and self.rounds:
            doubt = disagreement(self.rounds[-1], fresh)
        if doubt is not None:
            self._forget()
            return doubt
        self.rounds.append(fresh)
        return None

    def _doubt(self, sample: SurrogateSample) -> str | None:
        """Return why the draws are not the surrogate's, or not to be used, or None."""
        rhat = float(np.max(r_hat(sample.positions)))
        if not rhat <= LARGEST_RHAT:
            return f"chains on the surrogate alone are apart, with R-hat {rhat:.3g}"
        flat = sample.positions.reshape(-1, sample.positions.shape[2])
        beyond = part_beyond(self._learning.surrogate, flat)
        if beyond > MOST_BEYOND:
            return f"{beyond:.2g} of the surrogate's draws lie beyond all that it has learnt from"
        return None

    def _pay(self, sample: SurrogateSample, paid: IntArray, *, believed: bool) -> FloatArray:
        """Return U at draws (n,), which are recorded as draws of the run if they are believed."""
        positions = sample.positions.reshape(-1, sample.positions.shape[2])[paid]
        book, target, learning = self._book, self._target, self._learning
        uses_gradients = learning.uses_derivatives and calls_per_gradient(target) == 1
        target.keep_evaluations(True, jacobians=learning.uses_jacobians)
        with book.clock.phase("sampling"), target.pay_gradients(uses_gradients):
            values = target.value(positions)
        rows = target.drain()
        chains = self._recipe.chains
        stage: Stage = "sampling" if believed else "warmup"
        for at in range(0, len(paid), chains):
            state = _state(positions[at : at + chains], values[at : at + chains])
            book.recorder.take_outputs(rows, state)
            book.add(stage, state, _still(chains), None, explored=False)
        self._learn(rows)
        return values

    def _learn(self, rows: Evaluations) -> None:
        if self._learning.learns:
            self._learning.observe(rows)

    def _forget(self) -> None:
        """Turn draws so far into warm-up: what was believed before is in doubt too."""
        self.rounds.clear()
        self._book.recorder.begin_again()

    def _is_enough(self) -> bool:
        """Return whether two rounds agree on answers that are good enough."""
        if len(self.rounds) < 2:
            return False
        stopping, answer = self._book.stopping, self.answer
        assert answer is not None
        figures, budget = Figures.of(answer), stopping.budget
        if budget.target_ess is not None and np.min(figures.effective) >= budget.target_ess:
            stopping.judge("target_ess")
            return True
        if budget.target_ess is not None or self._recipe.draws is not None:
            return False
        enough = np.max(figures.relative_error) <= (budget.target_mcse or self._weigher.aim)
        if enough:
            stopping.judge("target_mcse")
        return bool(enough)


def _chances(sample: SurrogateSample, paid: int) -> FloatArray:
    """Return how much likelier than others each draw is to be paid for, shape (chains * draws,).

    Where the surrogate is too high, it has few draws, and of evenly chosen ones none may be there:
    weights would look good while a tail is missing. So half of the payments are spread evenly over
    the logarithm of the surrogate's tail probability, by V.
    """
    values = sample.values.ravel()
    n = len(values)
    tail = np.maximum((n - rankdata(values, method="ordinal") + 0.5) / n, RAREST)
    rare = 1.0 / tail
    chances = 1.0 - TO_TAILS + TO_TAILS * rare / rare.mean()
    # none may be due twice; what is cut off leaves at least half of the sum, which is n
    return np.asarray(np.minimum(chances, (1.0 - TO_TAILS) * n / paid))


def _thin(chances: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return n different draws, chosen by their chances, and as far apart as can be."""
    paid = _spread(chances, n, rng.random(n))
    # neighbours may fall on one draw, but not where they are a whole n-th of the sum apart
    return paid if np.diff(paid).all() else _spread(chances, n, rng.random(1))


def _spread(chances: FloatArray, n: int, shifts: FloatArray) -> IntArray:
    """Return which draws lie at a place in each n-th of the sum of chances, in order."""
    upto = np.cumsum(chances)
    at = (np.arange(n) + shifts) / n * upto[-1]
    return np.asarray(np.minimum(np.searchsorted(upto, at), len(chances) - 1))


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
