"""The interfaces of surrokit's parts, and the records that travel between them.

A part is an object with the methods of one protocol. It names what it needs of the exact potential
as a set of capabilities, which are checked before the first call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, TypeGuard, cast, get_args

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import unmasked
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.marginals import Warp
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.potentials import Energy, SummedTerms


def _frozen_array(value: npt.ArrayLike) -> FloatArray:
    array = np.array(unmasked(value), dtype=np.float64)
    array.setflags(write=False)
    return array


def _optional_array(value: npt.ArrayLike | None) -> FloatArray | None:
    return None if value is None else _frozen_array(value)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Evaluations:
    """Exact evaluations of a target, already made.

    Parameters
    ----------
    positions : array_like of shape (n, dim)
        Where the target was evaluated.
    values : array_like of shape (n,)
        U = -log density + constant there, in nats; ``inf`` outside the support.
    gradients : array_like of shape (n, dim), optional
        Gradients of U; a row of NaN where no gradient was evaluated.
    outputs : array_like of shape (n, m), optional
        Outputs of the forward map; NaN in rows without.
    jacobians : array_like of shape (n, m, dim), optional
        Derivatives of the outputs; NaN in rows without.
    weights : array_like of shape (n,), optional
        How often each row counts in a fit; once unless given. Weights are for fits to data: rows of
        a run have none.
    noise_sd : array_like of shape (n,), optional
        Standard deviation of the noise of each value, in nats; NaN where values are noisy and it is
        not known by how much. None of exact values.
    log_densities : array_like of shape (n,), optional
        Log density, in these coordinates, by which each position was drawn at random; NaN in rows
        where it is not known.

    Raises
    ------
    ShapeError
        If the arrays do not agree in their number of rows, or positions are not rows.
    """

    positions: FloatArray = attrs.field(converter=_frozen_array)
    values: FloatArray = attrs.field(converter=_frozen_array)
    gradients: FloatArray | None = attrs.field(default=None, converter=_optional_array)
    outputs: FloatArray | None = attrs.field(default=None, converter=_optional_array)
    jacobians: FloatArray | None = attrs.field(default=None, converter=_optional_array)
    weights: FloatArray | None = attrs.field(default=None, converter=_optional_array)
    noise_sd: FloatArray | None = attrs.field(default=None, converter=_optional_array)
    log_densities: FloatArray | None = attrs.field(default=None, converter=_optional_array)

    def __attrs_post_init__(self) -> None:
        if self.positions.ndim != 2:
            raise ShapeError(
                f"positions of evaluations must have shape (n, dim), got {self.positions.shape}; "
                "pass one row for each point"
            )
        n, dim = self.positions.shape
        expected: list[tuple[str, FloatArray | None, tuple[int, ...]]] = [
            ("values", self.values, (n,)),
            ("gradients", self.gradients, (n, dim)),
            ("weights", self.weights, (n,)),
            ("noise_sd", self.noise_sd, (n,)),
            ("log_densities", self.log_densities, (n,)),
        ]
        if self.outputs is None and self.jacobians is not None:
            raise ShapeError("evaluations with jacobians need outputs too; pass both")
        if self.outputs is not None:
            m = self.outputs.shape[-1] if self.outputs.ndim else 1
            expected.append(("outputs", self.outputs, (n, m)))
            expected.append(("jacobians", self.jacobians, (n, m, dim)))
        for name, array, shape in expected:
            if array is not None and array.shape != shape:
                raise ShapeError(
                    f"{name} of evaluations at {n} positions of dim {dim} must have shape "
                    f"{shape}, got {array.shape}; pass one row for each point"
                )

    def __repr__(self) -> str:
        parts = [
            f"{name}{array.shape}"
            for name in attrs.fields_dict(type(self))
            if (array := getattr(self, name)) is not None
        ]
        return f"Evaluations({', '.join(parts)})"

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def from_log_density(
        cls,
        positions: npt.ArrayLike,
        log_density: npt.ArrayLike,
        gradients: npt.ArrayLike | None = None,
    ) -> Evaluations:
        """Make evaluations from log densities (and their gradients) instead of potentials."""
        return cls(
            positions=positions,
            values=-_frozen_array(log_density),
            gradients=None if gradients is None else -_frozen_array(gradients),
        )

    @classmethod
    def empty(cls, dim: int) -> Evaluations:
        """Return zero evaluations, of positions of ``dim`` numbers."""
        return cls(positions=np.empty((0, dim)), values=np.empty(0))

    @classmethod
    def join(cls, blocks: list[Evaluations], dim: int) -> Evaluations:
        """Join blocks in order; an array that a block lacks becomes NaN."""
        blocks = [block for block in blocks if len(block)]
        if len(blocks) == 1:
            return blocks[0]
        if not blocks:
            return cls.empty(dim)
        return cls(
            positions=np.concatenate([block.positions for block in blocks]),
            values=np.concatenate([block.values for block in blocks]),
            **{
                name: _join_optional(blocks, name)
                for name in ("gradients", "outputs", "jacobians", "log_densities")
            },
            weights=_join_or(blocks, "weights", 1.0),
            noise_sd=_join_or(blocks, "noise_sd", 0.0),
        )

    def take(self, rows: npt.NDArray[np.int64] | BoolArray | slice) -> Evaluations:
        """Return the rows chosen by an index, a mask or a slice."""
        chosen: dict[str, Any] = {}
        for name in attrs.fields_dict(type(self)):
            array = getattr(self, name)
            chosen[name] = None if array is None else array[rows]
        return Evaluations(**chosen)

    def find(self, positions: FloatArray) -> IntArray:
        """Return for each of ``positions (k, dim)`` the last row equal to it, or -1."""
        found = np.full(len(positions), -1, dtype=np.int64)
        for i, position in enumerate(positions):
            rows = np.flatnonzero((self.positions == position).all(axis=1))
            if rows.size:
                found[i] = rows[-1]
        return found


def _join_optional(blocks: list[Evaluations], name: str) -> FloatArray | None:
    arrays: list[FloatArray | None] = [getattr(block, name) for block in blocks]
    shape = next((array.shape[1:] for array in arrays if array is not None), None)
    if shape is None:
        return None
    return np.concatenate(
        [
            np.full((len(block), *shape), np.nan) if array is None else array
            for block, array in zip(blocks, arrays, strict=True)
        ]
    )


def _join_or(blocks: list[Evaluations], name: str, usual: float) -> FloatArray | None:
    arrays: list[FloatArray | None] = [getattr(block, name) for block in blocks]
    if all(array is None for array in arrays):
        return None
    return np.concatenate(
        [
            np.full(len(block), usual) if array is None else array
            for block, array in zip(blocks, arrays, strict=True)
        ]
    )


@attrs.frozen(kw_only=True, eq=False)
class LearningProblem:
    """What a surrogate may know before it observes; nothing in it makes an exact call.

    Parameters
    ----------
    dim
        Numbers in a position.
    capabilities
        What the target offers.
    energy : Energy, optional
        The cheap exact part of a forward potential.
    deployment_rate
        Fits expected per observed evaluation after the first fit; 0 for a schedule that deploys
        once. A learner may choose by this rate how to update.
    terms : SummedTerms, optional
        The terms of a summed potential, some of them for a surrogate to copy; like the data of an
        ``energy`` they come from the user.
    is_density
        Whether U is -log density + constant, as it is in a run. Beyond what was observed a
        surrogate may then rise as densities fall, so that paths on it come back.
    is_weighed
        Whether few exact calls correct what many draws of the surrogate say. Its accuracy is then
        worth more than its speed.
    between : CoordinateMap, optional
        The map from the line of numbers between two bounds: some densities are simpler in these.
    """

    dim: int
    capabilities: Capabilities
    energy: Energy | None = None
    deployment_rate: float = 0.0
    terms: SummedTerms | None = None
    is_density: bool = False
    is_weighed: bool = False
    between: CoordinateMap | None = None


class Learner(Protocol):
    """A model in training: it changes in place as it observes, and gives frozen snapshots.

    ``needs`` and ``uses`` are among ``value``, ``gradient``, ``outputs`` and ``jacobian``;
    ``provides`` are the capabilities of what ``fit`` returns.
    """

    @property
    def needs(self) -> frozenset[str]:
        """What it cannot learn without."""

    @property
    def uses(self) -> frozenset[str]:
        """What it uses where available."""

    @property
    def provides(self) -> Capabilities:
        """Capabilities of its fitted potentials."""

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations."""

    def fit(self) -> Potential:
        """Return a cheap frozen potential, fitted to everything observed.

        Raises
        ------
        SurrogateFitError
            If the evaluations are too few or cannot be fitted; the message says what would help.
        """

    def state(self) -> dict[str, Any]:
        """Return all that it has learnt, as plain arrays and numbers."""

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner that goes on from what ``state`` returned."""


class Surrogate(Protocol):
    """Frozen settings from which learners are made."""

    def learner(self, problem: LearningProblem, rng: np.random.Generator) -> Learner:
        """Return a learner for a problem; all its randomness is drawn from ``rng`` here."""


class Status(IntEnum):
    """How a chain's trajectory ended; anything but ``OK`` is a rejection."""

    OK = 0
    """The path was followed to its end."""
    NOT_FINITE = 1
    """A position, momentum or gradient on the path was not finite."""
    NOT_CONVERGED = 2
    """An implicit equation was not solved to its tolerance."""
    NOT_REVERSIBLE = 3
    """The reverse path does not come back to the start."""
    NO_DENSITY = 4
    """The path kept its energy until it came to where the target has no density, or no gradient.
    Shorter steps would lead there, too."""


OK, NOT_FINITE, NO_DENSITY = map(int, (Status.OK, Status.NOT_FINITE, Status.NO_DENSITY))
"""For arrays, which compare with plain numbers seven times as fast."""


@attrs.frozen(kw_only=True, eq=False)
class Phase:
    """Positions and momenta of all chains, with what is known at the positions.

    Parameters
    ----------
    positions, momenta : ndarray of shape (n, dim)
        One row for each chain.
    cache
        Arrays that the integrator keeps for the positions; at least ``"value"`` and
        ``"gradient"`` for integrators that follow a gradient.
    last_step
        Arrays, one row for each chain, about the step that led there; most integrators keep none.
        ``nuts`` reads ``"momentum"``, what the step adds to the sum of momenta on a path, for which
        the trapezoidal sum is M (q' - q) / h, and ``"whole"``, which counts as its acceptance when
        the step size is tuned.
    """

    positions: FloatArray
    momenta: FloatArray
    cache: Cache
    last_step: Cache = attrs.field(factory=dict)


class Metric(Protocol):
    """The kinetic energy of momenta.

    This is the constant kind: K(p) = p^T M^-1 p / 2 with one mass matrix M for all positions.
    """

    @property
    def tunable(self) -> bool:
        """Whether the mass matrix is left to be tuned."""

    def adapt(self, covariance: FloatArray) -> Metric:
        """Return the metric whose M^-1 is a covariance (dim, dim), in the form of this kind."""

    def draw(self, rng: np.random.Generator, n: int, dim: int) -> FloatArray:
        """Draw momenta from N(0, M), shape (n, dim)."""

    def velocity(self, momenta: FloatArray) -> FloatArray:
        """Return M^-1 p, shape (n, dim)."""

    def energy(self, momenta: FloatArray) -> FloatArray:
        """Return K(p) = p^T M^-1 p / 2, shape (n,)."""

    def longest_scale(self, covariance: FloatArray) -> float:
        """Return the largest standard deviation of a covariance in this metric's units."""


class Integrator(Protocol):
    """A reversible, volume-preserving map of positions and momenta.

    One chain's failure is a status, never an exception for the batch. An integrator for metrics
    that change with position (:class:`~surrokit.interfaces.PositionMetric`) has a true
    attribute ``by_position``.
    """

    @property
    def needs(self) -> Capabilities:
        """What the Hamiltonian's potential must offer."""

    def cache(self, hamiltonian: Hamiltonian, positions: FloatArray) -> Cache:
        """Evaluate what a path needs at its start, at positions (n, dim)."""

    def advance(
        self, hamiltonian: Hamiltonian, phase: Phase, step_size: FloatArray, n_steps: IntArray
    ) -> tuple[Phase, IntArray]:
        """Follow each chain's path for its number of steps.

        Parameters
        ----------
        hamiltonian
            Energy that the path conserves.
        phase
            The start, with its cache; left unchanged.
        step_size : ndarray of shape (n,)
            Step of each chain; a negative one goes backwards.
        n_steps : ndarray of shape (n,)
            Steps of each chain, at least 1.

        Returns
        -------
        phase
            The end of each path; momenta are not negated.
        status : ndarray of shape (n,)
            :class:`~surrokit.interfaces.Status` of each path. Unless it is ``OK``, the end
            has no meaning.
        """


class PositionMetric(Protocol):
    """The kinetic energy of momenta, with a mass matrix G(q) that changes with position.

    K(q, p) = log det G / 2 + p^T G^-1 p / 2, equation (5) of Zhang, Shahbaba and Zhao (2017). Its
    results at positions form a cache, a dictionary of arrays with one row for each position. G and
    the derivative of G come from one potential: an integrator that took them from different
    places would not preserve volume.

    A row where G is not finite becomes NaN throughout, without effect on the other rows.
    """

    @property
    def needs(self) -> Capabilities:
        """What the potential must offer."""

    @property
    def tunable(self) -> bool:
        """Whether its units are left to be tuned."""

    def adapt(self, covariance: FloatArray) -> Self:
        """Return the metric in units in which a covariance (dim, dim) is the identity."""

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Evaluate and factorise G at positions (n, dim): the only costly method.

        Raises
        ------
        IndefiniteMetricError
            If G is finite but not positive definite, and the metric does not regularise it.
        """

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G) for each k, shape (n, dim)."""

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim), with u in ``velocities (n, dim)``."""

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, dim)."""

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, dim)."""

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return K, shape (n,)."""

    def approximate_product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray | None:
        """Return about G u, shape (n, dim), or None if that is not much cheaper than ``factor``.

        The product may be wrong where the metric is regularised: integrators approach a solution
        with it, and verify the solution with G itself.
        """


@attrs.frozen(kw_only=True, eq=False)
class Hamiltonian:
    """H(q, p) = U(q) + K(p), section 2.1 of Zhang, Shahbaba and Zhao (2017).

    With a metric that changes with position it is H(q, p) = U(q) + K(q, p), equation (5).

    Parameters
    ----------
    potential
        U, the exact potential or a fitted surrogate; the two are treated alike.
    metric
        K, the kinetic energy.
    """

    potential: Potential
    metric: Metric | PositionMetric

    def energy(self, phase: Phase) -> FloatArray:
        """Return H of each chain, shape (n,), from a phase whose cache holds the values."""
        return phase.cache["value"] + self.kinetic(phase)

    def kinetic(self, phase: Phase) -> FloatArray:
        """Return K of each chain, shape (n,); without log det M where M is one for all."""
        if changes_with_position(self.metric):
            return self.metric.energy(phase.cache, phase.momenta)
        return cast("Metric", self.metric).energy(phase.momenta)

    def start(self, state: ChainState, rng: np.random.Generator) -> Phase:
        """Return the phase of chains with fresh momenta."""
        if changes_with_position(self.metric):
            momenta = self.metric.draw(rng, state.cache)
        else:
            momenta = cast("Metric", self.metric).draw(rng, *state.positions.shape)
        return Phase(positions=state.positions, momenta=momenta, cache=state.cache)


def changes_with_position(metric: object) -> TypeGuard[PositionMetric]:
    """Return whether a metric is a :class:`~surrokit.interfaces.PositionMetric`."""
    # a name that no constant metric has; ``factor`` would not do
    return hasattr(metric, "log_determinant_gradient")


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
    estimates : ndarray of shape (n,), optional
        Estimates of U by which a correction decided that chains are here; NaN of chains that it has
        not moved.
    """

    positions: FloatArray
    values: FloatArray
    cache: Cache
    estimates: FloatArray | None = None


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
    estimates : ndarray of shape (n,), optional
        Estimates of U at ``positions``, of a correction that decides by such.
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
    estimates: FloatArray | None = None


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
    learns : bool
        Whether a window of the warm-up is still to learn the covariance.
    """

    step_size: float
    covariance: FloatArray | None = None
    n_steps: int | None = None
    length: int | None = None
    warp: Warp | None = None
    learns: bool = False


class Kernel(Protocol):
    """A bound sampler: makes proposals on a potential, without knowing whether it is exact.

    A subclass that moves without a potential has to propose, and no more.

    A kernel whose chains share a random choice, such as the number of steps, may have a method
    ``draw_shared(rng)``. It returns a copy with that choice made, so that a sub-chain can make the
    same choices in both directions.
    """

    @property
    def potential(self) -> Potential | None:
        """The potential it moves on, where ``cache["value"]`` comes from; None if it uses none."""
        return None

    @property
    def step(self) -> float | None:
        """The step size in use; None for a sampler that has none."""
        return None

    @property
    def is_independent(self) -> bool:
        """Whether proposals are draws of exp(-V), wherever the chains are."""
        return False

    def cache(self, positions: FloatArray) -> Cache:  # noqa: ARG002
        """Evaluate what it needs of its potential at ``positions (n, dim)``."""
        return {}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once, from ``state.positions`` and ``state.cache``."""


class Sampler(Protocol):
    """Settings of moves, from which kernels are bound; a sampler derives from this class."""

    @property
    def needs(self) -> Capabilities:
        """What the potential must offer."""

    @property
    def tunes(self) -> frozenset[str]:
        """Settings left free: ``step_size``, ``n_steps``, ``metric``, ``length`` or ``warp``.

        ``heavy_warp`` is a warp that is learnt for heavy tails alone, and for scales that depend on
        other parameters.
        """

    @property
    def target_acceptance(self) -> float:
        """Mean path acceptance at which the step size is about right."""

    @property
    def metric(self) -> object:
        """The kinetic energy; None of moves without momenta."""
        return None

    @property
    def largest_step(self) -> float:
        """A step size beyond which larger steps make no difference."""
        return math.inf

    @property
    def longest_warmup(self) -> int | None:
        """Iterations that are enough after an exploration; None where no number is known."""
        return None

    @property
    def tuning(self) -> Tuning | None:
        """What was tuned before; None where a run has to tune it."""
        return None

    @property
    def uses_potential(self) -> bool:
        """Whether moves use a potential."""
        return True

    @property
    def caches_metric(self) -> bool:
        """Whether caches depend on the tuned covariance, and are remade when it changes."""
        return False

    @property
    def kernel(self) -> Sampler:
        """The sampler of whose transitions one move consists; itself where it makes one."""
        return self

    def suit(self, capabilities: Capabilities, given: Collection[str]) -> Sampler:  # noqa: ARG002
        """Return the sampler with parts that suit a potential, unless settings give them."""
        return self

    def bind(self, potential: Potential, tuning: Tuning) -> Kernel:
        """Return the kernel that moves on a potential; the user's settings win over ``tuning``.

        A run binds anew whenever either changes. Samplers inside are bound too.
        """


class Decider(Protocol):
    """A bound correction: decides on proposals by the exact potential."""

    def prepare(self, near: FloatArray) -> Self:  # noqa: ARG002
        """Return a copy that has evaluated what it must know of the exact potential in advance.

        A run calls it once, after the exploration and before its first decision. A decider that
        looks at single proposals only returns itself.

        Parameters
        ----------
        near : ndarray of shape (dim,)
            A position of high probability: the mode, or the mean of the chains.
        """
        return self

    def start(self, positions: FloatArray, cache: Cache, source: Potential | None) -> ChainState:
        """Return the state of chains at ``positions (n, dim)``.

        ``cache`` is the kernel's, on the potential ``source``. If ``source`` is the exact
        potential, the values are taken from the cache at no cost.
        """

    def estimate(self, proposal: Proposal, rng: np.random.Generator) -> Proposal:  # noqa: ARG002
        """Return a proposal with the estimates of U that it is decided by, if there are any."""
        return proposal

    def decide(
        self, state: ChainState, proposal: Proposal, rng: np.random.Generator
    ) -> tuple[ChainState, StepInfo]:
        """Accept or reject every chain's proposal.

        The info is about moves: a proposal to stay is not ``accepted``, and its ``acceptance`` is
        NaN (see :func:`surrokit.kernel.hamiltonian.carry_out`).
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
    values : ndarray of shape (n,)
        V there.
    chances
        From positions, shape (..., dim), and V there, shape (...), to the ratio of this density to
        the surrogate's.
    """

    positions: FloatArray
    values: FloatArray
    chances: Callable[[FloatArray, FloatArray], FloatArray]


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

    A run with a weigher draws from its surrogate, which costs nothing, and evaluates the exact
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
        """Return how many draws to evaluate in the next round; 0 where too few calls are left.

        Parameters
        ----------
        learnt
            Exact evaluations that the surrogate has learnt from.
        before
            Evaluated draws in the round before; 0 for the first.
        left
            Calls left, perhaps infinite.
        """


def weighs(correction: Correction) -> TypeGuard[Weigher]:
    """Return whether a correction corrects answers."""
    return bool(getattr(correction, "weighs", False))


LearnFrom: TypeAlias = Literal["all", "accepted", "states"]
"""Which evaluations to learn from: ``all``; ``accepted`` proposals (Algorithm 3 of the paper); or
``states`` of the chains after each iteration, with repeats (Algorithm 4, and the authors' code)."""


def check_learn_from(value: str) -> LearnFrom:
    """Return a valid choice.

    Raises
    ------
    ConfigurationError
        If the choice is invalid.
    """
    if value not in get_args(LearnFrom):
        raise ConfigurationError(
            f"learn_from must be one of {', '.join(get_args(LearnFrom))}, got {value!r}"
        )
    return value  # type: ignore[return-value]


Stage: TypeAlias = Literal["exploration", "warmup", "sampling"]
"""Where in a run an iteration lies."""


@attrs.frozen(kw_only=True)
class Moment:
    """The point of a run at which a schedule decides.

    Parameters
    ----------
    stage
        The stage of the iteration just done.
    iteration
        Iterations done in the whole run, exploration included.
    explored
        True once, at the iteration that ends the exploration.
    since_explored
        Iterations done since the exploration ended: 0 at the iteration that ends it, -1 before.
    draws_follow
        True at the last iteration of the warm-up.
    """

    stage: Stage
    iteration: int
    explored: bool
    since_explored: int = -1
    draws_follow: bool = False


@attrs.frozen(kw_only=True)
class Decision:
    """A schedule's decision after an iteration.

    Parameters
    ----------
    observe
        The learner takes the training rows of this iteration.
    deploy
        The sampler gets a new snapshot of the learner.
    frozen
        Nothing will be deployed from here on.
    derivatives
        From here on proposals are evaluated with gradients, or Jacobians of a forward map, where
        the target offers them: they cost more and teach more. Kept iterations ignore this.
    learn_from
        Which rows of this iteration are observed; during exploration the explorer chooses.
    """

    observe: bool
    deploy: bool
    frozen: bool
    derivatives: bool = False
    learn_from: LearnFrom = "all"


class Schedule(Protocol):
    """Says when a run learns and when it deploys what it has learnt."""

    @property
    def learns(self) -> bool:
        """Whether it ever deploys a surrogate."""

    @property
    def deployment_rate(self) -> float:
        """Deployments expected per iteration after the first deployment; 0 for at most one."""

    def exploration(self, gradients: bool) -> int | None:
        """Return how many rows, with gradients or without, it wants from the exploration.

        None leaves the number to the explorer. A run asks only where the user names no explorer.
        """

    def decide(self, moment: Moment, rng: np.random.Generator) -> Decision:
        """Return what to do after an iteration."""


@attrs.frozen(kw_only=True, eq=False)
class Findings:
    """What an exploration hands to the run.

    Parameters
    ----------
    chains : ChainState
        State of the chains, with exact values.
    covariance : ndarray of shape (dim, dim), optional
        Estimated covariance of the target.
    step_size : float, optional
        A step size that worked.
    mode : ndarray of shape (dim,), optional
        Position of the highest density found.
    tuning : Tuning, optional
        Tuning of the run's own sampler, found on the surrogate; the run then searches for none.
    acceptance : float, optional
        Predicted probability of accepting an independent draw from the surrogate.
    modes : Modes, optional
        Modes that searches have found, if there were searches.
    missed : int
        Places at which the target went on where the surrogate's mass ended, when the exploration
        ended for want of evaluations.
    at_draws : bool
        Whether the chains are at draws of the target, so that they have nothing to forget.
    """

    chains: ChainState
    covariance: FloatArray | None = None
    step_size: float | None = None
    mode: FloatArray | None = None
    tuning: Tuning | None = None
    acceptance: float | None = None
    modes: Modes | None = None
    missed: int = 0
    at_draws: bool = False


@attrs.frozen(kw_only=True, eq=False)
class Past:
    """Draws that earlier runs have made of a target, by chains that agree.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        The draws, in the sampling coordinates.
    values : ndarray of shape (n,)
        Exact U there, in nats.
    """

    positions: FloatArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)


class Fit(Protocol):
    """Lets a learner observe rows, and returns a surrogate of all rows so far, or None."""

    def __call__(self, rows: Evaluations, modes: Modes | None = None, /) -> Potential | None:
        """Return a surrogate, with a part for each of several modes; None where none is fitted."""


@attrs.frozen(kw_only=True, eq=False)
class Start:
    """What a run hands to an explorer.

    Parameters
    ----------
    potential
        The exact potential. Calls are counted, and evaluations kept; a call raises where a limit
        of the run is reached.
    positions : ndarray of shape (n, dim)
        Where the chains start.
    warmup
        Length of the warm-up, exploration included.
    evaluated
        Returns the evaluations since it was last called.
    fit
        Lets the run's learner observe rows, and returns a surrogate of all that it has observed;
        None where none can be fitted. With several modes it has a part for each.
    calls
        Exact calls that the run's budget leaves to the exploration; None without a budget.
    past
        Draws of earlier runs on the same target, whose evaluations the learner has observed; None
        without.
    known
        Evaluations that the learner observes before the first fit, of earlier runs or of other
        posteriors of the same model; None without.
    """

    potential: Potential
    positions: FloatArray
    warmup: int
    evaluated: Callable[[], Evaluations]
    fit: Fit
    calls: int | None = None
    past: Past | None = None
    known: Evaluations | None = None


@attrs.frozen(kw_only=True, eq=False)
class Explored:
    """One iteration of an exploration.

    Parameters
    ----------
    findings
        What has been found so far.
    step
        What the iteration did to the chains; None where the record shall have no row of it.
    rows
        Evaluations to learn from that ``fit`` was not given.
    done
        Whether the exploration is over; none follows then.
    """

    findings: Findings
    step: StepInfo | None = None
    rows: Evaluations | None = None
    done: bool = False


class Explorer(Protocol):
    """Settings of an exploration, which evaluates before a surrogate is used."""

    @property
    def needs(self) -> Capabilities:
        """What the exact potential must offer beside values: nothing, unless overridden."""
        return frozenset()

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Explore a potential, and yield after each iteration, for the run to record.

        The first item has the chains at their starts, and takes nothing from the generator. A run
        that finds the target not finite there explores anew from other starts. The last item is
        marked ``done``. A run whose limit is reached asks for no more.

        Parameters
        ----------
        start
            The potential, and all else that the run passes on.
        rng
            The run's generator.

        Yields
        ------
        Explored
            The chains at their starts, then each iteration.
        """
