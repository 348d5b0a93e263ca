"""Targets with bounds and constraints, on the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors, check_weights
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import (
    Blocks,
    CoordinateMap,
    Derivatives,
    Scaled,
    Scaling,
    Transform,
    congruent,
    cross,
    from_line_of,
    map_of,
    plus_diagonal,
    products,
    pull_back,
    pull_back_outputs,
)
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.model.model import Wrapper
from surrokit.potentials import (
    HESSIAN_FIELD,
    METRIC_FIELD,
    AdjointPotential,
    Energy,
    ForwardHessianPotential,
    ForwardPotential,
    GradientAlonePotential,
    GradientPotential,
    HessianDiagonalPotential,
    HessianPotential,
    HessianProductPotential,
    InitialPotential,
    MatrixField,
    Potential,
    energy_capabilities,
    with_curvature_derivatives,
    with_curvatures,
    with_gradient,
)
from surrokit.shown.target import ShownTarget
from surrokit.types import Capabilities, FloatArray


@attrs.frozen(eq=False)
class LiftedEnergy:
    """The energy of a forward potential in the user's coordinates, on the whole line.

    Parameters
    ----------
    inner
        Energy in the user's coordinates.
    transform
        The map from the line.
    """

    inner: Energy
    transform: CoordinateMap | Scaling

    @property
    def capabilities(self) -> Capabilities:
        """Nothing beyond gradients."""
        return frozenset()

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), Jacobian included."""
        value = self.inner.value(outputs, self.transform.to_bounded(positions))
        return value - self.transform.log_jacobian(positions)

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and on the line (n, dim)."""
        value, by_outputs, by_positions = self.inner.value_and_gradients(
            outputs, self.transform.to_bounded(positions)
        )
        lifted = value - self.transform.log_jacobian(positions)
        return lifted, by_outputs, pull_back(self.transform, positions, by_positions)


@attrs.frozen(eq=False)
class BoundedEnergy(LiftedEnergy):
    """The energy of a forward potential with bounded parameters, in unbounded coordinates.

    Its curvatures are passed on, too.
    """

    inner: Energy
    transform: Transform

    @property
    def capabilities(self) -> Capabilities:
        """What the inner energy offers."""
        return energy_capabilities(self.inner)

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the inner curvatures in z, plus the Jacobian's own, which is not negative.

        Shapes (n, m) or (n, m, m), and (n, dim, dim).
        """
        inner = with_curvatures(self.inner)
        by_outputs, by_positions = inner.curvatures(outputs, self.transform.to_bounded(positions))
        d = self.transform.derivatives(positions)
        return by_outputs, plus_diagonal(congruent(by_positions, d), -d.log_second)

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R) in the outputs (n, m), and in z (n, dim).

        C and R are those of :meth:`curvatures`, X and B their weights, of the same shapes.
        """
        inner = with_curvature_derivatives(self.inner)
        d = self.transform.derivatives(positions)
        _, log_third = self.transform.third_derivatives(positions)
        bounded, weights = self.transform.to_bounded(positions), by_positions_weights
        by_outputs, by_positions = inner.curvature_gradients(
            outputs, bounded, by_outputs_weights, congruent(weights, d)
        )
        _, curvature = inner.curvatures(outputs, bounded)
        gradient = d.first * by_positions + 2.0 * d.second * cross(weights, curvature, d)
        return by_outputs, gradient - np.einsum("nkk->nk", weights) * log_third


@attrs.frozen(eq=False)
class ScaledEnergy(LiftedEnergy):
    """The energy of a forward potential in coordinates of like scale.

    Its curvatures are passed on, too.
    """

    transform: Scaling

    @property
    def capabilities(self) -> Capabilities:
        """What the inner energy offers."""
        return energy_capabilities(self.inner)

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the inner curvatures, shapes (n, m) or (n, m, m), and (n, dim, dim) in z."""
        inner = with_curvatures(self.inner)
        by_outputs, by_positions = inner.curvatures(outputs, self.transform.to_bounded(positions))
        return by_outputs, self.transform.pull_form(by_positions)

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R) in the outputs (n, m), and in z (n, dim).

        C and R are those of :meth:`curvatures`, X and B their weights, of the same shapes.
        """
        inner, line = with_curvature_derivatives(self.inner), self.transform.to_bounded(positions)
        weights = self.transform.push_form(by_positions_weights)
        by_outputs, gradient = inner.curvature_gradients(outputs, line, by_outputs_weights, weights)
        return by_outputs, self.transform.pull(gradient)


@attrs.frozen(eq=False)
class LiftedPotential(Wrapper, ShownTarget):
    """A potential in the user's coordinates q, as one of z on the whole line, Jacobian included.

    U(z) = U(q(z)) - log Jacobian. Of values, gradients and forward maps this is the chain rule.

    Parameters
    ----------
    inner
        Potential in the user's coordinates.
    parameters
        Names, shapes, bounds and constraints.

    Raises
    ------
    ShapeError
        If the parameters do not hold as many numbers as the potential takes.
    """

    inner: Potential
    parameters: Parameters
    transform: CoordinateMap = attrs.field(init=False)

    @transform.default
    def _transform(self) -> CoordinateMap:
        return map_of(self.parameters)

    def __attrs_post_init__(self) -> None:
        if self.parameters.dim != self.inner.dim:
            raise ShapeError(
                f"parameters hold {self.parameters.dim} numbers, but the potential takes "
                f"{self.inner.dim}; declare every number of the position vector"
            )

    @property
    def dim(self) -> int:
        """Numbers in a position on the line."""
        return self.inner.dim

    @property
    def own_map(self) -> CoordinateMap | Scaling:
        """The map to the coordinates of the inner potential."""
        return self.transform

    def outside(self, positions: FloatArray) -> FloatArray:
        """Return positions on the line for the user's."""
        return self.own_map.to_unbounded(positions)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U at positions on the line of shape (n, dim), shape (n,)."""
        z = check_positions(positions, self.dim)
        return self.inner.value(self.own_map.to_bounded(z)) - self.own_map.log_jacobian(z)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(GradientPotential, self.inner)
        value, gradient = inner.value_and_gradient(self.own_map.to_bounded(z))
        return value - self.own_map.log_jacobian(z), pull_back(self.own_map, z, gradient)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(GradientAlonePotential, self.inner)
        return pull_back(self.own_map, z, inner.gradient(self.own_map.to_bounded(z)))

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""
        z = check_positions(positions, self.dim)
        return cast(ForwardPotential, self.inner).forward(self.own_map.to_bounded(z))

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives in z, shape (n, m, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(ForwardPotential, self.inner)
        outputs, jacobian = inner.forward_and_jacobian(self.own_map.to_bounded(z))
        return outputs, pull_back_outputs(self.own_map, z, jacobian)

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and the gradient of U in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(AdjointPotential, self.inner)
        outputs, gradient = inner.forward_and_gradient(self.own_map.to_bounded(z))
        return outputs, pull_back(self.own_map, z, gradient)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions on the line, shape (n, dim)."""
        return self.own_map.to_unbounded(cast(InitialPotential, self.inner).initial(rng, n))


_KEPT = frozenset({can.GRADIENT, can.GRADIENT_ALONE, can.INITIAL, can.FORWARD})
_KEPT |= {can.JACOBIAN, can.VJP}


@attrs.frozen(eq=False)
class ConstrainedPotential(LiftedPotential):
    """A potential of constrained arrays q, as one of unbounded z, Jacobian included.

    Values, gradients and forward maps are passed on, second derivatives are not.
    """

    transform: Blocks = attrs.field(init=False)

    @transform.default
    def _transform(self) -> Blocks:
        return Blocks(self.parameters)

    @property
    def dim(self) -> int:
        """Numbers in a position on the line."""
        return self.transform.n_line

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers, less second derivatives and all that needs them."""
        return self.inner.capabilities & _KEPT

    @property
    def energy(self) -> Energy:
        """The inner potential's energy, of outputs and positions on the line."""
        return LiftedEnergy(cast(ForwardPotential, self.inner).energy, self.transform)


@attrs.frozen(eq=False)
class BoundedMatrix:
    """G_ij = q'_i M_ij q'_j + [i = j] (g_i q''_i - l''_i) at unbounded z, M being the inner matrix.

    l is the logarithm of the Jacobian, and -l'' is not negative. g is the inner gradient if M is
    the Hessian; the chain rule of a metric has no such term.

    Parameters
    ----------
    inner
        The potential in the user's coordinates.
    transform
        From unbounded to bounded.
    field
        Whether M is the Hessian or the metric.
    """

    inner: Potential
    transform: Transform
    field: MatrixField

    def matrix(self, z: FloatArray) -> FloatArray:
        """Return G at z of shape (n, dim), shape (n, dim, dim)."""
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        gradient, matrix = self._gradient(q), self.field.matrix(self.inner, q)
        return plus_diagonal(congruent(matrix, d), _bend(gradient, d))

    def product(self, z: FloatArray, u: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        gradient, product = self._gradient(q), self.field.product(self.inner, q, d.first * u)
        return d.first * product + u * _bend(gradient, d)

    def trace_gradient(self, z: FloatArray, weights: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim), with A in ``weights (n, dim, dim)``."""
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        return self._derivative(
            z,
            q,
            d,
            lambda: self.field.trace_gradient(self.inner, q, congruent(weights, d)),
            lambda matrix: cross(weights, matrix, d),
            np.einsum("nkk->nk", weights),
        )

    def form_gradient(self, z: FloatArray, u: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim): the trace with A = u u^T."""
        q, d = self.transform.to_bounded(z), self.transform.derivatives(z)
        scaled = u * d.first
        return self._derivative(
            z,
            q,
            d,
            lambda: self.field.form_gradient(self.inner, q, scaled),
            lambda matrix: u * products(matrix, scaled),
            np.square(u),
        )

    def _derivative(
        self,
        z: FloatArray,
        q: FloatArray,
        d: Derivatives,
        contraction: Callable[[], FloatArray],
        across: Callable[[FloatArray], FloatArray],
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return sum_ij A_ij d_k G_ij, shape (n, dim), with A_kk in ``diagonal (n, dim)``.

        ``contraction`` evaluates sum_ij A_ij q'_i q'_j dM_ij/dq_k; ``across`` computes
        sum_j A_kj M_kj q'_j from M.
        """
        third, log_third = self.transform.third_derivatives(z)
        gradient, matrix = self._gradient(q), self.field.matrix(self.inner, q)
        inside = contraction()
        bend = -log_third
        if gradient is not None:
            inside = inside + products(matrix, diagonal * d.second)
            bend = gradient * third - log_third
        return d.first * inside + 2.0 * d.second * across(matrix) + diagonal * bend

    def _gradient(self, q: FloatArray) -> FloatArray | None:
        """Return the inner gradient, if the chain rule has it."""
        if self.field != HESSIAN_FIELD:
            return None
        return with_gradient(self.inner).value_and_gradient(q)[1]


def _bend(gradient: FloatArray | None, d: Derivatives) -> FloatArray:
    """Return what the transform's own curvature adds to the diagonal, shape (n, dim)."""
    if gradient is None:
        return -d.log_second
    return np.asarray(gradient * d.second - d.log_second)


@attrs.frozen(eq=False)
class BoundedPotential(LiftedPotential):
    """A potential of bounded parameters q, as one of unbounded z, Jacobian included.

    U(z) = U(q(z)) - log |dq/dz|. The chain rule passes on what the inner potential can do. By that
    rule a Hessian needs the gradient, and its derivative needs both. The Hessian's diagonal is left
    out without a Hessian or its product, which the diagonal's gradient needs; second derivatives
    of outputs are left out without the Jacobian. ``convex``, ``gaussian`` and ``rows`` are always
    left out, since the Hessian in z has the gradient in it.

    Parameters
    ----------
    inner
        Potential in the user's coordinates.
    parameters
        Names, shapes and bounds.

    Raises
    ------
    ShapeError
        If the parameters do not hold as many numbers as the potential takes.
    ConfigurationError
        If none of them has a bound, or a constraint ties some of them together.
    """

    inner: Potential
    parameters: Parameters
    transform: Transform = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.parameters.tied:
            raise ConfigurationError(
                "a BoundedPotential knows bounds alone, but constraints tie numbers of its "
                "parameters together; pass the parameters to surrokit.potential"
            )
        if not self.parameters.bounded:
            raise ConfigurationError(
                "none of the parameters has a bound, so there is nothing to transform; use the "
                "potential as it is, with the parameters as its attribute 'parameters' for their "
                "names"
            )

    @transform.default
    def _transform(self) -> Transform:
        return Transform.of(self.parameters)

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers, less what bounds take away (see above)."""
        offered = self.inner.capabilities
        lost = {can.CONVEX, can.GAUSSIAN, *can.OF_ROWS}
        if not offered & {can.HESSIAN, can.HESSIAN_PRODUCT}:
            lost.add(can.HESSIAN_DIAGONAL)
        if can.JACOBIAN not in offered:
            lost.add(can.FORWARD_HESSIAN)
        return offered - lost

    @property
    def energy(self) -> Energy:
        """The inner potential's energy, of outputs and unbounded positions."""
        return BoundedEnergy(cast(ForwardPotential, self.inner).energy, self.transform)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives in z, shape (n, dim, dim)."""
        return self._hessian.matrix(check_positions(positions, self.dim))

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        return self._hessian.product(z, check_vectors(vectors, z))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, G the Hessian in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        return self._hessian.trace_gradient(z, check_matrices(matrices, z))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the Hessian in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        return self._hessian.form_gradient(z, check_vectors(vectors, z))

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the inner metric in z, plus the Jacobian's own curvature, which is not negative.

        Shape (n, dim, dim).
        """
        return self._metric.matrix(check_positions(positions, self.dim))

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the metric in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        return self._metric.product(z, check_vectors(vectors, z))

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, G the metric in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        return self._metric.trace_gradient(z, check_matrices(matrices, z))

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the metric in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        return self._metric.form_gradient(z, check_vectors(vectors, z))

    @property
    def _hessian(self) -> BoundedMatrix:
        return BoundedMatrix(self.inner, self.transform, HESSIAN_FIELD)

    @property
    def _metric(self) -> BoundedMatrix:
        return BoundedMatrix(self.inner, self.transform, METRIC_FIELD)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        q = self.transform.to_bounded(z)
        inner = cast(HessianDiagonalPotential, self.inner)
        d = self.transform.derivatives(z)
        gradient = cast(GradientPotential, inner).value_and_gradient(q)[1]
        diagonal = inner.hessian_diagonal(q)
        return np.asarray(np.square(d.first) * diagonal + gradient * d.second - d.log_second)

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj for each k, G the Hessian in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        c = check_vectors(weights, z)
        q = self.transform.to_bounded(z)
        inner = cast(HessianDiagonalPotential, self.inner)
        d = self.transform.derivatives(z)
        third, log_third = self.transform.third_derivatives(z)
        gradient = cast(GradientPotential, inner).value_and_gradient(q)[1]
        diagonal = inner.hessian_diagonal(q)
        inside = inner.hessian_diagonal_gradient(q, c * np.square(d.first))
        pulled = self._inner_product(q, c * d.second)
        total = d.first * (inside + pulled + 2.0 * c * diagonal * d.second)
        return total + c * (gradient * third - log_third)

    def _inner_product(self, q: FloatArray, vectors: FloatArray) -> FloatArray:
        if can.HESSIAN_PRODUCT in self.inner.capabilities:
            return cast(HessianProductPotential, self.inner).hessian_product(q, vectors)
        return products(cast(HessianPotential, self.inner).hessian(q), vectors)

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m for each k, in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        by_outputs = check_weights(weights, z)
        q = self.transform.to_bounded(z)
        inner = cast(ForwardHessianPotential, self.inner)
        d = self.transform.derivatives(z)
        jacobian = inner.forward_and_jacobian(q)[1]
        product = inner.forward_hessian_product(q, by_outputs * d.first[:, None, :])
        along = np.einsum("nmk,nmk->nk", by_outputs, jacobian)
        return np.asarray(d.first * product + d.second * along)


def with_bounds(potential: Potential, parameters: Parameters) -> Potential:
    """Return a potential on the whole line; the potential itself if nothing is bounded or tied.

    Parameters
    ----------
    potential
        In the user's coordinates.
    parameters
        Its parameters.
    """
    if parameters.tied:
        return ConstrainedPotential(potential, parameters)
    return BoundedPotential(potential, parameters) if parameters.bounded else potential


def parameters_of(potential: Potential) -> Parameters:
    """Return the parameters that a potential declares, or unbounded ones called q[i]."""
    declared = getattr(potential, "parameters", None)
    return declared if isinstance(declared, Parameters) else Parameters.unnamed(potential.dim)


def transform_of(potential: Potential) -> CoordinateMap:
    """Return the map from a potential's sampling coordinates to the user's."""
    declared = getattr(potential, "transform", None)
    if isinstance(declared, CoordinateMap):
        return declared
    return Transform.of(Parameters.unnamed(potential.dim))


def labels_on_line(potential: Potential) -> list[str]:
    """Return a name for each number of a potential's sampling coordinates."""
    transform = transform_of(potential)
    of = from_line_of(transform)
    own = of.line if isinstance(of, ModelMap) else parameters_of(potential)
    labels = own.labels if isinstance(of, ModelMap) else own.labels_on_line
    if not isinstance(transform, Scaled):
        return labels
    return [
        label if as_is else f"{label} (scaled)"
        for label, as_is in zip(labels, transform.scaling.apart, strict=True)
    ]


_SHOWN = 10  # numbers of a position in a message


def describe_position(potential: Potential, position: FloatArray) -> str:
    """Return a sampling position (dim,) in words: each parameter's name and its value."""
    where = transform_of(potential).to_bounded(position)
    labels = parameters_of(potential).labels
    shown = [f"{label} = {x:.6g}" for label, x in zip(labels, where, strict=True)]
    more = [f"and {len(shown) - _SHOWN} more"] if len(shown) > _SHOWN else []
    return ", ".join([*shown[:_SHOWN], *more])
