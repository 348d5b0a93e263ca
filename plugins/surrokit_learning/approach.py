"""The way of an exact sampler's chains to where the mass is: searches, then draws about modes."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.contracts.explorer import Findings, Modes
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, StepInfo
from surrokit.settings import optional_positive_integer
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_learning.modes.search import Limits, ModeSearch
from surrokit_learning.region.independence import quotas
from surrokit_learning.region.region import cholesky_factor
from surrokit_learning.standing import demand_warmup, evaluate_with_gradients, idle

SPREAD = 2.0
"""Standard deviations of the Laplace approximation's that chains begin at: farther apart than
draws, or else a comparison of chains could not see that they have yet to spread."""

ROOM = 10.0
"""Nats, beside one for each dimension, by which U may exceed what an approximation foretells."""

HALVINGS = 6
"""How often a start that exceeds it is moved half of the way to its mode."""

HOLLOW = 0.1
"""Part of such a move that at least half of a mode's starts must keep. Where they do not, next to
no mass is about the mode: searches also end in necks, such as that of a hierarchical model whose
scale goes to 0."""


@attrs.frozen(kw_only=True, eq=False)
class Approach:
    """Search for modes from where the chains are, and begin at draws about those found.

    The searches are optimisation paths, as in Pathfinder (Zhang, Carpenter, Gelman and Vehtari
    2022, arXiv:2108.03782), and their ends and curvature say where the mass is and how wide. Each
    mode that matters keeps chains, in proportion to how many searches led to it.

    Parameters
    ----------
    evaluations
        Gradients at most; None for 50 for each chain and 10 more for each dimension.
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
        chains = self._at(positions)
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
            chains, modes = self._among(modes, state.chains, rng)
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
        is_there = modes is not None and not modes.hollow.all()
        return Findings(
            chains=state.chains,
            covariance=_covariance_within(modes.take(~modes.hollow), state.chains)
            if is_there
            else None,
            step_size=None,
            mode=modes.positions[np.argmin(modes.hollow)] if is_there else None,
            modes=modes,
        )

    def _limits(self, state: ApproachState) -> Limits:
        chains, dim = state.chains.positions.shape
        most = self.settings.evaluations or 50 * chains + 10 * dim
        if self.calls is not None:
            most = min(most, max(self.calls // 4, 1))
        return Limits(total=most, later=most / 2, searches=self.settings.searches)

    def _among(
        self, modes: Modes, chains: ChainState, rng: np.random.Generator
    ) -> tuple[ChainState, Modes]:
        """Return chains at draws about the modes that matter, and which of these are hollow.

        If all are, chains stay at their starts.
        """
        while modes.matters.any():
            of = _shares(modes, len(chains.values))
            now, parts = self._about(modes, of, chains.positions.shape[1], rng)
            hollow = [k for k in np.unique(of) if np.median(parts[of == k]) < HOLLOW]
            if not hollow:
                return now, modes
            modes = attrs.evolve(
                modes, hollow=modes.hollow | np.isin(np.arange(len(modes)), hollow)
            )
        return chains, modes

    def _about(
        self, modes: Modes, of: IntArray, dim: int, rng: np.random.Generator
    ) -> tuple[ChainState, FloatArray]:
        """Return chains at draws about modes ``of (n,)``, and the part (n,) of moves that is left."""
        normals = SPREAD * rng.standard_normal((len(of), dim))
        expected = modes.values[of] + 0.5 * np.square(normals).sum(axis=1)
        factors = np.stack([cholesky_factor(covariance) for covariance in modes.covariances])
        moves = np.einsum("nij,nj->ni", factors[of], normals)
        now, parts = self._at(modes.positions[of] + moves), np.ones(len(of))
        for i in range(1, HALVINGS + 1):
            over = ~(now.values <= expected + ROOM + dim)
            if not over.any():
                break
            parts[over] = 0.5**i if i < HALVINGS else 0.0
            moved = modes.positions[of[over]] + parts[over, None] * moves[over]
            now = _put(now, over, self._at(moved))
        return now, parts

    def _at(self, positions: FloatArray) -> ChainState:
        """Return chains at positions (n, dim); U is infinite where anything failed."""
        values, gradients = evaluate_with_gradients(self.potential, positions)
        cache = {"value": values, "gradient": gradients}
        return ChainState(positions=positions, values=values, cache=cache)


def _shares(modes: Modes, n: int) -> IntArray:
    """Return the mode (n,) that each chain begins at, by how many searches led there."""
    shares = np.where(modes.matters, modes.ended, 0)
    heaviest = np.argsort(-shares, kind="stable")[: min(n, int(np.count_nonzero(shares)))]
    counts = quotas(shares[heaviest] / shares[heaviest].sum(), n)
    return np.repeat(heaviest, counts)


def _covariance_within(modes: Modes, chains: ChainState) -> FloatArray:
    """Return the mean covariance of the modes that chains are at, shape (dim, dim)."""
    return np.asarray(modes.covariances[modes.nearest(chains.positions)].mean(axis=0))


def _put(chains: ChainState, rows: FloatArray, others: ChainState) -> ChainState:
    """Return chains of which some rows are others."""

    def put(into: FloatArray, these: FloatArray) -> FloatArray:
        into = into.copy()
        into[rows] = these
        return into

    return ChainState(
        positions=put(chains.positions, others.positions),
        values=put(chains.values, others.values),
        cache={name: put(array, others.cache[name]) for name, array in chains.cache.items()},
    )
