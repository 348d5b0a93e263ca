"""The energy of data whose errors have families, and scales that may be parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.matrices import MetricDerivativePotential
from surrokit.coordinates.priors import Priors
from surrokit.errors import ShapeError
from surrokit.targets.gaussian import (
    CurvedPrior,
    Prior,
    curvatures_with,
    unnormalized_prior,
)
from surrokit.targets.observed.families import ErrorFamily
from surrokit.types import Capabilities, FloatArray, IntArray

_OF_METRICS = frozenset({can.METRIC, can.METRIC_DERIVATIVE})


@attrs.frozen(kw_only=True, eq=False)
class Block:
    """Data that follow one another in the outputs, with errors of one family.

    Parameters
    ----------
    data : ndarray of shape (m,)
        What was observed.
    family
        How it scatters.
    factors : ndarray of shape (m,)
        Known scales, or factors of those that are parameters.
    columns : ndarray of shape (m,), optional
        The place in a position of each datum's scale; None where scales are known.
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
class ObservedEnergy:
    """Minus the log likelihood of blocks of data, less the log prior.

    Parameters
    ----------
    blocks
        Data, in the order of the outputs.
    prior
        -log prior and its gradient; None for a flat one.
    """

    blocks: tuple[Block, ...]
    prior: Prior | None = None

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """The data of all blocks, beside the outputs."""
        return {"outputs": np.concatenate([block.data for block in self.blocks])}

    def draw_data(
        self, rng: np.random.Generator, outputs: FloatArray, positions: FloatArray
    ) -> FloatArray:
        """Return data with their errors, shape (n, m), for outputs of that shape.

        Raises
        ------
        ShapeError
            If the forward map does not give one output for each datum.
        """
        found = np.empty_like(outputs)
        for block, where, own in self._each(outputs):
            found[:, where] = block.family.draw(rng, own, block.scales(positions))
        return found

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of the prior may lack its constant."""
        return unnormalized_prior(self.prior)

    @property
    def capabilities(self) -> Capabilities:
        """``curvatures``, unless there is a prior without a metric.

        Also ``curvature-derivatives``, unless the prior's metric has no derivative.
        """
        return curvatures_with(self.prior)

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,); ``inf`` where an output or a scale is none of its family's.

        Raises
        ------
        ShapeError
            If the forward map does not give one output for each datum.
        """
        total = np.zeros(len(positions)) if self.prior is None else _value(self.prior, positions)
        return self._add_misfit(total, outputs, positions)

    def _add_misfit(
        self, total: FloatArray, outputs: FloatArray, positions: FloatArray
    ) -> FloatArray:
        for block, _, own in self._each(outputs):
            terms = block.family.value(own, block.data, block.scales(positions))
            total = total + terms.sum(axis=1)
        return total

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim).

        Raises
        ------
        ShapeError
            If the forward map does not give one output for each datum.
        """
        value, by_outputs = np.zeros(len(positions)), np.empty_like(outputs)
        by_positions = np.zeros_like(positions)
        if self.prior is not None:
            value, slope = self.prior.value_and_gradient(positions)
            by_positions = by_positions + slope  # a prior may go on using its own
        for block, where, own in self._each(outputs):
            slopes = block.family.slopes(own, block.data, block.scales(positions))
            by_outputs[:, where] = slopes[0]
            block.gather(slopes[1], by_positions)
        return self._add_misfit(value, outputs, positions), by_outputs, by_positions

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the Fisher information of outputs, (n, m), and of scales with the prior's metric.

        The latter has shape (n, dim, dim).

        Raises
        ------
        ShapeError
            If the forward map does not give one output for each datum.
        """
        by_outputs, of_scales = np.empty_like(outputs), np.zeros_like(positions)
        for block, where, own in self._each(outputs):
            found = block.family.information(own, block.scales(positions))
            by_outputs[:, where] = found[0]
            block.gather(found[1], of_scales, power=2)
        n, dim = positions.shape
        by_positions = np.zeros((n, dim, dim))
        if self.prior is not None:
            by_positions += cast(CurvedPrior, self.prior).metric(positions)
        by_positions[:, np.arange(dim), np.arange(dim)] += of_scales
        return by_outputs, by_positions

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
            found = block.family.information_slopes(own, block.scales(positions))
            weights = by_outputs_weights[:, where]
            by_outputs[:, where] = weights * found[0]
            block.gather(weights * found[1], by_positions)
            if block.columns is not None:
                block.gather(own_weights[:, block.columns] * found[2], by_positions, power=3)
        if self.prior is not None:
            curved = cast(MetricDerivativePotential, self.prior)
            by_positions += curved.metric_trace_gradient(positions, by_positions_weights)
        return by_outputs, by_positions

    def check(self, n_outputs: int) -> None:
        """Raise unless there is one output for each datum.

        Raises
        ------
        ShapeError
            If there are more or fewer.
        """
        total = sum(len(block.data) for block in self.blocks)
        if n_outputs != total:
            raise ShapeError(
                f"the forward map gives {n_outputs} outputs, but data holds {total}; they must "
                "correspond"
            )

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
    """A prior of the first numbers of a position, and one of the scales after them.

    Parameters
    ----------
    prior
        Of the first ones; None for a flat one.
    count
        How many these are.
    scales
        Of the others. Their Fisher information is their metric, so this one has none.
    """

    prior: Prior | None
    count: int
    scales: Prior

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of either prior may lack its constant."""
        return tuple(
            dict.fromkeys(unnormalized_prior(self.prior) + unnormalized_prior(self.scales))
        )

    @property
    def capabilities(self) -> Capabilities:
        """What the prior of the first ones offers."""
        offered: Capabilities = getattr(self.prior, "capabilities", frozenset())
        return _OF_METRICS if self.prior is None else offered & _OF_METRICS

    def value(self, positions: FloatArray) -> FloatArray:
        """Return -log prior, shape (n,)."""
        found = _value(self.scales, positions)
        return (
            found if self.prior is None else found + _value(self.prior, positions[:, : self.count])
        )

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
