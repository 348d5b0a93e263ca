"""The elliptic inverse problem of section 5.2: the permeability of a medium from its pressure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import ShapeError
from surrokit.model.source import row_by_row
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
from surrokit_problems.pde.steady_flow import SolvedFlow, SteadyFlow

Contraction: TypeAlias = Callable[[SolvedFlow, FloatArray, FloatArray], FloatArray]
"""From a solved flow, its position (1, dim) and a factor (1, ...) to an array (1, dim)."""


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

        def evaluate(row: FloatArray) -> tuple[FloatArray, FloatArray]:
            solved = self.flow.solve(row)
            value, by_outputs, prior = self.energy.value_and_gradients(solved.outputs, row[None])
            return value[0], (solved.pull_back(by_outputs) + prior)[0]

        q = check_positions(positions, self.dim)
        values, gradients = _row_by_row(evaluate, q, (), (self.dim,))
        return values, gradients

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the metric and A in ``matrices (n, dim, dim)``, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        factors = check_matrices(matrices, q)
        return self._with_factors(partial(gauss_newton_trace_gradient, self.energy), q, factors)

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the metric and u in ``vectors (n, dim)``, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        factors = check_vectors(vectors, q)
        return self._with_factors(partial(gauss_newton_form_gradient, self.energy), q, factors)

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the pressures where observed, shape (n, observations^2)."""

        def evaluate(row: FloatArray) -> tuple[FloatArray]:
            return (self.flow.solve(row).outputs[0],)

        q = check_positions(positions, self.dim)
        return _row_by_row(evaluate, q, (self.observations**2,))[0]

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the pressures, and their derivatives, shape (n, observations^2, dim)."""

        def evaluate(row: FloatArray) -> tuple[FloatArray, FloatArray]:
            solved = self.flow.solve(row)
            return solved.outputs[0], solved.jacobian()[0]

        q, m = check_positions(positions, self.dim), self.observations**2
        outputs, jacobians = _row_by_row(evaluate, q, (m,), (m, self.dim))
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

        def contract(at: SolvedFlow, _: FloatArray, factor: FloatArray) -> FloatArray:
            return at.hessian_product(factor)

        return self._with_factors(contract, q, factors)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return draws from the prior, shape (n, dim)."""
        return self.prior_sd * rng.standard_normal((n, self.dim))

    def _with_factors(
        self, contract: Contraction, q: FloatArray, factors: FloatArray
    ) -> FloatArray:
        shape = (1, *factors.shape[1:])

        def evaluate(row: FloatArray) -> tuple[FloatArray]:
            position, factor = row[: self.dim], row[self.dim :].reshape(shape)
            return (contract(self.flow.solve(position), position[None], factor)[0],)

        # side by side, so that each row comes with its own factor
        rows = np.hstack([q, factors.reshape(len(q), -1)])
        return _row_by_row(evaluate, rows, (self.dim,))[0]


def _row_by_row(
    evaluate: Callable[[FloatArray], tuple[FloatArray, ...]],
    rows: FloatArray,
    *shapes: tuple[int, ...],
) -> tuple[FloatArray, ...]:
    """Return results of these shapes for each row, also where there are no rows."""
    if not len(rows):
        return tuple(np.empty((0, *shape)) for shape in shapes)
    return row_by_row(evaluate, rows).unwrap()
