"""Networks of the outputs of a forward map: one factorisation for all (Algorithm 2).

Each output is fitted in units of the error that changes U by about one nat, so that one ridge does
for all. Where outputs vary in far fewer ways than there are outputs, the network has the leading
combinations. Trends of outputs need not be convex, so they are left as they come out; and the
trend ``"laplace"``, which is one of U, counts as ``"linear"``.
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.potentials import Energy
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.equations import Basis, Equations
from surrokit_networks.least_squares import Solution
from surrokit_networks.nodes import Nodes
from surrokit_networks.potentials import FittedEmulator
from surrokit_networks.regression import Frame, Regression
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import Degree, TrendColumns

_LEFT_OUT = 0.01
"""Part of the error of U to expect that combinations of outputs left out may add to it."""

_ROUGHLY = 1e-4
"""Squared error of U in nats that is nothing to a choice between nodes."""

_MOST_DIRECTIONS = 0.5
"""Part of the outputs above which so many combinations are not worth the detour."""

_NO_EFFECT = 1e6
"""Standard deviations to which an output is scaled down if U does not depend on it."""


def fit_outputs(
    regression: Regression,
    energy: Energy,
    nodes: Nodes | None,
    whitening: Whitening,
    rows: TrainingRows,
    held: BoolArray | None = None,
) -> FittedEmulator:
    """Return the emulator of these nodes, on its trend, that fits the rows best.

    Parameters
    ----------
    regression
        Settings; Jacobians take the place of gradients. The level is always trained.
    energy
        The cheap exact part of the target.
    nodes
        None for a trend alone.
    whitening
        From raw to whitened positions.
    rows
        What to fit, outputs in every row.
    held : ndarray of bool, shape (n,), optional
        Rows at which a twin that was not shown them is judged.

    Raises
    ------
    SurrogateFitError
        If the numbers cannot be handled.
    """
    frame, equations = _frame(regression, energy, nodes, whitening, rows)
    solution, twin = regression.solve(frame.basis, equations, held)
    directions = leading_directions(equations, _LEFT_OUT * equations.components * solution.error)

    def assemble(found: Solution) -> FittedEmulator:
        if not regression.uses_values:
            # Jacobians alone leave the constants open; outputs give them.
            coefficients = np.concatenate([found.trend, found.weights])
            left = equations.targets - frame.basis.features(equations.whitened) @ coefficients
            found = attrs.evolve(found, level=rows.weights @ left / rows.weights.sum())
        return FittedEmulator(
            network=frame.network(found, directions),
            energy=energy,
            n_points=len(rows),
            ridge=found.ridge,
            degrees=found.degrees,
            gcv_error=found.error,
        )

    emulator = assemble(solution)
    if twin is None or held is None:
        return emulator
    quality = fit_quality(assemble(twin), rows.take(held).evaluations, whitening.factor)
    return attrs.evolve(emulator, quality=quality)


def expected_variance(
    regression: Regression,
    energy: Energy,
    nodes: Nodes | None,
    whitening: Whitening,
    rows: TrainingRows,
) -> float:
    """Return about what Var(V - U) is to be expected at most, in nats squared.

    For choices between nodes: as :func:`fit_outputs`, which has the parameters, but of the leading
    combinations of outputs alone, and nothing is assembled.

    Raises
    ------
    SurrogateFitError
        If the numbers cannot be handled.
    """
    frame, equations = _frame(regression, energy, nodes, whitening, rows)
    directions = leading_directions(equations, _ROUGHLY)
    if directions is not None:
        equations = equations.along(directions)
    solution, _ = regression.solve(frame.basis, equations, None)
    return equations.components * solution.error


def _frame(
    regression: Regression,
    energy: Energy,
    nodes: Nodes | None,
    whitening: Whitening,
    rows: TrainingRows,
) -> tuple[Frame, Equations]:
    """Return units and columns, and the equations of the outputs in them."""
    assert rows.outputs is not None
    scales = output_scales(energy, rows.outputs, rows.positions, rows.weights)
    mean = rows.weights @ rows.outputs / rows.weights.sum()
    known = rows.with_jacobian & regression.uses_gradients
    gradients = None
    if known.any():
        assert rows.jacobians is not None
        gradients = rows.jacobians @ whitening.factor / scales[:, None]
        gradients[~known] = 0.0
    targets = (rows.outputs - mean) / scales
    equations = regression.with_weights(rows, whitening, targets, gradients, known)
    columns = TrendColumns(dim=rows.positions.shape[1], degree=_degree(regression, equations))
    basis = Basis(trend=columns, network=nodes)
    return Frame(whitening=whitening, basis=basis, origin=mean, ridge=0.0, scales=scales), equations


def _degree(regression: Regression, equations: Equations) -> Degree:
    trend = regression.trend
    if trend == "constant":
        return 0
    if trend == "quadratic" or (trend == "auto" and regression.supports_quadratic(equations)):
        return 2
    return 1


def leading_directions(equations: Equations, left_out: float) -> FloatArray | None:
    """Return orthonormal directions among outputs to which all others add next to nothing.

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
    """Return the error of each output that changes U by about one nat: its unit in a regression.

    To first order an error e_m of output m changes U by e_m dU/df_m, so the scale is 1 over the
    root of the mean square of dU/df_m. For normal errors of measurement that is about their
    standard deviation: residuals of posterior draws are as large as the noise.

    With a given ridge the units change nothing, as each output is fitted by itself. They matter
    where one ridge is chosen for all. Measured on a smooth map of 60 outputs, ten of which are
    rough but hardly enter U: Var(V - U) is 1.3e-4 with these scales or the noise's, 2.2e-3 in
    units of each output's standard deviation, 6e-3 in the user's units.

    Parameters
    ----------
    energy
        The cheap exact part of the target.
    outputs : ndarray of shape (n, m)
        Outputs at the training positions.
    positions : ndarray of shape (n, dim)
        Training positions.
    weights : ndarray of shape (n,)
        Trust in each row; not negative. Rows that are not finite do not count.

    Returns
    -------
    ndarray of shape (m,)
        Positive and finite; very large for an output that U does not depend on.
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
