"""A target with bounded parameters, seen from the whole line."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.bounded_energy import BoundedEnergy
from surrokit.chain_rule import congruent, crossed, plus_diagonal, products
from surrokit.counted import Count, counted
from surrokit.derivative_protocols import (
    ForwardHessianPotential,
    HessianDiagonalPotential,
    HessianProductPotential,
    MetricDerivativePotential,
    MetricProductPotential,
)
from surrokit.errors import EvaluationError, ShapeError
from surrokit.parameters import Parameters
from surrokit.positions import (
    checked_matrices,
    checked_positions,
    checked_vectors,
    checked_weights,
)
from surrokit.protocols import (
    Energy,
    ForwardPotential,
    GradientAlonePotential,
    GradientPotential,
    HessianDerivativePotential,
    HessianPotential,
    InitialPotential,
    MetricPotential,
    Potential,
)
from surrokit.rowwise import mapped
from surrokit.summed_potential import RowExpansion, of_order
from surrokit.transforms import Transform
from surrokit.types import Capabilities, FloatArray, IntArray

_Contraction = Callable[[FloatArray, FloatArray], FloatArray]
_Derivative = Callable[
    [FloatArray, Callable[[], FloatArray], Callable[[FloatArray], FloatArray], FloatArray],
    FloatArray,
]


@attrs.frozen(eq=False)
class BoundedPotential:
    """A potential of bounded parameters q, as one of unbounded z with the Jacobian in it.

    U(z) = U(q(z)) - log |dq/dz|. What the inner potential can do is passed on through the chain
    rule. With bounds a Hessian needs the gradient as well, and its derivative needs both; of the
    Hessian's diagonal the gradient needs a product with the Hessian, and second derivatives of
    outputs need the Jacobian: without these they are left out. ``convex``, ``gaussian`` and
    ``rows`` are left out with bounds, since the Hessian in z has the gradient in it.

    Parameters
    ----------
    inner
        Potential in the user's coordinates.
    parameters
        Names, shapes and bounds; also of use, without any bound, to give names.

    Raises
    ------
    ShapeError
        If the parameters do not hold as many numbers as the potential takes.
    """

    inner: Potential
    parameters: Parameters
    transform: Transform = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if self.parameters.dim != self.inner.dim:
            raise ShapeError(
                f"parameters hold {self.parameters.dim} numbers, but the potential takes "
                f"{self.inner.dim}; declare every number of the position vector"
            )

    @transform.default
    def _transform(self) -> Transform:
        return Transform.of(self.parameters)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers, less what bounds take away (see above)."""
        offered = self.inner.capabilities
        if not self.parameters.bounded:
            return offered
        lost = {can.CONVEX, can.GAUSSIAN, can.ROWS, can.ROWS_THIRD_ORDER}
        if not offered & {can.HESSIAN, can.HESSIAN_PRODUCT}:
            lost.add(can.HESSIAN_DIAGONAL)
        if can.JACOBIAN not in offered:
            lost.add(can.FORWARD_HESSIAN)
        return offered - lost

    def counted(self, count: Count) -> BoundedPotential:
        """Return a copy that reports what it pays for at the inner potential."""
        return attrs.evolve(self, inner=counted(self.inner, count))

    @property
    def energy(self) -> Energy:
        """The inner potential's energy, of outputs and unbounded positions."""
        return BoundedEnergy(cast(ForwardPotential, self.inner).energy, self.transform)

    @property
    def mean(self) -> FloatArray:
        """Mean of a normal target without bounds, shape (dim,)."""
        return can.with_gaussian(self.inner).mean

    @property
    def factor(self) -> FloatArray:
        """Factor L of a normal target's covariance, without bounds; shape (dim, dim)."""
        return can.with_gaussian(self.inner).factor

    @property
    def n_rows(self) -> int:
        """Terms of a summed target, without bounds."""
        return can.with_rows(self.inner).n_rows

    def expanded(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return the expansions of a summed target's terms at ``centre (dim,)``, without bounds."""
        return can.with_rows(self.inner).expanded(centre, **of_order(order))

    def row_bounds(self, factor: FloatArray, order: int = 2) -> FloatArray:
        """Return the bounds psi of a summed target, without bounds of parameters: (n_rows,)."""
        return can.with_rows(self.inner).row_bounds(factor, **of_order(order))

    def selected(self, rows: IntArray) -> Potential:
        """Return the sum of some rows' terms alone, without bounds."""
        return can.with_rows(self.inner).selected(rows)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U at unbounded positions of shape (n, dim), shape (n,)."""
        z = checked_positions(positions, self.dim)

        def from_inner(value: FloatArray) -> tuple[FloatArray]:
            return (value - self.transform.log_jacobian(z),)

        q = self.transform.to_bounded(z)
        return mapped(lambda: (self.inner.value(q),), from_inner, len(q))[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient in z, shape (n, dim)."""
        z = checked_positions(positions, self.dim)
        inner = cast(GradientPotential, self.inner)

        def from_inner(value: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
            return value - self.transform.log_jacobian(z), self._pulled_back(z, gradient)

        q = self.transform.to_bounded(z)
        return mapped(lambda: inner.value_and_gradient(q), from_inner, len(q))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, dim)."""
        z = checked_positions(positions, self.dim)
        inner = cast(GradientAlonePotential, self.inner)

        def from_inner(gradient: FloatArray) -> tuple[FloatArray]:
            return (self._pulled_back(z, gradient),)

        q = self.transform.to_bounded(z)
        return mapped(lambda: (inner.gradient(q),), from_inner, len(q))[0]

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives in z, shape (n, dim, dim)."""
        z = checked_positions(positions, self.dim)
        q = self.transform.to_bounded(z)
        d = self.transform.derivatives(z)
        inner = cast(HessianPotential, self.inner)
        if not self.parameters.bounded:
            return inner.hessian(q)
        # without a gradient a row has no curvature of the transform, and so no Hessian
        (gradient, hessian), causes = _despite_failures(
            lambda: cast(GradientPotential, inner).value_and_gradient(q)[1],
            lambda: inner.hessian(q),
        )
        total = plus_diagonal(congruent(hessian, d), gradient * d.second - d.log_second)
        return _unless_failed(total, causes)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian in z, shape (n, dim)."""
        z = checked_positions(positions, self.dim)
        u = checked_vectors(vectors, z)
        q = self.transform.to_bounded(z)
        inner = cast(HessianProductPotential, self.inner)
        if not self.parameters.bounded:
            return inner.hessian_product(q, u)
        d = self.transform.derivatives(z)
        (gradient, product), causes = _despite_failures(
            lambda: cast(GradientPotential, inner).value_and_gradient(q)[1],
            lambda: inner.hessian_product(q, d.first * u),
        )
        total = d.first * product + u * (gradient * d.second - d.log_second)
        return _unless_failed(total, causes)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian in z, shape (n, dim)."""
        z = checked_positions(positions, self.dim)
        q = self.transform.to_bounded(z)
        inner = cast(HessianDiagonalPotential, self.inner)
        if not self.parameters.bounded:
            return inner.hessian_diagonal(q)
        d = self.transform.derivatives(z)
        (gradient, diagonal), causes = _despite_failures(
            lambda: cast(GradientPotential, inner).value_and_gradient(q)[1],
            lambda: inner.hessian_diagonal(q),
        )
        total = np.square(d.first) * diagonal + gradient * d.second - d.log_second
        return _unless_failed(total, causes)

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj for each k, G the Hessian in z, shape (n, dim)."""
        z = checked_positions(positions, self.dim)
        c = checked_vectors(weights, z)
        q = self.transform.to_bounded(z)
        inner = cast(HessianDiagonalPotential, self.inner)
        if not self.parameters.bounded:
            return inner.hessian_diagonal_gradient(q, c)
        d = self.transform.derivatives(z)
        third, log_third = self.transform.third_derivatives(z)
        (gradient, diagonal, inside, pulled), causes = _despite_failures(
            lambda: cast(GradientPotential, inner).value_and_gradient(q)[1],
            lambda: inner.hessian_diagonal(q),
            lambda: inner.hessian_diagonal_gradient(q, c * np.square(d.first)),
            lambda: self._inner_product(q, c * d.second),
        )
        total = d.first * (inside + pulled + 2.0 * c * diagonal * d.second)
        total += c * (gradient * third - log_third)
        return _unless_failed(total, causes)

    def _inner_product(self, q: FloatArray, vectors: FloatArray) -> FloatArray:
        if can.HESSIAN_PRODUCT in self.inner.capabilities:
            return cast(HessianProductPotential, self.inner).hessian_product(q, vectors)
        return products(cast(HessianPotential, self.inner).hessian(q), vectors)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, G the Hessian in z, shape (n, dim)."""
        inner = cast(HessianDerivativePotential, self.inner).hessian_trace_gradient
        return self._trace_gradient(positions, matrices, inner, self._hessian_derivative)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the Hessian in z, shape (n, dim)."""
        inner = cast(HessianDerivativePotential, self.inner).hessian_form_gradient
        return self._form_gradient(positions, vectors, inner, self._hessian_derivative)

    def _hessian_derivative(
        self,
        z: FloatArray,
        contraction: Callable[[], FloatArray],
        across: Callable[[FloatArray], FloatArray],
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return sum_ij A_ij d_k G_ij with G_ij = q'_i H_ij q'_j + [i = j] (g_i q''_i - l''_i).

        H and g are the inner Hessian and gradient, and l the logarithm of the Jacobian.

        Parameters
        ----------
        z : ndarray of shape (n, dim)
            Unbounded positions.
        contraction
            Evaluates sum_ij A_ij q'_i q'_j dH_ij/dq_k.
        across
            From H to sum_j A_kj H_kj q'_j.
        diagonal : ndarray of shape (n, dim)
            A_kk.
        """
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        third, log_third = self.transform.third_derivatives(z)
        inner = self.inner
        (gradient, hessian, inside), causes = _despite_failures(
            lambda: cast(GradientPotential, inner).value_and_gradient(q)[1],
            lambda: cast(HessianPotential, inner).hessian(q),
            contraction,
        )
        total = d.first * (inside + products(hessian, diagonal * d.second))
        total += 2.0 * d.second * across(hessian)
        total += diagonal * (gradient * third - log_third)
        return _unless_failed(total, causes)

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the inner metric in z, plus the Jacobian's own curvature, which is not negative.

        Shape (n, dim, dim).
        """
        z = checked_positions(positions, self.dim)
        d = self.transform.derivatives(z)
        q = self.transform.to_bounded(z)
        inner = cast(MetricPotential, self.inner)

        def from_inner(metric: FloatArray) -> tuple[FloatArray]:
            return (plus_diagonal(congruent(metric, d), -d.log_second),)

        return mapped(lambda: (inner.metric(q),), from_inner, len(q))[0]

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the metric in z, shape (n, dim)."""
        z = checked_positions(positions, self.dim)
        u = checked_vectors(vectors, z)
        d = self.transform.derivatives(z)
        q = self.transform.to_bounded(z)
        inner = cast(MetricProductPotential, self.inner)

        def from_inner(product: FloatArray) -> tuple[FloatArray]:
            return (d.first * product - d.log_second * u,)

        return mapped(lambda: (inner.metric_product(q, d.first * u),), from_inner, len(q))[0]

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, G the metric in z, shape (n, dim)."""
        inner = cast(MetricDerivativePotential, self.inner).metric_trace_gradient
        return self._trace_gradient(positions, matrices, inner, self._metric_derivative)

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the metric in z, shape (n, dim)."""
        inner = cast(MetricDerivativePotential, self.inner).metric_form_gradient
        return self._form_gradient(positions, vectors, inner, self._metric_derivative)

    def _metric_derivative(
        self,
        z: FloatArray,
        contraction: Callable[[], FloatArray],
        across: Callable[[FloatArray], FloatArray],
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return sum_ij A_ij d_k G_ij with G_ij = q'_i M_ij q'_j - [i = j] l''_i.

        M is the inner metric; parameters as for :meth:`_hessian_derivative`.
        """
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        _, log_third = self.transform.third_derivatives(z)
        (metric, inside), causes = _despite_failures(
            lambda: cast(MetricPotential, self.inner).metric(q), contraction
        )
        total = d.first * inside + 2.0 * d.second * across(metric) - diagonal * log_third
        return _unless_failed(total, causes)

    def _trace_gradient(
        self,
        positions: FloatArray,
        matrices: FloatArray,
        inner: _Contraction,
        derivative: _Derivative,
    ) -> FloatArray:
        """Return tr(A d_k G) from the inner one, by the Hessian's or the metric's chain rule."""
        z = checked_positions(positions, self.dim)
        weights = checked_matrices(matrices, z)
        q = self.transform.to_bounded(z)
        if not self.parameters.bounded:
            return inner(q, weights)
        d = self.transform.derivatives(z)
        return derivative(
            z,
            lambda: inner(q, congruent(weights, d)),
            lambda matrix: crossed(weights, matrix, d),
            np.einsum("nkk->nk", weights),
        )

    def _form_gradient(
        self,
        positions: FloatArray,
        vectors: FloatArray,
        inner: _Contraction,
        derivative: _Derivative,
    ) -> FloatArray:
        """Return u^T d_k G u from the inner one, as :meth:`_trace_gradient` with A = u u^T."""
        z = checked_positions(positions, self.dim)
        u = checked_vectors(vectors, z)
        q = self.transform.to_bounded(z)
        if not self.parameters.bounded:
            return inner(q, u)
        scaled = u * self.transform.derivatives(z).first
        return derivative(
            z,
            lambda: inner(q, scaled),
            lambda matrix: u * products(matrix, scaled),
            np.square(u),
        )

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs at unbounded positions, shape (n, m)."""
        z = checked_positions(positions, self.dim)
        return cast(ForwardPotential, self.inner).forward(self.transform.to_bounded(z))

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives in z, shape (n, m, dim)."""
        z = checked_positions(positions, self.dim)
        inner = cast(ForwardPotential, self.inner)

        def from_inner(outputs: FloatArray, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
            return outputs, jacobian * self.transform.derivatives(z).first[:, None, :]

        q = self.transform.to_bounded(z)
        return mapped(lambda: inner.forward_and_jacobian(q), from_inner, len(q))

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m for each k, in z, shape (n, dim)."""
        z = checked_positions(positions, self.dim)
        by_outputs = checked_weights(weights, z)
        q = self.transform.to_bounded(z)
        inner = cast(ForwardHessianPotential, self.inner)
        if not self.parameters.bounded:
            return inner.forward_hessian_product(q, by_outputs)
        d = self.transform.derivatives(z)
        (jacobian, product), causes = _despite_failures(
            lambda: inner.forward_and_jacobian(q)[1],
            lambda: inner.forward_hessian_product(q, by_outputs * d.first[:, None, :]),
        )
        along = np.einsum("nmk,nmk->nk", by_outputs, jacobian)
        return _unless_failed(d.first * product + d.second * along, causes)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return unbounded starting positions, shape (n, dim)."""
        return self.transform.to_unbounded(cast(InitialPotential, self.inner).initial(rng, n))

    def _pulled_back(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        d = self.transform.derivatives(z)
        return gradient * d.first - d.log_first


def parameters_of(potential: Potential) -> Parameters:
    """Return the parameters that a potential declares, or unbounded ones called q[i]."""
    declared = getattr(potential, "parameters", None)
    return declared if isinstance(declared, Parameters) else Parameters.unnamed(potential.dim)


def transform_of(potential: Potential) -> Transform:
    """Return the map from a potential's sampling coordinates to the user's."""
    declared = getattr(potential, "transform", None)
    if isinstance(declared, Transform):
        return declared
    return Transform.of(Parameters.unnamed(potential.dim))


_SHOWN = 10  # numbers of a position in a message


def describe_position(potential: Potential, position: FloatArray) -> str:
    """Return a sampling position (dim,) in words: each parameter's name and its value."""
    where = transform_of(potential).to_bounded(position)
    labels = parameters_of(potential).labels
    shown = [f"{label} = {x:.6g}" for label, x in zip(labels, where, strict=True)]
    more = [f"and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return ", ".join([*shown[:_SHOWN], *more])


def _despite_failures(
    *evaluations: Callable[[], FloatArray],
) -> tuple[list[FloatArray], dict[int, Exception]]:
    """Return what each evaluation gives, and why rows failed in any; raise if all rows did."""
    results: list[FloatArray] = []
    causes: dict[int, Exception] = {}
    for evaluate in evaluations:
        try:
            results.append(evaluate())
        except EvaluationError as error:
            if not error.results:
                raise
            causes |= error.causes
            results.append(error.results[-1])
    return results, causes


def _unless_failed(result: FloatArray, causes: dict[int, Exception]) -> FloatArray:
    if causes:
        raise EvaluationError(causes, (result,))
    return result
