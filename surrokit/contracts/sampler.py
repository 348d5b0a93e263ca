"""Samplers and corrections, bound and unbound, and the records that travel between them.

:class:`ChainState`, :class:`Proposal` and :class:`StepInfo` are on the hot path, and take their
arrays as they come. :class:`Tuning` copies them to read-only double precision, and checks their
shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeGuard

import attrs
import numpy as np

from surrokit.contracts.dynamics import Status
from surrokit.contracts.potential import Potential
from surrokit.marginals.warp import Warp
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class ChainState:
    """The state of all chains.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        Positions in the sampling coordinates.
    values : ndarray of shape (n,)
        Exact U at the positions; NaN where a correction accepted a proposal without evaluating it,
        as a correction on a few data rows does.
    cache
        Arrays that the kernel keeps for the positions, from the potential it moves on.
    """

    positions: FloatArray
    values: FloatArray
    cache: Cache


@attrs.frozen(kw_only=True, eq=False)
class Excursion:
    """Progress of sub-chains after 1, 2, 4, ... transitions, m lengths in all.

    Parameters
    ----------
    jumps : ndarray of shape (n, m)
        (q' - q)^T C^-1 (q' - q) / (2 dim), where q is the start and C the tuned covariance. The
        average is 1 minus the correlation with the start.
    values : ndarray of shape (n, m + 1)
        V at the start, and after each of these lengths.
    """

    jumps: FloatArray
    values: FloatArray


def _for_each_chain(value: float) -> Any:
    """Return the default of a field: the value once for each position."""
    return attrs.Factory(lambda self: np.full(len(self.positions), value), takes_self=True)


@attrs.frozen(kw_only=True, eq=False)
class Proposal:
    """The ends of a sampler's moves, and all that a correction must know about the moves.

    With nothing but ``positions`` it is one step of a symmetric sampler that uses no potential.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        The end of each chain's move.
    log_correction : ndarray of shape (n,)
        c in ``log u < U(q) - U(q') + c``; it contains no exact value.
    moved : ndarray of bool, shape (n,)
        Chains that moved at all; the others cost no exact call.
    status : ndarray of shape (n,)
        :class:`Status` of each chain's path; only ``OK`` can be accepted.
    cache
        Arrays that the sampler keeps for ``positions``.
    source : Potential or None
        The potential that the sampler moved on and that ``cache["value"]`` comes from; None for a
        sampler that used no potential.
    log_path_ratio : ndarray of shape (n,), optional
        Log of the acceptance ratio if ``source`` were the target: the path's own error, by which
        the step size is tuned. A move that is reversible for exp(-V), with c = V(q') - V(q), would
        always be accepted then; it gives the log of the mean acceptance of its inner moves, or
        None without inner decisions. A sampler that used no potential gives None. Where it is
        None, tuning goes by the exact acceptance.
    n_steps : ndarray of shape (n,)
        Integrator steps taken.
    divergent : ndarray of bool, shape (n,), optional
        Chains with a divergent path inside the move, although its status is ``OK``.
    excursion : Excursion, optional
        Progress of sub-chains, by which their length is tuned.
    energy : ndarray of shape (n,), optional
        V + K with which a path of fresh momenta began.
    keeps_source
        Whether the move keeps exp(-V) of ``source``, since it decides by V within.
    """

    positions: FloatArray
    log_correction: FloatArray = attrs.field(default=_for_each_chain(0.0))
    moved: BoolArray = attrs.field(default=_for_each_chain(True))
    status: IntArray = attrs.field(default=_for_each_chain(int(Status.OK)))
    cache: Cache = attrs.field(factory=dict)
    source: Potential | None = None
    log_path_ratio: FloatArray | None = None
    n_steps: IntArray = attrs.field(default=_for_each_chain(1))
    divergent: BoolArray | None = None
    excursion: Excursion | None = None
    energy: FloatArray | None = None
    keeps_source: bool = False


@attrs.frozen(kw_only=True, eq=False)
class StepInfo:
    """What happened to each chain in one transition.

    Parameters
    ----------
    accepted : ndarray of bool, shape (n,)
        Whether the chain moved: its proposal was another position, and was accepted.
    acceptance : ndarray of shape (n,)
        The exact probability of accepting the proposal, or an unbiased estimate in [0, 1] from a
        correction that cannot know the probability. NaN where the proposal was to stay.
    path_acceptance : ndarray of shape (n,)
        The probability if the sampler's potential were the target. For a move with inner moves it
        is their mean acceptance, whether the chain moved or not.
    status : ndarray of shape (n,)
        :class:`Status` of the path.
    divergent : ndarray of bool, shape (n,)
        Paths that failed, or lost so much energy that the integrator cannot be trusted there.
    n_steps : ndarray of shape (n,)
        Integrator steps taken.
    excursion : Excursion, optional
        The excursion of the proposal.
    energy : ndarray of shape (n,), optional
        The energy with which the path began.
    ends : ndarray of shape (n, dim), optional
        Where the move ended, accepted or not; None for moves that do not keep a surrogate's
        density.
    """

    accepted: BoolArray
    acceptance: FloatArray
    path_acceptance: FloatArray
    status: IntArray
    divergent: BoolArray
    n_steps: IntArray
    excursion: Excursion | None = None
    energy: FloatArray | None = None
    ends: FloatArray | None = None

    @property
    def move_probability(self) -> FloatArray:
        """Probability of a move, shape (n,): the acceptance, and 0 where there was no proposal."""
        return np.where(np.isnan(self.acceptance), 0.0, self.acceptance)


@attrs.frozen(kw_only=True, eq=False)
class Tuning:
    """Values for the settings of a sampler that its user left free.

    Parameters
    ----------
    step_size : float
        Step of the integrator, or scale of the move.
    covariance : ndarray of shape (dim, dim), optional
        Estimated covariance of the target; None while nothing is known.
    n_steps : int, optional
        Longest path in steps; None lets the sampler choose from the covariance.
    length : int, optional
        Transitions in a sub-chain; None while nothing is known.
    warp : Warp, optional
        Coordinates for a sampler that asks for them; None while nothing is known.
    """

    step_size: float
    covariance: FloatArray | None = None
    n_steps: int | None = None
    length: int | None = None
    warp: Warp | None = None


class Kernel(Protocol):
    """A bound sampler: makes proposals on a potential, without knowing whether it is exact.

    A kernel whose chains share a random choice, such as the number of steps, may have a method
    ``draw_shared(rng)``. It returns a copy with that choice made, so that a sub-chain can make the
    same choices in both directions.
    """

    @property
    def potential(self) -> Potential | None:
        """The potential it moves on, where ``cache["value"]`` comes from; None if it uses none."""

    @property
    def step(self) -> float | None:
        """The step size in use; None for a sampler that has none."""

    def cache(self, positions: FloatArray) -> Cache:
        """Evaluate what it needs of its potential at ``positions (n, dim)``."""

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once, from ``state.positions`` and ``state.cache``."""


class Sampler(Protocol):
    """Settings of moves, from which kernels are bound.

    Seven attributes are optional. ``largest_step`` is a step size beyond which larger steps make no
    difference. ``kernel`` is another sampler, of which one move makes several transitions.
    ``uses_potential`` is False for moves without any potential. ``caches_metric`` is True if caches
    depend on the tuned covariance; they are then remade whenever the covariance changes.
    ``longest_warmup`` is a number of iterations that is enough after an exploration.
    ``most_steps_worth`` is one of steps, up to which tuned paths on a surrogate are worth their
    cost whatever plain ones would take. ``suit(capabilities, given)`` returns the sampler with
    parts that suit a potential, where they are not among the names of ``given`` settings.
    """

    @property
    def needs(self) -> Capabilities:
        """What the potential must offer."""

    @property
    def tunes(self) -> frozenset[str]:
        """Settings left free: ``step_size``, ``n_steps``, ``metric``, ``length`` or ``warp``.

        ``heavy_warp`` is a warp that is learnt for parameters with heavy tails alone.
        """

    @property
    def target_acceptance(self) -> float:
        """Mean path acceptance at which the step size is about right."""

    def bind(self, potential: Potential, tuning: Tuning) -> Kernel:
        """Return the kernel that moves on a potential; the user's settings win over ``tuning``.

        A run binds anew whenever either changes. Samplers inside are bound too.
        """


class Decider(Protocol):
    """A bound correction: decides on proposals by the exact potential."""

    def prepare(self, near: FloatArray) -> Self:
        """Return a copy that has paid for what it must know of the exact potential in advance.

        A run calls it once, after the exploration and before its first decision. A decider that
        looks at single proposals only returns itself.

        Parameters
        ----------
        near : ndarray of shape (dim,)
            A position of high probability: the mode, or the mean of the chains.
        """

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state of chains at ``positions (n, dim)``.

        ``cache`` is the kernel's, on the potential ``source``. If ``source`` is the exact
        potential, the values are taken from the cache at no cost.
        """

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal.

        The info is about moves: a proposal to stay is not ``accepted``, and its ``acceptance`` is
        NaN (see :func:`surrokit.kernel.acceptance.of_moves`).
        """


class Correction(Protocol):
    """Settings of decisions; after exploration only its decider calls the exact potential."""

    @property
    def needs(self) -> Capabilities:
        """What the exact potential must offer."""

    def bind(self, potential: Potential) -> Decider:
        """Return the decider that goes by an exact potential."""


@attrs.frozen(kw_only=True, eq=False)
class OuterSample:
    """Draws of a density that has more in its tails than a surrogate V.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        In the sampling coordinates.
    chances
        From V, shape (m,), to the ratio of this density to the surrogate's, shape (m,).
    """

    positions: FloatArray
    chances: Callable[[FloatArray], FloatArray]


@attrs.frozen(kw_only=True, eq=False)
class SurrogateSample:
    """Draws of chains on a surrogate V alone.

    Parameters
    ----------
    positions : ndarray of shape (chains, draws, dim)
        In the sampling coordinates.
    values : ndarray of shape (chains, draws)
        V there.
    outer
        Draws of a density that has more in its tails than V; None where there are none.
    """

    positions: FloatArray
    values: FloatArray
    outer: OuterSample | None = None

    @property
    def flat(self) -> FloatArray:
        """The positions, chain by chain, shape (chains * draws, dim)."""
        return np.asarray(self.positions.reshape(-1, self.positions.shape[2]))


class Weigher(Correction, Protocol):
    """A correction by which weights correct answers, as long as they are good.

    A run with a weigher draws from its surrogate, which costs nothing, and pays for the exact
    potential at a few of the draws. Where weights are bad it goes on with chains, on whose
    proposals the bound correction decides as any other.
    """

    @property
    def weighs(self) -> bool:
        """True."""

    @property
    def aim(self) -> float:
        """Error of every mean, sd and quantile, in posterior sds, at which a run may end."""

    def draw(
        self,
        surrogate: Potential,
        sampler: Sampler,
        about: FloatArray,
        covariance: FloatArray | None,
        rng: np.random.Generator,
    ) -> SurrogateSample:
        """Return draws of long chains on V, begun farther apart than draws.

        Parameters
        ----------
        surrogate
            V, a proper density.
        sampler
            Moves the chains; not bound yet.
        about : ndarray of shape (n, dim)
            Positions of high probability, in each mode that is known.
        covariance : ndarray of shape (dim, dim), optional
            About that of the target.
        rng
            Generator.
        """

    def next_size(self, learnt: int, before: int, left: float) -> int:
        """Return how many draws to pay for in the next round; 0 where too few calls are left.

        Parameters
        ----------
        learnt
            Exact evaluations that the surrogate has learnt from.
        before
            Draws paid for in the round before; 0 for the first.
        left
            Calls left, perhaps infinite.
        """


def weighs(correction: Correction) -> TypeGuard[Weigher]:
    """Return whether a correction corrects answers."""
    return bool(getattr(correction, "weighs", False))
