"""The frame that a fit fixes for those that follow it."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_networks.regression.border import Border
from surrokit_networks.regression.fitted import FittedNetwork
from surrokit_networks.regression.polynomial import Polynomial
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Solution
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.trend import TrendFeatures


@attrs.frozen(kw_only=True, eq=False)
class Frame:
    """Coordinates, columns and all else that stays as it is while weights change.

    Parameters
    ----------
    whitening
        From raw to whitened positions.
    basis
        Trend and nodes.
    matrix : ndarray of shape (dim, dim) or None
        Of the quadratic that is taken off before anything is fitted.
    origin
        What is taken off the values.
    ridge
        lambda in lambda |v|^2.
    border : Border or None
        How far nodes are believed; None for everywhere.
    """

    whitening: Whitening
    basis: Basis
    matrix: FloatArray | None
    origin: float
    ridge: float
    border: Border | None = None

    def less(self, equations: Equations) -> Equations:
        """Return equations for what is left over the quadratic that is known."""
        return equations if self.matrix is None else equations.less_quadratic(self.matrix)

    def with_quadratic(self, trend: FloatArray) -> Frame:
        """Return the frame in which a fitted quadratic is known, and only its slope is fitted.

        The fit stays the best one: with the matrix at its best value, the rest is what was fitted.

        Parameters
        ----------
        trend : ndarray of shape (p, 1)
            Coefficients of the trend.
        """
        if self.basis.trend.degree < 2:
            return self
        matrix = self.basis.trend.slope_and_matrix(trend)[1][0]
        linear = TrendFeatures(dim=self.basis.trend.dim, degree=1)
        return attrs.evolve(
            self,
            basis=attrs.evolve(self.basis, trend=linear),
            matrix=matrix if self.matrix is None else self.matrix + matrix,
        )

    def network(self, solution: Solution, n_points: int) -> FittedNetwork:
        """Return the potential that a solution is.

        Parameters
        ----------
        solution
            Coefficients.
        n_points
            Distinct points that it was fitted to.
        """
        nodes = self.basis.network
        weights = solution.weights[:, 0]
        return FittedNetwork(
            dim=len(self.whitening.mean),
            trend=self._trend(solution),
            nodes=None if nodes is None else nodes.with_weights(weights, self.whitening),
            level=self.origin + float(solution.level[0]),
            n_nodes=self.basis.n_nodes,
            n_points=n_points,
            ridge=solution.ridge,
            degrees=solution.degrees,
            gcv_error=solution.error,
            border=self.border,
        )

    def _trend(self, solution: Solution) -> Polynomial | None:
        if self.matrix is None and not len(self.basis.trend):
            return None
        slope, found = self.basis.trend.slope_and_matrix(solution.trend)
        whole = found[0] if self.matrix is None else found[0] + self.matrix
        return Polynomial.of_whitened(slope[:, 0], np.asarray(whole), self.whitening)
