"""From nodes and training rows to an emulator of a forward map."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.forward import Energy
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.nodes.nodes import Nodes
from surrokit_networks.outputs.emulator import FittedEmulator
from surrokit_networks.outputs.mixing import OutputMixing, leading_directions
from surrokit_networks.outputs.network import OutputNetwork
from surrokit_networks.outputs.scales import output_scales
from surrokit_networks.regression.regression import Regression
from surrokit_networks.regression.training_rows import TrainingRows
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Solution
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.trend import Degree, TrendFeatures

_LEFT_OUT = 0.01
"""Part of the error of U to expect that combinations of outputs left out may add to it."""

_ROUGHLY = 1e-4
"""Squared error of U in nats that is nothing to a choice between nodes."""


@attrs.frozen(kw_only=True)
class OutputRegression:
    """How a network with many outputs is found: one factorisation for all (Algorithm 2).

    Each output is fitted in units of the error that changes U by about one nat, so that one ridge
    does for all. Trends of outputs need not be convex, so they are left as they come out; and the
    trend ``"laplace"``, which is one of U, counts as ``"linear"``.

    Parameters
    ----------
    regression
        Settings; Jacobians take the place of gradients. The level is always trained.
    energy
        The cheap exact part of the target.
    """

    regression: Regression
    energy: Energy

    def fit(
        self,
        nodes: Nodes | None,
        whitening: Whitening,
        rows: TrainingRows,
        held: BoolArray | None = None,
    ) -> FittedEmulator:
        """Return the emulator of these nodes, on its trend, that fits the rows best.

        Parameters
        ----------
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
        mean, scales = self._units(rows)
        equations = self._equations(rows, whitening, mean, scales)
        solved = self.regression.solve(self._basis(nodes, equations), equations, held)
        left_out = _LEFT_OUT * equations.components * solved.solution.error
        directions = leading_directions(equations, left_out)

        def assemble(solution: Solution) -> FittedEmulator:
            if not self.regression.uses_values:
                # Jacobians alone leave the constants open; outputs give them.
                left = equations.targets - solved.basis.features(equations.whitened) @ (
                    np.concatenate([solution.trend, solution.weights])
                )
                level = rows.weights @ left / rows.weights.sum()
                solution = attrs.evolve(solution, level=level)
            network = _network(solved.basis, whitening, solution, mean, scales, directions)
            return FittedEmulator(
                network=network,
                energy=self.energy,
                n_nodes=solved.basis.n_nodes,
                n_points=len(rows),
                ridge=solution.ridge,
                degrees=solution.degrees,
                gcv_error=solution.error,
            )

        emulator = assemble(solved.solution)
        if solved.twin is None or held is None:
            return emulator
        away = rows.take(held).evaluations
        quality = fit_quality(assemble(solved.twin), away, whitening.factor)
        return attrs.evolve(emulator, quality=quality)

    def expected_variance(
        self, nodes: Nodes | None, whitening: Whitening, rows: TrainingRows
    ) -> float:
        """Return about what Var(V - U) is to be expected at most, in nats squared.

        For choices between nodes: as :meth:`fit`, but of the leading combinations of outputs
        alone, and nothing is assembled.

        Raises
        ------
        SurrogateFitError
            If the numbers cannot be handled.
        """
        equations = self._equations(rows, whitening, *self._units(rows))
        directions = leading_directions(equations, _ROUGHLY)
        if directions is not None:
            equations = equations.along(directions)
        solved = self.regression.solve(self._basis(nodes, equations), equations, None)
        return equations.components * solved.solution.error

    def _units(self, rows: TrainingRows) -> tuple[FloatArray, FloatArray]:
        """Return the outputs' mean, and the unit of each, shapes (m,)."""
        assert rows.outputs is not None
        scales = output_scales(self.energy, rows.outputs, rows.positions, rows.weights)
        return rows.weights @ rows.outputs / rows.weights.sum(), scales

    def _basis(self, nodes: Nodes | None, equations: Equations) -> Basis:
        trend = TrendFeatures(dim=equations.whitened.shape[1], degree=self._degree(equations))
        return Basis(trend=trend, network=nodes)

    def _equations(
        self, rows: TrainingRows, whitening: Whitening, mean: FloatArray, scales: FloatArray
    ) -> Equations:
        assert rows.outputs is not None
        regression = self.regression
        known = rows.with_jacobian & regression.uses_gradients
        gradients = None
        if known.any():
            assert rows.jacobians is not None
            gradients = rows.jacobians @ whitening.factor / scales[:, None]
            gradients[~known] = 0.0
        return regression.with_weights(
            rows, whitening, (rows.outputs - mean) / scales, gradients, known
        )

    def _degree(self, equations: Equations) -> Degree:
        trend = self.regression.trend
        if trend == "constant":
            return 0
        if trend == "quadratic" or (trend == "auto" and self.regression.supports(equations)):
            return 2
        return 1


def _network(
    basis: Basis,
    whitening: Whitening,
    solution: Solution,
    mean: FloatArray,
    scales: FloatArray,
    directions: FloatArray | None,
) -> OutputNetwork:
    """Return the network with these coefficients, in combinations of outputs if there are any."""
    trend, weights, level = solution.trend, solution.weights, solution.level
    mixing = None
    if directions is None:
        trend, weights, level = trend * scales, weights * scales, mean + scales * level
    else:
        # solutions are linear in the targets, so that these are those of the combinations
        trend, weights, level = trend @ directions, weights @ directions, level @ directions
        mixing = OutputMixing(offset=mean, matrix=directions.T * scales)
    slope, matrices = basis.trend.slope_and_matrix(trend)
    return OutputNetwork.of(
        nodes=basis.network,
        whitening=whitening,
        weights=weights,
        constant=level,
        linear=slope,
        matrices=matrices if basis.trend.degree == 2 else None,
        mixing=mixing,
    )
