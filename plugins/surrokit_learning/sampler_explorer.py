"""Exploration by the exact sampler's own burn-in: the first phase of Algorithm 3."""

from __future__ import annotations

from collections.abc import Iterator

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
from surrokit.kernel.tuning import Tuner, has_to_approach
from surrokit.modes import Modes
from surrokit.surrogate.training import training_rows
from surrokit.types import Capabilities


@attrs.frozen(kw_only=True, eq=False)
class SamplerExplorer:
    """Run an exact sampler, tuned on the way, and learn from what it evaluates.

    Parameters
    ----------
    sampler, correction
        The exact kernel.
    iterations
        How long to explore; None for half of the warm-up, or a quarter of it where gradients are
        evaluated, and a surrogate needs fewer.
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
        exact, sampler, length = start.potential, self.sampler, self._length(start.warmup)
        positions, modes, taken, rows = start.positions, None, 0, None
        tuner = Tuner.start(sampler, length, *positions.shape)
        arrived: Explored | None = None
        if self.approach is not None and has_to_approach(sampler, exact, length):
            steps = self.approach.explore(attrs.evolve(start, warmup=length), rng)
            for taken, each in enumerate(steps):  # noqa: B007 - how many it took
                if each.done:
                    arrived = each
                    break
                found = _findings(each.findings.chains, tuner, None)
                yield Explored(findings=found, step=each.step)
        if arrived is not None:
            positions, modes = arrived.findings.chains.positions, arrived.findings.modes
            reliable = modes is not None and modes.reliable
            covariance, length_left = arrived.findings.covariance, length - taken
            tuner = Tuner.start(
                sampler, length_left, *positions.shape, arrived=reliable, covariance=covariance
            )
        kernel, decider = sampler.bind(exact, tuner.tuning), self.correction.bind(exact)
        chains = decider.start(positions, kernel.cache(positions), kernel.potential)
        if arrived is not None:
            near = [arrived.rows or Evaluations.empty(exact.dim), start.evaluated()]
            rows = self._rows_near(modes, Evaluations.join(near, exact.dim))
        n_rows = 0 if rows is None else len(rows)
        done = arrived is not None and self._is_over(taken, length, n_rows)
        step = None if arrived is None else arrived.step
        yield Explored(findings=_findings(chains, tuner, modes), step=step, rows=rows, done=done)
        while not done:
            taken, before = taken + 1, tuner.covariance
            chains, step = decider.decide(chains, kernel.propose(chains, rng), rng)
            tuner = tuner.update(chains.positions, step, chains.cache.get("gradient"))
            rows = training_rows(self.learn_from, start.evaluated(), chains, step)
            if taken <= self.discard:
                rows = Evaluations.empty(exact.dim)
            n_rows += len(rows)
            done = self._is_over(taken, length, n_rows)
            found = _findings(chains, tuner, modes)
            yield Explored(findings=found, step=step, rows=rows, done=done)
            kernel = sampler.bind(exact, tuner.tuning)
            if tuner.covariance is not before and sampler.caches_metric:
                chains = attrs.evolve(chains, cache=kernel.cache(chains.positions))

    def _length(self, warmup: int) -> int:
        """Return how many iterations an exploration takes in a warm-up."""
        usual = warmup // (4 if GRADIENT in self.sampler.needs else 2)
        length = self.iterations or (usual if self.evaluations is None else warmup)
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
        return taken >= length or (self.evaluations is not None and n_rows >= self.evaluations)

    def _rows_near(self, modes: Modes | None, rows: Evaluations) -> Evaluations:
        """Return the rows near modes: searches begin far away, where heavy tails are not high."""
        dim = rows.positions.shape[1]
        if modes is None or not modes.reliable or self.learn_from != "all":
            return Evaluations.empty(dim)
        near = modes.distances(rows.positions) <= 2.0 + np.sqrt(dim)  # as draws of a normal are
        return rows.take(near & np.isfinite(rows.values))


def _findings(chains: ChainState, tuner: Tuner, modes: Modes | None) -> Findings:
    step_size = float(np.exp(tuner.averaged_log_step))
    return Findings(chains=chains, covariance=tuner.covariance, step_size=step_size, modes=modes)
