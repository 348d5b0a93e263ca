"""The elliptic inverse problem of section 5.2: the permeability of a medium from its pressure.

The pressure u solves div(c grad u) = 0 (equation (13) of the paper), with u = x1 at x2 = 0,
u = 1 - x1 at x2 = 1, and no flux through the other two sides. log c is a sum of Karhunen-Loeve
modes weighted by a position q.

Modes: the covariance exp(-|x - y|^2 / (2 l^2)) is a product over the two coordinates, and so are
its eigenfunctions. Those of one coordinate are simple, so an order and a sign fix them. On the
square they come in pairs with one eigenvalue, and LAPACK's basis of a pair depends on the number of
threads.
"""

from __future__ import annotations

from math import ceil

import attrs
import numpy as np
from scipy.linalg import eigh

from surrokit import capabilities as can
from surrokit.arguments import (
    Limits,
    check_matrices,
    check_positions,
    check_vectors,
    check_weights,
    is_whole,
    not_negative_integer,
    one_of,
    positive,
    positive_integer,
)
from surrokit.capabilities import CallKind
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.model.model import Model
from surrokit.targets.differences import gauss_newton_form_gradient, gauss_newton_trace_gradient
from surrokit.targets.functions import PotentialOfOutputs
from surrokit.targets.gaussian import GaussianEnergy, GaussianPrior
from surrokit.types import Capabilities, FloatArray
from surrokit_problems.diffusion import Diffusion, SquareMesh, interpolation

_TWO_OR_MORE = Limits("a whole number of at least 2", lambda value: is_whole(value, 2))


@attrs.frozen(kw_only=True, eq=False)
class EllipticPde(PotentialOfOutputs):
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
    noise_sd, prior_sd
        Standard deviations of the data's errors, and of each parameter.
    length
        Of the covariance, in units of the side.
    seed
        For ``truth`` and the errors.
    outputs, derivatives
        Whether the forward map is offered, or U alone; and whether any derivative is.

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
    flow: Diffusion = attrs.field(init=False, repr=False)
    truth: FloatArray = attrs.field(init=False, repr=False)
    energy: GaussianEnergy = attrs.field(init=False, repr=False)
    model: Model = attrs.field(init=False, repr=False)

    @flow.default
    def _flow(self) -> Diffusion:
        attrs.validate(self)  # attrs would do so afterwards only
        return steady_flow(
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
        solutions = FlowSolutions(self.flow, self.energy, self.modes)
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
class FlowSolutions:
    """What one solution of the equation gives at one position.

    ``flow`` leads from positions to outputs, and ``energy`` from these to U.
    """

    flow: Diffusion
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
        if what == "forward_and_gradient":
            _, by_outputs, prior = self.energy.value_and_gradients(solved.outputs, q)
            return solved.outputs[0], (solved.pull_back(by_outputs) + prior)[0]
        if what == "metric_form_gradient":
            return (gauss_newton_form_gradient(self.energy, solved, q, rest)[0],)
        factor = rest.reshape(1, -1, self.dim)
        if what == "metric_trace_gradient":
            return (gauss_newton_trace_gradient(self.energy, solved, q, factor)[0],)
        return (solved.hessian_product(factor)[0],)


def steady_flow(*, cells: int, n_modes: int, observed: int, length: float) -> Diffusion:
    """Return the flow on ``cells`` x ``cells`` squares, at least 2 x 2.

    The ``n_modes`` of log c are those with the greatest eigenvalues, for a covariance of that
    ``length``. There are ``observed`` places of observation along either axis, from boundary to
    boundary.

    Raises
    ------
    ConfigurationError
        If double precision cannot separate so many modes.
    """
    mesh, modes = SquareMesh(cells), SquareModes.leading(n_modes, length)
    on_grid = modes.on_grid(mesh.points, mesh.points)
    on_grid *= np.sqrt(modes.eigenvalues)[:, None, None]
    x1, x2 = mesh.nodes[:, None], mesh.nodes[None, :]
    return Diffusion(
        mesh=mesh,
        modes=mesh.at_points(on_grid).reshape(n_modes, -1),
        lift=x1 * (1.0 - x2) + (1.0 - x1) * x2,
        observation=interpolation(cells, np.linspace(0.0, 1.0, observed)),
    )


_LEAST = 1e-8
"""Eigenvalues below this share of the greatest are lost in rounding."""


@attrs.frozen(kw_only=True, eq=False)
class LineModes:
    """Eigenfunctions of the squared-exponential covariance of variance 1 on [0, 1].

    ``eigenvalues (n_modes,)`` decrease; ``nodes (n_nodes,)`` are Gauss and Legendre's, and
    ``weighted (n_nodes, n_modes)`` eigenfunctions there, times the weights, over their eigenvalues.
    """

    length: float
    eigenvalues: FloatArray
    nodes: FloatArray
    weighted: FloatArray

    @classmethod
    def of(cls, length: float) -> LineModes:
        """Return all modes that double precision separates, positive at 0 and of unit norm.

        By Nystrom's method with Gauss-Legendre nodes, whose error is that of rounding here.

        Raises
        ------
        ConfigurationError
            If the length is not positive.
        """
        if not (np.isfinite(length) and length > 0):
            raise ConfigurationError(f"length must be positive and finite, got {length}")
        points, weights = np.polynomial.legendre.leggauss(40 + ceil(12.0 / length))
        nodes, roots = 0.5 * (points + 1.0), np.sqrt(0.5 * weights)
        values, vectors = eigh(roots[:, None] * _covariance(nodes, nodes, length) * roots)
        kept = np.flatnonzero(values > _LEAST * values[-1])[::-1]
        weighted = roots[:, None] * vectors[:, kept] / values[kept]
        at_zero = _covariance(np.zeros(1), nodes, length) @ weighted
        return cls(
            length=length,
            eigenvalues=values[kept],
            nodes=nodes,
            weighted=np.where(at_zero < 0, -weighted, weighted),
        )

    def at(self, points: FloatArray) -> FloatArray:
        """Return the eigenfunctions at ``points (n,)`` of [0, 1], shape (n_modes, n)."""
        return np.asarray((_covariance(points, self.nodes, self.length) @ self.weighted).T)


@attrs.frozen(kw_only=True, eq=False)
class SquareModes:
    """The leading terms of the expansion on the unit square.

    ``pairs (n_modes, 2)`` say which eigenfunctions of a line are multiplied, in x1 and in x2: by
    decreasing eigenvalue, and in the order of the first among equal ones.
    """

    line: LineModes
    pairs: np.ndarray

    @classmethod
    def leading(cls, n_modes: int, length: float) -> SquareModes:
        """Return the terms with the ``n_modes`` greatest eigenvalues, for a length l.

        Raises
        ------
        ConfigurationError
            If double precision does not separate so many.
        """
        line = LineModes.of(length)
        products = np.outer(line.eigenvalues, line.eigenvalues)
        # products of a pair in both orders are equal to the last bit, so a stable sort will do
        order = np.argsort(-products, axis=None, kind="stable")
        most = int((products > _LEAST * products[0, 0]).sum())
        if not 1 <= n_modes <= most:
            raise ConfigurationError(
                f"modes must be between 1 and {most} for the length {length:g}, where eigenvalues "
                f"fall below {_LEAST:g} of the greatest; got {n_modes}"
            )
        pairs = np.column_stack(np.unravel_index(order[:n_modes], products.shape))
        return cls(line=line, pairs=pairs)

    @property
    def eigenvalues(self) -> FloatArray:
        """Eigenvalues of the integral operator, shape (n_modes,), decreasing."""
        return np.asarray(self.line.eigenvalues[self.pairs].prod(axis=1))

    def on_grid(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return eigenfunctions of unit norm on a grid (n1,) x (n2,), shape (n_modes, n1, n2)."""
        one, two = self.line.at(first)[self.pairs[:, 0]], self.line.at(second)[self.pairs[:, 1]]
        return np.asarray(one[:, :, None] * two[:, None, :])


def _covariance(first: FloatArray, second: FloatArray, length: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * np.square((first[:, None] - second) / length)))
