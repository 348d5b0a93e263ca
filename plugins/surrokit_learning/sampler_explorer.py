"""Exploration by the exact sampler's own burn-in: the first phase of Algorithm 3."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import attrs
import numpy as np

from surrokit.arguments import not_negative_integer, optional_positive_integer
from surrokit.capabilities import GRADIENT
from surrokit.errors import ConfigurationError
from surrokit.interfaces import (
    ChainState,
    Correction,
    Evaluations,
    Explored,
    Explorer,
    Findings,
    LearnFrom,
    Sampler,
    Start,
    check_learn_from,
)
from surrokit.kernel.tuning import Tuner, TunerState, has_to_approach
from surrokit.modes import Modes
from surrokit.surrogate.training import training_rows
from surrokit.types import Capabilities

WITHIN = 2.0
"""Standard deviations, beside the root of the dimension, from a mode within which draws lie."""


@attrs.frozen(kw_only=True, eq=False)
class SamplerExplorer:
    """Run an exact sampler, tuned on the way, and learn from what it evaluates.

    Parameters
    ----------
    sampler, correction
        The exact kernel.
    iterations
        How long to explore; None for half of the warm-up, or a quarter of it where gradients are
        evaluated, of which a surrogate needs fewer.
    evaluations
        Stop as soon as there are so many rows to learn from.
    discard
        Iterations at the start that nothing is learnt from (the paper: 1000 of 5000).
    learn_from
        ``"all"`` evaluations, ``"accepted"`` proposals (Algorithm 3), or the ``"states"`` of the
        chains (the authors' code).
    approach
        How chains that move by gradients come to where the mass is, before the first transition,
        if the sampler leaves its step size or metric to be tuned.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    sampler: Sampler
    correction: Correction
    iterations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    discard: int = attrs.field(default=0, validator=not_negative_integer)
    learn_from: LearnFrom = attrs.field(default="all", converter=check_learn_from)
    approach: Explorer | None = None

    @property
    def needs(self) -> Capabilities:
        """What sampler and correction need."""
        return self.sampler.needs | self.correction.needs

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Let chains move, and yield after each transition; see the protocol.

        Raises
        ------
        ConfigurationError
            If the warm-up is too short for the exploration asked for.
        """
        exact, sampler = start.potential, self.sampler
        length, decider = self.length(start.warmup), self.correction.bind(exact)
        positions, modes, tuner = start.positions, None, Tuner.of(sampler, length)
        tuned = tuner.start(*positions.shape)
        near, taken = yield from self._approach(start, length, tuned, rng)
        if near is not None:
            positions, modes = near.findings.chains.positions, near.findings.modes
            arrived = modes is not None and modes.believed
            tuner = Tuner.of(sampler, length - taken, arrived=arrived)
            tuned = tuner.start(*positions.shape, covariance=near.findings.covariance)
        kernel = sampler.bind(exact, tuner.tuning(tuned))
        chains = decider.start(positions, kernel.cache(positions), kernel.potential)
        begun = Explored(findings=_findings(chains, tuned, modes))
        if near is not None:
            parts = [near.rows or Evaluations.empty(exact.dim), start.evaluated()]
            rows = self._rows_near(modes, Evaluations.join(parts, exact.dim))
            over = self._is_over(taken, length, len(rows))
            begun = attrs.evolve(begun, step=near.step, rows=rows, done=over)
        yield begun
        done, n_rows = begun.done, 0 if begun.rows is None else len(begun.rows)
        while not done:
            taken, before = taken + 1, tuned.covariance
            chains, step = decider.decide(chains, kernel.propose(chains, rng), rng)
            tuned = tuner.update(tuned, chains.positions, step, chains.cache.get("gradient"))
            rows = training_rows(self.learn_from, start.evaluated(), chains, step)
            if taken <= self.discard:
                rows = Evaluations.empty(exact.dim)
            n_rows += len(rows)
            done = self._is_over(taken, length, n_rows)
            found = _findings(chains, tuned, modes)
            yield Explored(findings=found, step=step, rows=rows, done=done)
            kernel = sampler.bind(exact, tuner.tuning(tuned))
            if tuned.covariance is not before and sampler.caches_metric:
                chains = attrs.evolve(chains, cache=kernel.cache(chains.positions))

    def length(self, warmup: int) -> int:
        """Return how many iterations an exploration takes in a warm-up.

        Raises
        ------
        ConfigurationError
            If the warm-up is too short for what is asked for.
        """
        if self.iterations is not None:
            length = self.iterations
        elif self.evaluations is not None:
            length = warmup
        else:
            length = warmup // (4 if GRADIENT in self.sampler.needs else 2)
        if length > warmup:
            raise ConfigurationError(
                f"explorer asks for {length} iterations, but warmup is {warmup} and counts them; "
                "raise warmup or lower the explorer's iterations"
            )
        if length <= self.discard:
            raise ConfigurationError(
                f"explorer discards {self.discard} iterations of {length}, so nothing is left to "
                "learn from; raise warmup or lower discard"
            )
        return length

    def _is_over(self, taken: int, length: int, n_rows: int) -> bool:
        enough = self.evaluations is not None and n_rows >= self.evaluations
        return enough or taken >= length

    def _approach(
        self, start: Start, length: int, tuned: TunerState, rng: np.random.Generator
    ) -> Generator[Explored, None, tuple[Explored | None, int]]:
        """Bring chains to the mass; return the last iteration of that, and how many it took."""
        if self.approach is None or not has_to_approach(self.sampler, start.potential, length):
            return None, 0
        steps = self.approach.explore(attrs.evolve(start, warmup=length), rng)
        for taken, each in enumerate(steps):
            if each.done:
                return each, taken
            yield Explored(findings=_findings(each.findings.chains, tuned, None), step=each.step)
        return None, 0

    def _rows_near(self, modes: Modes | None, rows: Evaluations) -> Evaluations:
        """Return the rows near modes: searches begin far away, where heavy tails are not high."""
        if modes is None or not modes.believed or self.learn_from != "all":
            return Evaluations.empty(rows.positions.shape[1])
        near = modes.distances(rows.positions) <= WITHIN + np.sqrt(rows.positions.shape[1])
        return rows.take(near & np.isfinite(rows.values))


def _findings(chains: ChainState, tuned: TunerState, modes: Modes | None) -> Findings:
    return Findings(
        chains=chains,
        covariance=tuned.covariance,
        step_size=float(np.exp(tuned.averaged_log_step)),
        modes=modes,
    )
