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
from surrokit.potentials import Potential
from surrokit.surrogate.umbrella import Umbrella
from surrokit.types import Capabilities, FloatArray
from surrokit.weighted.rounds import stay_refused
from surrokit_corrections.metropolis import Metropolis, MetropolisDecider

SPREAD = 2.0
"""Standard deviations about the mass that chains begin at: farther apart than draws, so that a
comparison of chains sees whether they have spread."""

ROOM = 20.0
"""Nats, beside one for each dimension, that a start may lie above the lowest of them."""

HALVINGS = 8
"""How often a start that lies higher is moved half of the way back."""

LONGEST = 8
"""How many times as long as effective draws take at least chains may get. From half of that on,
half of the effective draws are enough: errors come from the weights there."""

SPARE = 1.1
"""How much longer than they seem to need chains are made."""

SHORTEST = 8
"""Draws of each chain at least: what a surrogate's normalising constant takes."""

GROWTH = 1.5
"""By how much more is paid for in each round."""

ENDS = (0.05, 0.95)
"""Tail probabilities of the quantiles that draws must tell well."""

OUTER = 1024
"""Draws under the umbrella that all chains together make with each step, at least."""

LEARNT = 0.25
"""Part of the evaluations learnt from that a round pays for at least."""


@attrs.frozen(kw_only=True, eq=False)
class Weights:
    """Draw from the surrogate for nothing, pay at a few draws, and correct means and quantiles.

    The answers of a run are then those of the target, with errors that are told, but its draws
    are not: they are weighted draws of the surrogate. Rounds pay for draws of a surrogate that
    has learnt from all rounds before. Where the weights are bad, chains go on with the proposals
    of the surrogate, on which the exact potential decides as :class:`Metropolis` does.

    Parameters
    ----------
    least
        Draws that a round pays for at least; with fewer the tail of the weights is not seen.
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
        """Return how many draws to pay for in the next round; 0 where too few calls are left."""
        if left < self.least:
            return 0
        wanted = max(self.least, int(GROWTH * before), int(LEARNT * learnt))
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
        moves = Binding(sampler.kernel, surrogate, self.chains)
        moves.tune(self.warmup, covariance=covariance, step_size=None)
        decider = Metropolis().bind(surrogate)
        starts = self._starts(surrogate, about, covariance, rng)
        for state, _ in warm_up(moves, decider, starts, self.warmup, rng):  # noqa: B007
            pass
        moves.freeze()
        return self._sample(moves, moves.renew(state), rng)

    def _sample(
        self, moves: Binding, state: ChainState, rng: np.random.Generator
    ) -> SurrogateSample:
        """Return draws of tuned chains, as many as it takes."""
        chains = itertools.islice(_chains(moves, state, rng), self.warmup, None)
        states: list[ChainState] = []
        length = max(-(-self.effective // self.chains), SHORTEST)
        most = LONGEST * length
        while True:
            states += itertools.islice(chains, length - len(states))
            positions = np.stack([each.positions for each in states], axis=1)
            found = _count_effective(positions)
            enough = self.effective if length < most // 2 else self.effective // 2
            is_over = found >= enough or length == most
            if is_over or stay_refused(positions, moves.potential, most / length):
                values = np.stack([each.values for each in states], axis=1)
                outer = self._go_out(moves, states[-1], values, rng)
                return SurrogateSample(positions=positions, values=values, outer=outer)
            longer = SPARE * length * self.effective / max(found, 1.0) + 1
            length = int(min(longer, max(most // 2, longer / 2), most))

    def _go_out(
        self, moves: Binding, state: ChainState, values: FloatArray, rng: np.random.Generator
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
        length = self.warmup + -(-OUTER // self.chains) * len(STEPS)
        chains = itertools.islice(_chains(moves, state, rng), self.warmup, length)
        positions = np.stack([each.positions for each in chains], axis=1).reshape(-1, umbrella.dim)
        umbrella = umbrella.normalise(umbrella.potential.value(positions))
        return OuterSample(positions=positions, chances=umbrella.chances)

    def _starts(
        self,
        surrogate: Potential,
        about: FloatArray,
        covariance: FloatArray | None,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Return where chains begin, shape (chains, dim)."""
        centres = about[np.arange(self.chains) % len(about)]
        factor = np.eye(centres.shape[1]) if covariance is None else _factor(covariance)
        moves = SPREAD * rng.standard_normal(centres.shape) @ factor.T
        most = surrogate.value(centres).min() + ROOM + centres.shape[1]
        for _ in range(HALVINGS):
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
    low, high = np.quantile(draws, ENDS, axis=(0, 1))
    squares = np.square(draws - 0.5 * (low + high))
    functions = np.concatenate([draws, squares, draws <= low, draws <= high], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = functions.var(axis=(0, 1)) / np.square(mean_error(functions))
    return float(np.nanmin(found, initial=np.inf))


def _factor(covariance: FloatArray) -> FloatArray:
    """Return a factor of a covariance (dim, dim) that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
