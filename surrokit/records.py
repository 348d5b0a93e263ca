"""Frozen records: the only things that travel between the parts.

Records on the hot path (:class:`Phase`, :class:`ChainState`, :class:`Proposal`,
:class:`StepInfo`) take their arrays as they come. The others copy what they are given to
read-only double precision and check its shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.errors import ShapeError
from surrokit.modes import Modes
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.protocols import Energy, Potential
    from surrokit.summed_terms import SummedTerms
    from surrokit.training import LearnFrom

Stage: TypeAlias = Literal["exploration", "warmup", "sampling"]
"""Where in a run an iteration lies."""


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


def _frozen_array(value: npt.ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    array.setflags(write=False)
    return array


def _optional_array(value: npt.ArrayLike | None) -> FloatArray | None:
    return None if value is None else _frozen_array(value)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Evaluations:
    """Exact evaluations of a target that have been paid for.

    Parameters
    ----------
    positions : array_like of shape (n, dim)
        Where the target was evaluated.
    values : array_like of shape (n,)
        U = -log density + constant there, in nats; ``inf`` outside the support.
    gradients : array_like of shape (n, dim), optional
        Gradients of U; a row of NaN where no gradient was paid for.
    outputs : array_like of shape (n, m), optional
        Outputs of the forward map; NaN in rows without.
    jacobians : array_like of shape (n, m, dim), optional
        Derivatives of the outputs; NaN in rows without.

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
            for name in ("positions", "values", "gradients", "outputs", "jacobians")
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
            values=-np.asarray(log_density, dtype=np.float64),
            gradients=None if gradients is None else -np.asarray(gradients, dtype=np.float64),
        )

    @classmethod
    def empty(cls, dim: int) -> Evaluations:
        """Return no evaluations at all, of positions of ``dim`` numbers."""
        return cls(positions=np.empty((0, dim)), values=np.empty(0))

    @classmethod
    def joined(cls, blocks: list[Evaluations], dim: int) -> Evaluations:
        """Put blocks one after the other; what a block lacks becomes NaN."""
        blocks = [block for block in blocks if len(block)]
        if len(blocks) == 1:
            return blocks[0]
        if not blocks:
            return cls.empty(dim)
        return cls(
            positions=np.concatenate([block.positions for block in blocks]),
            values=np.concatenate([block.values for block in blocks]),
            **{
                name: _joined_optional(blocks, name)
                for name in ("gradients", "outputs", "jacobians")
            },
        )

    def take(self, rows: npt.NDArray[np.int64] | BoolArray | slice) -> Evaluations:
        """Return the rows chosen by an index, a mask or a slice."""
        return Evaluations(
            positions=self.positions[rows],
            values=self.values[rows],
            gradients=None if self.gradients is None else self.gradients[rows],
            outputs=None if self.outputs is None else self.outputs[rows],
            jacobians=None if self.jacobians is None else self.jacobians[rows],
        )

    def find(self, positions: FloatArray) -> IntArray:
        """Return for each of ``positions (k, dim)`` the last row equal to it, or -1."""
        found = np.full(len(positions), -1, dtype=np.int64)
        for i, position in enumerate(positions):
            rows = np.flatnonzero((self.positions == position).all(axis=1))
            if rows.size:
                found[i] = rows[-1]
        return found


def _joined_optional(blocks: list[Evaluations], name: str) -> FloatArray | None:
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


@attrs.frozen(kw_only=True, eq=False)
class Phase:
    """Positions and momenta of all chains, with what is known at the positions.

    Parameters
    ----------
    positions, momenta : ndarray of shape (n, dim)
        One row for each chain.
    cache
        What the integrator keeps for the positions; ``"value"`` and ``"gradient"`` at least for
        integrators that follow a gradient.
    """

    positions: FloatArray
    momenta: FloatArray
    cache: Cache


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
        Arrays that the sampler keeps for the positions, of the potential it moves on.
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
    log_correction: FloatArray = attrs.field()
    moved: BoolArray = attrs.field()
    status: IntArray = attrs.field()
    cache: Cache = attrs.field(factory=dict)
    source: Potential | None = None
    log_path_ratio: FloatArray | None = None
    n_steps: IntArray = attrs.field()
    divergent: BoolArray | None = None
    excursion: Excursion | None = None

    @log_correction.default
    def _symmetric(self) -> FloatArray:
        return np.zeros(len(self.positions))

    @moved.default
    def _all_moved(self) -> BoolArray:
        return np.ones(len(self.positions), dtype=bool)

    @status.default
    def _all_well(self) -> IntArray:
        return np.full(len(self.positions), Status.OK, dtype=np.int64)

    @n_steps.default
    def _single(self) -> IntArray:
        return np.ones(len(self.positions), dtype=np.int64)


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


@attrs.frozen(kw_only=True, eq=False)
class Findings:
    """What an exploration hands to the run.

    Parameters
    ----------
    chains : ChainState
        Where the chains are; their exact values are known.
    covariance : ndarray of shape (dim, dim), optional
        Estimated covariance of the target.
    step_size : float, optional
        A step size that worked.
    mode : ndarray of shape (dim,), optional
        Where the target is densest, as far as it was looked for.
    tuning : Tuning, optional
        What the run's own sampler needs, found on the surrogate; then the run searches for nothing.
    acceptance : float, optional
        Predicted probability of accepting an independent draw from the surrogate.
    modes : Modes, optional
        What searches for modes have found, if there were any.
    """

    chains: ChainState
    covariance: FloatArray | None
    step_size: float | None
    mode: FloatArray | None = None
    tuning: Tuning | None = None
    acceptance: float | None = None
    modes: Modes | None = None


@attrs.frozen(kw_only=True)
class Moment:
    """When a schedule is asked.

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
    """What a schedule wants done.

    Parameters
    ----------
    observe
        The learner takes the training rows of this iteration.
    deploy
        The sampler gets a new snapshot of the learner.
    frozen
        Nothing will be deployed from here on.
    derivatives
        From here on proposals are evaluated with their gradients, or the Jacobians of a forward
        map, where the target offers them: dearer, but more is learnt from each. In kept
        iterations it counts as False.
    learn_from
        Which of the rows paid for by this iteration are observed; in the exploration the
        explorer chooses.
    """

    observe: bool
    deploy: bool
    frozen: bool
    derivatives: bool = False
    learn_from: LearnFrom = "all"


@attrs.frozen(kw_only=True, eq=False)
class LearningProblem:
    """What a surrogate may know before it sees a point; it has no way to make an exact call.

    Parameters
    ----------
    dim
        Numbers in a position.
    capabilities
        What the target offers.
    energy : Energy, optional
        The cheap exact part of a forward potential.
    deployment_rate
        How often the schedule asks for a fit, expected per observed evaluation after the first
        fit: 0 for a schedule that deploys once. A learner may choose by it how it keeps up.
    terms : SummedTerms, optional
        The terms of a summed potential, of which a surrogate may copy some; they are data that the
        user has handed over, as the data of an ``energy`` are.
    """

    dim: int
    capabilities: Capabilities
    energy: Energy | None = None
    deployment_rate: float = 0.0
    terms: SummedTerms | None = None


@attrs.frozen(kw_only=True, eq=False)
class RunInfo:
    """What observers are told about a run as a whole.

    Parameters
    ----------
    dim, chains, warmup, draws
        Sizes; ``warmup`` counts the exploration. Where ``warmup`` or ``draws`` is left open, what
        is expected at the moment.
    parts
        Kind of part to a description of the one in use.
    """

    dim: int
    chains: int
    warmup: int
    draws: int
    parts: Mapping[str, str]


@attrs.frozen(kw_only=True, eq=False)
class IterationInfo:
    """What observers are told about one iteration.

    Parameters
    ----------
    stage
        Where in the run.
    iteration
        Iterations done in the whole run, this one included.
    step
        What happened to the chains; None where an exploration made no transition.
    calls
        Exact calls by kind since the run began.
    seconds
        Time since the run began.
    """

    stage: Stage
    iteration: int
    step: StepInfo | None
    calls: Mapping[str, int]
    seconds: float
