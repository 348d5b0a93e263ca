"""The contracts between the parts.

Positions come in rows: every array that holds positions has shape ``(n, dim)``. Potentials are
U(q) = -log density + constant, in nats. The random generator is always an argument. Parts are
frozen: a changed part is a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from surrokit.position_metric import PositionMetric as PositionMetric
from surrokit.types import Cache, Capabilities, FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.hamiltonian import Hamiltonian
    from surrokit.records import (
        ChainState,
        Decision,
        Evaluations,
        Findings,
        LearningProblem,
        Moment,
        Phase,
        Proposal,
        StepInfo,
        Tuning,
    )


class Potential(Protocol):
    """U(q) = -log density + constant, for rows of positions.

    What else it can do is said by ``capabilities`` (names in :mod:`surrokit.capabilities`). A
    potential is pure: the same positions give the same values, and nothing it is given changes.
    """

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Names of what it can do beyond its value."""
        ...

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim); ``inf`` outside the support."""
        ...


class GradientPotential(Potential, Protocol):
    """A potential with capability ``gradient``."""

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        ...


class GradientAlonePotential(Potential, Protocol):
    """A potential with capability ``gradient-alone``: the gradient costs less by itself."""

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U, shape (n, dim)."""
        ...


class HessianPotential(Potential, Protocol):
    """A potential with capability ``hessian``."""

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of U, shape (n, dim, dim)."""
        ...


class HessianDerivativePotential(HessianPotential, Protocol):
    """A potential with capability ``hessian-derivative``: how its Hessian G(q) changes with q.

    The forces of Riemannian dynamics, equations (7) to (9) of the paper, need two contractions of
    the third derivatives, and never the ``dim`` matrices d_k G themselves.
    """

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim).

        Each row has its own symmetric A, in ``matrices`` of shape (n, dim, dim).
        """
        ...

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim).

        Each row has its own u, in ``vectors`` of shape (n, dim).
        """
        ...


class MetricPotential(Potential, Protocol):
    """A potential with capability ``metric``."""

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Fisher or Gauss-Newton matrix of the target, shape (n, dim, dim)."""
        ...


class InitialPotential(Potential, Protocol):
    """A potential with capability ``initial``."""

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return positions, shape (n, dim), from which chains may start."""
        ...


class Energy(Protocol):
    """The cheap exact part of a forward potential: U(q) = energy(forward(q), q).

    An energy that can do more names it in an attribute ``capabilities``, a frozenset of names;
    without the attribute it can do no more than this (see :class:`CurvedEnergy`).
    """

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), from outputs of shape (n, m) and positions of shape (n, dim)."""
        ...

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""
        ...


class CurvedEnergy(Energy, Protocol):
    """An energy with ``curvatures`` among its capabilities: what Gauss-Newton matrices take.

    With J the Jacobian of the forward map, J^T C J + R is the Gauss-Newton matrix of U: C and R
    stand for the second derivatives of the energy in the outputs and in the positions. Where
    those are not positive semi-definite everywhere, they are to be replaced by what is, such as
    the Fisher information of a noise scale or the precision of a prior in the coordinates in
    which it is normal. Mixed derivatives are left out.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Names of what it can do beyond its gradients."""
        ...

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return C and R at outputs of shape (n, m) and positions of shape (n, dim).

        Returns
        -------
        by_outputs : ndarray of shape (n, m) or (n, m, m)
            C, by its diagonals where it has nothing else. Positive semi-definite.
        by_positions : ndarray of shape (n, dim, dim)
            R, positive semi-definite.
        """
        ...


class ForwardPotential(Potential, Protocol):
    """A potential with capability ``forward``, and perhaps ``jacobian``."""

    @property
    def energy(self) -> Energy:
        """The cheap exact part."""
        ...

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs of the expensive map, shape (n, m)."""
        ...

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""
        ...


class Learner(Protocol):
    """What learns: changes in place as it observes, and gives frozen snapshots.

    ``needs`` and ``uses`` are among ``value``, ``gradient``, ``outputs`` and ``jacobian``;
    ``provides`` are the capabilities of what ``fitted`` returns.
    """

    @property
    def needs(self) -> frozenset[str]:
        """What it cannot learn without."""
        ...

    @property
    def uses(self) -> frozenset[str]:
        """What it makes use of where there is any."""
        ...

    @property
    def provides(self) -> Capabilities:
        """Capabilities of its fitted potentials."""
        ...

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations."""
        ...

    def fitted(self) -> Potential:
        """Return a cheap frozen potential made from everything observed.

        Raises
        ------
        SurrogateFitError
            If that is not enough, or cannot be fitted; the message says what would help.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Return all that it has learnt, as plain arrays and numbers."""
        ...

    def restored(self, state: Mapping[str, Any]) -> Self:
        """Return a learner that goes on from what ``state`` returned."""
        ...


class Surrogate(Protocol):
    """Frozen settings from which learners are made."""

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> Learner:
        """Return a learner for a problem; all its randomness is drawn from ``rng`` here."""
        ...


class Metric(Protocol):
    """The kinetic energy of momenta.

    This is the constant kind: K(p) = p^T M^-1 p / 2 with one mass matrix M for all positions.
    """

    @property
    def tunable(self) -> bool:
        """Whether the mass matrix is left to be tuned."""
        ...

    def adapted(self, covariance: FloatArray) -> Metric:
        """Return the metric whose M^-1 is (this kind's form of) a covariance (dim, dim)."""
        ...

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta from N(0, M), shape (n, dim)."""
        ...

    def velocity(self, momenta: FloatArray) -> FloatArray:
        """Return M^-1 p, shape (n, dim)."""
        ...

    def energy(self, momenta: FloatArray) -> FloatArray:
        """Return K(p) = p^T M^-1 p / 2, shape (n,)."""
        ...

    def longest_scale(self, covariance: FloatArray) -> float:
        """Return the largest standard deviation of a covariance in this metric's units."""
        ...


class Integrator(Protocol):
    """A reversible, volume-preserving map of positions and momenta.

    One chain's failure is a status, never an exception for the batch. An integrator that follows
    metrics that change with position (:class:`~surrokit.position_metric.PositionMetric`) says so
    by an attribute ``by_position`` that is true.
    """

    @property
    def needs(self) -> Capabilities:
        """What the Hamiltonian's potential must offer."""
        ...

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Evaluate what a path needs to know at its start."""
        ...

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps.

        Parameters
        ----------
        hamiltonian
            What to follow.
        phase
            The start, with its cache; left as it is.
        step_size : ndarray of shape (n,)
            Step of each chain; a negative one goes backwards.
        n_steps : ndarray of shape (n,)
            Steps of each chain, at least 1.

        Returns
        -------
        phase
            The end of each path; momenta are not negated.
        status : ndarray of shape (n,)
            :class:`~surrokit.records.Status` of each path. Where it is not ``OK`` the end means
            nothing.
        """
        ...


class Sampler(Protocol):
    """Makes proposals on a potential, without knowing whether it is exact.

    Four things are optional. A sampler for which larger steps make no difference beyond some
    size says so by an attribute ``largest_step``. One whose chains share a random choice, such as
    the number of steps, may have a method ``drawn(rng)`` that returns a copy in which that choice
    is made, so that a sub-chain can make the same choices in both directions. One that makes
    several transitions of another sampler has that one as its attribute ``kernel``. One that keeps
    what tuning has found as its attribute ``tuning`` can be used again without a warm-up.
    """

    @property
    def potential(self) -> Potential | None:
        """The potential it moves on; None before ``with_potential``, or if it uses none."""
        ...

    @property
    def needs(self) -> Capabilities:
        """What the potential must offer."""
        ...

    @property
    def tunes(self) -> frozenset[str]:
        """Those of ``step_size``, ``n_steps``, ``metric`` and ``length`` that are left free."""
        ...

    @property
    def target_acceptance(self) -> float:
        """Mean path acceptance at which the step size is about right."""
        ...

    @property
    def step(self) -> float | None:
        """The step size in use, given or tuned; None for a sampler that has none."""
        ...

    def with_potential(self, potential: Potential) -> Self:
        """Return a copy, nested kernels included, that moves on another potential."""
        ...

    def tuned(self, tuning: Tuning) -> Self:
        """Return a copy in which whatever ``tunes`` names is set."""
        ...

    def cache(self, positions: FloatArray) -> Cache:
        """Evaluate on its potential what it needs to know of chains at ``positions (n, dim)``."""
        ...

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once, from ``state.positions`` and ``state.cache``."""
        ...


class Correction(Protocol):
    """Decides on proposals; after the exploration the only caller of the exact potential."""

    @property
    def needs(self) -> Capabilities:
        """What the exact potential must offer."""
        ...

    def with_potential(self, potential: Potential) -> Self:
        """Return a copy that decides by another exact potential."""
        ...

    def prepared(self, near: FloatArray) -> Self:
        """Return a copy that knows what it needs of the exact potential, paying for it.

        A run calls it once, after the exploration and before its first decision; whatever only
        looks at single proposals returns itself.

        Parameters
        ----------
        near : ndarray of shape (dim,)
            A point where there is probability: the mode, or the mean of the chains.
        """
        ...

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state of chains at ``positions (n, dim)``.

        ``cache`` is the sampler's, on the potential ``source``; where that is the exact one its
        values are taken and nothing is paid.
        """
        ...

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal.

        What is told of it is about moves: a proposal of a chain that did not move is not
        ``accepted``, and its ``acceptance`` is NaN (see :func:`surrokit.acceptance.of_moves`).
        """
        ...


class Schedule(Protocol):
    """Says when a run learns and when it deploys what it has learnt."""

    @property
    def learns(self) -> bool:
        """Whether it ever deploys a surrogate."""
        ...

    @property
    def deployment_rate(self) -> float:
        """Deployments expected per iteration after the first one; 0 for at most one."""
        ...

    def exploration(self, gradients: bool) -> int | None:
        """Return how many rows, with gradients or without, it wants of the exploration.

        None leaves that to the explorer; so does naming one.
        """
        ...

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return what to do after an iteration."""
        ...


class ExplorationState(Protocol):
    """What an explorer carries from step to step."""

    @property
    def chains(self) -> ChainState:
        """Where the chains are."""
        ...

    @property
    def info(self) -> StepInfo | None:
        """What the last step did to them."""
        ...


class Explorer(Protocol):
    """Looks around with exact evaluations before a surrogate takes over.

    ``run`` drives it, step by step, so that progress, budgets and interrupts work.
    """

    @property
    def needs(self) -> Capabilities:
        """What the exact potential must offer."""
        ...

    def with_potential(self, potential: Potential) -> Self:
        """Return a copy that explores a potential."""
        ...

    def start(self, positions: FloatArray, warmup: int) -> Any:
        """Return the state at starting ``positions (n, dim)``, for a warm-up of that length."""
        ...

    def step(self, state: Any, rng: np.random.Generator) -> Any:
        """Return the state after one more iteration."""
        ...

    def learn(self, state: Any, paid: Evaluations) -> tuple[Any, Evaluations]:
        """Return the state that knows what was paid for, and the rows to learn from."""
        ...

    def wants_fit(self, state: Any) -> bool:
        """Return whether the learner, which has observed the rows, shall be fitted and shown.

        An explorer that looks where a surrogate points asks for one; others return False.
        """
        ...

    def informed(self, state: Any, surrogate: Potential | None) -> Any:
        """Return the state that knows a fitted ``surrogate``; None where fitting failed."""
        ...

    def done(self, state: Any) -> bool:
        """Return whether to stop."""
        ...

    def findings(self, state: Any) -> Findings:
        """Return what was found."""
        ...
