"""From nodes and training rows to a fitted potential: trend and weights by least squares.

A potential is the map with one output. Outputs of a forward map take the same way
(:mod:`surrokit_networks.outputs`), in units of their own.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import HIDDEN, one_of, positive
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.border import Border
from surrokit_networks.equations import Basis, Equations
from surrokit_networks.least_squares import ChooseRidge, Solution, Solver
from surrokit_networks.network import Mixing, Network
from surrokit_networks.nodes import Nodes
from surrokit_networks.potentials import FittedNetwork
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import (
    LEAST_CURVATURE,
    Degree,
    Polynomial,
    Trend,
    TrendColumns,
    matrix_of_gradients,
    n_coefficients,
    tells_more,
    with_least_curvature,
)

Level: TypeAlias = Literal["trained", "minimum"]
"""Where the output bias comes from: least squares, or the least training value."""

TrainOn: TypeAlias = Literal["auto", "values", "gradients", "values-and-gradients"]
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


def _check_ridge(_: object, __: object, value: float | None) -> None:
    if value is not None and not 0.0 <= value < np.inf:
        raise ConfigurationError(
            f"ridge must be a finite number that is not negative, or None, got {value!r}; None "
            "chooses it from the data, 0 is the Moore-Penrose inverse"
        )


@attrs.frozen(kw_only=True, eq=False)
class Frame:
    """Coordinates, columns and all else that stays as it is while weights change.

    Parameters
    ----------
    whitening
        From raw to whitened positions.
    basis
        Trend and nodes.
    origin : ndarray of shape (m,)
        What is taken off the targets before anything is fitted.
    ridge
        lambda in lambda |v|^2.
    matrix : ndarray of shape (dim, dim) or None
        Of the quadratic that is taken off a potential besides.
    scales : ndarray of shape (m,) or None
        Unit of each target; None for one.
    border : Border or None
        Region in which nodes are used; None for everywhere.
    """

    whitening: Whitening
    basis: Basis
    origin: FloatArray
    ridge: float
    matrix: FloatArray | None = None
    scales: FloatArray | None = None
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

    def network(self, solution: Solution, directions: FloatArray | None = None) -> Network:
        """Return the map that a solution is.

        Parameters
        ----------
        solution
            Coefficients.
        directions : ndarray of shape (m, r), optional
            Combinations of the targets, of which the network is then made and all targets mixed.
        """
        trend, weights, level = solution.trend, solution.weights, solution.level
        scales = np.ones(len(self.origin)) if self.scales is None else self.scales
        mixing = None
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
    train_on
        What is fitted.
    gradient_weight
        omega, the weight of a gradient's squared error against a value's.
    ridge : float, optional
        lambda in lambda |v|^2, on the sum of squared errors; 0 for the Moore-Penrose inverse of
        Algorithm 2; None to choose it.
    choose_ridge
        ``"gcv"``: by generalised cross-validation; ``"held-out"``: by the error at points held
        out.
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
        default="auto", validator=one_of("auto", "values", "gradients", "values-and-gradients")
    )
    gradient_weight: float = attrs.field(default=1.0, validator=positive)
    ridge: float | None = attrs.field(default=None, validator=_check_ridge)
    choose_ridge: ChooseRidge = attrs.field(default="gcv", validator=one_of("gcv", "held-out"))
    expected: FloatArray | None = attrs.field(default=None, eq=False, repr=False, metadata=HIDDEN)
    least_curvature: float = attrs.field(default=LEAST_CURVATURE, validator=positive)

    @property
    def uses_values(self) -> bool:
        """Whether errors of values count."""
        return self.train_on != "gradients"

    @property
    def uses_gradients(self) -> bool:
        """Whether errors of gradients count, where there are gradients."""
        return self.train_on != "values"

    @property
    def trains_level(self) -> bool:
        """Whether the level of a potential is one of the coefficients that are solved for."""
        return self.level == "trained" and self.uses_values

    @property
    def level_is_open(self) -> bool:
        """Whether gradients alone leave the level of a potential open, and values give it."""
        return self.level == "trained" and not self.uses_values

    def fit(
        self,
        nodes: Nodes | None,
        whitening: Whitening,
        rows: TrainingRows,
        held: BoolArray | None = None,
    ) -> FittedNetwork:
        """Return the network of these nodes, on its trend, that fits the rows best.

        Where the ridge is left to the data, so are the nodes: unless they lower the error that
        generalised cross-validation estimates by a fifth, and that of the trend alone matters, the
        network is the trend alone. It is nearly as good then, and many times cheaper.

        Parameters
        ----------
        nodes
            None for a trend alone.
        whitening
            From raw to whitened positions.
        rows
            What to fit.
        held : ndarray of bool, shape (n,), optional
            Rows at which a twin that was not shown them is judged.

        Raises
        ------
        SurrogateFitError
            If the numbers cannot be handled.
        """
        return self.fit_frame(nodes, whitening, rows, held, keeps_idle=False)[1]

    def fit_frame(
        self,
        nodes: Nodes | None,
        whitening: Whitening,
        rows: TrainingRows,
        held: BoolArray | None = None,
        *,
        keeps_idle: bool = True,
    ) -> tuple[Frame, FittedNetwork]:
        """Return what :meth:`fit` does, and first the frame in which more rows can be fitted.

        Nodes that are not worth their time on these rows may be so on more, and stay if
        ``keeps_idle``.

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
        frame = Frame(
            whitening=whitening,
            basis=Basis(
                trend=TrendColumns(dim=rows.positions.shape[1], degree=degree), network=nodes
            ),
            matrix=known,
            origin=np.array([origin]),
            ridge=0.0,
        )
        fitted, solution, twin = self._solve_in(frame, equations, held)
        if nodes is not None and self.ridge is None and not keeps_idle:
            bare = attrs.evolve(frame, basis=attrs.evolve(frame.basis, network=None))
            alone = self._solve_in(bare, equations, held)
            if not _worth(solution.error, alone[1].error, equations):
                fitted, solution, twin = alone
        network = self._assemble(fitted, solution, rows)
        if twin is not None and held is not None:
            judged = self._assemble(fitted, twin, rows)
            quality = fit_quality(judged, rows.take(held).evaluations, whitening.factor)
            network = attrs.evolve(network, quality=quality)
        # A quadratic is left as it came out, lest it lose its convexity to later rows.
        return fitted.with_quadratic(solution.trend), network

    def _assemble(self, frame: Frame, solution: Solution, rows: TrainingRows) -> FittedNetwork:
        """Return the potential that a solution is, its level by values where it is open."""
        network = frame.network(solution)
        if self.level_is_open:
            left = rows.values - network.value(rows.positions)[:, 0]
            level = solution.level + np.average(left, weights=rows.weights)
            network = frame.network(attrs.evolve(solution, level=level))
        return FittedNetwork(
            network=network,
            n_points=len(rows),
            ridge=solution.ridge,
            degrees=solution.degrees,
            gcv_error=solution.error,
        )

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
        solver = Solver(ridge=self.ridge, choose_ridge=self.choose_ridge)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                solution, twin = solver.solve(basis, equations, held)
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

    def supports_quadratic(self, equations: Equations) -> bool:
        """Return whether there are equations enough to fit a full quadratic."""
        needed = n_coefficients(equations.whitened.shape[1], 2)
        return equations.count >= _EQUATIONS_PER_COEFFICIENT * needed

    def equations(self, rows: TrainingRows, whitening: Whitening, origin: float) -> Equations:
        """Return what rows ask of a network of U, less an origin of the values."""
        known = rows.with_gradient & self.uses_gradients
        gradients = None
        if known.any():
            gradients = (rows.gradients @ whitening.factor)[:, None, :]
            gradients[~known] = 0.0
        targets = (rows.values - origin)[:, None]
        equations = self.with_weights(rows, whitening, targets, gradients, known)
        return attrs.evolve(equations, trains_level=self.trains_level)

    def with_weights(
        self,
        rows: TrainingRows,
        whitening: Whitening,
        targets: FloatArray,
        gradients: FloatArray | None,
        known: BoolArray,
    ) -> Equations:
        """Return equations of targets (n, m), and gradients (n, m, dim) in the rows ``known``."""
        dim = rows.positions.shape[1]
        count = rows.trust.sum() * self.uses_values + dim * rows.trust[known].sum()
        return Equations(
            whitened=whitening.apply(rows.positions),
            targets=targets,
            gradients=gradients,
            value_weights=rows.weights * self.uses_values,
            gradient_weights=self.gradient_weight * rows.weights * known,
            count=float(count),
            trains_level=self.uses_values,
        )

    def _split_trend(self, equations: Equations) -> tuple[FloatArray | None, Degree]:
        """Return the trend's matrix so far as it is known beforehand, and what is fitted."""
        dim = equations.whitened.shape[1]
        known = equations.gradient_weights > 0
        if self.trend == "constant":
            return None, 0
        if self.trend == "laplace":
            return self._expected(dim), 1
        if self.trend == "linear":
            return None, 1
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
        if self.trend == "quadratic" or self.supports_quadratic(equations):
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
