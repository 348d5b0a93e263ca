"""The rows that a network is fitted to, and the units of what it learns."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.interfaces import Evaluations
from surrokit.potentials import Energy, Potential, with_gradient
from surrokit.surrogate.training import Groups, Tail, are_finite
from surrokit.types import BoolArray, FloatArray


@attrs.frozen(kw_only=True)
class TailBound:
    """Rows count in full up to an excess ``typical`` over the ``least`` value, then less."""

    least: float
    typical: float

    @classmethod
    def of(cls, values: FloatArray, dim: int) -> TailBound:
        """Return the bound for values (n,) of positions with ``dim`` numbers."""
        from scipy.special import chdtri

        least, wide = float(values.min()), 2.0 * dim + 10.0
        narrow = cls(least=least, typical=0.5 * float(chdtri(dim, 0.001)))
        if narrow.trust(values).sum() >= 2.0 * dim:
            return narrow
        return cls(least=least, typical=wide)

    def lower(self, values: FloatArray) -> TailBound:
        """Return the bound once the least of more values (n,) is known."""
        least = float(np.min(values, initial=self.least))
        return TailBound(least=least, typical=self.typical)

    def trust(self, values: FloatArray) -> FloatArray:
        """Return what rows of these values count, shape (n,)."""
        excess = values - self.least
        # A lower power than the fourth lets a far row, whose pull grows as excess^3, win.
        return np.asarray((self.typical / np.maximum(excess, self.typical)) ** 4)


@attrs.frozen(kw_only=True, eq=False)
class TrainingRows:
    """Distinct points with finite values, and how much each counts.

    Their order does not depend on when they were seen. Derivatives that are not known are NaN, and
    outputs None where U itself is learnt. The ``trust (n,)`` in a row is 1, or less in the far
    tail, and ``copies (n,)`` says how often it was seen; a squared error counts ``trust * copies``
    times.
    """

    positions: FloatArray
    values: FloatArray
    gradients: FloatArray
    outputs: FloatArray | None
    jacobians: FloatArray | None
    trust: FloatArray
    copies: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def take(self, chosen: BoolArray) -> TrainingRows:
        """Return the rows chosen by a mask, shape (n,)."""
        arrays = attrs.asdict(self)
        known = {name: array[chosen] for name, array in arrays.items() if array is not None}
        return attrs.evolve(self, **known)

    def less(self, known: Potential) -> TrainingRows:
        """Return the rows of what is left of U over a potential that is known."""
        values, gradients = with_gradient(known).value_and_gradient(self.positions)
        return attrs.evolve(self, values=self.values - values, gradients=self.gradients - gradients)

    @property
    def evaluations(self) -> Evaluations:
        """Positions, values and gradients."""
        return Evaluations(positions=self.positions, values=self.values, gradients=self.gradients)

    @property
    def weights(self) -> FloatArray:
        """Weight of each squared error, shape (n,)."""
        return self.trust * self.copies

    @property
    def targets(self) -> FloatArray:
        """What is learnt: values, shape (n, 1), or outputs, shape (n, m)."""
        return self.values[:, None] if self.outputs is None else self.outputs

    @property
    def slopes(self) -> FloatArray:
        """Derivatives of the targets, shape (n, m, dim)."""
        if self.outputs is None:
            return self.gradients[:, None, :]
        if self.jacobians is None:
            return np.full((*self.outputs.shape, self.positions.shape[1]), np.nan)
        return self.jacobians

    @property
    def with_gradient(self) -> BoolArray:
        """Which rows have a gradient of U, shape (n,)."""
        return np.asarray(np.isfinite(self.gradients).all(axis=1))

    @property
    def with_slopes(self) -> BoolArray:
        """Which rows have derivatives of the targets, shape (n,)."""
        return np.asarray(np.isfinite(self.slopes).all(axis=(1, 2)))

    @classmethod
    def of(
        cls,
        observed: Evaluations,
        tail: Tail,
        of_outputs: bool = False,
        bound: TailBound | None = None,
    ) -> TrainingRows:
        """Sort out what was observed.

        Rows with a value that is not finite are dropped. Exact duplicates become one row that
        counts as many times: the choice of the ridge must not take copies for independent
        confirmation. With ``tail="down-weighted"`` a row counts 1 where U exceeds the least value
        by no more than c, and (c / excess)^4 beyond; so the steep start of a burn-in does not spoil
        the fit where the chains will be. The excess of a normal posterior is half a chi-square
        number of dim degrees of freedom; c is its quantile 0.999 where there are rows enough
        within, else 2 dim + 10: the narrower bound takes a fifth to two thirds off the gradient's
        error in 25 to 61 dimensions. A ``bound`` that earlier rows have set may be given.
        """
        finite, dim = are_finite(observed), observed.positions.shape[1]
        if of_outputs:
            assert observed.outputs is not None
            finite &= np.isfinite(observed.outputs).all(axis=1)
        trust = finite.astype(np.float64)
        if tail != "full" and finite.any():
            values = observed.values[finite]
            trust[finite] = (bound or TailBound.of(values, dim)).trust(values)
        # what counts for nothing might overflow
        used = np.flatnonzero(trust > 1e-12)
        rows, trust = observed.take(used), trust[used]
        groups = Groups.of(np.column_stack([rows.positions, rows.values]), rows.weights)
        gradients, jacobians = (
            None if array is None else groups.first_known(array)
            for array in (rows.gradients, rows.jacobians)
        )
        chosen = groups.first
        outputs = rows.outputs[chosen] if of_outputs and rows.outputs is not None else None
        return cls(
            positions=rows.positions[chosen],
            values=rows.values[chosen],
            gradients=np.full((len(chosen), dim), np.nan) if gradients is None else gradients,
            outputs=outputs,
            jacobians=jacobians if of_outputs else None,
            trust=trust[chosen],
            copies=groups.copies,
        )


def output_scales(
    energy: Energy, outputs: FloatArray, positions: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the error of each output (m,) that changes U by about one nat: its unit.

    That is 1 over the root of the mean square of dU/df_m, for normal errors of measurement about
    their standard deviation, and very large where U does not depend on an output. One ridge does
    for all outputs in these units: on a smooth map of 60 outputs, where ten are rough but
    hardly enter U, Var(V - U) is 1.3e-4 so, and 2.2e-3 in units of their standard deviations.
    """
    with np.errstate(all="ignore"):
        slopes = energy.value_and_gradients(outputs, positions)[1]
        known = np.isfinite(slopes).all(axis=1) & np.isfinite(outputs).all(axis=1) & (weights > 0)
        if not known.any():
            return np.ones(outputs.shape[1])
        shares = weights[known] / weights[known].sum()
        centred = outputs[known] - outputs[known][0]  # exactly zero where an output is constant
        centred -= shares @ centred
        # so many standard deviations where U does not depend on an output
        scales = 1e6 * _root_mean_square(centred, shares)
        by_slopes = 1.0 / _root_mean_square(slopes[known], shares)
    scales = np.where(by_slopes < np.inf, by_slopes, scales)
    return np.where((scales > 0) & (scales < np.inf), scales, 1.0)


def _root_mean_square(columns: FloatArray, shares: FloatArray) -> FloatArray:
    # relative to the largest entry, as squares of what ran away overflow
    largest = np.abs(columns).max(axis=0)
    relative = columns / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(shares @ np.square(relative)))
