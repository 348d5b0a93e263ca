"""Targets in other coordinates: bounds, constraints and scales, by one chain rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, cast

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
    from_line_of,
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
    Energy,
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
    """The energy of a forward potential in other coordinates, Jacobian included."""

    inner: Energy
    transform: CoordinateMap | Scaling

    @property
    def capabilities(self) -> Capabilities:
        """What the inner energy offers; nothing beyond gradients where constraints tie numbers."""
        elementwise = isinstance(self.transform, Transform | Scaling)
        return energy_capabilities(self.inner) if elementwise else frozenset()

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        value = self.inner.value(outputs, self.transform.to_bounded(positions))
        return value - self.transform.log_jacobian(positions)

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in z (n, dim)."""
        value, by_outputs, by_positions = self.inner.value_and_gradients(
            outputs, self.transform.to_bounded(positions)
        )
        lifted = value - self.transform.log_jacobian(positions)
        return lifted, by_outputs, pull_back(self.transform, positions, by_positions)

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the inner curvatures in z, plus the Jacobian's own, which is not negative.

        Shapes (n, m) or (n, m, m), and (n, dim, dim).
        """
        inner, d = with_curvatures(self.inner), _derivatives(self.transform, positions)
        by_outputs, by_positions = inner.curvatures(outputs, self.transform.to_bounded(positions))
        form = d.pull_form(by_positions)
        return by_outputs, plus_diagonal(form, d.curvature()) if isinstance(
            d, Derivatives
        ) else form

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
        inner, d = with_curvature_derivatives(self.inner), _derivatives(self.transform, positions)
        q, weights = self.transform.to_bounded(positions), by_positions_weights
        by_outputs, inside = inner.curvature_gradients(
            outputs, q, by_outputs_weights, d.push_form(weights)
        )
        if not isinstance(d, Derivatives):
            return by_outputs, d.pull(inside)
        third = cast(Transform, self.transform).third_derivatives(positions)
        across = d.cross(weights, inner.curvatures(outputs, q)[1])
        return by_outputs, d.of_form(third, inside, across, np.einsum("nkk->nk", weights))


def _derivatives(of: CoordinateMap | Scaling, z: FloatArray) -> Derivatives | Scaling:
    assert isinstance(of, Transform | Scaling)  # others offer no second derivatives
    return of.derivatives(z)


class LiftedPotential(Wrapper, ShownTarget, ABC):
    """A potential of q as one of z, Jacobian included: U(z) = U(q(z)) - log Jacobian.

    This is the chain rule; subclasses choose the map and what is passed on.
    """

    __slots__ = ()

    parameters: Parameters
    transform: CoordinateMap
    """The map from z to the user's coordinates."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What of the inner potential's is passed on."""

    @property
    def inner_map(self) -> CoordinateMap | Scaling:
        """The map from z to the coordinates of the inner potential."""
        return self.transform

    @property
    def energy(self) -> Energy:
        """The inner potential's energy, of outputs and positions z."""
        return LiftedEnergy(self._whole.energy, self.inner_map)

    @property
    def _whole(self) -> Any:
        """The inner potential, with whatever its capabilities promise."""
        return self.inner

    def outside(self, positions: FloatArray) -> FloatArray:
        """Return positions z for those of the inner potential."""
        return self.inner_map.to_unbounded(positions)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U at positions z of shape (n, dim), shape (n,)."""
        z, q = self._at(positions)
        return self.inner.value(q) - self.inner_map.log_jacobian(z)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient in z, shape (n, dim)."""
        z, q = self._at(positions)
        value, gradient = self._whole.value_and_gradient(q)
        return value - self.inner_map.log_jacobian(z), pull_back(self.inner_map, z, gradient)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, dim)."""
        z, q = self._at(positions)
        return pull_back(self.inner_map, z, self._whole.gradient(q))

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""
        outputs: FloatArray = self._whole.forward(self._at(positions)[1])
        return outputs

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives in z, shape (n, m, dim)."""
        z, q = self._at(positions)
        outputs, jacobian = self._whole.forward_and_jacobian(q)
        return outputs, pull_back_outputs(self.inner_map, z, jacobian)

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and the gradient of U in z, shape (n, dim)."""
        z, q = self._at(positions)
        outputs, gradient = self._whole.forward_and_gradient(q)
        return outputs, pull_back(self.inner_map, z, gradient)

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m for each k, in z, shape (n, dim)."""
        z, q = self._at(positions)
        w, d = check_weights(weights, z), _derivatives(self.inner_map, z)
        product = d.pull(self._whole.forward_hessian_product(q, d.push(w)))
        if not isinstance(d, Derivatives):
            return product
        along = np.einsum("nmk,nmk->nk", w, self._whole.forward_and_jacobian(q)[1])
        return np.asarray(product + d.second * along)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions z, shape (n, dim)."""
        return self.outside(self._whole.initial(rng, n))

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives in z, shape (n, dim, dim)."""
        return self._matrix(HESSIAN_FIELD, positions)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian in z, shape (n, dim)."""
        return self._product(HESSIAN_FIELD, positions, vectors)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, G the Hessian in z, shape (n, dim)."""
        return self._trace_gradient(HESSIAN_FIELD, positions, matrices)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the Hessian in z, shape (n, dim)."""
        return self._form_gradient(HESSIAN_FIELD, positions, vectors)

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metric in z, (n, dim, dim), with the Jacobian's curvature: not negative."""
        return self._matrix(METRIC_FIELD, positions)

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the metric in z, shape (n, dim)."""
        return self._product(METRIC_FIELD, positions, vectors)

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, G the metric in z, shape (n, dim)."""
        return self._trace_gradient(METRIC_FIELD, positions, matrices)

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the metric in z, shape (n, dim)."""
        return self._form_gradient(METRIC_FIELD, positions, vectors)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian in z, shape (n, dim)."""
        z, q = self._at(positions)
        d = _derivatives(self.inner_map, z)
        if not isinstance(d, Derivatives):
            return np.asarray(np.einsum("nii->ni", self.hessian(z)).copy())
        gradient = self._whole.value_and_gradient(q)[1]
        diagonal = self._whole.hessian_diagonal(q)
        return np.asarray(np.square(d.first) * diagonal + gradient * d.second - d.log_second)

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj for each k, G the Hessian in z, shape (n, dim)."""
        z, q = self._at(positions)
        c, d = check_vectors(weights, z), _derivatives(self.inner_map, z)
        if not isinstance(d, Derivatives):
            return self.hessian_trace_gradient(z, c[:, :, None] * np.eye(self.dim))
        inner = self._whole
        gradient, diagonal = inner.value_and_gradient(q)[1], inner.hessian_diagonal(q)
        inside, vectors = inner.hessian_diagonal_gradient(q, c * np.square(d.first)), c * d.second
        quick = can.HESSIAN_PRODUCT in inner.capabilities
        product = (
            inner.hessian_product(q, vectors) if quick else products(inner.hessian(q), vectors)
        )
        third = cast(Transform, self.inner_map).third_derivatives(z)
        return d.of_form(third, inside + product, c * diagonal * d.first, c, gradient)

    def _at(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        z = check_positions(positions, self.dim)
        return z, self.inner_map.to_bounded(z)

    # A matrix G is q'_i M_ij q'_j + [i = j] (g_i q''_i - l''_i) at z, M being the inner one. l is
    # the logarithm of the Jacobian, and -l'' is not negative. g is the inner gradient if M is the
    # Hessian; the chain rule of a metric has no such term. G is A^T M A if the map is q = A z.

    def _matrix(self, field: MatrixField, positions: FloatArray) -> FloatArray:
        z, q = self._at(positions)
        d = _derivatives(self.inner_map, z)
        if not isinstance(d, Derivatives):
            return d.pull_form(field.matrix(self.inner, q))
        added = d.curvature(self._gradient(field, q))
        return plus_diagonal(d.pull_form(field.matrix(self.inner, q)), added)

    def _product(
        self, field: MatrixField, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray:
        z, q = self._at(positions)
        u, d = check_vectors(vectors, z), _derivatives(self.inner_map, z)
        if not isinstance(d, Derivatives):
            return d.pull(field.product(self.inner, q, d.push(u)))
        added = d.curvature(self._gradient(field, q))
        return d.pull(field.product(self.inner, q, d.push(u))) + u * added

    def _trace_gradient(
        self, field: MatrixField, positions: FloatArray, matrices: FloatArray
    ) -> FloatArray:
        z, q = self._at(positions)
        weights, d = check_matrices(matrices, z), _derivatives(self.inner_map, z)
        inside = field.trace_gradient(self.inner, q, d.push_form(weights))
        if not isinstance(d, Derivatives):
            return d.pull(inside)
        matrix = field.matrix(self.inner, q)
        across, diagonal = d.cross(weights, matrix), np.einsum("nkk->nk", weights)
        return self._lifted(field, z, q, d, matrix, inside, across, diagonal)

    def _form_gradient(
        self, field: MatrixField, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray:
        """Return the trace with A = u u^T."""
        z, q = self._at(positions)
        u, d = check_vectors(vectors, z), _derivatives(self.inner_map, z)
        pushed = d.push(u)
        inside = field.form_gradient(self.inner, q, pushed)
        if not isinstance(d, Derivatives):
            return d.pull(inside)
        matrix = field.matrix(self.inner, q)
        across = u * products(matrix, pushed)
        return self._lifted(field, z, q, d, matrix, inside, across, np.square(u))

    def _lifted(
        self,
        field: MatrixField,
        z: FloatArray,
        q: FloatArray,
        d: Derivatives,
        matrix: FloatArray,
        inside: FloatArray,
        across: FloatArray,
        diagonal: FloatArray,
    ) -> FloatArray:
        """Return :meth:`Derivatives.of_form`, where the derivative of the inner gradient counts."""
        gradient = self._gradient(field, q)
        if gradient is not None:
            inside = inside + products(matrix, diagonal * d.second)
        third = cast(Transform, self.inner_map).third_derivatives(z)
        return d.of_form(third, inside, across, diagonal, gradient)

    def _gradient(self, field: MatrixField, q: FloatArray) -> FloatArray | None:
        """Return the inner gradient, if the chain rule has it."""
        if field != HESSIAN_FIELD:
            return None
        return with_gradient(self.inner).value_and_gradient(q)[1]


def _check_size(inner: Potential, parameters: Parameters) -> None:
    if parameters.dim != inner.dim:
        raise ShapeError(
            f"parameters hold {parameters.dim} numbers, but the potential takes {inner.dim}; "
            "declare every number of the position vector"
        )


_KEPT = frozenset({can.GRADIENT, can.GRADIENT_ALONE, can.INITIAL, can.FORWARD})
_KEPT |= {can.JACOBIAN, can.VJP}


@attrs.frozen(eq=False)
class ConstrainedPotential(LiftedPotential):
    """A potential of constrained arrays q, as one of unbounded z, Jacobian included.

    Values, gradients and forward maps are passed on, second derivatives are not. ShapeError is
    raised if the parameters do not hold as many numbers as the potential takes.
    """

    inner: Potential
    parameters: Parameters
    transform: Blocks = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        _check_size(self.inner, self.parameters)

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


@attrs.frozen(eq=False)
class BoundedPotential(LiftedPotential):
    """A potential of bounded parameters q, as one of unbounded z, Jacobian included.

    By the chain rule a Hessian needs the gradient, and its derivative needs both. The Hessian's
    diagonal is left out without a Hessian or its product, which the diagonal's gradient needs;
    second derivatives of outputs are left out without the Jacobian. ``convex``, ``gaussian`` and
    ``rows`` are always left out, since the Hessian in z has the gradient in it.

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
        _check_size(self.inner, self.parameters)
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


def with_bounds(potential: Potential, parameters: Parameters) -> Potential:
    """Return a potential on the whole line; the potential itself if nothing is bounded or tied."""
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
