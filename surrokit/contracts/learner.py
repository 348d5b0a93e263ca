"""Learners, the surrogates that make them, and the evaluations that they observe.

:class:`Evaluations` copies its arrays to read-only double precision, and checks their shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import unmasked
from surrokit.contracts.potential import Potential
from surrokit.errors import ShapeError
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.contracts.forward import Energy
    from surrokit.contracts.rows import SummedTerms


def _frozen_array(value: npt.ArrayLike) -> FloatArray:
    array = np.array(unmasked(value), dtype=np.float64)
    array.setflags(write=False)
    return array


def _optional_array(value: npt.ArrayLike | None) -> FloatArray | None:
    return None if value is None else _frozen_array(value)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Evaluations:
    """Exact evaluations of a target, already paid for.

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
    weights : array_like of shape (n,), optional
        How often each row counts in a fit; once unless given. Weights are for fits to data: rows of
        a run have none.

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
            for name in ("positions", "values", "gradients", "outputs", "jacobians", "weights")
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
                name: _join_optional(blocks, name) for name in ("gradients", "outputs", "jacobians")
            },
            weights=_join_weights(blocks),
        )

    def take(self, rows: npt.NDArray[np.int64] | BoolArray | slice) -> Evaluations:
        """Return the rows chosen by an index, a mask or a slice."""
        return Evaluations(
            positions=self.positions[rows],
            values=self.values[rows],
            gradients=None if self.gradients is None else self.gradients[rows],
            outputs=None if self.outputs is None else self.outputs[rows],
            jacobians=None if self.jacobians is None else self.jacobians[rows],
            weights=None if self.weights is None else self.weights[rows],
        )

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


def _join_weights(blocks: list[Evaluations]) -> FloatArray | None:
    if all(block.weights is None for block in blocks):
        return None
    return np.concatenate(
        [np.ones(len(block)) if block.weights is None else block.weights for block in blocks]
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
        The terms of a summed potential, of which a surrogate may copy some; like the data of an
        ``energy`` they come from the user.
    is_density
        Whether U is -log density + constant, as it is in a run. Beyond what was observed a
        surrogate may then rise as densities fall, so that paths on it come back.
    is_weighed
        Whether few exact calls correct what many draws of the surrogate say. Its accuracy is then
        worth more than its speed.
    """

    dim: int
    capabilities: Capabilities
    energy: Energy | None = None
    deployment_rate: float = 0.0
    terms: SummedTerms | None = None
    is_density: bool = False
    is_weighed: bool = False


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
