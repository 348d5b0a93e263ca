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
from surrokit.contracts.sampler import ChainState, StepInfo, SurrogateSample, Weigher
from surrokit.contracts.schedule import Stage
from surrokit.cost.recording import RecordingPotential
from surrokit.cost.threads import one_thread
from surrokit.diagnostics import r_hat
from surrokit.plan.recipe import Recipe
from surrokit.result.weights import Weights
from surrokit.run.book import Book
from surrokit.run.learning import Learning
from surrokit.surrogate.border import part_beyond
from surrokit.types import FloatArray, IntArray
from surrokit.weighted.answer import Answer
from surrokit.weighted.estimate import Estimate
from surrokit.weighted.normalizer import bridge
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

LARGEST_PART = 0.1
"""Part of the surrogate's draws that a round pays for at most; else they would not be about
independent."""

TOO_FEW_CALLS = "too few calls were left to pay for any"
"""Why there are no answers where an exploration has used up the calls."""

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
        self._refused: str | None = "no round came to its end"
        self._rejected = 0
        self._constants: list[Estimate] = []
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
        self._note()
        self._book.target.exact.log.draws_begin(self._book.recorder.lately())
        try:
            return self._weigh(found, deploy)
        except BaseException:
            self._drop_unfinished()
            raise

    def _weigh(self, found: Findings, deploy: Callable[[str], None]) -> bool:
        failed, before = 0, 0
        while len(self.rounds) < MOST_ROUNDS:
            before = self._next_size(before)
            if not before:
                break
            doubt = self._refused = self._round(found, before)
            self._rejected += doubt is not None
            self._note()
            failed = 0 if doubt is None else failed + 1
            if failed == PATIENCE:
                self._forget()
                self._note()
                break
            if doubt is None and self._is_enough():
                break
            if self._left >= self._recipe.chains:
                deploy("weighed with more evaluations")
        if not self.rounds:
            self._book.begin_chains()
        return bool(self.rounds)

    def _drop_unfinished(self) -> None:
        """Forget what is recorded of a round that something cut short."""
        n = sum(map(len, self.rounds)) // self._recipe.chains
        self._book.keep_first(n)
        del self._constants[len(self.rounds) :]
        self._note()

    def _next_size(self, before: int) -> int:
        """Return how many draws the next round pays for, the same of each chain; 0 for none."""
        chains, left = self._recipe.chains, self._left
        whole = left - left % chains if left < math.inf else left
        n = self._weigher.next_size(self._learning.n_observed, before, whole)
        if not n and self._calls_left < self._draws_left:
            if not (self._rejected or self.rounds):
                self._refused = TOO_FEW_CALLS
                self._note()
            self._book.stopping.cut("max_calls")
        return -(-n // chains) * chains

    def _note(self) -> None:
        """Write down what there is by now."""
        self._book.weights = Weights(
            answer=self.answer,
            refused=self._refused,
            rejected=self._rejected,
            of_surrogates=tuple(self._constants),
        )

    @property
    def _calls_left(self) -> float:
        most = self._book.stopping.budget.max_calls
        return math.inf if most is None else most - self._target.paid

    @property
    def _draws_left(self) -> float:
        wanted = self._book.wanted
        if wanted is None:
            return math.inf
        return wanted * self._recipe.chains - sum(map(len, self.rounds))

    @property
    def _left(self) -> float:
        """Calls left, or draws left to pay for, whichever are fewer."""
        return min(self._calls_left, self._draws_left)

    def _round(self, found: Findings, n: int) -> str | None:
        """Draw, pay and correct; return why that is not believed, or None."""
        surrogate, recipe, clock = self._learning.surrogate, self._recipe, self._book.clock
        assert surrogate is not None
        with clock.phase("sampling"), one_thread():
            about, covariance = found.chains.positions, found.covariance
            sample = self._weigher.draw(surrogate, recipe.sampler, about, covariance, self._rng)
            n = min(n, _most(sample, recipe.chains))
            chances = _chances(sample, n)
            paid = _thin(chances, n, self._rng)
            doubt = self._doubt(sample)
        positions = sample.flat[paid]
        learnt = self._learning.n_observed
        values, rows = self._pay(positions)
        fresh = Round(
            draws=self._target.transform.to_bounded(sample.positions),
            paid=paid,
            log_weights=sample.values.ravel()[paid] - values,
            learnt=learnt,
            chances=chances[paid],
        )
        doubt = doubt or complaint(fresh)
        apart = disagreement(self.rounds[-1], fresh) if doubt is None and self.rounds else None
        if doubt is not None or apart is not None:
            self._forget()
        if doubt is not None:
            self._record(positions, values, rows, "warmup")
            return doubt
        with clock.phase("sampling"), one_thread():
            constant = bridge(surrogate.value, sample.positions, self._rng)
        self._record(positions, values, rows, "sampling")
        self._constants.append(constant)
        self.rounds.append(fresh)
        return apart

    def _doubt(self, sample: SurrogateSample) -> str | None:
        """Return why the draws are not the surrogate's, or not to be used, or None."""
        rhat = float(np.max(r_hat(sample.positions)))
        if not rhat <= LARGEST_RHAT:
            return f"chains on the surrogate alone are apart, with R-hat {rhat:.3g}"
        beyond = part_beyond(self._learning.surrogate, sample.flat)
        if beyond > MOST_BEYOND:
            return f"{beyond:.2g} of the surrogate's draws lie beyond all that it has learnt from"
        return None

    def _pay(self, positions: FloatArray) -> tuple[FloatArray, Evaluations]:
        """Return U at positions (n, dim), and all that this tells; learn from it."""
        target, learning = self._target, self._learning
        uses_gradients = learning.uses_derivatives and calls_per_gradient(target) == 1
        target.keep_evaluations(True, jacobians=learning.uses_jacobians)
        with self._book.clock.phase("sampling"), target.pay_gradients(uses_gradients):
            values = target.value(positions)
        rows = target.drain()
        learning.observe(rows)
        return values, rows

    def _record(
        self, positions: FloatArray, values: FloatArray, rows: Evaluations, stage: Stage
    ) -> None:
        """Record what was paid for, as draws of the run only where it is believed."""
        chains = self._recipe.chains
        for at in range(0, len(positions), chains):
            state = _state(positions[at : at + chains], values[at : at + chains])
            self._book.recorder.take_outputs(rows, state)
            self._book.add(stage, state, _still(chains), None, explored=False)

    def _forget(self) -> None:
        """Turn draws so far into warm-up: what was believed before is in doubt too."""
        self.rounds.clear()
        self._constants.clear()
        self._book.begin_again()

    def _is_enough(self) -> bool:
        """Return whether two rounds agree on answers that are good enough."""
        if len(self.rounds) < 2:
            return False
        stopping, weights = self._book.stopping, self._book.weights
        assert weights is not None
        figures, budget = weights.figures, stopping.budget
        if budget.target_ess is not None and np.min(figures.effective) >= budget.target_ess:
            stopping.judge("target_ess")
            return True
        aim = budget.target_mcse
        if aim is None and budget.target_ess is None and self._book.wanted is None:
            aim = self._weigher.aim
        enough = aim is not None and np.max(figures.relative_error) <= aim
        if enough:
            stopping.judge("target_mcse")
        return bool(enough)


def _most(sample: SurrogateSample, chains: int) -> int:
    """Return how many draws may be paid for at most, the same of each chain of the run."""
    most = int(LARGEST_PART * sample.values.size)
    return most - most % chains


def _chances(sample: SurrogateSample, n: int) -> FloatArray:
    """Return how much likelier than others each draw is to be paid for, shape (chains * draws,).

    Where the surrogate is too high, it has few draws, and of evenly chosen ones none may be there:
    weights would look good while a tail is missing. So half of the payments are spread evenly over
    the logarithm of the surrogate's tail probability, by V. Of n payments no draw gets two.
    """
    values, rarest = sample.values.ravel(), RAREST
    size = len(values)
    tail = (size - rankdata(values, method="ordinal") + 0.5) / size
    while True:
        rare = 1.0 / np.maximum(tail, rarest)
        chances = 1.0 - TO_TAILS + TO_TAILS * rare / rare.mean()
        if chances.max() * n <= size:
            return np.asarray(chances)
        rarest *= 2.0


def _thin(chances: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return n different draws, chosen by their chances, and as far apart as can be.

    No chance may be more than an n-th of their sum.
    """
    upto = np.cumsum(chances)
    at = (np.arange(n) + rng.random()) / n * upto[-1]
    return np.asarray(np.minimum(np.searchsorted(upto, at, side="right"), len(chances) - 1))


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
