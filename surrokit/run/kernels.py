"""The kernels of an attempt: its own, and an exact one beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from surrokit.capabilities import ROWS
from surrokit.cost.recording import RecordingPotential
from surrokit.interfaces import Sampler, StepInfo, Tuning
from surrokit.kernel.foresight import Foresight, can_foresee
from surrokit.kernel.kernel import ExactMoves, Moves
from surrokit.plan.recipe import Recipe
from surrokit.types import FloatArray

InUse = tuple[object, ...]
"""The frozen parts that move chains and decide; any change makes another object."""


class Kernels:
    """Both kernels, which move the same chains.

    Parameters
    ----------
    recipe
        One whose parts are made.
    target
        The exact potential.

    Attributes
    ----------
    moves
        The kernel that the recipe names, and the chains.
    exact
        The exact kernel beside it; None where there is no surrogate.
    """

    def __init__(self, recipe: Recipe, target: RecordingPotential) -> None:
        chains = recipe.chains
        self._target = target
        self.moves = Moves(
            recipe.sampler, recipe.correction, target, chains, surrogate=recipe.surrogate
        )
        self.exact: ExactMoves | None = None
        if recipe.exact_sampler is not None:
            self.exact = ExactMoves(recipe.exact_sampler, self.moves.decider, target, chains)

    @property
    def in_use(self) -> InUse:
        """The parts that move chains and decide, to be compared by identity."""
        return (*self.moves.identity, *(() if self.exact is None else self.exact.identity))

    @property
    def pay_whole_positions(self) -> bool:
        """Whether a transition may pay for whole positions; else it pays for data rows alone."""
        return ROWS not in self.moves.correction.needs

    def begin_tuning(
        self, n_iterations: int, tuning: Tuning | None, *, arrived: bool = False
    ) -> None:
        """Begin to tune for so many iterations, from what is known already.

        Parameters
        ----------
        n_iterations
            Length of the warm-up.
        tuning
            What was found elsewhere, and is not searched.
        arrived
            Whether the chains are where the mass is.
        """
        moves = self.moves
        if self.exact is not None:
            self.exact.tune(n_iterations, covariance=moves.covariance, step_size=moves.step_size)
        moves.start_tuning(n_iterations, tuning, arrived=arrived)

    def replace_sampler(self, sampler: Sampler, n_iterations: int) -> None:
        """Move the chains by another sampler on the same potential, and begin to tune it."""
        moves = self.moves
        moves.sampler, moves.step_size = sampler, None
        self.begin_tuning(n_iterations, None)
        moves.move_on(moves.potential)

    @contextmanager
    def lesson(self, transitions: int) -> Iterator[None]:
        """Tune the exact kernel by so many transitions in the block, and take over its covariance.

        A surrogate that is poor may have told little of the target's scales.
        """
        assert self.exact is not None
        step = self.exact.step
        self.exact.tune(transitions, covariance=self.moves.covariance, step_size=step)
        yield
        self.moves.learn(self.exact.tuning.covariance)

    def settle(self) -> None:
        """Stop tuning, and keep what was tuned."""
        self.moves.settle()
        if self.exact is not None:
            self.exact.freeze()

    def prepare(self, mode: FloatArray | None) -> None:
        """Let the correction prepare itself near a mode, or near the chains without one."""
        near = self.moves.positions.mean(axis=0) if mode is None else mode
        if self.moves.prepare(near) and self.exact is not None:
            self.exact.decide_by(self.moves.decider)

    @contextmanager
    def looking_ahead(
        self, recipe: Recipe, left: Callable[[], int], *, mixed: bool
    ) -> Iterator[None]:
        """Make proposals ahead in the block, where workers would have nothing else to do.

        Parameters
        ----------
        recipe
            What the run goes by.
        left
            Tells how many iterations are left after the one that begins.
        mixed
            Whether some iterations are exact transitions, at which proposals ahead are in vain.
        """
        ahead, moves, target = recipe.ahead, self.moves, self._target
        if ahead is None or mixed or not _pays(recipe) or not can_foresee(moves.decider):
            yield
            return

        def set_aside(positions: FloatArray) -> None:
            with target.calls_made.unused(), target.rejections.aside():
                target.fork(keep=False).value(positions)

        journal = target.calls_made.journal
        ahead.attend(lambda: journal is None or not journal.replays, set_aside)
        moves.foresight = Foresight(moves.decider, ahead, left)
        try:
            yield
        finally:
            moves.foresight = None
            ahead.close()

    def exact_transition(self, rng: np.random.Generator, *, tune: bool) -> StepInfo:
        """Make one exact transition of all chains."""
        assert self.exact is not None
        self.moves.step_size = self.exact.step
        state, step = self.exact.transition(self.moves.state, rng, tune=tune)
        self.moves.move_to(state, tune=tune)
        return step


def _pays(recipe: Recipe) -> bool:
    """Return whether proposals ahead may come true, and calls for nothing are no matter."""
    ahead, limited = recipe.ahead, recipe.budget.calls is not None
    if ahead is None or ahead.most <= recipe.chains:
        return False
    return ahead.asked or not limited
