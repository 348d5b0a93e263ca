"""The elliptic inverse problem of section 5.2: the permeability of a medium from its pressure.

The pressure u solves div(c grad u) = 0 (equation (13) of the paper), with u = x1 at x2 = 0,
u = 1 - x1 at x2 = 1, and no flux through the other two sides. log c is a sum of Karhunen-Loeve
modes weighted by a position q. With K the stiffness matrix, which is linear in c, K_k its
derivative in q_k,

    d_k u = -K^-1 K_k u,      d_i d_k u = -K^-1 (K_ik u + K_i d_k u + K_k d_i u),

so that one factorisation serves for all derivatives: products with K_k and K_ik are integrals of
c times modes.

Elements are bilinear on a uniform mesh of squares over the unit square. A function on the nodes is
an array (..., cells + 1, cells + 1), by x1 and then x2. A field at the quadrature points, four in
each cell (2 x 2 Gauss), is an array (..., 4, cells^2). The boundaries x2 = 0 and x2 = 1 carry
Dirichlet conditions, so the nodes between are free: (cells + 1) x (cells - 1), with x2 running
fastest.
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations_with_replacement

import attrs
import numpy as np
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

from surrokit import capabilities as can
from surrokit.contracts.methods import CallKind
from surrokit.errors import NumericalError, ShapeError
from surrokit.model.model import Model, ModelPotential
from surrokit.settings import (
    Limits,
    is_whole,
    not_negative_integer,
    one_of,
    positive,
    positive_integer,
)
from surrokit.shapes import check_matrices, check_positions, check_vectors, check_weights
from surrokit.targets.curvature import gauss_newton_form_gradient, gauss_newton_trace_gradient
from surrokit.targets.gaussian import GaussianEnergy, GaussianPrior
from surrokit.targets.outputs import PotentialOfOutputs
from surrokit.types import Capabilities, FloatArray
from surrokit_problems.karhunen_loeve import SquareModes

_TWO_OR_MORE = Limits("a whole number of at least 2", lambda value: is_whole(value, 2))
_CORNERS = ((0, 0), (0, 1), (1, 0), (1, 1))
_PAIRS = tuple(combinations_with_replacement(range(4), 2))
_GAUSS = 0.5 + np.array([-0.5, 0.5]) / np.sqrt(3.0)


def _slopes_of_corners() -> FloatArray:
    """Return the slopes of the four bilinear functions on the unit cell, shape (2 * 4, 4).

    By direction and quadrature point, and by corner.
    """
    slopes = np.empty((2, 2, 2, 4))
    for number, (one, two) in enumerate(_CORNERS):
        along_one = _GAUSS if one else 1.0 - _GAUSS
        along_two = _GAUSS if two else 1.0 - _GAUSS
        slopes[0, :, :, number] = (2 * one - 1) * along_two[None, :]
        slopes[1, :, :, number] = (2 * two - 1) * along_one[:, None]
    return slopes.reshape(8, 4)


_SLOPES = _slopes_of_corners()
_BY_POINT = _SLOPES.reshape(2, 4, 4)
_STIFFNESS = 0.25 * np.array(
    [(_BY_POINT[:, :, a] * _BY_POINT[:, :, b]).sum(axis=0) for a, b in _PAIRS]
)


@attrs.frozen(kw_only=True, eq=False)
class EllipticPde(PotentialOfOutputs, ModelPotential):
    """U of the weights of Karhunen-Loeve modes of a log coefficient, in nats.

    The coefficient of equation (13) is c = exp(sum_k q_k sqrt(lambda_k) v_k), with covariance
    exp(-|x - y|^2 / (2 length^2)) of log c where q is standard normal. The prior is
    q_k ~ N(0, prior_sd^2), as the paper has it. Data are pressures on a uniform grid that reaches
    to the boundaries, whose rows at x2 = 0 and x2 = 1 the boundary conditions fix. They come from
    ``truth`` on the same mesh, with normal errors; ``truth`` is drawn from the prior.

    Outputs of the forward map go by x1, and then x2. Methods raise
    :class:`~surrokit.errors.ShapeError` unless positions are rows of ``dim`` numbers and factors
    go with them, and :class:`~surrokit.errors.EvaluationError` at positions, far outside the
    prior, where the linear system is not positive definite to rounding.

    Parameters
    ----------
    mesh
        Squares along either side.
    modes
        Parameters.
    observations
        Places along either side; the data are their square.
    noise_sd
        Standard deviation of the data's errors.
    prior_sd
        Of each parameter.
    length
        Of the covariance, in units of the side.
    seed
        For ``truth`` and the errors.
    outputs
        Whether the forward map is offered, or U alone.
    derivatives
        Whether any derivative is offered.

    Notes
    -----
    A value takes one banded Cholesky factorisation; with it the gradient takes one more solve, by
    the adjoint, and the Jacobian one for each parameter. The gradient is cheaper than the
    Jacobian; a run that records outputs asks for the latter, and ``outputs=False`` prevents that.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    mesh: int = attrs.field(default=30, validator=_TWO_OR_MORE)
    modes: int = attrs.field(default=20, validator=positive_integer)
    observations: int = attrs.field(default=11, validator=_TWO_OR_MORE)
    noise_sd: float = attrs.field(default=0.1, validator=positive)
    prior_sd: float = attrs.field(default=0.5, validator=positive)
    length: float = attrs.field(default=0.2, validator=positive)
    seed: int = attrs.field(default=2017, validator=not_negative_integer)
    outputs: bool = attrs.field(default=True, validator=one_of(True, False))
    derivatives: bool = attrs.field(default=True, validator=one_of(True, False))
    flow: SteadyFlow = attrs.field(init=False, repr=False)
    truth: FloatArray = attrs.field(init=False, repr=False)
    energy: GaussianEnergy = attrs.field(init=False, repr=False)
    model: Model = attrs.field(init=False, repr=False)

    @flow.default
    def _flow(self) -> SteadyFlow:
        attrs.validate(self)  # attrs would do so afterwards only
        return SteadyFlow.of(
            cells=self.mesh, n_modes=self.modes, observed=self.observations, length=self.length
        )

    @truth.default
    def _truth(self) -> FloatArray:
        return self.prior_sd * np.random.default_rng(self.seed).standard_normal(self.modes)

    @energy.default
    def _energy(self) -> GaussianEnergy:
        pressure = self.flow.solve(self.truth).outputs[0]
        rng = np.random.default_rng([self.seed, 1])  # the errors do not depend on the modes
        return GaussianEnergy(
            data=pressure + self.noise_sd * rng.standard_normal(len(pressure)),
            noise_sd=self.noise_sd,
            prior=GaussianPrior(mean=0.0, sd=self.prior_sd),
        )

    @model.default
    def _model(self) -> Model:
        kinds: dict[str, CallKind] = {"value_and_gradient": "jacobian"}
        if not self.outputs:
            kinds = {"forward": "value", "forward_and_jacobian": "metric"}
        solutions = _FlowSolutions(self.flow, self.energy, self.modes)
        n_outputs = self.observations**2
        return Model(solutions, self.modes, kinds=kinds, outputs=[n_outputs])

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.modes

    @property
    def capabilities(self) -> Capabilities:
        """``initial``, and as ``outputs`` and ``derivatives`` say.

        With both: gradient, Jacobian and second derivatives of the forward map, and the
        Gauss-Newton matrix with its derivative.
        """
        offered = {can.INITIAL}
        if self.outputs:
            offered |= {can.FORWARD}
        if self.derivatives:
            offered |= {can.GRADIENT, can.METRIC, can.METRIC_DERIVATIVE}
        if self.outputs and self.derivatives:
            offered |= {can.JACOBIAN, can.FORWARD_HESSIAN}
        return frozenset(offered)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim), by the adjoint."""
        q = check_positions(positions, self.dim)
        values, gradients = self.model.evaluate("value_and_gradient", q)
        return values, gradients

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the metric and A in ``matrices (n, dim, dim)``, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        return self._with_factors("metric_trace_gradient", q, check_matrices(matrices, q))

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the metric and u in ``vectors (n, dim)``, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        return self._with_factors("metric_form_gradient", q, check_vectors(vectors, q))

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the pressures where observed, shape (n, observations^2)."""
        return self.model.evaluate("forward", check_positions(positions, self.dim))[0]

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the pressures, and their derivatives, shape (n, observations^2, dim)."""
        q = check_positions(positions, self.dim)
        outputs, jacobians = self.model.evaluate("forward_and_jacobian", q)
        return outputs, jacobians

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, for ``weights (n, m, dim)``: (n, dim)."""
        q = check_positions(positions, self.dim)
        factors = check_weights(weights, q)
        m = self.observations**2
        if factors.shape[1] != m:
            raise ShapeError(
                f"weights must hold one row for each of the {m} outputs, got {factors.shape[1]}; "
                f"pass shape {(len(q), m, self.dim)}"
            )
        return self._with_factors("forward_hessian_product", q, factors)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return draws from the prior, shape (n, dim)."""
        return self.prior_sd * rng.standard_normal((n, self.dim))

    def _with_factors(self, what: str, q: FloatArray, factors: FloatArray) -> FloatArray:
        # side by side, so that each row comes with its own factor
        return self.model.evaluate(what, np.hstack([q, factors.reshape(len(q), -1)]))[0]


@attrs.frozen(eq=False)
class _FlowSolutions:
    """What one solution of the equation gives at one position."""

    flow: SteadyFlow
    energy: GaussianEnergy
    dim: int

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return results at a position, which a factor may follow in its row."""
        solved, q = self.flow.solve(row[: self.dim]), row[None, : self.dim]
        rest = row[None, self.dim :]
        if what == "forward":
            return (solved.outputs[0],)
        if what == "forward_and_jacobian":
            return solved.outputs[0], solved.jacobian()[0]
        if what == "value_and_gradient":
            value, by_outputs, prior = self.energy.value_and_gradients(solved.outputs, q)
            return value[0], (solved.pull_back(by_outputs) + prior)[0]
        if what == "metric_form_gradient":
            return (gauss_newton_form_gradient(self.energy, solved, q, rest)[0],)
        factor = rest.reshape(1, -1, self.dim)
        if what == "metric_trace_gradient":
            return (gauss_newton_trace_gradient(self.energy, solved, q, factor)[0],)
        return (solved.hessian_product(factor)[0],)


@attrs.frozen(kw_only=True, eq=False)
class SteadyFlow:
    """A mesh, the modes of log c on it, and where the pressure is observed.

    Parameters
    ----------
    mesh
        The finite elements.
    modes : ndarray of shape (dim, 4 * cells^2)
        Scaled by the roots of their eigenvalues, at the quadrature points.
    lift : ndarray of shape (cells + 1, cells + 1)
        Any function on the nodes with the Dirichlet values.
    observation : ndarray of shape (k, cells + 1)
        From nodes to places of observation along either axis.
    """

    mesh: SquareMesh
    modes: FloatArray
    lift: FloatArray
    observation: FloatArray
    lift_slopes: FloatArray = attrs.field(init=False, repr=False)

    @lift_slopes.default
    def _slopes_of_lift(self) -> FloatArray:
        return self.mesh.slopes(self.lift)

    @classmethod
    def of(cls, *, cells: int, n_modes: int, observed: int, length: float) -> SteadyFlow:
        """Return the flow on ``cells`` x ``cells`` squares, at least 2 x 2.

        ``n_modes`` of log c are those with the greatest eigenvalues, for a covariance of that
        ``length``. There are ``observed`` places of observation along either axis, from boundary to
        boundary.

        Raises
        ------
        ConfigurationError
            If there are not so many modes to be told apart.
        """
        mesh = SquareMesh(cells)
        modes = SquareModes.leading(n_modes, length)
        on_grid = np.sqrt(modes.eigenvalues)[:, None, None] * modes.on_grid(
            mesh.points, mesh.points
        )
        x1, x2 = mesh.nodes[:, None], mesh.nodes[None, :]
        return cls(
            mesh=mesh,
            modes=mesh.at_points(on_grid).reshape(n_modes, -1),
            lift=x1 * (1.0 - x2) + (1.0 - x1) * x2,
            observation=interpolation(cells, np.linspace(0.0, 1.0, observed)),
        )

    def solve(self, position: FloatArray) -> SolvedFlow:
        """Solve at one position (dim,).

        Raises
        ------
        NumericalError
            If the coefficient varies by more than double precision can solve with.
        """
        log_coefficient = position @ self.modes
        # the pressure depends on ratios of c alone; so c does not overflow
        coefficient = np.exp(log_coefficient - log_coefficient.max()).reshape(4, -1)
        bands = self.mesh.stiffness(coefficient)
        try:
            factor = cholesky_banded(bands, overwrite_ab=True, check_finite=False)
        except LinAlgError as error:
            extent = np.ptp(log_coefficient)
            raise NumericalError(
                "the pressure cannot be solved for where the logarithm of the coefficient varies "
                f"by {extent:.3g} over the square; start nearer to 0"
            ) from error
        loads = self.mesh.loads(coefficient * self.lift_slopes)
        pressure = self.lift - _inside(factor, loads)
        return SolvedFlow(flow=self, coefficient=coefficient, factor=factor, pressure=pressure)

    def observe(self, functions: FloatArray) -> FloatArray:
        """Return functions on the nodes (..., cells + 1, cells + 1) where observed: (..., k^2)."""
        seen = self.observation @ functions @ self.observation.T
        return np.asarray(seen.reshape(*functions.shape[:-2], -1))

    def spread(self, by_outputs: FloatArray) -> FloatArray:
        """Return the transpose of :meth:`observe` for one vector (k^2,)."""
        k = len(self.observation)
        return np.asarray(self.observation.T @ by_outputs.reshape(k, k) @ self.observation)

    def by_modes(self, field: FloatArray) -> FloatArray:
        """Return the sums over quadrature points of a field (4, cells^2) times modes: (dim,)."""
        return np.asarray(self.modes @ field.ravel())


@attrs.frozen(kw_only=True, eq=False, slots=False)
class SolvedFlow:
    """The pressure at one position, and its derivatives with the factor that gave it.

    Keeps to :class:`surrokit.contracts.forward.ForwardDerivatives` with one row.

    Parameters
    ----------
    flow
        What was solved.
    coefficient : ndarray of shape (4, cells^2)
        c over its maximum, at the quadrature points.
    factor : ndarray of shape (cells + 1, number of free nodes)
        Cholesky factor of the stiffness matrix, in bands.
    pressure : ndarray of shape (cells + 1, cells + 1)
        u on the nodes.
    """

    flow: SteadyFlow
    coefficient: FloatArray
    factor: FloatArray
    pressure: FloatArray

    @property
    def outputs(self) -> FloatArray:
        """The pressure where observed, shape (1, m)."""
        return self.flow.observe(self.pressure)[None]

    @cached_property
    def fluxes(self) -> FloatArray:
        """The flux c grad u, shape (2, 4, cells^2)."""
        return np.asarray(self.coefficient * self.flow.mesh.slopes(self.pressure))

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J v for the one row v of ``vectors (1, dim)``, shape (1, m)."""
        return self.flow.observe(self._change(self._along(vectors[0])))[None]

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for the one row b of ``by_outputs (1, m)``, shape (1, dim): one solve."""
        adjoint = self._solve(self.flow.spread(by_outputs[0]))
        return -self._contract(self.flow.mesh.slopes(adjoint), self.fluxes)[None]

    def jacobian(self) -> FloatArray:
        """Return J, shape (1, m, dim): one solve for each parameter, together."""
        return np.ascontiguousarray(self.flow.observe(self._sensitivities).T)[None]

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (1, dim), for W (1, m, dim)."""
        mesh = self.flow.mesh
        fields = self.flow.modes.reshape(-1, *self.coefficient.shape)
        spread = np.array([self.flow.spread(column) for column in weights[0].T])
        slopes = mesh.slopes(self._solve(spread))
        bent = (fields[:, None] * slopes).sum(axis=0)
        total = self._contract(bent, self.fluxes)
        changes = mesh.slopes(self._sensitivities)
        total += 0.25 * self.flow.by_modes(self.coefficient * (slopes * changes).sum(axis=(0, 1)))
        # what is left is the derivative of u along the load of all bent adjoints together
        adjoint = self._solve(mesh.loads(self.coefficient * bent))
        total -= self._contract(mesh.slopes(adjoint), self.fluxes)
        return -total[None]

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b v^T, with rows b (1, m) and v (1, dim): three solves."""
        mesh, along = self.flow.mesh, self._along(vectors[0])
        slopes = mesh.slopes(self._solve(self.flow.spread(by_outputs[0])))
        change = mesh.slopes(self._change(along))
        bent = along * slopes
        adjoint = mesh.slopes(self._solve(mesh.loads(self.coefficient * bent)))
        total = self._contract(bent - adjoint, self.fluxes)
        total += self._contract(slopes, self.coefficient * change)
        return -total[None]

    @cached_property
    def _sensitivities(self) -> FloatArray:
        """d_k u on the nodes, shape (dim, cells + 1, cells + 1)."""
        fields = self.flow.modes.reshape(-1, 1, *self.coefficient.shape)
        return self._change(fields)

    def _along(self, vector: FloatArray) -> FloatArray:
        """Return the derivative of log c along a direction (dim,), shape (4, cells^2)."""
        return np.asarray((vector @ self.flow.modes).reshape(self.coefficient.shape))

    def _change(self, fields: FloatArray) -> FloatArray:
        """Return the derivative of u on the nodes along changes of log c, (..., 4, cells^2)."""
        return -self._solve(self.flow.mesh.loads(fields * self.fluxes))

    def _solve(self, loads: FloatArray) -> FloatArray:
        return _inside(self.factor, loads)

    def _contract(self, slopes: FloatArray, fluxes: FloatArray) -> FloatArray:
        """Return the integral of each mode times the product of slopes and fluxes, shape (dim,)."""
        return 0.25 * self.flow.by_modes((slopes * fluxes).sum(axis=0))


def _inside(factor: FloatArray, loads: FloatArray) -> FloatArray:
    """Solve for functions on the nodes that are 0 on the Dirichlet sides."""
    batch, n = loads.shape[:-2], loads.shape[-1]
    right = loads[..., 1:-1].reshape(-1, n * (n - 2)).T
    solved = cho_solve_banded((factor, False), right, overwrite_b=False, check_finite=False)
    functions = np.zeros_like(loads)
    functions[..., 1:-1] = solved.T.reshape(*batch, n, n - 2)
    return functions


@attrs.frozen
class SquareMesh:
    """A mesh of ``cells`` x ``cells`` squares; the module says how arrays are laid out.

    Lengths are in cells: in two dimensions those of slopes and of area cancel in a stiffness
    matrix.
    """

    cells: int

    @property
    def nodes(self) -> FloatArray:
        """Coordinates of the nodes along either axis, shape (cells + 1,)."""
        return np.linspace(0.0, 1.0, self.cells + 1)

    @property
    def points(self) -> FloatArray:
        """Coordinates of the quadrature points along either axis, shape (2 * cells,).

        Those of the first kind of all cells, then those of the second.
        """
        return np.asarray((np.arange(self.cells) + _GAUSS[:, None]).ravel() / self.cells)

    def at_points(self, on_grid: FloatArray) -> FloatArray:
        """Return values on the grid ``points`` x ``points`` as a field (..., 4, cells^2)."""
        n = self.cells
        split = on_grid.reshape(*on_grid.shape[:-2], 2, n, 2, n)
        return np.ascontiguousarray(split.swapaxes(-3, -2)).reshape(*on_grid.shape[:-2], 4, n * n)

    def slopes(self, function: FloatArray) -> FloatArray:
        """Return the gradient of functions on the nodes, times the length of a cell.

        Its shape is (..., 2, 4, cells^2), by direction.
        """
        n, batch = self.cells, function.shape[:-2]
        corners = np.empty((*batch, 4, n, n))
        for number, (one, two) in enumerate(_CORNERS):
            corners[..., number, :, :] = function[..., one : one + n, two : two + n]
        return (_SLOPES @ corners.reshape(*batch, 4, n * n)).reshape(*batch, 2, 4, n * n)

    def loads(self, fluxes: FloatArray) -> FloatArray:
        """Return integrals of fluxes times the gradient of each node's function.

        This is the transpose of :meth:`slopes`, with the weights of the quadrature: of vector
        fields (..., 2, 4, cells^2), times the length of a cell, it makes (..., cells + 1,
        cells + 1).
        """
        n, batch = self.cells, fluxes.shape[:-3]
        by_corner = (0.25 * _SLOPES.T) @ fluxes.reshape(*batch, 8, n * n)
        by_corner = by_corner.reshape(*batch, 4, n, n)
        loads = np.zeros((*batch, n + 1, n + 1))
        for number, (one, two) in enumerate(_CORNERS):
            loads[..., one : one + n, two : two + n] += by_corner[..., number, :, :]
        return loads

    def stiffness(self, coefficient: FloatArray) -> FloatArray:
        """Return the stiffness matrix of the free nodes as LAPACK's upper bands.

        It is linear in the coefficient at the quadrature points, shape (4, cells^2). The bands,
        shape (cells + 1, number of free nodes), are in Fortran order: row ``cells - k`` holds the
        k-th superdiagonal.
        """
        n = self.cells
        pairs = dict(zip(_PAIRS, (_STIFFNESS @ coefficient).reshape(-1, n, n), strict=True))
        diagonal = np.zeros((n + 1, n + 1))
        for number, (one, two) in enumerate(_CORNERS):
            diagonal[one : one + n, two : two + n] += pairs[number, number]
        # between nodes one apart in x2, and in x1; each edge has a cell on either side
        upwards = np.zeros((n + 1, n))
        upwards[:n] = pairs[0, 1]
        upwards[1:] += pairs[2, 3]
        onwards = np.zeros((n, n + 1))
        onwards[:, :n] = pairs[0, 2]
        onwards[:, 1:] += pairs[1, 3]
        bands = np.zeros((n + 1, n - 1, n + 1))
        bands[:, :, n] = diagonal[:, 1:-1]
        bands[:, 1:, n - 1] = upwards[:, 1:-1]
        bands[1:, :-1, 2] = pairs[1, 2][:, 1:-1]
        bands[1:, :, 1] = onwards[:, 1:-1]
        bands[1:, 1:, 0] = pairs[0, 3][:, 1:-1]
        return bands.reshape(-1, n + 1).T


def interpolation(cells: int, where: FloatArray) -> FloatArray:
    """Return the matrix from values at nodes of [0, 1] to those at ``where (k,)``, by rows."""
    hats, nodes = np.eye(cells + 1), np.linspace(0.0, 1.0, cells + 1)
    return np.array([np.interp(where, nodes, hat) for hat in hats]).T
