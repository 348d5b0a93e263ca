"""Inverse problems of a diffusion: that of section 5.2, and one of Aristoff and Bangerth (2023).

In that of section 5.2 the pressure u solves div(c grad u) = 0 (equation (13) of the paper), with
u = x1 at x2 = 0, u = 1 - x1 at x2 = 1, and no flux through the other two sides. log c is a sum of
Karhunen-Loeve modes weighted by a position q.

Modes: the covariance exp(-|x - y|^2 / (2 l^2)) is a product over the two coordinates, and so are
its eigenfunctions. Those of one coordinate are simple, so an order and a sign fix them. On the
square they come in pairs with one eigenvalue, and LAPACK's basis of a pair depends on the number of
threads.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from math import ceil
from typing import ClassVar

import attrs
import numpy as np
from scipy.linalg import eigh

from surrokit import capabilities as can
from surrokit.arguments import (
    Limits,
    check_matrices,
    check_positions,
    check_vectors,
    is_whole,
    not_negative_integer,
    one_of,
    positive,
    positive_integer,
)
from surrokit.capabilities import CallKind
from surrokit.errors import ConfigurationError
from surrokit.model.model import Model
from surrokit.targets.differences import gauss_newton_form_gradient, gauss_newton_trace_gradient
from surrokit.targets.energies import ObservedEnergy, gaussian_energy
from surrokit.targets.functions import PotentialOfOutputs
from surrokit.targets.gaussian import GaussianPrior
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
    energy: ObservedEnergy = attrs.field(init=False, repr=False)
    model: Model = attrs.field(init=False, repr=False)

    @flow.default
    def _flow(self) -> Diffusion:
        attrs.validate(self)  # attrs would do so afterwards only
        mesh = SquareMesh(self.mesh)
        eigenvalues, on_grid = square_modes(self.modes, self.length, mesh.points)
        on_grid *= np.sqrt(eigenvalues)[:, None, None]
        x1, x2 = mesh.nodes[:, None], mesh.nodes[None, :]
        return Diffusion(
            mesh=mesh,
            modes=mesh.at_points(on_grid).reshape(self.modes, -1),
            lift=x1 * (1.0 - x2) + (1.0 - x1) * x2,
            observation=interpolation(self.mesh, np.linspace(0.0, 1.0, self.observations)),
        )

    @truth.default
    def _truth(self) -> FloatArray:
        return self.prior_sd * np.random.default_rng(self.seed).standard_normal(self.modes)

    @energy.default
    def _energy(self) -> ObservedEnergy:
        pressure = self.flow.solve(self.truth).outputs[0]
        rng = np.random.default_rng([self.seed, 1])  # the errors do not depend on the modes
        return gaussian_energy(
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

        With both: gradient, Jacobian of the forward map, and the Gauss-Newton matrix with its
        derivative.
        """
        offered = {can.INITIAL, can.FORWARD} if self.outputs else {can.INITIAL}
        if self.derivatives:
            offered |= {can.GRADIENT, can.METRIC, can.METRIC_DERIVATIVE}
            offered |= {can.JACOBIAN} if self.outputs else set()
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

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return draws from the prior, shape (n, dim)."""
        return self.prior_sd * rng.standard_normal((n, self.dim))

    def _with_factors(self, what: str, q: FloatArray, factors: FloatArray) -> FloatArray:
        # side by side, so that each row comes with its own factor
        return self.model.evaluate(what, np.hstack([q, factors.reshape(len(q), -1)]))[0]


@attrs.frozen(eq=False)
class FlowSolutions:
    """What one solution of the equation gives at one position, and ``energy`` from its outputs."""

    flow: Diffusion
    energy: ObservedEnergy
    dim: int

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return results at a position, which a factor may follow in its row."""
        solved, q = self.flow.solve(row[: self.dim]), row[None, : self.dim]
        rest = row[None, self.dim :]
        if what == "forward":
            return (solved.outputs[0],)
        if what == "forward_and_jacobian":
            return solved.outputs[0], solved.jacobian()[0]
        if what in ("value_and_gradient", "forward_and_gradient"):
            value, by_outputs, prior = self.energy.value_and_gradients(solved.outputs, q)
            first = value if what == "value_and_gradient" else solved.outputs
            return first[0], (solved.pull_back(by_outputs) + prior)[0]
        if what == "metric_form_gradient":
            return (gauss_newton_form_gradient(self.energy, solved, q, rest)[0],)
        factor = rest.reshape(1, -1, self.dim)
        return (gauss_newton_trace_gradient(self.energy, solved, q, factor)[0],)


def square_modes(n_modes: int, length: float, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the greatest eigenvalues (n_modes,), decreasing, and their eigenfunctions.

    The latter have unit norm, are positive at 0, and are given on the grid ``points`` x ``points``,
    shape (n_modes, n, n). On a line they are found by Nystrom's method with Gauss-Legendre nodes,
    whose error is that of rounding here.

    Raises
    ------
    ConfigurationError
        If double precision does not separate so many.
    """
    least = 1e-8  # eigenvalues below this share of the greatest are lost in rounding
    places, weights = np.polynomial.legendre.leggauss(40 + ceil(12.0 / length))
    nodes, roots = 0.5 * (places + 1.0), np.sqrt(0.5 * weights)
    values, vectors = eigh(roots[:, None] * _covariance(nodes, nodes, length) * roots)
    kept = np.flatnonzero(values > least * values[-1])[::-1]
    # eigenfunctions at the nodes, times weights, over eigenvalues
    weighted = roots[:, None] * vectors[:, kept] / values[kept]
    weighted *= np.sign(_covariance(np.zeros(1), nodes, length) @ weighted)
    products = np.outer(values[kept], values[kept])
    most = int((products > least * products[0, 0]).sum())
    if not 1 <= n_modes <= most:
        raise ConfigurationError(
            f"modes must be between 1 and {most} for the length {length:g}, where eigenvalues "
            f"fall below {least:g} of the greatest; got {n_modes}"
        )
    # products of a pair in both orders are equal to the last bit, so a stable sort will do
    order = np.argsort(-products, axis=None, kind="stable")[:n_modes]
    first, second = np.unravel_index(order, products.shape)
    line = (_covariance(points, nodes, length) @ weighted).T
    return products[first, second], line[first][:, :, None] * line[second][:, None, :]


def _covariance(first: FloatArray, second: FloatArray, length: float) -> FloatArray:
    return np.asarray(np.exp(-0.5 * np.square((first[:, None] - second) / length)))


@attrs.frozen(kw_only=True, eq=False)
class AristoffBangerth(PotentialOfOutputs):
    """U of the logarithms of 64 coefficients, in nats.

    u solves -div(theta grad u) = 10 on the unit square with u = 0 on its boundary. theta is
    constant on each of 8 x 8 blocks, and a position is x = log theta, with the block's place
    along x1 running fastest. The forward map gives u at the points (k / 14, l / 14) with k and l
    from 1 to 13, by k and then l. The 169 measurements have normal errors of standard deviation
    0.05. The authors' prior density of theta is proportional to exp(-sum x_k^2 / 8), so that
    x_k ~ N(4, 2^2). Costs and errors are those of :class:`EllipticPde`.
    """

    dim: ClassVar[int] = 64
    """Numbers in a position."""

    capabilities: ClassVar[Capabilities] = frozenset(
        {can.INITIAL, can.FORWARD, can.GRADIENT, can.VJP, can.JACOBIAN, can.METRIC}
    )
    """What it offers besides the value: the adjoint too."""

    diffusion: Diffusion = attrs.field(init=False, repr=False)
    energy: ObservedEnergy = attrs.field(init=False, repr=False)
    model: Model = attrs.field(init=False, repr=False)

    @diffusion.default
    def _diffusion(self) -> Diffusion:
        cells, blocks = 32, 8
        along = np.arange(cells) // (cells // blocks)
        block_of = np.tile((along[:, None] + blocks * along[None, :]).ravel(), 4)
        return Diffusion(
            mesh=SquareMesh(cells, closed=True),
            modes=np.asarray(np.arange(blocks**2)[:, None] == block_of, dtype=np.float64),
            lift=np.zeros((cells + 1, cells + 1)),
            observation=interpolation(cells, np.arange(1, 14) / 14),
            source=10.0 / cells**2,
        )

    @energy.default
    def _energy(self) -> ObservedEnergy:
        prior = GaussianPrior(mean=4.0, sd=2.0)
        return gaussian_energy(data=_read_measurements(), noise_sd=0.05, prior=prior)

    @model.default
    def _model(self) -> Model:
        solutions = FlowSolutions(self.diffusion, self.energy, self.dim)
        return Model(solutions, self.dim, outputs=[len(self.energy.data)])

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the solutions where observed, and the gradient of U, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        outputs, gradients = self.model.evaluate("forward_and_gradient", q)
        return outputs, gradients

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return draws from the prior, shape (n, dim)."""
        return 4.0 + 2.0 * rng.standard_normal((n, self.dim))


@cache
def _read_measurements() -> FloatArray:
    data = resources.files("surrokit_problems").joinpath("aristoff-bangerth.txt")
    with data.open(encoding="utf-8") as lines:
        measurements: FloatArray = np.loadtxt(lines).ravel()
    measurements.setflags(write=False)
    return measurements
