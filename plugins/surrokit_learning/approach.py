"""The way of an exact sampler's chains to where the mass is: searches, then draws about modes."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from surrokit.arguments import optional_positive_integer
from surrokit.capabilities import GRADIENT
from surrokit.exploring import demand_warmup, idle
from surrokit.interfaces import ChainState, Explored, Findings, Start
from surrokit.modes import Modes
from surrokit.types import Capabilities
from surrokit_learning.modes_found import begin_about, chains_at
from surrokit_learning.modes_search import Limits, ModeSearch, unnoticed


@attrs.frozen(kw_only=True, eq=False)
class Approach:
    """Search for modes from where the chains are, and begin at draws about those found.

    The searches are optimisation paths, as in Pathfinder (Zhang, Carpenter, Gelman and Vehtari
    2022, arXiv:2108.03782), and their ends and curvature say where the mass is and how wide. Each
    mode that matters keeps chains, in proportion to how many searches led to it. Where there is no
    mass about a mode, as in the narrow end of a funnel, chains stay at their starts.

    Parameters
    ----------
    evaluations
        Gradients at most; None for 50 for each chain and 10 more for each dimension, and three
        times as many while there is a mode that one search alone has found; but a quarter of the
        calls that a budget leaves.
    searches
        Starts to search from at most; None for more of them in more dimensions, 12 at most.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    searches: int | None = attrs.field(default=None, validator=optional_positive_integer)

    @property
    def needs(self) -> Capabilities:
        """A gradient."""
        return frozenset({GRADIENT})

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Search for half of the warm-up at most, and put chains about the modes; see the protocol.

        Raises
        ------
        ConfigurationError
            If the warm-up has no iteration for it.
        """
        demand_warmup("approach", start.warmup)
        exact, n = start.potential, len(start.positions)
        chains, modes = chains_at(exact, start.positions), None
        search = ModeSearch(exact, start.positions, chains.values, self.limits(start))
        yield Explored(findings=_findings(chains, None))
        for left in reversed(range(max(start.warmup // 2, 1))):
            search.step(rng)
            done = search.over or not left
            if done and (modes := search.found) is not None:
                chains, modes = begin_about(exact, modes, chains, rng)
            found = _findings(chains, modes)
            yield Explored(findings=found, step=idle(n), rows=start.evaluated(), done=done)
            if done:
                return

    def limits(self, start: Start) -> Limits:
        """Return what the searches may evaluate."""
        chains, dim = start.positions.shape
        usual = 50 * chains + 10 * dim
        most, more = self.evaluations or usual, 2 * usual
        if start.calls is not None:
            most = min(most, max(start.calls // 4, 1))
            more = min(more, max(start.calls // 4 - most, 0))
        return Limits(
            total=most,
            later=most / 2,
            searches=self.searches,
            spare=0 if self.evaluations is not None else more,
            beside=unnoticed(start.calls),
        )


def _findings(chains: ChainState, modes: Modes | None) -> Findings:
    """Return where chains begin, the modes, and the covariance about those with chains."""
    if modes is None or not modes.believed:
        return Findings(chains=chains, covariance=None, step_size=None, modes=modes)
    return Findings(
        chains=chains,
        covariance=modes.covariances[modes.nearest(chains.positions)].mean(axis=0),
        step_size=None,
        mode=modes.positions[0],
        modes=modes,
    )
