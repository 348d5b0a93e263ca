"""From nodes and training rows to a fitted map: trend and weights by least squares.

A potential is the map with one output. The outputs of a forward map have one factorisation
(Algorithm 2), and each is fitted in units of the error that changes U by about one nat, so that one
ridge does for all. Where outputs vary in far fewer ways than there are outputs, the network has the
leading combinations. Trends of outputs need not be convex, so they are left as they come out; and
the trend ``"laplace"``, which is one of U, counts as ``"linear"``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

import attrs
import numpy as np

from surrokit.arguments import HIDDEN, one_of, positive
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.potentials import Energy
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.equations import Basis, Equations
from surrokit_networks.frame import Frame, leading_directions, output_scales
from surrokit_networks.least_squares import Solution, solve_with_twin
from surrokit_networks.nodes import Nodes
from surrokit_networks.potentials import FittedEmulator, FittedNetwork
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import (
    LEAST_CURVATURE,
    Degree,
    Trend,
    TrendColumns,
    matrix_of_gradients,
    n_coefficients,
    tells_more,
    with_least_curvature,
)

Level: TypeAlias = Literal["trained", "minimum"]
"""Where the output bias comes from: least squares, or the least training value."""

TrainOn: TypeAlias = Literal["auto", "values", "values-and-gradients"]
"""What is fitted; ``auto``: values, and gradients where there are any."""

_WORTH = 0.8
"""Nodes stay where they bring the estimated squared error below so much of that of the trend."""

_GOOD_ENOUGH = 1e-3
"""Var(V - U) of a trend, in nats squared, below which it needs no nodes: it costs a fiftieth of the
acceptance."""

_POINTS_PER_DIMENSION = 8
"""Points for each dimension from which on their covariance is taken for the target's."""

_EQUATIONS_PER_COEFFICIENT = 2.5
"""Equations for each coefficient from which on a full quadratic is fitted."""

_LEFT_OUT = 0.01
"""Part of the error of U to expect that combinations of outputs left out may add to it."""

_ROUGHLY = 1e-4
"""Squared error of U in nats that is nothing to a choice between nodes."""

_Fit = TypeVar("_Fit", FittedNetwork, FittedEmulator)


def _check_ridge(_: object, __: object, value: float | None) -> None:
    if value is not None and not 0.0 <= value < np.inf:
        raise ConfigurationError(
            f"ridge must be a finite number that is not negative, or None, got {value!r}; None "
            "chooses it from the data, 0 is the Moore-Penrose inverse"
        )


@attrs.frozen(kw_only=True)
class Regression:
    """How a trend and the weights of a network's nodes are found: least squares, equation (11).

    With a trained level and on values alone this is potential matching, equation (15): it
    minimises Var(V - U). Gradients enter in whitened coordinates, where one standard deviation of
    the target is one unit: a squared error of a gradient's component then bounds the variance of
    the error of the value that it causes, and the natural weight between both is one.

    Parameters
    ----------
    level
        ``"trained"``: the output bias b of equation (10) is fitted, free of the ridge.
        ``"minimum"``: it is the least training value, as in the authors' code.
    trend
        What lies under the network. ``"quadratic"``: a positive definite one, whose matrix comes
        from the gradients in closed form, or from the regression where only values are fitted.
        ``"laplace"``: that of the normal density that the whitening stands for. ``"linear"``,
        ``"constant"``. ``"auto"``: quadratic where the equations support it, else that of the
        whitening where the points are enough for it, else linear.
    ridge : float, optional
        lambda in lambda |v|^2, on the sum of squared errors; 0 for the Moore-Penrose inverse of
        Algorithm 2; None to choose it by generalised cross-validation.
    expected : ndarray of shape (dim, dim), optional
        Matrix of a quadratic trend so far as the equations leave it open, in whitened coordinates;
        None for the identity, that of a normal density.
    least_curvature
        Least eigenvalue left to that matrix.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    level: Level = attrs.field(default="trained", validator=one_of("trained", "minimum"))
    trend: Trend = attrs.field(
        default="constant", validator=one_of("auto", "constant", "linear", "quadratic", "laplace")
    )
    train_on: TrainOn = attrs.field(
        default="auto", validator=one_of("auto", "values", "values-and-gradients")
    )
    ridge: float | None = attrs.field(default=None, validator=_check_ridge)
    expected: FloatArray | None = attrs.field(default=None, eq=False, repr=False, metadata=HIDDEN)
    least_curvature: float = attrs.field(default=LEAST_CURVATURE, validator=positive)

    @property
    def uses_gradients(self) -> bool:
        """Whether errors of gradients count, where there are gradients."""
        return self.train_on != "values"

    @property
    def trains_level(self) -> bool:
        """Whether the level of a potential is one of the coefficients that are solved for."""
        return self.level == "trained"

    def fit(
        self,
        nodes: Nodes,
        whitening: Whitening,
        rows: TrainingRows,
        held: BoolArray | None = None,
        *,
        keeps_idle: bool = False,
    ) -> tuple[Frame, FittedNetwork]:
        """Return the network of U that fits the rows best, and the frame for more rows.

        Where the ridge is left to the data, so are the nodes: unless they lower the error that
        generalised cross-validation estimates by a fifth, and that of the trend alone matters, the
        network is the trend alone. It is nearly as good then, and many times cheaper. Such nodes
        may be worth their time on more rows, and stay if ``keeps_idle``.

        Parameters
        ----------
        nodes, whitening, rows
            Columns beside the trend, coordinates, and what to fit.
        held : ndarray of bool, shape (n,), optional
            Rows at which a twin that was not shown them is judged.

        Raises
        ------
        SurrogateFitError
            If the numbers cannot be handled.
        """
        origin = np.average(rows.values, weights=rows.weights)
        if self.level == "minimum":
            origin = rows.values.min()
        equations = self.equations(rows, whitening, float(origin))
        known, degree = self._split_trend(equations)
        trend = TrendColumns(dim=rows.positions.shape[1], degree=degree)
        frame = Frame(
            whitening=whitening,
            basis=Basis(trend=trend, network=nodes),
            matrix=known,
            origin=np.array([origin]),
        )
        fitted, solution, twin = self._solve_in(frame, equations, held)
        if len(nodes) and self.ridge is None and not keeps_idle:
            bare = attrs.evolve(frame, basis=Basis(trend=trend, network=Nodes.none(trend.dim)))
            alone = self._solve_in(bare, equations, held)
            if not _worth(solution.error, alone[1].error, equations):
                fitted, solution, twin = alone

        def assemble(found: Solution) -> FittedNetwork:
            network = fitted.network(found.level, found.trend, found.weights)
            return FittedNetwork(network=network, **_figures(found, rows))

        network = _judged(assemble, solution, twin, rows, held, whitening)
        # A quadratic is left as it came out, lest it lose its convexity to later rows.
        return fitted.with_quadratic(solution.trend), network

    def fit_outputs(
        self,
        energy: Energy,
        nodes: Nodes,
        whitening: Whitening,
        rows: TrainingRows,
        held: BoolArray | None = None,
    ) -> FittedEmulator:
        """Return the emulator of these nodes, on its trend, that fits the rows' outputs best.

        Jacobians take the place of gradients, and the levels are always trained.

        Raises
        ------
        SurrogateFitError
            If the numbers cannot be handled.
        """
        frame, equations = self._outputs_frame(energy, nodes, whitening, rows)
        solution, twin = self.solve(frame.basis, equations, held)
        left_out = _LEFT_OUT * equations.components * solution.error
        directions = leading_directions(equations, left_out)

        def assemble(found: Solution) -> FittedEmulator:
            network = frame.network(found.level, found.trend, found.weights, directions)
            return FittedEmulator(network=network, energy=energy, **_figures(found, rows))

        return _judged(assemble, solution, twin, rows, held, whitening)

    def expected_variance(
        self, energy: Energy, nodes: Nodes, whitening: Whitening, rows: TrainingRows
    ) -> float:
        """Return about what Var(V - U) is to be expected of outputs at most, in nats squared.

        For choices between nodes: by the leading combinations alone, and nothing is assembled.

        Raises
        ------
        SurrogateFitError
            If the numbers cannot be handled.
        """
        frame, equations = self._outputs_frame(energy, nodes, whitening, rows)
        directions = leading_directions(equations, _ROUGHLY)
        if directions is not None:
            equations = equations.along(directions)
        return equations.components * self.solve(frame.basis, equations, None)[0].error

    def _outputs_frame(
        self, energy: Energy, nodes: Nodes, whitening: Whitening, rows: TrainingRows
    ) -> tuple[Frame, Equations]:
        """Return units and columns, and the equations of the outputs in them."""
        assert rows.outputs is not None
        scales = output_scales(energy, rows.outputs, rows.positions, rows.weights)
        mean = rows.weights @ rows.outputs / rows.weights.sum()
        known, gradients = rows.with_jacobian & self.uses_gradients, None
        if known.any():
            assert rows.jacobians is not None
            gradients = rows.jacobians @ whitening.factor / scales[:, None]
            gradients[~known] = 0.0
        targets = (rows.outputs - mean) / scales
        equations = self._weigh(rows, whitening, targets, gradients, known)
        columns = TrendColumns(dim=rows.positions.shape[1], degree=self._degree(equations))
        basis = Basis(trend=columns, network=nodes)
        return Frame(whitening=whitening, basis=basis, origin=mean, scales=scales), equations

    def _solve_in(
        self, frame: Frame, equations: Equations, held: BoolArray | None
    ) -> tuple[Frame, Solution, Solution | None]:
        """Return the frame with its ridge, the solution in it, and the twin's."""
        solution, twin = self.solve(frame.basis, frame.less(equations), held)
        trend = frame.basis.trend
        if trend.degree == 2:
            matrix = trend.slope_and_matrix(solution.trend)[1][0]
            raised = with_least_curvature(matrix, self.least_curvature)
            if raised is not None:
                # Network, slope and level make up for what the trend was not allowed.
                linear = attrs.evolve(frame.basis, trend=attrs.evolve(trend, degree=1))
                frame = attrs.evolve(frame, basis=linear, matrix=raised)
                return self._solve_in(frame, equations, held)
        return attrs.evolve(frame, ridge=solution.ridge), solution, twin

    def solve(
        self, basis: Basis, equations: Equations, held: BoolArray | None
    ) -> tuple[Solution, Solution | None]:
        """Return the coefficients of a basis, and those of the twin.

        Raises
        ------
        SurrogateFitError
            If the numbers cannot be handled, or the trend has more coefficients than there are
            equations.
        """
        free, shown = basis.n_trend + equations.trains_level, equations.n_rows
        if shown <= free:
            raise SurrogateFitError(
                f"a trend of degree {basis.trend.degree} in {basis.trend.dim} dimensions has "
                f"{free} coefficients, but there are only {shown} equations; explore for longer, "
                "or use trend='auto'"
            )
        if held is not None and equations.take(~held).n_rows <= free:
            held = None  # nothing would be left to judge a twin by
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                solution, twin = solve_with_twin(basis, equations, self.ridge, held)
        except np.linalg.LinAlgError as error:
            raise SurrogateFitError(
                f"the least-squares problem of the network could not be solved ({error}); use "
                "whiten=True and ridge=None, or rescale the parameters"
            ) from error
        if not solution.finite:
            raise SurrogateFitError(
                "the least-squares weights of the network are not finite; use whiten=True and "
                "ridge=None, or rescale the parameters"
            )
        return solution, twin

    def equations(self, rows: TrainingRows, whitening: Whitening, origin: float) -> Equations:
        """Return what rows ask of a network of U, less an origin of the values."""
        known = rows.with_gradient & self.uses_gradients
        gradients = None
        if known.any():
            gradients = (rows.gradients @ whitening.factor)[:, None, :]
            gradients[~known] = 0.0
        targets = (rows.values - origin)[:, None]
        equations = self._weigh(rows, whitening, targets, gradients, known)
        return attrs.evolve(equations, trains_level=self.trains_level)

    def _weigh(
        self,
        rows: TrainingRows,
        whitening: Whitening,
        targets: FloatArray,
        gradients: FloatArray | None,
        known: BoolArray,
    ) -> Equations:
        """Return equations of targets (n, m), and gradients (n, m, dim) in the rows ``known``."""
        dim = rows.positions.shape[1]
        return Equations(
            whitened=whitening.apply(rows.positions),
            targets=targets,
            gradients=gradients,
            value_weights=rows.weights,
            gradient_weights=rows.weights * known,
            count=float(rows.trust.sum() + dim * rows.trust[known].sum()),
            trains_level=True,
        )

    def _degree(self, equations: Equations) -> Degree:
        if self.trend == "constant":
            return 0
        needed = _EQUATIONS_PER_COEFFICIENT * n_coefficients(equations.whitened.shape[1], 2)
        bent = self.trend == "quadratic" or (self.trend == "auto" and equations.count >= needed)
        return 2 if bent else 1

    def _split_trend(self, equations: Equations) -> tuple[FloatArray | None, Degree]:
        """Return the trend's matrix so far as it is known beforehand, and what is fitted."""
        dim, degree = equations.whitened.shape[1], self._degree(equations)
        known = equations.gradient_weights > 0
        if self.trend in ("constant", "linear"):
            return None, degree
        if self.trend == "laplace":
            return self._expected(dim), 1
        if tells_more(known, dim):
            assert equations.gradients is not None
            matrix = matrix_of_gradients(
                equations.whitened[known],
                equations.gradients[known, 0],
                equations.gradient_weights[known],
                self._expected(dim),
            )
            raised = with_least_curvature(matrix, self.least_curvature)
            return matrix if raised is None else raised, 1
        if degree == 2:
            return None, 2
        # Measured on logistic posteriors: with fewer points a slope alone does better.
        enough = len(equations) >= _POINTS_PER_DIMENSION * dim
        return (self._expected(dim) if enough else None), 1

    def _expected(self, dim: int) -> FloatArray:
        if self.expected is None:
            return np.eye(dim)
        raised = with_least_curvature(self.expected, self.least_curvature)
        return self.expected if raised is None else raised


def _worth(error: float, of_trend: float, equations: Equations) -> bool:
    """Return whether nodes lower the squared error of an equation by enough, and it matters."""
    return error < _WORTH * of_trend and equations.components * of_trend > _GOOD_ENOUGH


def _figures(found: Solution, rows: TrainingRows) -> dict[str, Any]:
    return {
        "n_points": len(rows),
        "ridge": found.ridge,
        "degrees": found.degrees,
        "gcv_error": found.error,
    }


def _judged(
    assemble: Callable[[Solution], _Fit],
    solution: Solution,
    twin: Solution | None,
    rows: TrainingRows,
    held: BoolArray | None,
    whitening: Whitening,
) -> _Fit:
    """Return the fit with the error of its twin at the rows that were held out."""
    if twin is None or held is None:
        return assemble(solution)
    quality = fit_quality(assemble(twin), rows.take(held).evaluations, whitening.factor)
    return attrs.evolve(assemble(solution), quality=quality)
