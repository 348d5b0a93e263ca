"""A target with bounded parameters, in unbounded coordinates."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.forward import (
    Energy,
    ForwardHessianPotential,
    ForwardPotential,
)
from surrokit.contracts.matrices import (
    HESSIAN_FIELD,
    METRIC_FIELD,
    HessianDiagonalPotential,
    HessianPotential,
    HessianProductPotential,
)
from surrokit.contracts.potential import (
    GradientPotential,
    Potential,
)
from surrokit.coordinates.blocks import CoordinateMap, Scaled, from_line_of
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import Transform, products
from surrokit.errors import ConfigurationError
from surrokit.shapes import check_matrices, check_positions, check_vectors, check_weights
from surrokit.targets.bounded.constrained import ConstrainedPotential
from surrokit.targets.bounded.energy import BoundedEnergy
from surrokit.targets.bounded.lifted import LiftedPotential
from surrokit.targets.bounded.matrix import BoundedMatrix
from surrokit.types import Capabilities, FloatArray


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
