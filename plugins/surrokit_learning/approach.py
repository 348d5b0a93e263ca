"""The way of an exact sampler's chains to where the mass is: searches, then draws about modes."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import optional_positive_integer
from surrokit.capabilities import GRADIENT
from surrokit.contracts.explorer import Findings, Modes
from surrokit.exploring.standing import demand_warmup, idle
from surrokit.interfaces import ChainState, Evaluations, StepInfo
from surrokit.potentials import Potential
from surrokit.types import Capabilities, FloatArray
from surrokit_learning.modes.belief import begin_about, chains_at
from surrokit_learning.modes.limits import Limits, unnoticed
from surrokit_learning.modes.search import ModeSearch


@attrs.frozen(kw_only=True, eq=False)
class Approach:
    """Search for modes from where the chains are, and begin at draws about those found.

    The searches are optimisation paths, as in Pathfinder (Zhang, Carpenter, Gelman and Vehtari
    2022, arXiv:2108.03782), and their ends and curvature say where the mass is and how wide. Each
    mode that matters keeps chains, in proportion to how many searches led to it. Where there is no
    mass about a mode, as in the neck of a funnel, chains stay at their starts.

    Parameters
    ----------
    evaluations
        Gradients at most; None for 50 for each chain and 10 more for each dimension, and three
        times as many while there is a mode that one search alone has found.
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

    def bind(self, potential: Potential, calls: int | None = None) -> ApproachExploration:
        """Return the searches on a potential, which take a quarter of the ``calls`` at most."""
        return ApproachExploration(settings=self, potential=potential, calls=calls)


@attrs.frozen(kw_only=True, eq=False)
class ApproachState:
    """How far the searches have come.

    Parameters
    ----------
    chains
        The chains.
    search
        The searches.
    modes
        What they have found; None until chains have arrived.
    steps, most_steps
        Steps so far, and at most.
    arrived
        Whether chains are where they begin.
    info
        What the last step did to the chains; None before the first.
    """

    chains: ChainState
    search: ModeSearch
    most_steps: int
    modes: Modes | None = None
    steps: int = 0
    arrived: bool = False
    info: StepInfo | None = None


@attrs.frozen(kw_only=True, eq=False)
class ApproachExploration:
    """Searches on one potential.

    Parameters
    ----------
    settings
        How many.
    potential
        The exact one.
    calls
        Exact calls that a run's budget leaves to it; None for no budget.
    """

    settings: Approach
    potential: Potential
    calls: int | None

    def start(self, positions: FloatArray, warmup: int) -> ApproachState:
        """Return the state at starting ``positions (n, dim)``.

        Raises
        ------
        ConfigurationError
            If the warm-up has no iteration for it.
        """
        demand_warmup("approach", warmup)
        chains = chains_at(self.potential, positions)
        search = ModeSearch.among(positions, chains.values)
        return ApproachState(chains=chains, search=search, most_steps=max(warmup // 2, 1))

    def step(self, state: ApproachState, rng: np.random.Generator) -> ApproachState:
        """Return the state after some more of the searches, or once chains have arrived."""
        state = attrs.evolve(state, steps=state.steps + 1, info=idle(len(state.chains.values)))
        limits = self._limits(state)
        state = attrs.evolve(state, search=state.search.step(self.potential, limits, rng))
        if not state.search.over and state.steps < state.most_steps:
            return state
        modes = state.search.found
        if modes is not None:
            chains, modes = begin_about(self.potential, modes, state.chains, rng)
            state = attrs.evolve(state, chains=chains, modes=modes)
        return attrs.evolve(state, arrived=True)

    def learn(self, state: ApproachState, paid: Evaluations) -> tuple[ApproachState, Evaluations]:
        """Return the state as it is, and all that was paid for."""
        return state, paid

    def wants_fit(self, state: ApproachState) -> bool:  # noqa: ARG002
        """Return False: nothing is learnt on the way."""
        return False

    def inform(self, state: ApproachState, surrogate: Potential | None) -> ApproachState:  # noqa: ARG002
        """Return the state as it is."""
        return state

    def done(self, state: ApproachState) -> bool:
        """Return whether chains have arrived."""
        return state.arrived

    def findings(self, state: ApproachState) -> Findings:
        """Return where chains begin, the modes, and the covariance about those with chains."""
        modes = state.modes
        believed = modes if modes is not None and modes.believed else None
        return Findings(
            chains=state.chains,
            covariance=None if believed is None else _covariance_within(believed, state.chains),
            step_size=None,
            mode=None if believed is None else believed.positions[0],
            modes=modes,
        )

    def _limits(self, state: ApproachState) -> Limits:
        chains, dim = state.chains.positions.shape
        usual = 50 * chains + 10 * dim
        most, more = self.settings.evaluations or usual, 2 * usual
        if self.calls is not None:
            most = min(most, max(self.calls // 4, 1))
            more = min(more, max(self.calls // 4 - most, 0))
        return Limits(
            total=most,
            later=most / 2,
            searches=self.settings.searches,
            spare=0 if self.settings.evaluations is not None else more,
            beside=unnoticed(self.calls),
        )


def _covariance_within(modes: Modes, chains: ChainState) -> FloatArray:
    """Return the mean covariance of the modes that chains are at, shape (dim, dim)."""
    return np.asarray(modes.covariances[modes.nearest(chains.positions)].mean(axis=0))
