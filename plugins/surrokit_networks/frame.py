"""What a fit stands in: coordinates, columns, units of outputs, and how sure its weights are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import attrs
import numpy as np

from surrokit.potentials import Energy
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_networks.border import Border
from surrokit_networks.equations import Basis, Equations, write_out
from surrokit_networks.least_squares import triangle_of
from surrokit_networks.network import Mixing, Network
from surrokit_networks.trend import Polynomial, TrendColumns

_MOST_DIRECTIONS = 0.5
"""Part of the outputs above which so many combinations are not worth the detour."""

_NO_EFFECT = 1e6
"""Standard deviations to which an output is scaled down if U does not depend on it."""


@attrs.frozen(kw_only=True, eq=False)
class Frame:
    """Coordinates, columns and all else that stays as it is while weights change.

    Parameters
    ----------
    origin : ndarray of shape (m,)
        What is taken off the targets before anything is fitted.
    ridge
        lambda in lambda |v|^2.
    matrix : ndarray of shape (dim, dim) or None
        Of the quadratic that is taken off a potential besides.
    scales : ndarray of shape (m,)
        Unit of each target.
    border
        Region in which nodes are used; None for everywhere.
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
        """Return the frame in which a fitted quadratic is known, and only its slope is fitted.

        The fit stays the best one: with the matrix at its best value, the rest is what was fitted.

        Parameters
        ----------
        trend : ndarray of shape (p, 1)
            Coefficients of the trend.
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

    def network(
        self,
        level: FloatArray,
        trend: FloatArray,
        weights: FloatArray,
        directions: FloatArray | None = None,
    ) -> Network:
        """Return the map with a solution's coefficients, of combinations (m, r) if given."""
        scales, mixing = self.scales, None
        if directions is None:
            trend, weights, level = trend * scales, weights * scales, self.origin + scales * level
        else:
            # Solutions are linear in the targets: these are those of the combinations.
            trend, weights, level = trend @ directions, weights @ directions, level @ directions
            mixing = Mixing(offset=self.origin, matrix=directions.T * scales)
        slope, matrices = self.basis.trend.slope_and_matrix(trend)
        if self.matrix is not None:
            matrices = matrices + self.matrix
        quadratic = self.matrix is not None or self.basis.trend.degree == 2
        return Network(
            whitening=self.whitening,
            trend=Polynomial(
                constant=level, linear=slope, matrices=matrices if quadratic else None
            ),
            nodes=self.basis.network,
            weights=weights,
            mixing=mixing,
        )


@attrs.frozen(kw_only=True, eq=False)
class LinearPosterior:
    """How unsure the weights of a network are, once its nodes are drawn.

    With normal errors of variance s^2 / w of an equation of weight w, and weights of nodes
    v ~ N(0, s^2 / lambda), the coefficients of level, trend and nodes have the covariance
    s^2 (H^T W H + lambda I_v)^-1 about the ridge solution; level and trend have flat priors. s^2 is
    the sum of squared residuals over the weight of all equations less the effective number of
    parameters.

    Parameters
    ----------
    root : ndarray of shape (k, k)
        R, with R^T R = H^T W H + lambda I_v.
    leads
        Whether the level is the first coefficient.
    noise
        s^2.
    """

    frame: Frame
    root: FloatArray
    leads: bool
    noise: float

    @classmethod
    def of(cls, frame: Frame, equations: Equations, degrees: float) -> Self:
        """Return the posterior of a fit with so many parameters, from equations less its origin."""
        left, basis, ridge = frame.less(equations), frame.basis, frame.ridge
        lead = int(left.trains_level)
        n_free, k = lead + basis.n_trend, lead + len(basis)

        def rows() -> Iterator[FloatArray]:
            bottom = np.zeros((basis.n_nodes, k + 1))
            bottom[:, n_free:k] = np.sqrt(ridge) * np.eye(basis.n_nodes)
            yield bottom
            yield np.zeros((k + 1, k + 1))  # never fewer rows than columns
            yield from write_out(basis, left)

        triangle = triangle_of(rows())
        root = triangle[:k, :k]
        solution = np.linalg.lstsq(root, triangle[:k, k], rcond=None)[0]
        squares = float(
            np.square(triangle[k:, k]).sum() - ridge * np.square(solution[n_free:]).sum()
        )
        spare = max(left.total_weight - degrees, 1.0)
        return cls(frame=frame, root=root, leads=bool(lead), noise=max(squares, 0.0) / spare)

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the variance of the network's value, shape (n,), at ``positions (n, dim)``."""
        features = self.frame.basis.features(self.frame.whitening.apply(positions))
        if self.leads:
            features = np.column_stack([np.ones(len(features)), features])
        # a root may be singular where the ridge is zero: then least squares takes its range
        turned = np.linalg.lstsq(self.root.T, features.T, rcond=None)[0]
        return np.asarray(self.noise * np.square(turned).sum(axis=0))


def leading_directions(equations: Equations, left_out: float) -> FloatArray | None:
    """Return orthonormal directions (m, r) among outputs to which others add next to nothing.

    What diffuses or is averaged varies in far fewer ways than it has outputs: of the 121 pressures
    of the elliptic problem all but 41 combinations add up to 1e-4 nats squared at a point.

    Parameters
    ----------
    equations
        Values and gradients of the outputs, each output in units of the error that changes U by
        about one nat.
    left_out
        Sum of squares, of values and gradients at a point, that may be left out.

    Returns
    -------
    ndarray of shape (m, r) or None
        None where more than half as many directions as outputs are needed.
    """
    rows = [np.sqrt(equations.value_weights)[:, None] * equations.targets]
    if equations.gradients is not None:
        roots = np.sqrt(equations.gradient_weights)
        slopes = roots[:, None, None] * equations.gradients.transpose(0, 2, 1)
        rows.append(slopes.reshape(-1, equations.n_outputs))
    table = np.concatenate(rows)
    points = max(float(equations.value_weights.sum()), float(equations.gradient_weights.sum()))
    if not np.isfinite(table).all():
        return None
    # Both matrices of products have the same spectrum: take the smaller one.
    few_rows = len(table) < equations.n_outputs
    squares, vectors = np.linalg.eigh(table @ table.T if few_rows else table.T @ table)
    n_left = int(np.count_nonzero(np.cumsum(np.maximum(squares, 0.0)) <= left_out * points))
    kept = vectors[:, n_left:]
    if not 0 < kept.shape[1] <= _MOST_DIRECTIONS * equations.n_outputs:
        return None
    return np.asarray(table.T @ kept / np.sqrt(squares[n_left:]) if few_rows else kept)


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
        scales = _NO_EFFECT * _root_mean_square(centred, shares)
        by_slopes = 1.0 / _root_mean_square(slopes[known], shares)
    scales = np.where(by_slopes < np.inf, by_slopes, scales)
    return np.where((scales > 0) & (scales < np.inf), scales, 1.0)


def _root_mean_square(columns: FloatArray, shares: FloatArray) -> FloatArray:
    # relative to the largest entry, as squares of what ran away overflow
    largest = np.abs(columns).max(axis=0)
    relative = columns / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(shares @ np.square(relative)))
