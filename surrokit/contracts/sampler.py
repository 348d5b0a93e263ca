"""Samplers and corrections, what they are bound to, and the records that travel between them.

:class:`ChainState`, :class:`Proposal` and :class:`StepInfo` are on the hot path, and take their
arrays as they come. :class:`Tuning` copies them to read-only double precision, and checks their
shapes.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import attrs
import numpy as np

from surrokit.contracts.dynamics import Status
from surrokit.contracts.potential import Potential
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class ChainState:
    """Where all chains are.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        In the sampling coordinates.
    values : ndarray of shape (n,)
        Exact U at the positions; NaN where a correction took a proposal without evaluating it, as
        one does that looks at a few rows of the data.
    cache
        Arrays that the kernel keeps for the positions, of the potential it moves on.
    """

    positions: FloatArray
    values: FloatArray
    cache: Cache


@attrs.frozen(kw_only=True, eq=False)
class Excursion:
    """How far sub-chains got after 1, 2, 4, ... transitions, m numbers in all.

    Parameters
    ----------
    jumps : ndarray of shape (n, m)
        (q' - q)^T C^-1 (q' - q) / (2 dim), q being the start and C the tuned covariance: on average
        1 less the correlation with the start.
    values : ndarray of shape (n, m + 1)
        V at the start, and then.
    """

    jumps: FloatArray
    values: FloatArray


def _for_each_chain(value: float) -> Any:
    """Return the default of a field: the value once for each position."""
    return attrs.Factory(lambda self: np.full(len(self.positions), value), takes_self=True)


@attrs.frozen(kw_only=True, eq=False)
class Proposal:
    """Where a sampler's moves ended, and what a correction must know of them.

    With nothing but ``positions`` it is one step of a symmetric sampler that uses no potential.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        The end of each chain's move.
    log_correction : ndarray of shape (n,)
        c in ``log u < U(q) - U(q') + c``; free of any exact value.
    moved : ndarray of bool, shape (n,)
        Chains that moved at all; the others cost no exact call.
    status : ndarray of shape (n,)
        :class:`Status` of each chain's path; only ``OK`` can be accepted.
    cache
        What the sampler keeps for ``positions``.
    source : Potential or None
        The potential that the sampler moved on, whose values ``cache["value"]`` are; None for a
        sampler that used no potential.
    log_path_ratio : ndarray of shape (n,), optional
        The path's own error, which tuning looks at: the log ratio of the acceptance if ``source``
        were the target. A move that is reversible for exp(-V), with c = V(q') - V(q), would always
        be accepted then; it gives the log of the mean acceptance inside, or None where nothing was
        accepted or rejected inside. None for a sampler that used no potential. Without it tuning
        looks at the exact acceptance.
    n_steps : ndarray of shape (n,)
        Integrator steps taken.
    divergent : ndarray of bool, shape (n,), optional
        Chains of which a path inside the move diverged, though its status is ``OK``.
    excursion : Excursion, optional
        How far sub-chains got, by which their length is tuned.
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


@attrs.frozen(kw_only=True, eq=False)
class StepInfo:
    """What happened to each chain in one transition.

    Parameters
    ----------
    accepted : ndarray of bool, shape (n,)
        Whether the chain moved: it had somewhere to go, and took it.
    acceptance : ndarray of shape (n,)
        The exact probability with which its proposal was taken, or an unbiased estimate in [0, 1]
        from a correction that cannot know it. NaN where the proposal was to stay.
    path_acceptance : ndarray of shape (n,)
        The same if the potential that the sampler moved on were the target; of a move that
        accepts and rejects inside, the mean acceptance there, whether the chain moved or not.
    status : ndarray of shape (n,)
        :class:`Status` of the path.
    divergent : ndarray of bool, shape (n,)
        Paths that failed, or lost so much energy that the integrator cannot be trusted there.
    n_steps : ndarray of shape (n,)
        Integrator steps taken.
    excursion : Excursion, optional
        The proposal's.
    """

    accepted: BoolArray
    acceptance: FloatArray
    path_acceptance: FloatArray
    status: IntArray
    divergent: BoolArray
    n_steps: IntArray
    excursion: Excursion | None = None

    @property
    def move_probability(self) -> FloatArray:
        """Probability of a move, shape (n,): the acceptance, and 0 where there was no proposal."""
        return np.where(np.isnan(self.acceptance), 0.0, self.acceptance)


@attrs.frozen(kw_only=True, eq=False)
class Tuning:
    """What a sampler is told to use, for whatever its user left free.

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
    """

    step_size: float
    covariance: FloatArray | None = None
    n_steps: int | None = None
    length: int | None = None


class Kernel(Protocol):
    """A sampler that is bound: makes proposals on a potential, without knowing whether it is exact.

    One whose chains share a random choice, such as the number of steps, may have a method
    ``draw_shared(rng)`` that returns a copy in which that choice is made, so that a sub-chain can
    make the same choices in both directions.
    """

    @property
    def potential(self) -> Potential | None:
        """The potential it moves on, whose values ``cache["value"]`` are; None if it uses none."""

    @property
    def step(self) -> float | None:
        """The step size in use; None for a sampler that has none."""

    def cache(self, positions: FloatArray) -> Cache:
        """Evaluate on its potential what it needs to know of chains at ``positions (n, dim)``."""

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once, from ``state.positions`` and ``state.cache``."""


class Sampler(Protocol):
    """Settings of moves, until it is bound.

    Four attributes are optional. A sampler for which larger steps make no difference beyond some
    size says so by ``largest_step``. One that makes several transitions of another sampler has
    that one as ``kernel``. One that moves without any potential has a false ``uses_potential``. One
    whose caches depend on the tuned covariance has a true ``caches_metric``; they are remade
    whenever the covariance changes.
    """

    @property
    def needs(self) -> Capabilities:
        """What the potential must offer."""

    @property
    def tunes(self) -> frozenset[str]:
        """Those of ``step_size``, ``n_steps``, ``metric`` and ``length`` that are left free."""

    @property
    def target_acceptance(self) -> float:
        """Mean path acceptance at which the step size is about right."""

    def bind(self, potential: Potential, tuning: Tuning) -> Kernel:
        """Return the kernel that moves on a potential; what was given wins over ``tuning``.

        A run binds anew whenever either changes. Samplers inside are bound, too.
        """


class Decider(Protocol):
    """A correction that is bound: decides on proposals by the exact potential."""

    def prepare(self, near: FloatArray) -> Self:
        """Return a copy that knows what it needs of the exact potential, paying for it.

        A run calls it once, after the exploration and before its first decision; whatever only
        looks at single proposals returns itself.

        Parameters
        ----------
        near : ndarray of shape (dim,)
            A point where there is probability: the mode, or the mean of the chains.
        """

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state of chains at ``positions (n, dim)``.

        ``cache`` is the kernel's, on the potential ``source``; where that is the exact one its
        values are taken and nothing is paid.
        """

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal.

        What is told of it is about moves: a proposal of a chain that did not move is not
        ``accepted``, and its ``acceptance`` is NaN (see
        :func:`surrokit.kernel.acceptance.of_moves`).
        """


class Correction(Protocol):
    """Settings of decisions; once bound the only caller of the exact potential after exploring."""

    @property
    def needs(self) -> Capabilities:
        """What the exact potential must offer."""

    def bind(self, potential: Potential) -> Decider:
        """Return what decides by an exact potential."""
