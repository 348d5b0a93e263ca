"""Energies of data with errors of several families, whose scales may be parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import attrs
import numpy as np

from surrokit.coordinates.priors import Priors
from surrokit.coordinates.transforms import plus_diagonal
from surrokit.potentials import MetricDerivativePotential
from surrokit.targets.families import NORMAL, ErrorFamily, read_family
from surrokit.targets.gaussian import (
    OF_METRICS,
    CurvedPrior,
    DataEnergy,
    GaussianEnergy,
    Prior,
    metrics_of,
    unnormalized_prior,
)
from surrokit.types import Capabilities, FloatArray, IntArray


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
        return np.asarray(positions[:, self.columns] * self.factors)

    def gather(self, by_scale: FloatArray, found: FloatArray, power: int = 1) -> None:
        """Add what belongs to each scale, shape (n, m), to its place in ``found (n, dim)``."""
        if self.columns is None:
            return
        weighted = by_scale * self.factors**power
        for column in np.unique(self.columns):
            found[:, column] += weighted[:, self.columns == column].sum(axis=1)


@attrs.frozen(kw_only=True, eq=False)
class ObservedEnergy(DataEnergy):
    """Minus the log likelihood of blocks of data, in the order of outputs, less the log prior."""

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
        with np.errstate(divide="ignore", invalid="ignore"):
            for block, where, own in self._each(outputs):
                found[:, where] = block.family.draw(rng, own, block.scales(positions))
        return found

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,); ``inf`` where an output or a scale is none of its family's."""
        total = np.zeros(len(positions)) if self.prior is None else _value(self.prior, positions)
        return self._with_misfit(total, outputs, positions)

    def _with_misfit(
        self, total: FloatArray, outputs: FloatArray, positions: FloatArray
    ) -> FloatArray:
        for block, _, own in self._each(outputs):
            with np.errstate(all="ignore"):
                terms = block.family.value(own, block.data, block.scales(positions))
            total = total + terms.sum(axis=1)
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
        for block, where, own in self._each(outputs):
            with np.errstate(all="ignore"):
                slopes = block.family.slopes(own, block.data, block.scales(positions))
            by_outputs[:, where] = slopes[0]
            block.gather(slopes[1], by_positions)
        return self._with_misfit(value, outputs, positions), by_outputs, by_positions

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the Fisher information of outputs, (n, m), and of scales with the prior's metric.

        The latter has shape (n, dim, dim).
        """
        by_outputs, of_scales = np.empty_like(outputs), np.zeros_like(positions)
        for block, where, own in self._each(outputs):
            with np.errstate(all="ignore"):
                found = block.family.information(own, block.scales(positions))
            by_outputs[:, where] = found[0]
            block.gather(found[1], of_scales, power=2)
        return by_outputs, plus_diagonal(self._metric(positions).copy(), of_scales)

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R), shapes (n, m) and (n, dim).

        C and R are those of :meth:`curvatures`, X and B their weights, of the same shapes.
        """
        by_outputs, by_positions = np.empty_like(outputs), np.zeros_like(positions)
        own_weights = np.einsum("nii->ni", by_positions_weights)
        for block, where, own in self._each(outputs):
            with np.errstate(all="ignore"):
                found = block.family.information_slopes(own, block.scales(positions))
            weights = by_outputs_weights[:, where]
            by_outputs[:, where] = weights * found[0]
            block.gather(weights * found[1], by_positions)
            if block.columns is not None:
                block.gather(own_weights[:, block.columns] * found[2], by_positions, power=3)
        return by_outputs, by_positions + self._metric_trace(positions, by_positions_weights)

    def _each(self, outputs: FloatArray) -> Iterator[tuple[Block, slice, FloatArray]]:
        """Yield each block with the place of its outputs, and these."""
        self.check(outputs.shape[1])
        first = 0
        for block in self.blocks:
            where = slice(first, first + len(block.data))
            yield block, where, outputs[:, where]
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
        return OF_METRICS if self.prior is None else metrics_of(self.prior)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return -log prior, shape (n,)."""
        found = _value(self.scales, positions)
        if self.prior is None:
            return found
        return found + _value(self.prior, positions[:, : self.count])

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return -log prior, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = self.scales.value_and_gradient(positions)
        if self.prior is None:
            return value, gradient
        first, slope = self.prior.value_and_gradient(positions[:, : self.count])
        gradient[:, : self.count] += slope
        return value + first, gradient

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metric of the first ones, and zeros: shape (n, dim, dim)."""
        n, dim = positions.shape
        found = np.zeros((n, dim, dim))
        if self.prior is not None:
            own = cast(CurvedPrior, self.prior).metric(positions[:, : self.count])
            found[:, : self.count, : self.count] = own
        return found

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, dim), for A in ``matrices (n, dim, dim)``."""
        found = np.zeros_like(positions)
        if self.prior is not None:
            curved, first = cast(MetricDerivativePotential, self.prior), slice(0, self.count)
            own = curved.metric_trace_gradient(positions[:, first], matrices[:, first, first])
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
    blocks: tuple[Block, ...]
    if isinstance(energy, GaussianEnergy):
        factors = np.broadcast_to(energy.noise_sd, energy.data.shape)
        blocks = (Block(data=energy.data, family=NORMAL, factors=factors),)
    elif isinstance(energy, ObservedEnergy):
        blocks = energy.blocks
    else:
        return None
    plain = [
        {
            "family": block.family.name,
            "degrees": getattr(block.family, "degrees", None),
            "link": getattr(block.family, "link", None),
            "data": block.data.tolist(),
            "factors": block.factors.tolist(),
            "columns": None if block.columns is None else block.columns.tolist(),
        }
        for block in blocks
    ]
    return {"kind": KIND, "blocks": plain}


def read_errors(plain: Mapping[str, Any], dim: int) -> ObservedEnergy:
    """Return what :func:`write_errors` returned, for positions of ``dim`` numbers.

    Raises
    ------
    KeyError, TypeError, ValueError, ConfigurationError, ShapeError
        If it is damaged.
    """
    return ObservedEnergy(blocks=tuple(_from_plain(each, dim) for each in plain["blocks"]))


def _from_plain(plain: Mapping[str, Any], dim: int) -> Block:
    data, factors = (np.array(plain[name], dtype=np.float64) for name in ("data", "factors"))
    columns = None if plain["columns"] is None else np.array(plain["columns"], dtype=np.int64)
    if data.ndim != 1 or factors.shape != data.shape:
        raise ValueError("data and their errors do not fit one another")
    if columns is not None and (
        columns.shape != data.shape or (columns < 0).any() or (columns >= dim).any()
    ):
        raise ValueError("errors are of parameters that there are not")
    family = read_family(plain["family"], plain["degrees"], plain["link"])
    return Block(data=data, family=family, factors=factors, columns=columns)
