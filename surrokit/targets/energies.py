"""Energies of data with errors of several families, whose scales may be parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.priors import Priors
from surrokit.coordinates.transforms import plus_diagonal
from surrokit.targets.families import NORMAL, ErrorFamily, read_family
from surrokit.targets.gaussian import (
    DataEnergy,
    GaussianEnergy,
    Prior,
    metric_of,
    metric_trace_of,
    metrics_of,
    unnormalized_prior,
)
from surrokit.types import Capabilities, FloatArray, IntArray, Pair


@attrs.frozen(kw_only=True, eq=False)
class Block:
    """Data (m,) that follow one another in the outputs, with errors of one family.

    ``factors (m,)`` are known scales, or factors of those that are parameters: ``columns (m,)`` are
    the places of these in a position, None where scales are known.
    """

    data: FloatArray
    family: ErrorFamily
    factors: FloatArray
    columns: IntArray | None = None

    def scales(self, positions: FloatArray) -> FloatArray:
        """Return each datum's scale, shape (n, m)."""
        if self.columns is None:
            return np.broadcast_to(self.factors, (len(positions), len(self.factors)))
        with np.errstate(all="ignore"):
            return np.asarray(positions[:, self.columns] * self.factors)

    def gather(self, by_scale: FloatArray, found: FloatArray, power: int = 1) -> None:
        """Add what belongs to each scale, shape (n, m), to its place in ``found (n, dim)``."""
        if self.columns is not None:
            weighted = by_scale * self.factors**power
            for column in np.unique(self.columns):
                found[:, column] += weighted[:, self.columns == column].sum(axis=1)


@attrs.frozen(kw_only=True, eq=False)
class ObservedEnergy(DataEnergy):
    """Minus the log likelihood of blocks of data, in the order of outputs, less the log prior.

    The curvatures are the Fisher information of outputs, and that of scales beside the prior's
    metric.
    """

    blocks: tuple[Block, ...]
    prior: Prior | None = None

    @property
    def n_data(self) -> int:
        """Count of the data."""
        return sum(len(block.data) for block in self.blocks)

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """The data of all blocks, beside the outputs."""
        return {"outputs": np.concatenate([block.data for block in self.blocks])}

    def draw_data(
        self, rng: np.random.Generator, outputs: FloatArray, positions: FloatArray
    ) -> FloatArray:
        """Return data with their errors, shape (n, m), for outputs of that shape."""
        found = np.empty_like(outputs)
        for block, where, own, scales in self._each(outputs, positions):
            with np.errstate(divide="ignore", invalid="ignore"):
                found[:, where] = block.family.draw(rng, own, scales)
        return found

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,); ``inf`` where an output or a scale is none of its family's."""
        total = np.zeros(len(positions)) if self.prior is None else _value(self.prior, positions)
        for block, _, own, scales in self._each(outputs, positions):
            with np.errstate(all="ignore"):
                total = total + block.family.value(own, block.data, scales).sum(axis=1)
        return total

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""
        value, by_outputs = np.zeros(len(positions)), np.empty_like(outputs)
        by_positions = np.zeros_like(positions)
        if self.prior is not None:
            value, slope = self.prior.value_and_gradient(positions)
            by_positions = by_positions + slope  # a prior may go on using its own
        for block, where, own, scales in self._each(outputs, positions):
            with np.errstate(all="ignore"):
                by_outputs[:, where], by_scales = block.family.slopes(own, block.data, scales)
                value = value + block.family.value(own, block.data, scales).sum(axis=1)
            block.gather(by_scales, by_positions)
        return value, by_outputs, by_positions

    def curvatures(self, outputs: FloatArray, positions: FloatArray) -> Pair:
        """Return C, shape (n, m), and R, shape (n, dim, dim)."""
        by_outputs, of_scales = np.empty_like(outputs), np.zeros_like(positions)
        for block, where, own, scales in self._each(outputs, positions):
            with np.errstate(all="ignore"):
                by_outputs[:, where], found = block.family.information(own, scales)
            block.gather(found, of_scales, power=2)
        return by_outputs, plus_diagonal(metric_of(self.prior, positions).copy(), of_scales)

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> Pair:
        """Return the gradients of sum(X * C) + tr(B R), shapes (n, m) and (n, dim)."""
        by_outputs, by_positions = np.empty_like(outputs), np.zeros_like(positions)
        own_weights = np.einsum("nii->ni", by_positions_weights)
        for block, where, own, scales in self._each(outputs, positions):
            with np.errstate(all="ignore"):
                found = block.family.information_slopes(own, scales)
            weights = by_outputs_weights[:, where]
            by_outputs[:, where] = weights * found[0]
            block.gather(weights * found[1], by_positions)
            if block.columns is not None:
                block.gather(own_weights[:, block.columns] * found[2], by_positions, power=3)
        of_prior = metric_trace_of(self.prior, positions, by_positions_weights)
        return by_outputs, by_positions + of_prior

    def _each(
        self, outputs: FloatArray, positions: FloatArray
    ) -> Iterator[tuple[Block, slice, FloatArray, FloatArray]]:
        """Yield each block with the place of its outputs, these, and their scales."""
        self.check(outputs.shape[1])
        first = 0
        for block in self.blocks:
            where = slice(first, first + len(block.data))
            yield block, where, outputs[:, where], block.scales(positions)
            first = where.stop


@attrs.frozen(eq=False)
class WithScales:
    """A prior of the first ``count`` numbers of a position, and one of the scales after them.

    ``prior`` is None for a flat one. The Fisher information of scales is their metric, so their own
    prior has none.
    """

    prior: Prior | None
    count: int
    scales: Prior

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of either prior may lack its constant."""
        both = unnormalized_prior(self.prior) + unnormalized_prior(self.scales)
        return tuple(dict.fromkeys(both))

    @property
    def capabilities(self) -> Capabilities:
        """What the prior of the first ones offers."""
        return metrics_of(self.prior)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return -log prior, shape (n,)."""
        found = _value(self.scales, positions)
        if self.prior is None:
            return found
        return found + _value(self.prior, positions[:, : self.count])

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return -log prior, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = self.scales.value_and_gradient(positions)
        if self.prior is None:
            return value, gradient
        first, slope = self.prior.value_and_gradient(positions[:, : self.count])
        gradient[:, : self.count] += slope
        return value + first, gradient

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metric of the first ones, and zeros: shape (n, dim, dim)."""
        found = metric_of(None, positions)
        found[:, : self.count, : self.count] = metric_of(self.prior, positions[:, : self.count])
        return found

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, dim), for A in ``matrices (n, dim, dim)``."""
        found, first = np.zeros_like(positions), slice(self.count)
        own = metric_trace_of(self.prior, positions[:, first], matrices[:, first, first])
        found[:, first] = own
        return found


def _value(prior: Prior, positions: FloatArray) -> FloatArray:
    """Return -log prior, shape (n,), without its gradient where that saves something."""
    if isinstance(prior, Priors | WithScales):
        return prior.value(positions)
    return prior.value_and_gradient(positions)[0]


KIND = "errors"
"""Says in a file that predictions are outputs with errors."""


def write_errors(energy: Any) -> dict[str, Any] | None:
    """Return data and their errors as plain data, without prior; None for an energy of a user's."""
    if isinstance(energy, GaussianEnergy):
        factors = np.broadcast_to(energy.noise_sd, energy.data.shape)
        block = Block(data=energy.data, family=NORMAL, factors=factors)
        energy = ObservedEnergy(blocks=(block,))
    if not isinstance(energy, ObservedEnergy):
        return None
    plain = [
        {
            "family": block.family.name,
            "degrees": block.family.degrees,
            "link": block.family.link,
            "data": block.data.tolist(),
            "factors": block.factors.tolist(),
            "columns": None if block.columns is None else block.columns.tolist(),
        }
        for block in energy.blocks
    ]
    return {"kind": KIND, "blocks": plain}


def read_errors(plain: Mapping[str, Any], dim: int) -> ObservedEnergy:
    """Return what :func:`write_errors` returned, for positions of ``dim`` numbers.

    Raises
    ------
    KeyError, TypeError, ValueError, ConfigurationError, ShapeError
        If it is damaged.
    """
    blocks = []
    for each in plain["blocks"]:
        data, factors = (np.array(each[name], dtype=np.float64) for name in ("data", "factors"))
        columns = None if each["columns"] is None else np.array(each["columns"], dtype=np.int64)
        if data.ndim != 1 or factors.shape != data.shape:
            raise ValueError("data and their errors do not fit one another")
        if columns is not None and (
            columns.shape != data.shape or (columns < 0).any() or (columns >= dim).any()
        ):
            raise ValueError("errors are of parameters that there are not")
        family = read_family(each["family"], each["degrees"], each["link"])
        blocks.append(Block(data=data, family=family, factors=factors, columns=columns))
    return ObservedEnergy(blocks=tuple(blocks))
