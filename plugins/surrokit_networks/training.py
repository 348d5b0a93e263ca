"""How a network is trained: trend and weights by least squares, from nodes and training rows.

A potential is the map with one output. The outputs of a forward map have one factorisation
(Algorithm 2), and each is fitted in units of the error that changes U by about one nat, so that one
ridge does for all. Trends of outputs need not be convex, so they are left as they come out.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import one_of, positive, up_to_half
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.potentials import Energy
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.training import Tail
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.border import Border
from surrokit_networks.least_squares import (
    COST,
    Basis,
    Degree,
    Equations,
    Solution,
    n_coefficients,
    solve,
)
from surrokit_networks.network import Network, Polynomial
from surrokit_networks.nodes import Nodes
from surrokit_networks.potentials import FittedEmulator, FittedNetwork
from surrokit_networks.training_rows import TrainingRows, output_scales

Trend: TypeAlias = Literal["auto", "constant", "linear", "quadratic"]
"""What lies under a network; ``auto`` chooses by how many equations there are."""

Level: TypeAlias = Literal["trained", "minimum"]
"""Where the output bias comes from: least squares, or the least training value."""

TrainOn: TypeAlias = Literal["auto", "values"]
"""What is fitted; ``auto``: values, and gradients where there are any."""

Learns: TypeAlias = Literal["auto", "potential", "outputs"]
"""What is learnt of a forward potential: U itself, or the outputs of its map."""

Updates: TypeAlias = Literal["auto", "refit", "greville"]
"""``refit``: everything is kept and fitted anew; ``greville``: row by row (Proposition 1);
``auto``: the former as long as the schedule deploys once or points are few, then the latter."""


def _check_ridge(_: object, __: object, value: float | None) -> None:
    if value is not None and not 0.0 <= value < np.inf:
        raise ConfigurationError(
            f"ridge must be a finite number that is not negative, or None, got {value!r}; None "
            "chooses it from the data, 0 is the Moore-Penrose inverse"
        )


@attrs.frozen(kw_only=True, eq=False)
class Frame:
    """Coordinates, columns and all else that stays as it is while weights change.

    The ``origin (m,)`` is taken off the targets, in units of ``scales (m,)``; a quadratic with this
    ``matrix (dim, dim)`` is taken off a potential besides. Nodes are used within the ``border``.
    """

    whitening: Whitening
    basis: Basis
    origin: FloatArray
    scales: FloatArray
    ridge: float = 0.0
    matrix: FloatArray | None = None
    border: Border | None = None

    def equations(self, rows: TrainingRows, training: Training) -> Equations:
        """Return what rows ask of a network, in these units, the known quadratic included."""
        dim, known = rows.positions.shape[1], rows.with_slopes & training.uses_gradients
        slopes = rows.slopes @ self.whitening.factor / self.scales[:, None]
        slopes[~known] = 0.0
        return Equations(
            whitened=self.whitening.apply(rows.positions),
            targets=(rows.targets - self.origin) / self.scales,
            gradients=slopes,
            value_weights=rows.weights,
            gradient_weights=rows.weights * known,
            count=float(rows.trust.sum() + dim * rows.trust[known].sum()),
        )

    def less(self, equations: Equations) -> Equations:
        """Return equations for what is left over the quadratic that is known."""
        return equations if self.matrix is None else equations.less_quadratic(self.matrix)

    def with_quadratic(self, coefficients: FloatArray) -> Frame:
        """Return the frame in which a fitted quadratic is known, and only its slope is fitted.

        The fit stays the best one: with the matrix at its best value, the rest is what was fitted.
        """
        _, _, matrices = self.basis.polynomial(coefficients)
        if matrices is None or len(self.origin) > 1:
            return self
        matrix = matrices[0] if self.matrix is None else self.matrix + matrices[0]
        return attrs.evolve(self, basis=attrs.evolve(self.basis, degree=1), matrix=matrix)

    def network(self, coefficients: FloatArray) -> Network:
        """Return the map with the coefficients of a solution, shape (k, m)."""
        level, slope, matrices = self.basis.polynomial(coefficients * self.scales)
        if self.matrix is not None:
            matrices = self.matrix[None] if matrices is None else matrices + self.matrix
        return Network(
            whitening=self.whitening,
            trend=Polynomial(constant=self.origin + level, linear=slope, matrices=matrices),
            nodes=self.basis.nodes,
            weights=coefficients[self.basis.n_free :] * self.scales,
        )


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
        ``"linear"``, ``"constant"``. ``"auto"``: quadratic where the equations support it, else
        that of the normal density that the whitening stands for where the points are enough for
        it, else linear.
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
        default="auto", validator=one_of("auto", "constant", "linear", "quadratic")
    )
    train_on: TrainOn = attrs.field(default="auto", validator=one_of("auto", "values"))
    ridge: float | None = attrs.field(default=None, validator=_check_ridge)
    least_curvature: float = attrs.field(default=0.1, validator=positive)
    whiten: bool = True
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))
    hold_out: float = attrs.field(default=0.1, validator=up_to_half)
    learns: Learns = attrs.field(default="auto", validator=one_of("auto", "potential", "outputs"))
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

    def whitening(self, rows: TrainingRows) -> Whitening:
        """Return the whitening of training rows: by gradients, if they are used and there."""
        dim = rows.positions.shape[1]
        if not self.whiten:
            return Whitening.identity(dim)
        known = rows.with_gradient
        if self.uses_gradients and informs_more(known, dim):
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
        energy: Energy | None = None,
        expected: FloatArray | None = None,
    ) -> tuple[Frame, FittedNetwork | FittedEmulator]:
        """Return the network of U, or the emulator, that fits the rows best, and its frame.

        A twin that is not shown the rows ``held (n,)`` is judged there. The ``energy`` is that of a
        forward map whose outputs are learnt. The matrix of a quadratic trend of U is ``expected
        (dim, dim)``, in whitened coordinates, so far as the equations leave it open; None for the
        identity, that of a normal density.
        """
        frame, equations = self._frame(nodes, whitening, rows, energy, expected)
        frame, solution, twin = self._solve_in(frame, equations, held, energy is None)
        figures: dict[str, Any] = {
            "n_points": len(rows),
            "ridge": solution.ridge,
            "degrees": solution.degrees,
            "gcv_error": solution.error,
        }

        def fitted(coefficients: FloatArray) -> FittedNetwork | FittedEmulator:
            network = frame.network(coefficients)
            if energy is None:
                return FittedNetwork(network=network, **figures)
            network, mix = network.combine(rows.positions, frame.scales)
            return FittedEmulator(network=network, energy=energy, mix=mix, **figures)

        found = fitted(solution.coefficients)
        if twin is not None and held is not None:
            shown = rows.take(held).evaluations
            quality = fit_quality(fitted(twin), shown, whitening.factor)
            found = attrs.evolve(found, quality=quality)
        # A quadratic is left as it came out, lest it lose its convexity to later rows.
        return frame.with_quadratic(solution.coefficients), found

    def _frame(
        self,
        nodes: Nodes,
        whitening: Whitening,
        rows: TrainingRows,
        energy: Energy | None,
        expected: FloatArray | None,
    ) -> tuple[Frame, Equations]:
        """Return units and columns, and what the rows ask for in them."""
        if energy is None:
            origin = np.atleast_1d(np.average(rows.values, weights=rows.weights))
            if self.level == "minimum":
                origin = rows.values.min(keepdims=True)
            scales = np.ones(1)
        else:
            assert rows.outputs is not None
            origin = rows.weights @ rows.outputs / rows.weights.sum()
            scales = output_scales(energy, rows.outputs, rows.positions, rows.weights)
        level = self.level == "trained" or energy is not None
        frame = Frame(
            whitening=whitening,
            basis=Basis(nodes=nodes, degree=0, level=level),
            origin=origin,
            scales=scales,
        )
        equations = frame.equations(rows, self)
        degree, matrix = self._degree(equations), None
        if energy is None:
            degree, matrix = self._split_trend(equations, degree, expected)
        frame = attrs.evolve(frame, basis=attrs.evolve(frame.basis, degree=degree), matrix=matrix)
        return frame, equations

    def _solve_in(
        self, frame: Frame, equations: Equations, held: BoolArray | None, bowl: bool
    ) -> tuple[Frame, Solution, FloatArray | None]:
        """Return the frame with its ridge, the solution in it, and the twin's coefficients.

        A quadratic that is to be a ``bowl`` keeps its least curvature.
        """
        solution, twin = self.solve(frame.basis, frame.less(equations), held)
        if bowl and frame.basis.degree == 2:
            _, _, matrices = frame.basis.polynomial(solution.coefficients)
            assert matrices is not None
            matrix = matrices[0]
            raised = with_least_curvature(matrix, self.least_curvature)
            if raised is not matrix:
                # Network, slope and level make up for what the trend was not allowed.
                linear = attrs.evolve(frame.basis, degree=1)
                frame = attrs.evolve(frame, basis=linear, matrix=raised)
                return self._solve_in(frame, equations, held, bowl)
        return attrs.evolve(frame, ridge=solution.ridge), solution, twin

    def solve(
        self, basis: Basis, equations: Equations, held: BoolArray | None
    ) -> tuple[Solution, FloatArray | None]:
        """Return the coefficients of a basis, and those of the twin."""
        if equations.n_rows <= basis.n_free:
            raise SurrogateFitError(
                f"a trend of degree {basis.degree} in {basis.nodes.dim} dimensions has "
                f"{basis.n_free} coefficients, but there are only {equations.n_rows} equations; "
                "explore for longer, or use trend='auto'"
            )
        if held is not None and equations.take(~held).n_rows <= basis.n_free:
            held = None  # nothing would be left to judge a twin by
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                solution, twin = solve(basis, equations, self.ridge, held)
        except np.linalg.LinAlgError as error:
            raise SurrogateFitError(
                f"the least-squares problem of the network could not be solved ({error}); use "
                "whiten=True and ridge=None, or rescale the parameters"
            ) from error
        if not np.isfinite(solution.coefficients).all():
            raise SurrogateFitError(
                "the least-squares weights of the network are not finite; use whiten=True and "
                "ridge=None, or rescale the parameters"
            )
        return solution, twin

    def _degree(self, equations: Equations) -> Degree:
        if self.trend == "constant":
            return 0
        # a full quadratic wants so many equations for each coefficient
        needed = 2.5 * n_coefficients(equations.whitened.shape[1], 2)
        bent = self.trend == "quadratic" or (self.trend == "auto" and equations.count >= needed)
        return 2 if bent else 1

    def _split_trend(
        self, equations: Equations, degree: Degree, expected: FloatArray | None
    ) -> tuple[Degree, FloatArray | None]:
        """Return what is fitted of a trend of U, and its matrix so far as it is known."""
        if self.trend in ("constant", "linear"):
            return degree, None
        dim = equations.whitened.shape[1]
        matrix = np.eye(dim)
        if expected is not None:
            matrix = with_least_curvature(expected, self.least_curvature)
        known = equations.gradient_weights > 0
        if informs_more(known, dim):
            found = matrix_of_gradients(
                equations.whitened[known],
                equations.gradients[known, 0],
                equations.gradient_weights[known],
                matrix,
            )
            return 1, with_least_curvature(found, self.least_curvature)
        if degree == 2:
            return 2, None
        # Measured on logistic posteriors: with fewer points a slope alone does better than the
        # matrix of the covariance.
        return 1, matrix if len(equations) >= 8 * dim else None


def informs_more(with_gradient: BoolArray, dim: int) -> bool:
    """Return whether the rows with a gradient bring as many equations as there are values.

    Whitening and trend come from gradients alone, where these do. Two gradients among 150 values
    in five dimensions made the error of a quadratic ten times as large.
    """
    known = int(np.count_nonzero(with_gradient))
    return known > 1 and known * dim >= len(with_gradient)


def with_least_curvature(matrix: FloatArray, least: float) -> FloatArray:
    """Return a symmetric matrix with eigenvalues of at least ``least``; itself if it has them.

    A quadratic fitted to few points has directions of negative curvature: paths run off there.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    if eigenvalues[0] >= least:
        return matrix
    return np.asarray((vectors * np.maximum(eigenvalues, least)) @ vectors.T)


def matrix_of_gradients(
    z: FloatArray, gradients: FloatArray, weights: FloatArray, expected: FloatArray
) -> FloatArray:
    """Return the symmetric M, shape (dim, dim), for which gradients are nearly M z + constant.

    Minimises sum_n w_n |g_n - M z_n|^2 + kappa |M - E|_F^2 over symmetric M, positions and
    gradients centred. In the eigenbasis of sum_n w_n z_n z_n^T the problem separates entry by
    entry, so kappa is chosen by generalised cross-validation from one eigendecomposition, and the
    cost is O(n dim^2 + dim^3), where the dim^2 / 2 columns of a full quadratic would cost dim^6.
    Positions and gradients (n, dim) are whitened, with weights (n,), and ``expected`` is E.
    """
    total, dim = float(weights.sum()), z.shape[1]
    away = z - weights @ z / total
    left = gradients - weights @ gradients / total - away @ expected
    eigenvalues, vectors = np.linalg.eigh((away.T * weights) @ away)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    cross = vectors.T @ ((away.T * weights) @ left) @ vectors
    pull = cross + cross.T
    sums = eigenvalues[:, None] + eigenvalues
    square = float(weights @ np.einsum("nd,nd->n", left, left))
    count = dim * float(weights.sum() ** 2 / np.square(weights).sum())
    best, chosen = np.inf, np.zeros((dim, dim))
    for ridge in total * np.logspace(2.0, -4.0, 25):
        change = pull / (sums + 2.0 * ridge)
        residual = square - float(np.sum(change * pull)) + float(np.sum(change**2 * eigenvalues))
        held = sums / (sums + 2.0 * ridge)
        spare = count - COST * (0.5 * float(held.sum() + np.trace(held)) + dim)
        score = max(residual, 0.0) / spare**2 if spare > 0.0 else np.inf
        if score < best:
            best, chosen = score, change
    return np.asarray(expected + vectors @ chosen @ vectors.T)
