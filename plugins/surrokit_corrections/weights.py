"""The correction of answers by weights at a few draws of the surrogate."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs
import numpy as np

from surrokit.arguments import positive, positive_integer
from surrokit.diagnostics import mean_error
from surrokit.interfaces import ChainState, OuterSample, Sampler, SurrogateSample
from surrokit.kernel.kernel import STEPS, Binding, follow, warm_up
from surrokit.potentials import Potential, Straight, straight_of
from surrokit.surrogate.umbrella import Umbrella
from surrokit.types import Capabilities, FloatArray
from surrokit.weighted.rounds import stay_rejected
from surrokit_corrections.metropolis import Metropolis, MetropolisDecider

LONGEST = 8
"""How many times as long as effective draws take at least chains may get. From half of that on,
half of the effective draws are enough: errors come from the weights there."""

FEWEST = 16
"""Draws that are evaluated where no more calls are left, and no round was before."""

SHORTEST = 8
"""Draws of each chain at least: what a surrogate's normalising constant takes."""


@attrs.frozen(kw_only=True, eq=False)
class Weights:
    """Draw from the surrogate at no call, evaluate a few draws, and correct means and quantiles.

    The answers of a run are then those of the target, with their errors, but its draws
    are not: they are weighted draws of the surrogate. Rounds evaluate draws of a surrogate that
    has learnt from all rounds before. Where the weights are bad, chains go on with the proposals
    of the surrogate, on which the exact potential decides as :class:`Metropolis` does.

    Parameters
    ----------
    least
        Draws that a round evaluates at least; with fewer the tail of the weights is not seen.
    aim
        Error of every mean, standard deviation and 5, 50 and 95 % quantile, in posterior standard
        deviations, at which a run without another goal ends.
    chains
        Chains on the surrogate.
    warmup
        Their transitions before the first draw: so many while they are tuned, and again thereafter.
    effective
        Effective draws of the surrogate to be had at least, of every parameter; half as many where
        chains have to become half as long as they may.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    least: int = attrs.field(default=28, validator=positive_integer)
    aim: float = attrs.field(default=0.02, validator=positive)
    chains: int = attrs.field(default=32, validator=positive_integer)
    warmup: int = attrs.field(default=300, validator=positive_integer)
    effective: int = attrs.field(default=24_000, validator=positive_integer)

    @property
    def needs(self) -> Capabilities:
        """Nothing but values."""
        return frozenset()

    @property
    def weighs(self) -> bool:
        """True: a run weighs, before it lets chains go on."""
        return True

    def bind(self, potential: Potential) -> MetropolisDecider:
        """Return what decides by an exact potential where weights are bad."""
        return Metropolis().bind(potential)

    def next_size(self, learnt: int, before: int, left: float) -> int:
        """Return how many draws to evaluate in the next round; 0 where too few calls are left."""
        if left < self.least:  # so few can only be a first round
            return 0 if before or left < FEWEST else int(left)
        # half as many again in each round, and a quarter of what was learnt from
        wanted = max(self.least, int(1.5 * before), int(0.25 * learnt))
        # what is left over must be enough for a round of its own
        return wanted if left >= wanted + self.least else int(min(left, 2 * wanted))

    def draw(
        self,
        surrogate: Potential,
        sampler: Sampler,
        about: FloatArray,
        covariance: FloatArray | None,
        rng: np.random.Generator,
    ) -> SurrogateSample:
        """Return draws of long chains on V, begun farther apart than draws."""
        straight = straight_of(surrogate)
        if straight.covariance is not None:
            covariance = straight.covariance
        moves = Binding(sampler.kernel, straight.potential, self.chains)
        moves.tune(self.warmup, covariance=covariance, step_size=None)
        decider = Metropolis().bind(straight.potential)
        starts = self._starts(straight.potential, straight.apply(about), covariance, rng)
        for state, _ in warm_up(moves, decider, starts, self.warmup, rng):  # noqa: B007
            pass
        moves.freeze()
        return self._sample(moves, moves.renew(state), straight, rng)

    def _sample(
        self, moves: Binding, state: ChainState, straight: Straight, rng: np.random.Generator
    ) -> SurrogateSample:
        """Return draws of tuned chains, as many as it takes."""
        chains = itertools.islice(_chains(moves, state, rng), self.warmup, None)
        states: list[ChainState] = []
        length = max(-(-self.effective // self.chains), SHORTEST)
        most = LONGEST * length
        while True:
            states += itertools.islice(chains, length - len(states))
            at = np.stack([each.positions for each in states], axis=1)
            positions = straight.undo(at.reshape(-1, at.shape[2])).reshape(at.shape)
            found = _count_effective(positions)
            enough = self.effective if length < most // 2 else self.effective // 2
            is_over = found >= enough or length == most
            if is_over or stay_rejected(at, moves.potential, most / length):
                values = np.stack([each.values for each in states], axis=1)
                outer = self._go_out(moves, states[-1], values, straight, rng)
                values = values - straight.volume(positions)
                return SurrogateSample(positions=positions, values=values, outer=outer)
            longer = 1.1 * length * self.effective / max(found, 1.0) + 1  # with some to spare
            length = int(min(longer, max(most // 2, longer / 2), most))

    def _go_out(
        self,
        moves: Binding,
        state: ChainState,
        values: FloatArray,
        straight: Straight,
        rng: np.random.Generator,
    ) -> OuterSample | None:
        """Return draws under an umbrella, from where chains on V are, by V at their draws.

        None for a sampler that needs more of a potential than its gradient.
        """
        umbrella = Umbrella.about(moves.potential, values)
        if not moves.sampler.needs <= umbrella.capabilities:
            return None
        moves.bind_to(umbrella)
        at = state.positions
        state = Metropolis().bind(umbrella).start(at, moves.cache(at), umbrella)
        length = self.warmup + -(-1024 // self.chains) * len(STEPS)  # 1024 draws with each step
        chains = itertools.islice(_chains(moves, state, rng), self.warmup, length)
        positions = np.stack([each.positions for each in chains], axis=1).reshape(-1, umbrella.dim)
        values = umbrella.potential.value(positions)
        umbrella = umbrella.normalise(values)
        positions = straight.undo(positions)
        return OuterSample(
            positions=positions,
            values=values - straight.volume(positions),
            chances=lambda at, values: umbrella.chances(values + straight.volume(at)),
        )

    def _starts(
        self,
        surrogate: Potential,
        about: FloatArray,
        covariance: FloatArray | None,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return where chains begin, shape (chains, dim).

        That is farther apart than draws, so that a comparison of chains sees whether they have
        spread; less where a start lies far above the lowest.
        """
        possible = np.isfinite(surrogate.value(about))
        about = about[possible] if possible.any() else about
        centres = about[np.arange(self.chains) % len(about)]
        factor = np.eye(centres.shape[1])
        if covariance is not None:  # it may be singular
            values, vectors = np.linalg.eigh(covariance)
            factor = vectors * np.sqrt(np.maximum(values, 0.0))
        moves = 2.0 * rng.standard_normal(centres.shape) @ factor.T
        most = surrogate.value(centres).min() + 20.0 + centres.shape[1]
        for _ in range(8):
            over = ~(surrogate.value(centres + moves) <= most)
            if not over.any():
                break
            moves[over] *= 0.5
        return np.asarray(centres + moves)


def _chains(moves: Binding, state: ChainState, rng: np.random.Generator) -> Iterator[ChainState]:
    decider = Metropolis().bind(moves.potential)
    return follow(moves.sampler, moves.potential, moves.tuning, decider, state, rng)


def _count_effective(draws: FloatArray) -> float:
    """Return how many independent draws means, mean squares and tails are worth at least."""
    low, high = np.quantile(draws, (0.05, 0.95), axis=(0, 1))
    squares = np.square(draws - 0.5 * (low + high))
    functions = np.concatenate([draws, squares, draws <= low, draws <= high], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = functions.var(axis=(0, 1)) / np.square(mean_error(functions))
    return float(np.nanmin(found, initial=np.inf))
