"""Targets in other coordinates: bounds, constraints and scales, by one chain rule.

With q(z) the map and l its log Jacobian, U(z) = U(q(z)) - l(z). A matrix G in z is
q'_i M_ij q'_j + [i = j] (g_i q''_i - l''_i), M being the inner one and -l'' not negative. g is the
inner gradient if M is the Hessian; the chain rule of a metric has no such term. G is A^T M A if the
map is q = A z.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors, check_weights
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import (
    Derivatives,
    Scaled,
    Scaling,
    Transform,
    from_line_of,
    map_of,
    plus_diagonal,
    products,
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
from surrokit.types import Capabilities, FloatArray, Pair

Check: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""Checks what comes with each position."""


def _derivatives(of: CoordinateMap, z: FloatArray) -> Derivatives | Scaling:
    assert isinstance(of, Transform | Scaling)  # others offer no second derivatives
    return of.derivatives(z)


@attrs.frozen(eq=False)
class LiftedEnergy:
    """The energy of a forward potential in other coordinates, Jacobian included."""

    inner: Energy
    transform: CoordinateMap

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
        return lifted, by_outputs, self.transform.pull_back(positions, by_positions)

    def curvatures(self, outputs: FloatArray, positions: FloatArray) -> Pair:
        """Return the inner curvatures in z, plus the Jacobian's own, which is not negative."""
        inner, d = with_curvatures(self.inner), _derivatives(self.transform, positions)
        by_outputs, by_positions = inner.curvatures(outputs, self.transform.to_bounded(positions))
        form = d.pull_form(by_positions)
        if isinstance(d, Scaling):
            return by_outputs, form
        return by_outputs, plus_diagonal(form, d.curvature())

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> Pair:
        """Return gradients in outputs and z; see :class:`surrokit.potentials.CurvedEnergy`."""
        inner, d = with_curvature_derivatives(self.inner), _derivatives(self.transform, positions)
        q, weights = self.transform.to_bounded(positions), by_positions_weights
        by_outputs, inside = inner.curvature_gradients(
            outputs, q, by_outputs_weights, d.push_form(weights)
        )
        if isinstance(d, Scaling):
            return by_outputs, d.pull(inside)
        third = cast(Transform, self.transform).third_derivatives(positions)
        across = np.einsum("nkj,nkj,nj->nk", weights, inner.curvatures(outputs, q)[1], d.first)
        return by_outputs, d.of_form(third, inside, across, np.einsum("nkk->nk", weights))


class LiftedPotential(Wrapper, ShownTarget, ABC):
    """A potential of q as one of z, Jacobian included.

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
    def inner_map(self) -> CoordinateMap:
        """The map from z to the coordinates of the inner potential."""
        return self.transform

    @property
    def energy(self) -> Energy:
        """The inner potential's energy, of outputs and positions z."""
        return LiftedEnergy(self._whole.energy, self.inner_map)

    def outside(self, positions: FloatArray) -> FloatArray:
        """Return positions z for those of the inner potential."""
        return self.inner_map.to_unbounded(positions)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions z, shape (n, dim)."""
        return self.outside(self._whole.initial(rng, n))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U at positions z of shape (n, dim), shape (n,)."""
        z, q = self._at(positions)
        return self.inner.value(q) - self.inner_map.log_jacobian(z)

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return U, shape (n,), and its gradient in z, shape (n, dim)."""
        z, q = self._at(positions)
        value, gradient = self._whole.value_and_gradient(q)
        return value - self.inner_map.log_jacobian(z), self.inner_map.pull_back(z, gradient)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, dim)."""
        z, q = self._at(positions)
        return self.inner_map.pull_back(z, self._whole.gradient(q))

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""
        outputs: FloatArray = self._whole.forward(self._at(positions)[1])
        return outputs

    def forward_and_jacobian(self, positions: FloatArray) -> Pair:
        """Return the outputs, shape (n, m), and their derivatives in z, shape (n, m, dim)."""
        z, q = self._at(positions)
        outputs, jacobian = self._whole.forward_and_jacobian(q)
        return outputs, self.inner_map.pull_outputs(z, jacobian)

    def forward_and_gradient(self, positions: FloatArray) -> Pair:
        """Return the outputs, shape (n, m), and the gradient of U in z, shape (n, dim)."""
        z, q = self._at(positions)
        outputs, gradient = self._whole.forward_and_gradient(q)
        return outputs, self.inner_map.pull_back(z, gradient)

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m for each k, in z, shape (n, dim)."""
        z, q = self._at(positions)
        w, d = check_weights(weights, z), _derivatives(self.inner_map, z)
        product = d.pull(self._whole.forward_hessian_product(q, d.push(w)))
        if isinstance(d, Scaling):
            return product
        along = np.einsum("nmk,nmk->nk", w, self._whole.forward_and_jacobian(q)[1])
        return np.asarray(product + d.second * along)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives in z, shape (n, dim, dim)."""
        return self._matrix(HESSIAN_FIELD, positions)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian in z, shape (n, dim)."""
        z, q = self._at(positions)
        u, d = check_vectors(vectors, z), _derivatives(self.inner_map, z)
        product = d.pull(HESSIAN_FIELD.product(self.inner, q, d.push(u)))
        return product if isinstance(d, Scaling) else product + u * self._bend(HESSIAN_FIELD, d, q)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, G the Hessian in z, shape (n, dim)."""
        return self._form(HESSIAN_FIELD, positions, matrices, check_matrices)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the Hessian in z, shape (n, dim)."""
        return self._form(HESSIAN_FIELD, positions, vectors, check_vectors)

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metric in z, (n, dim, dim), with the Jacobian's curvature: not negative."""
        return self._matrix(METRIC_FIELD, positions)

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, G the metric in z, shape (n, dim)."""
        return self._form(METRIC_FIELD, positions, matrices, check_matrices)

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, G the metric in z, shape (n, dim)."""
        return self._form(METRIC_FIELD, positions, vectors, check_vectors)

    @property
    def _whole(self) -> Any:
        """The inner potential, with whatever its capabilities promise."""
        return self.inner

    def _at(self, positions: FloatArray) -> Pair:
        z = check_positions(positions, self.dim)
        return z, self.inner_map.to_bounded(z)

    def _bend(self, field: MatrixField, d: Derivatives, q: FloatArray) -> FloatArray:
        """Return what the curvature of the map adds to a matrix."""
        if field == METRIC_FIELD:
            return d.curvature()
        return d.curvature(with_gradient(self.inner).value_and_gradient(q)[1])

    def _matrix(self, field: MatrixField, positions: FloatArray) -> FloatArray:
        z, q = self._at(positions)
        d = _derivatives(self.inner_map, z)
        form = d.pull_form(field.matrix(self.inner, q))
        return form if isinstance(d, Scaling) else plus_diagonal(form, self._bend(field, d, q))

    def _form(
        self, field: MatrixField, positions: FloatArray, given: FloatArray, check: Check
    ) -> FloatArray:
        """Return tr(A d_k G), with A from matrices, or u u^T from vectors."""
        z, q = self._at(positions)
        d, factors = _derivatives(self.inner_map, z), check(given, z)
        of_vectors = factors.ndim == 2
        pushed = d.push(factors) if of_vectors else d.push_form(factors)
        gradient_of = field.form_gradient if of_vectors else field.trace_gradient
        inside = gradient_of(self.inner, q, pushed)
        if isinstance(d, Scaling):
            return d.pull(inside)
        matrix = field.matrix(self.inner, q)
        if of_vectors:
            across, diagonal = factors * products(matrix, pushed), np.square(factors)
        else:
            across = np.einsum("nkj,nkj,nj->nk", factors, matrix, d.first)
            diagonal = np.einsum("nkk->nk", factors)
        gradient = None
        if field == HESSIAN_FIELD:  # whose chain rule has the derivative of the inner gradient
            gradient = with_gradient(self.inner).value_and_gradient(q)[1]
            inside = inside + products(matrix, diagonal * d.second)
        third = cast(Transform, self.inner_map).third_derivatives(z)
        return d.of_form(third, inside, across, diagonal, gradient)


@attrs.frozen(eq=False)
class BoundedPotential(LiftedPotential):
    """A potential of bounded or constrained parameters q, as one of unbounded z.

    By the chain rule a Hessian needs the gradient, and its derivative needs both. Second
    derivatives of outputs are left out without the Jacobian. ``convex``, ``gaussian``, ``rows``,
    ``hessian-diagonal`` and ``metric-product`` are always left out, and all second derivatives
    where constraints tie numbers together.

    Raises
    ------
    ShapeError
        If the parameters do not hold as many numbers as the potential takes.
    ConfigurationError
        If none of them has a bound or a constraint.
    """

    inner: Potential
    parameters: Parameters
    transform: CoordinateMap = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if self.parameters.dim != self.inner.dim:
            raise ShapeError(
                f"parameters hold {self.parameters.dim} numbers, but the potential takes "
                f"{self.inner.dim}; declare every number of the position vector"
            )
        if not self.parameters.bounded and not self.parameters.tied:
            raise ConfigurationError(
                "none of the parameters has a bound, so there is nothing to transform; use the "
                "potential as it is, with the parameters as its attribute 'parameters' for their "
                "names"
            )

    @transform.default
    def _transform(self) -> CoordinateMap:
        return map_of(self.parameters)

    @property
    def dim(self) -> int:
        """Numbers in a position on the line."""
        return self.parameters.free

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers, less what the map takes away (see above)."""
        offered = self.inner.capabilities
        first = {can.GRADIENT, can.GRADIENT_ALONE, can.INITIAL, can.FORWARD, can.JACOBIAN, can.VJP}
        if not isinstance(self.transform, Transform):
            return offered & first
        lost = {can.CONVEX, can.GAUSSIAN, can.HESSIAN_DIAGONAL, can.METRIC_PRODUCT, *can.OF_ROWS}
        if can.JACOBIAN not in offered:
            lost.add(can.FORWARD_HESSIAN)
        return offered - lost


def with_bounds(potential: Potential, parameters: Parameters) -> Potential:
    """Return a potential on the whole line; the potential itself if nothing is bounded or tied."""
    to_map = parameters.bounded or parameters.tied
    return BoundedPotential(potential, parameters) if to_map else potential


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
    labels = own.labels_on_line
    if not isinstance(transform, Scaled):
        return labels
    pairs = zip(labels, transform.scaling.apart, strict=True)
    return [label if as_is else f"{label} (scaled)" for label, as_is in pairs]


def describe_position(potential: Potential, position: FloatArray) -> str:
    """Return a sampling position (dim,) in words: names of its first ten numbers, and these."""
    where = transform_of(potential).to_bounded(position)
    labels = parameters_of(potential).labels
    shown = [f"{label} = {x:.6g}" for label, x in zip(labels, where, strict=True)]
    more = [f"and {len(shown) - 10} more"] if len(shown) > 10 else []
    return ", ".join([*shown[:10], *more])
