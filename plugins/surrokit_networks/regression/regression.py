"""From nodes and training rows to a fitted potential."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.settings import HIDDEN, one_of, optional_positive_integer, positive
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.nodes.nodes import Nodes
from surrokit_networks.regression.fitted import FittedNetwork
from surrokit_networks.regression.frame import Frame
from surrokit_networks.regression.polynomial import LEAST_CURVATURE, with_least_curvature
from surrokit_networks.regression.trained_hidden import train_on
from surrokit_networks.regression.training_rows import TrainingRows, tell_more
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.design import Solution
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.solving import ChooseRidge, Solved, Solver
from surrokit_networks.solving.trend import Degree, Trend, TrendFeatures, n_coefficients
from surrokit_networks.solving.trend_matrix import matrix_of_gradients

Level: TypeAlias = Literal["trained", "minimum"]
"""Where the output bias comes from: least squares, or the least training value."""

TrainOn: TypeAlias = Literal["auto", "values", "gradients", "values-and-gradients"]
"""What is fitted; ``auto``: values, and gradients where there are any."""

Hidden: TypeAlias = Literal["random", "trained"]
"""Whether hidden parameters stay as they were drawn, or are trained by gradient descent."""

_WORTH = 0.8
"""Nodes stay where they bring the estimated squared error below so much of that of the trend."""

_GOOD_ENOUGH = 1e-3
"""Var(V - U) of a trend, in nats squared, below which it needs no nodes: it costs a fiftieth of the
acceptance."""

_HIDDEN_ITERATIONS = 200
"""Iterations of gradient descent, at most."""

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
    hidden
        ``"random"``: nodes stay as they were drawn. ``"trained"``: their hidden parameters are
        trained by at most 200 iterations of L-BFGS, each of which costs as much as a whole fit.
    block_rows : int, optional
        Positions worked on at a time; None for as many as take a few megabytes.
    expected : ndarray of shape (dim, dim), optional
        Matrix of a quadratic trend so far as the equations do not tell it, in whitened coordinates;
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
    hidden: Hidden = attrs.field(default="random", validator=one_of("random", "trained"))
    block_rows: int | None = attrs.field(
        default=None, validator=optional_positive_integer, metadata=HIDDEN
    )
    expected: FloatArray | None = attrs.field(default=None, eq=False, repr=False, metadata=HIDDEN)
    least_curvature: float = attrs.field(default=LEAST_CURVATURE, validator=positive)

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
        origin = self._origin(rows)
        equations = self.equations(rows, whitening, origin)
        known, degree = self._split_trend(equations)
        solved, matrix = self._solve_with_trend(nodes, equations, known, degree, held)
        if nodes is not None and self.ridge is None and not keeps_idle:
            bare, bare_matrix = self._solve_with_trend(None, equations, known, degree, held)
            if not _worth(solved.solution.error, bare.solution.error, equations):
                solved, matrix = bare, bare_matrix
        frame = Frame(
            whitening=whitening,
            basis=solved.basis,
            matrix=matrix,
            origin=origin,
            ridge=solved.solution.ridge,
        )

        def assemble(solution: Solution) -> FittedNetwork:
            network = frame.network(solution, len(rows))
            if self.uses_values or self.level == "minimum":
                return network
            # Gradients alone leave the level open; values give it.
            left = rows.values - network.value(rows.positions)
            level = network.level + float(np.average(left, weights=rows.weights))
            return attrs.evolve(network, level=level)

        network = assemble(solved.solution)
        if solved.twin is not None and held is not None:
            away = rows.take(held).evaluations
            quality = fit_quality(assemble(solved.twin), away, whitening.factor)
            network = attrs.evolve(network, quality=quality)
        # A quadratic is left as it came out, lest it lose its convexity to later rows.
        return frame.with_quadratic(solved.solution.trend), network

    def solve(self, basis: Basis, equations: Equations, held: BoolArray | None) -> Solved:
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
        solver = Solver(
            ridge=self.ridge, choose_ridge=self.choose_ridge, block_rows=self.block_rows
        )
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found = solver.solve(basis, equations, held)
                if self.hidden == "trained" and basis.network is not None:
                    trained = self._train(basis, equations, found.solution.ridge)
                    found = solver.solve(trained, equations, held)
        except np.linalg.LinAlgError as error:
            raise SurrogateFitError(
                f"the least-squares problem of the network could not be solved ({error}); use "
                "whiten=True and ridge=None, or rescale the parameters"
            ) from error
        if not found.solution.finite:
            raise SurrogateFitError(
                "the least-squares weights of the network are not finite; use whiten=True and "
                "ridge=None, or rescale the parameters"
            )
        return found

    def _train(self, basis: Basis, equations: Equations, ridge: float) -> Basis:
        assert basis.network is not None
        network = train_on(
            basis.network, equations, basis.trend, ridge=ridge, max_iterations=_HIDDEN_ITERATIONS
        )
        return attrs.evolve(basis, network=network)

    def supports(self, equations: Equations) -> bool:
        """Return whether there are equations enough to fit a full quadratic."""
        needed = n_coefficients(equations.whitened.shape[1], 2)
        return equations.count >= _EQUATIONS_PER_COEFFICIENT * needed

    @property
    def uses_values(self) -> bool:
        """Whether errors of values count."""
        return self.train_on != "gradients"

    @property
    def uses_gradients(self) -> bool:
        """Whether errors of gradients count, where there are gradients."""
        return self.train_on != "values"

    def _origin(self, rows: TrainingRows) -> float:
        if self.level == "minimum":
            return float(rows.values.min())
        return float(np.average(rows.values, weights=rows.weights))

    def equations(self, rows: TrainingRows, whitening: Whitening, origin: float) -> Equations:
        """Return what rows ask of a network, less an origin of the values."""
        known = rows.with_gradient & self.uses_gradients
        gradients = None
        if known.any():
            gradients = (rows.gradients @ whitening.factor)[:, None, :]
            gradients[~known] = 0.0
        targets = (rows.values - origin)[:, None]
        equations = self.with_weights(rows, whitening, targets, gradients, known)
        return attrs.evolve(equations, trains_level=self.level == "trained" and self.uses_values)

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
        if tell_more(known, dim):
            assert equations.gradients is not None
            matrix = matrix_of_gradients(
                equations.whitened[known],
                equations.gradients[known, 0],
                equations.gradient_weights[known],
                self._expected(dim),
            )
            raised = with_least_curvature(matrix, self.least_curvature)
            return matrix if raised is None else raised, 1
        if self.trend == "quadratic" or self.supports(equations):
            return None, 2
        # Measured on logistic posteriors: with fewer points a slope alone does better.
        enough = len(equations) >= _POINTS_PER_DIMENSION * dim
        return (self._expected(dim) if enough else None), 1

    def _expected(self, dim: int) -> FloatArray:
        if self.expected is None:
            return np.eye(dim)
        raised = with_least_curvature(self.expected, self.least_curvature)
        return self.expected if raised is None else raised

    def _solve_with_trend(
        self,
        nodes: Nodes | None,
        equations: Equations,
        matrix: FloatArray | None,
        degree: Degree,
        held: BoolArray | None,
    ) -> tuple[Solved, FloatArray | None]:
        """Return the solution on top of a trend's matrix, and that matrix."""
        dim = equations.whitened.shape[1]
        if matrix is not None:
            equations = equations.less_quadratic(matrix)
        trend = TrendFeatures(dim=dim, degree=degree)
        solved = self.solve(Basis(trend=trend, network=nodes), equations, held)
        if degree < 2:
            return solved, matrix
        found = trend.slope_and_matrix(solved.solution.trend)[1][0]
        raised = with_least_curvature(found, self.least_curvature)
        if raised is None:
            return solved, None
        # The network, the slope and the level make up for what the trend was not allowed.
        return self._solve_with_trend(nodes, equations, raised, 1, held)


def _worth(error: float, of_trend: float, equations: Equations) -> bool:
    """Return whether nodes lower the squared error of an equation by enough, and it matters."""
    return error < _WORTH * of_trend and equations.components * of_trend > _GOOD_ENOUGH
