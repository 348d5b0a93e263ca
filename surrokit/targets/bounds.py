"""Targets in other coordinates: bounds, constraints and scales, by one chain rule.

With q(z) the map and l its log Jacobian, U(z) = U(q(z)) - l(z). A matrix G in z is
q'_i M_ij q'_j + [i = j] (g_i q''_i - l''_i), M being the inner one and -l'' not negative. g is the
inner gradient if M is the Hessian; the chain rule of a metric has no such term. G is A^T M A if the
map is q = A z.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.capabilities import BY_NAME
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
    CURVATURES,
    HESSIAN_FIELD,
    Energy,
    MatrixField,
    Potential,
    energy_capabilities,
    with_curvatures,
    with_forward,
    with_gradient,
)
from surrokit.types import Capabilities, FloatArray, Pair


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
        """``curvatures`` if the inner energy has them and constraints tie no numbers."""
        elementwise = isinstance(self.transform, Transform | Scaling)
        return energy_capabilities(self.inner) & {CURVATURES if elementwise else ""}

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        value = self.inner.value(outputs, self.transform.to_bounded(positions))
        return value - self.transform.log_jacobian(positions)

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in z (n, dim)."""
        q = self.transform.to_bounded(positions)
        value, by_outputs, by_positions = self.inner.value_and_gradients(outputs, q)
        lifted = value - self.transform.log_jacobian(positions)
        return lifted, by_outputs, self.transform.pull_back(positions, by_positions)

    def curvatures(self, outputs: FloatArray, positions: FloatArray) -> Pair:
        """Return the inner curvatures in z, plus the Jacobian's own, which is not negative."""
        inner, d = with_curvatures(self.inner), _derivatives(self.transform, positions)
        by_outputs, by_positions = inner.curvatures(outputs, self.transform.to_bounded(positions))
        form = d.pull_form(by_positions)
        return by_outputs, form if isinstance(d, Scaling) else plus_diagonal(form, d.curvature())


class LiftedPotential(Wrapper, ABC):
    """A potential of q as one of z, Jacobian included.

    This is the chain rule, for all methods of :mod:`surrokit.capabilities`; subclasses choose the
    map and what is passed on.
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
        return LiftedEnergy(with_forward(self.inner).energy, self.inner_map)

    def outside(self, positions: FloatArray) -> FloatArray:
        """Return positions z for those of the inner potential."""
        return self.inner_map.to_unbounded(positions)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U at positions z of shape (n, dim), shape (n,)."""
        z = check_positions(positions, self.dim)
        return self.inner.value(self.inner_map.to_bounded(z)) - self.inner_map.log_jacobian(z)

    def __getattr__(self, name: str) -> Any:
        """Return another method that the capabilities promise."""
        field, _, what = name.partition("_")
        if name == "initial":
            whole: Any = self.inner
            return lambda rng, n: self.outside(whole.initial(rng, n))
        if field in ("hessian", "metric") and what in _SECOND:
            return partial(self._second, MatrixField(cast(Any, field)), what)
        if field not in ("hessian", "metric") and name in BY_NAME:
            return partial(self._first, name)
        raise AttributeError(f"{type(self).__name__} has no {name!r}")

    def _first(self, name: str, positions: FloatArray) -> Any:
        """Return values and outputs, and derivatives of first order."""
        z, of = check_positions(positions, self.dim), self.inner_map
        results = getattr(self.inner, name)(of.to_bounded(z))
        both = list(results) if isinstance(results, tuple) else [results]
        for i, kind in enumerate(BY_NAME[name].gives):
            if kind == "":
                both[i] = both[i] - of.log_jacobian(z)
            elif kind == "q":
                both[i] = of.pull_back(z, both[i])
            elif kind == "mq":
                both[i] = of.pull_outputs(z, both[i])
        return tuple(both) if len(both) > 1 else both[0]

    def _second(
        self, field: MatrixField, what: str, positions: FloatArray, *given: FloatArray
    ) -> FloatArray:
        """Return G in z, its product with vectors, or tr(A d_k G) with A of matrices or u u^T."""
        z = check_positions(positions, self.dim)
        d, q, inner = _derivatives(self.inner_map, z), self._inside(z), self.inner
        method = BY_NAME["_".join([field.name, what] if what else [field.name])]
        factors = method.check_factors(given[0], z) if given else None
        gradient = None
        if isinstance(d, Derivatives) and field == HESSIAN_FIELD:  # whose chain rule has it
            gradient = with_gradient(inner).value_and_gradient(q)[1]
        if factors is None:
            form = d.pull_form(field.matrix(inner, q))
            return form if isinstance(d, Scaling) else plus_diagonal(form, d.curvature(gradient))
        pushed = d.push(factors) if factors.ndim == 2 else d.push_form(factors)
        if what == "product":
            product = d.pull(field.product(inner, q, pushed))
            return product if isinstance(d, Scaling) else product + factors * d.curvature(gradient)
        inside = getattr(field, what)(inner, q, pushed)
        if isinstance(d, Scaling):
            return d.pull(inside)
        matrix = field.matrix(inner, q)
        if factors.ndim == 2:
            across, diagonal = factors * products(matrix, pushed), np.square(factors)
        else:
            across = np.einsum("nkj,nkj,nj->nk", factors, matrix, d.first)
            diagonal = np.einsum("nkk->nk", factors)
        if gradient is not None:
            inside = inside + products(matrix, diagonal * d.second)
        return d.of_form(inside, across, diagonal, gradient)

    def _inside(self, z: FloatArray) -> FloatArray:
        return self.inner_map.to_bounded(z)


_SECOND = ("", "product", "trace_gradient", "form_gradient")


@attrs.frozen(eq=False)
class BoundedPotential(LiftedPotential):
    """A potential of bounded or constrained parameters q, as one of unbounded z.

    By the chain rule a Hessian needs the gradient, and its derivative needs both. ``convex``,
    ``gaussian``, ``rows``, ``hessian-diagonal`` and ``metric-product`` are left out, and all second
    derivatives where constraints tie numbers together.

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


def between_of(potential: Potential) -> Transform | Scaled | None:
    """Return the map of a potential's numbers between two bounds alone; None where there are none.

    Others stay on the line; None where constraints tie numbers together.
    """
    of = transform_of(potential)
    line = from_line_of(of)
    if not isinstance(line, Transform) or not line.between.any():
        return None
    ends = np.where(line.between, [line.lower, line.upper], [[-np.inf], [np.inf]])
    line = Transform(lower=ends[0], upper=ends[1])
    return attrs.evolve(of, inner=line) if isinstance(of, Scaled) else line


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
