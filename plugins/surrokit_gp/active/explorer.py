"""Exploration of black boxes, which have values alone."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from surrokit.interfaces import Explored, Start
from surrokit.types import Capabilities
from surrokit_gp.active.exploration import ActiveExploration
from surrokit_gp.active.settings import ActiveSettings


@attrs.frozen(kw_only=True, eq=False)
class Active(ActiveSettings):
    """Evaluate where a process of all values so far is least sure of the posterior.

    A process of a :class:`~surrokit_gp.quadratic.prior.QuadraticPrior` is fitted after each batch
    of a few values, chains on it tell where its mass is, and among their draws those are evaluated
    of which it is least sure, with some plain draws to judge it by. Its coordinates follow its own
    draws, and about the best point where it was wrong. It needs no gradient, and far fewer values
    than a search for the mode by differences. It looks in one place alone: about where the target
    expects itself to be (``plausible``), or about the chains' starts. Other modes it misses.

    It serves up to about twelve dimensions. Active learning of log densities: Kandasamy, Schneider
    and Poczos (2017, Artificial Intelligence 243); by a process about a quadratic: Acerbi (2018,
    arXiv:1810.05558); by variances weighted with powers of the density: El Gammal, Schöneberg,
    Torrado and Fidler (2023, arXiv:2211.02045).
    """

    @property
    def needs(self) -> Capabilities:
        """Nothing but values."""
        return frozenset()

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Yield after each batch of evaluations; see the protocol."""
        exploration = ActiveExploration(settings=self, potential=start.potential, calls=start.calls)
        state = exploration.start(start.positions, start.warmup)
        yield Explored(findings=exploration.findings(state))
        while not state.finished:
            state, rows = exploration.step(state, rng), start.evaluated()
            if state.finished:
                state = exploration.inform(state, start.fit(rows))
                rows = rows.take(slice(0))
            found = exploration.findings(state)
            yield Explored(findings=found, step=state.info, rows=rows, done=state.finished)
