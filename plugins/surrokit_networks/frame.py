"""What a fit stands in: coordinates, columns, and units of outputs."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.potentials import Energy
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_networks.border import Border
from surrokit_networks.equations import Basis, Equations
from surrokit_networks.network import Network, Polynomial
from surrokit_networks.trend import TrendColumns


@attrs.frozen(kw_only=True, eq=False)
class Frame:
    """Coordinates, columns and all else that stays as it is while weights change.

    The ``origin (m,)`` is taken off the targets, in units of ``scales (m,)``, before anything is
    fitted; a quadratic with this ``matrix (dim, dim)`` is taken off a potential besides. Nodes are
    used within the ``border``.
    """

    whitening: Whitening
    basis: Basis
    origin: FloatArray
    ridge: float = 0.0
    matrix: FloatArray | None = None
    border: Border | None = None
    scales: FloatArray = attrs.field()

    @scales.default
    def _ones(self) -> FloatArray:
        return np.ones(len(self.origin))

    def less(self, equations: Equations) -> Equations:
        """Return equations for what is left over the quadratic that is known."""
        return equations if self.matrix is None else equations.less_quadratic(self.matrix)

    def with_quadratic(self, trend: FloatArray) -> Frame:
        """Return the frame in which a fitted quadratic (p, 1) is known, and only its slope fitted.

        The fit stays the best one: with the matrix at its best value, the rest is what was fitted.
        """
        columns = self.basis.trend
        if columns.degree < 2:
            return self
        matrix = columns.slope_and_matrix(trend)[1][0]
        linear = TrendColumns(dim=columns.dim, degree=1)
        return attrs.evolve(
            self,
            basis=attrs.evolve(self.basis, trend=linear),
            matrix=matrix if self.matrix is None else self.matrix + matrix,
        )

    def network(self, level: FloatArray, trend: FloatArray, weights: FloatArray) -> Network:
        """Return the map with a solution's coefficients: (m,), (p, m) and (s, m)."""
        scales = self.scales
        slope, matrices = self.basis.trend.slope_and_matrix(trend * scales)
        if self.matrix is not None:
            matrices = matrices + self.matrix
        quadratic = self.matrix is not None or self.basis.trend.degree == 2
        return Network(
            whitening=self.whitening,
            trend=Polynomial(
                constant=self.origin + scales * level,
                linear=slope,
                matrices=matrices if quadratic else None,
            ),
            nodes=self.basis.nodes,
            weights=weights * scales,
        )


def output_scales(
    energy: Energy, outputs: FloatArray, positions: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the error of each output (m,) that changes U by about one nat: its unit.

    To first order an error e_m of output m changes U by e_m dU/df_m, so the scale is 1 over the
    root of the mean square of dU/df_m. For normal errors of measurement that is about their
    standard deviation: residuals of posterior draws are as large as the noise. It is very large
    where U does not depend on an output.

    With a given ridge the units change nothing, as each output is fitted by itself. They matter
    where one ridge is chosen for all. Measured on a smooth map of 60 outputs, ten of which are
    rough but hardly enter U: Var(V - U) is 1.3e-4 with these scales or the noise's, 2.2e-3 in
    units of each output's standard deviation, 6e-3 in the user's units.
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
