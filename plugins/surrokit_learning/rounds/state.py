"""The state of an exploration in rounds."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import numpy as np

from surrokit.contracts.explorer import Modes, Past
from surrokit.exploring.standing import idle
from surrokit.interfaces import ChainState, Evaluations, StepInfo, Tuning
from surrokit.potentials import Potential
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_learning.modes.belief import begin_about
from surrokit_learning.modes.search import ModeSearch
from surrokit_learning.region.independence import quotas, resample
from surrokit_learning.region.region import WIDE
from surrokit_learning.rounds.bill import Bill
from surrokit_learning.rounds.judgement import Judgement, foretold
from surrokit_learning.rounds.queue import Queue

Stage: TypeAlias = Literal["recall", "burst", "mode", "design", "rounds"]
"""What the next step is for."""

FAR = 10.0
"""Times as far above the least potential as a plausible point, a step of the search is not learnt
from."""


@attrs.frozen(kw_only=True, eq=False)
class RoundsState:
    """Plain data, from which an exploration can be taken up again.

    Parameters
    ----------
    chains, info
        Where the run's chains are, and what the last step did to them.
    stage
        What the next step is for.
    burst
        State of the explorer inside, while it explores.
    seen : Evaluations
        Points with finite values, and gradients where they were paid for.
    failed : ndarray of shape (k, dim), optional
        Points without; None before there are any.
    search
        The search for the mode; None where there is none.
    withheld : Evaluations, optional
        What the search for the mode has paid for so far; None once it is over.
    mode : ndarray of shape (dim,), optional
        Least potential found.
    hessian : ndarray of shape (dim, dim), optional
        Second derivatives there, or what stands for them.
    corners : pair of ndarrays of shape (dim,), optional
        Of the box that the first points are spread over.
    covariance : ndarray of shape (dim, dim), optional
        What is known of the target's.
    queue
        Where the target is to be evaluated next.
    n_design
        Points of the first design so far.
    approximated : float, optional
        Predicted acceptance of independent draws of the Laplace approximation, by the last of them.
    judgements
        Of each round so far.
    bill
        Steps and exact evaluations so far, and bounds on them.
    seed
        From the run's generator, for the draws on the next surrogate.
    unfitted
        Whether there are points that no surrogate shown so far has learnt from.
    finished, settled
        Whether no more points are wanted; and whether the last surrogate has been looked at, too.
    at_draws
        Whether the chains are at draws of the target.
    tuning
        What the run's own sampler needs.
    starts
        Where the run's chains were before the search for modes; None where there was none.
    believed
        Whether mass lies about the modes, for all that is known.
    """

    chains: ChainState
    stage: Stage
    burst: Any
    seen: Evaluations
    queue: Queue
    bill: Bill
    failed: FloatArray | None = None
    info: StepInfo | None = None
    search: ModeSearch | None = None
    withheld: Evaluations | None = None
    mode: FloatArray | None = None
    hessian: FloatArray | None = None
    corners: tuple[FloatArray, FloatArray] | None = None
    covariance: FloatArray | None = None
    n_design: int = 0
    approximated: float | None = None
    judgements: tuple[Judgement, ...] = ()
    seed: int = 0
    unfitted: bool = False
    finished: bool = False
    settled: bool = False
    at_draws: bool = False
    tuning: Tuning | None = None
    starts: ChainState | None = None
    believed: bool = True

    @classmethod
    def at(
        cls, chains: ChainState, *, stage: Stage, burst: Any, steps: int, paid: int, spare: int = 0
    ) -> RoundsState:
        """Return the state before the first of so many steps, and evaluations to be paid.

        Spare ones are paid where the others have not seen all of the target's mass.
        """
        n, dim = chains.positions.shape
        search = None
        if stage == "mode":
            search = ModeSearch.among(chains.positions, chains.values)
        return cls(
            chains=chains,
            stage=stage,
            burst=burst,
            seen=Evaluations.empty(dim),
            queue=Queue.empty(dim),
            bill=Bill(
                paid=0 if burst is not None else n,
                most_steps=steps,
                most_paid=paid,
                spare=spare,
            ),
            search=search,
            starts=None if search is None else chains,
            withheld=None if search is None else Evaluations.empty(dim),
        )

    @classmethod
    def recalling(
        cls, past: Past, chains: int, *, steps: int, paid: int, spare: int
    ) -> RoundsState:
        """Return the state of so many chains at draws of the target, before anything is paid."""
        rows = np.linspace(0, len(past) - 1, chains).astype(np.int64)
        at = ChainState(positions=past.positions[rows], values=past.values[rows], cache={})
        state = cls.at(at, stage="recall", burst=None, steps=steps, paid=paid, spare=spare)
        dim = past.positions.shape[1]
        return attrs.evolve(
            state,
            seen=Evaluations(positions=past.positions, values=past.values),
            bill=attrs.evolve(state.bill, paid=0),
            covariance=np.cov(past.positions, rowvar=False).reshape(dim, dim),
            unfitted=True,
        )

    def recall(self, past: Past, surrogate: Potential | None, enough: float) -> RoundsState:
        """Return the state, finished if all that was paid before makes a good surrogate.

        Parameters
        ----------
        past
            Draws of the target.
        surrogate
            Learnt from all that was paid; None where it could not be.
        enough
            Predicted acceptance that is.
        """
        if surrogate is None:
            return attrs.evolve(self, stage="rounds")
        judgement = Judgement.at_draws(past, surrogate)
        good = judgement.acceptance >= enough
        return attrs.evolve(
            self, stage="rounds", judgements=(judgement,), finished=good, at_draws=good
        )

    @property
    def modes(self) -> Modes | None:
        """The modes that were found; None where they were not looked for."""
        found = None if self.search is None else self.search.found
        return None if found is None else attrs.evolve(found, believed=self.believed)

    def doubt(self, exact: Potential, unless: float) -> RoundsState:
        """Return the state with chains back at their starts, if no mass lies about the modes.

        That is asked where no surrogate was any good: searches may have ended in a neck, and chains
        that go on without a surrogate would not come out of it.

        Parameters
        ----------
        exact
            The target, whose gradients at some draws are paid for.
        unless
            Predicted acceptance from which on nothing is asked.
        """
        modes, starts = self.modes, self.starts
        if (foretold(self.judgements) or 0.0) >= unless:
            return self
        if modes is None or starts is None or not np.isfinite(starts.values).all():
            return self
        rng = np.random.default_rng(self.seed)
        chains = ChainState(positions=starts.positions, values=starts.values, cache={})
        _, judged = begin_about(exact, modes, chains, rng)
        if judged.believed:
            return self
        return attrs.evolve(self, chains=chains, mode=None, covariance=None, believed=False)

    @property
    def expected(self) -> float:
        """The acceptance that draws of the next surrogate are expected to have.

        That of the last ones; before the first, that of the Laplace approximation's, since a
        surrogate that has learnt from these is better.
        """
        if self.judgements:
            return self.judgements[-1].acceptance
        return 0.0 if self.approximated is None else self.approximated

    @property
    def several(self) -> Modes | None:
        """The modes that matter, if these are two or more; no more than there are chains."""
        modes = self.modes
        if modes is None or modes.matters.sum() < 2:
            return None
        heaviest = np.argsort(-modes.masses, kind="stable")[: max(len(self.chains.values), 2)]
        return modes.take(heaviest[modes.matters[heaviest]])

    def share_out(self, order: IntArray, positions: FloatArray, n: int) -> IntArray:
        """Return n rows, the first ones of an order, or where there are several modes of each.

        Parameters
        ----------
        order : ndarray of shape (m,)
            Rows of positions, those to be taken first.
        positions : ndarray of shape (k, dim)
            What they are rows of.
        n
            How many to take, of each mode by what it weighs.
        """
        modes = self.several
        if modes is None or not len(order):
            return order[:n]
        labels = modes.nearest(positions[order])
        ranks = np.array([np.sum(labels[:i] == label) for i, label in enumerate(labels)])
        # one of each mode, then what is due to each, then what is left
        turn = (ranks > 0) + 1 * (ranks >= quotas(modes.masses, n)[labels])
        return np.asarray(order[np.argsort(turn, kind="stable")[:n]])

    @property
    def best(self) -> FloatArray:
        """The position, shape (dim,), of the least potential known."""
        if self.mode is not None:
            return self.mode
        chain = int(np.argmin(self.chains.values))
        best = self.chains.positions[chain]
        if len(self.seen) and self.seen.values.min() < self.chains.values[chain]:
            best = self.seen.positions[int(np.argmin(self.seen.values))]
        return np.asarray(best)

    def release(self, rows: Evaluations) -> tuple[RoundsState, Evaluations]:
        """Return the rows to learn from; a search's wait until it is known which are far away."""
        if self.withheld is None:
            return self, rows
        dim = rows.positions.shape[1]
        withheld = Evaluations.join([self.withheld, rows], dim)
        if self.stage == "mode":
            return attrs.evolve(self, withheld=withheld), Evaluations.empty(dim)
        least = np.min(withheld.values, initial=np.inf)
        near = withheld.values <= least + FAR * (dim + WIDE)
        near &= self._within_starts(withheld.positions)
        seen = self.seen.take(self._within_starts(self.seen.positions))
        state = attrs.evolve(self, withheld=None, seen=seen)
        return state, withheld.take(np.asarray(near))

    def _within_starts(self, positions: FloatArray) -> BoolArray:
        """Return which positions lie no farther from the modes than chains start, or draws do.

        Beyond that later searches begin. Where the target has heavy tails its potential is not
        high there, and yet there is next to nothing of its mass.
        """
        modes = self.modes
        if modes is None or modes.searches == 1:
            return np.ones(len(positions), dtype=bool)
        usual = np.sqrt(positions.shape[1]) + 2.0
        farthest = max(usual, float(modes.distances(self.chains.positions).max()))
        return np.asarray(modes.distances(positions) <= farthest)

    def move(
        self,
        positions: FloatArray,
        values: FloatArray,
        log_weights: FloatArray,
        rng: np.random.Generator,
    ) -> RoundsState:
        """Return the state with its chains at points chosen by importance; others stay.

        Parameters
        ----------
        positions : ndarray of shape (k, dim)
            Points to choose from.
        values : ndarray of shape (k,)
            U there.
        log_weights : ndarray of shape (k,)
            Log importance weights; rows with -inf are not chosen.
        rng
            Generator.
        """
        n = len(self.chains.values)
        rows = self.share_out(resample(log_weights, len(values), rng), positions, n)
        at, u = self.chains.positions.copy(), self.chains.values.copy()
        at[: len(rows)], u[: len(rows)] = positions[rows], values[rows]
        chains = ChainState(positions=at, values=u, cache={})
        return attrs.evolve(self, chains=chains, info=idle(n, len(rows)))
