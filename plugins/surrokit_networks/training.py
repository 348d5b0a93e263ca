"""How a network is trained: trend and weights by least squares, from nodes and training rows.

A potential is the map with one output. The outputs of a forward map have one factorisation
(Algorithm 2), and each is fitted in units of the error that changes U by about one nat, so that one
ridge does for all. Trends of outputs need not be convex, so they are left as they come out; and the
trend ``"laplace"``, which is one of U, counts as ``"linear"``.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypeVar

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import one_of, positive, up_to_half
from surrokit.errors import ConfigurationError, ShapeError, SurrogateFitError
from surrokit.potentials import Energy
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.training import Tail
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.equations import Basis, Equations
from surrokit_networks.frame import Frame, output_scales
from surrokit_networks.least_squares import Solution, solve_with_twin
from surrokit_networks.network import Network
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

Learns: TypeAlias = Literal["auto", "potential", "outputs"]
"""What is learnt of a forward potential: U itself, or the outputs of its map."""

Updates: TypeAlias = Literal["auto", "refit", "greville"]
"""``refit``: everything is kept and fitted anew; ``greville``: row by row (Proposition 1);
``auto``: the former as long as the schedule deploys once or points are few, then the latter."""

_Fit = TypeVar("_Fit", FittedNetwork, FittedEmulator)


def _check_ridge(_: object, __: object, value: float | None) -> None:
    if value is not None and not 0.0 <= value < np.inf:
        raise ConfigurationError(
            f"ridge must be a finite number that is not negative, or None, got {value!r}; None "
            "chooses it from the data, 0 is the Moore-Penrose inverse"
        )


def _array(value: npt.ArrayLike) -> FloatArray:
    array = np.array(value, dtype=np.float64)
    array.setflags(write=False)
    return array


@attrs.frozen(kw_only=True, eq=False)
class Laplace:
    """The normal density with the mode and the curvature of a target, in sampling coordinates.

    U is least at ``mode (dim,)``, and its second derivatives there are ``hessian (dim, dim)``.
    ShapeError is raised unless these shapes go together, and ConfigurationError unless the Hessian
    is positive definite.
    """

    mode: FloatArray = attrs.field(converter=_array)
    hessian: FloatArray = attrs.field(converter=_array)
    whitening: Whitening = attrs.field(init=False, repr=False)

    @whitening.default
    def _whitening_of_both(self) -> Whitening:
        dim = len(self.mode) if self.mode.ndim == 1 else -1
        if self.hessian.shape != (dim, dim):
            raise ShapeError(
                "mode and hessian must have shapes (dim,) and (dim, dim), got "
                f"{self.mode.shape} and {self.hessian.shape}"
            )
        try:
            turned = np.linalg.cholesky(self.hessian[::-1, ::-1])
        except np.linalg.LinAlgError as error:
            raise ConfigurationError(
                f"hessian must be positive definite, but has no Cholesky factor ({error}); give "
                "the Hessian at a mode"
            ) from error
        # H = U U^T with U upper triangular, the factor of H turned round; L = U^-T then is lower
        # triangular, and L L^T = H^-1.
        inverse = np.asarray(turned[::-1, ::-1].T, dtype=np.float64)
        factor = np.asarray(np.linalg.solve(inverse, np.eye(dim)), dtype=np.float64)
        return Whitening(mean=self.mode, factor=factor, inverse=inverse)


@attrs.frozen(kw_only=True)
class Training:
    """How a network is trained, whatever its nodes.

    Settings that make no sense raise ConfigurationError, and all that fits SurrogateFitError where
    the numbers cannot be handled. With a trained level and on values alone this is potential
    matching, equation (15): it minimises Var(V - U). Gradients enter in whitened coordinates, where
    one standard deviation of the target is one unit: a squared error of a gradient's component then
    bounds the variance of the error of the value that it causes, and the natural weight is one.

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
    ridge : float, optional
        lambda in lambda |v|^2, on the sum of squared errors; 0 for the Moore-Penrose inverse of
        Algorithm 2; None to choose it by generalised cross-validation.
    least_curvature
        Least eigenvalue left to the matrix of a trend, in whitened coordinates.
    whiten
        Whether nodes see whitened positions, or the positions themselves.
    tail
        What far-tail rows count.
    hold_out
        Share of the points at which a twin of the fit is judged, 0 for none; the fit itself uses
        all.
    learns
        Of a forward potential: ``"outputs"`` or ``"potential"``; ``"auto"``: outputs where the
        target has a forward map, unless it has gradients of U and no Jacobian.
    laplace : Laplace, optional
        Mode and Hessian, where they are known: they whiten in place of the training points, and
        the trend ``"auto"`` is ``"laplace"``. Of use where values alone are: on logistic posteriors
        in 8 and 20 dimensions Var(V - U) of 40 values fell from 0.1 and 7 to 0.0002 and 0.003.
    updates
        How a learner takes in what comes after its first fit. ``"refit"``: all rows are kept, and
        every fit is one to all of them. ``"greville"``: the first fit fixes whitening, nodes, the
        trend's matrix and the origin, and its rows and all later ones go into Proposition 1's
        updates, at O(s^2) each, and are not kept (see
        :class:`~surrokit_networks.learner.OnlineLearner`). ``"auto"``: refits as long as the
        schedule deploys once or points are few, then Proposition 1.
    """

    level: Level = attrs.field(default="trained", validator=one_of("trained", "minimum"))
    trend: Trend = attrs.field(
        default="auto", validator=one_of("auto", "constant", "linear", "quadratic", "laplace")
    )
    train_on: TrainOn = attrs.field(
        default="auto", validator=one_of("auto", "values", "values-and-gradients")
    )
    ridge: float | None = attrs.field(default=None, validator=_check_ridge)
    least_curvature: float = attrs.field(default=LEAST_CURVATURE, validator=positive)
    whiten: bool = True
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))
    hold_out: float = attrs.field(default=0.1, validator=up_to_half)
    learns: Learns = attrs.field(default="auto", validator=one_of("auto", "potential", "outputs"))
    laplace: Laplace | None = None
    updates: Updates = attrs.field(default="auto", validator=one_of("auto", "refit", "greville"))

    @classmethod
    def paper(cls, ridge: float, updates: Updates = "auto") -> Training:
        """Return the training of the paper's experiments, with this lambda and these updates.

        Raw coordinates, no trend, level by the least U, values alone, a fixed ridge, every row
        counted in full, nothing held out.
        """
        return cls(
            level="minimum",
            trend="constant",
            train_on="values",
            ridge=ridge,
            whiten=False,
            tail="full",
            hold_out=0.0,
            learns="potential",
            updates=updates,
        )

    @property
    def uses_gradients(self) -> bool:
        """Whether errors of gradients count, where there are gradients."""
        return self.train_on != "values"

    @property
    def trend_to_try(self) -> Trend:
        """The trend; where a mode and Hessian are known, theirs by default."""
        return "laplace" if self.trend == "auto" and self.laplace is not None else self.trend

    def whitening(self, rows: TrainingRows) -> Whitening:
        """Return the whitening of training rows: by gradients, if they are used and there."""
        dim = rows.positions.shape[1]
        if self.laplace is not None:
            return self.laplace.whitening
        if not self.whiten:
            return Whitening.identity(dim)
        known = rows.with_gradient
        if self.uses_gradients and tells_more(known, dim):
            return Whitening.of_gradients(
                rows.positions[known], rows.gradients[known], rows.weights[known]
            )
        return Whitening.of(rows.positions, rows.weights, drops_noise=True)

    def choose_held_out(self, rows: TrainingRows, rng: np.random.Generator) -> BoolArray | None:
        """Return which rows are held out, shape (n,); None if none are.

        They are drawn among those that are not down-weighted: the sampler will be where they are.
        """
        n_held = min(max(round(self.hold_out * len(rows)), 2), 200)
        eligible = np.flatnonzero(rows.trust == 1.0)
        if not self.hold_out or len(rows) < 10 or len(eligible) < 2 * n_held:
            return None
        held = np.zeros(len(rows), dtype=bool)
        held[rng.permutation(eligible)[:n_held]] = True
        return held

    def fit(
        self,
        nodes: Nodes,
        whitening: Whitening,
        rows: TrainingRows,
        held: BoolArray | None = None,
        *,
        expected: FloatArray | None = None,
        keeps_idle: bool = False,
    ) -> tuple[Frame, FittedNetwork]:
        """Return the network of U that fits the rows best, and the frame for more rows.

        Where the ridge is left to the data, so are the nodes: unless they lower the error that
        generalised cross-validation estimates by a fifth, and that of the trend alone matters, the
        network is the trend alone. It is nearly as good then, and many times cheaper.

        Parameters
        ----------
        held : ndarray of bool, shape (n,), optional
            Rows at which a twin that was not shown them is judged.
        expected : ndarray of shape (dim, dim), optional
            Matrix of a quadratic trend so far as the equations leave it open, in whitened
            coordinates; None for the identity, that of a normal density.
        keeps_idle
            Whether nodes stay that are not worth their time; they may be on more rows.
        """
        origin = np.average(rows.values, weights=rows.weights)
        if self.level == "minimum":
            origin = rows.values.min()
        equations = self.equations(rows, whitening, float(origin))
        known, degree = self._split_trend(equations, expected)
        trend = TrendColumns(dim=rows.positions.shape[1], degree=degree)
        frame = Frame(
            whitening=whitening,
            basis=Basis(trend=trend, nodes=nodes),
            matrix=known,
            origin=np.array([origin]),
        )
        fitted, solution, twin = self._solve_in(frame, equations, held)
        if len(nodes) and self.ridge is None and not keeps_idle:
            bare = attrs.evolve(frame, basis=Basis(trend=trend, nodes=Nodes.none(trend.dim)))
            alone = self._solve_in(bare, equations, held)
            of_trend = alone[1].error
            # nodes stay where the trend costs a fiftieth of the acceptance, and they mend it
            matters = equations.components * of_trend > 1e-3
            if not (solution.error < 0.8 * of_trend and matters):
                fitted, solution, twin = alone
        network = FittedNetwork(network=_map(fitted, solution), **_figures(solution, rows))
        if twin is not None:
            network = _judged(network, _map(fitted, twin), rows, held, whitening)
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
        """
        frame, equations = self._outputs_frame(energy, nodes, whitening, rows)
        solution, twin = self.solve(frame.basis, equations, held)
        network = _map(frame, solution)
        emulator = FittedEmulator(network=network, energy=energy, **_figures(solution, rows))
        if twin is None:
            return emulator
        return _judged(emulator, _map(frame, twin), rows, held, whitening)

    def expected_variance(
        self, energy: Energy, nodes: Nodes, whitening: Whitening, rows: TrainingRows
    ) -> float:
        """Return about what Var(V - U) is to be expected of outputs at most, in nats squared."""
        frame, equations = self._outputs_frame(energy, nodes, whitening, rows)
        return equations.components * self.solve(frame.basis, equations, None)[0].error

    def _outputs_frame(
        self, energy: Energy, nodes: Nodes, whitening: Whitening, rows: TrainingRows
    ) -> tuple[Frame, Equations]:
        """Return units and columns, and the equations of the outputs in them."""
        assert rows.outputs is not None
        scales = output_scales(energy, rows.outputs, rows.positions, rows.weights)
        mean = rows.weights @ rows.outputs / rows.weights.sum()
        gradients = None
        if rows.jacobians is not None:
            gradients = rows.jacobians @ whitening.factor / scales[:, None]
        known = rows.with_jacobian & self.uses_gradients
        targets = (rows.outputs - mean) / scales
        equations = _weighed(rows, whitening, targets, gradients, known)
        columns = TrendColumns(dim=rows.positions.shape[1], degree=self._degree(equations))
        basis = Basis(trend=columns, nodes=nodes)
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
            if raised is not matrix:
                # Network, slope and level make up for what the trend was not allowed.
                linear = attrs.evolve(frame.basis, trend=attrs.evolve(trend, degree=1))
                frame = attrs.evolve(frame, basis=linear, matrix=raised)
                return self._solve_in(frame, equations, held)
        return attrs.evolve(frame, ridge=solution.ridge), solution, twin

    def solve(
        self, basis: Basis, equations: Equations, held: BoolArray | None
    ) -> tuple[Solution, Solution | None]:
        """Return the coefficients of a basis, and those of the twin."""
        free, shown = len(basis.trend) + equations.trains_level, equations.n_rows
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
        found = (solution.trend, solution.weights, solution.level)
        if not all(np.isfinite(array).all() for array in found):
            raise SurrogateFitError(
                "the least-squares weights of the network are not finite; use whiten=True and "
                "ridge=None, or rescale the parameters"
            )
        return solution, twin

    def equations(self, rows: TrainingRows, whitening: Whitening, origin: float) -> Equations:
        """Return what rows ask of a network of U, less an origin of the values."""
        known = rows.with_gradient & self.uses_gradients
        gradients = (rows.gradients @ whitening.factor)[:, None, :]
        targets = (rows.values - origin)[:, None]
        equations = _weighed(rows, whitening, targets, gradients, known)
        return attrs.evolve(equations, trains_level=self.level == "trained")

    def _degree(self, equations: Equations) -> Degree:
        if self.trend == "constant":
            return 0
        # a full quadratic wants so many equations for each coefficient
        needed = 2.5 * n_coefficients(equations.whitened.shape[1], 2)
        bent = self.trend == "quadratic" or (self.trend == "auto" and equations.count >= needed)
        return 2 if bent else 1

    def _split_trend(
        self, equations: Equations, expected: FloatArray | None
    ) -> tuple[FloatArray | None, Degree]:
        """Return the trend's matrix so far as it is known beforehand, and what is fitted."""
        dim, degree = equations.whitened.shape[1], self._degree(equations)
        if self.trend in ("constant", "linear"):
            return None, degree
        matrix = np.eye(dim)
        if expected is not None:
            matrix = with_least_curvature(expected, self.least_curvature)
        if self.trend == "laplace":
            return matrix, 1
        known = equations.gradient_weights > 0
        if tells_more(known, dim):
            found = matrix_of_gradients(
                equations.whitened[known],
                equations.gradients[known, 0],
                equations.gradient_weights[known],
                matrix,
            )
            return with_least_curvature(found, self.least_curvature), 1
        if degree == 2:
            return None, 2
        # Measured on logistic posteriors: with fewer points a slope alone does better than the
        # matrix of the covariance.
        return (matrix if len(equations) >= 8 * dim else None), 1


def _weighed(
    rows: TrainingRows,
    whitening: Whitening,
    targets: FloatArray,
    gradients: FloatArray | None,
    known: BoolArray,
) -> Equations:
    """Return equations of targets (n, m), and gradients (n, m, dim) in the rows ``known``."""
    dim = rows.positions.shape[1]
    if gradients is None:
        gradients = np.zeros((*targets.shape, dim))
    gradients[~known] = 0.0
    return Equations(
        whitened=whitening.apply(rows.positions),
        targets=targets,
        gradients=gradients,
        value_weights=rows.weights,
        gradient_weights=rows.weights * known,
        count=float(rows.trust.sum() + dim * rows.trust[known].sum()),
        trains_level=True,
    )


def _map(frame: Frame, found: Solution) -> Network:
    return frame.network(found.level, found.trend, found.weights)


def _figures(found: Solution, rows: TrainingRows) -> dict[str, Any]:
    return {
        "n_points": len(rows),
        "ridge": found.ridge,
        "degrees": found.degrees,
        "gcv_error": found.error,
    }


def _judged(
    fit: _Fit, twin: Network, rows: TrainingRows, held: BoolArray | None, whitening: Whitening
) -> _Fit:
    """Return the fit with the error of its twin at the rows that were held out."""
    assert held is not None
    shown = rows.take(held).evaluations
    quality = fit_quality(attrs.evolve(fit, network=twin), shown, whitening.factor)
    return attrs.evolve(fit, quality=quality)
