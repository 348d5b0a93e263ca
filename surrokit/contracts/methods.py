"""One table of the methods that evaluate potentials: what each takes, returns and costs.

Wrappers use the table to pass methods on, and to count and check calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

import attrs
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.shapes import check_matrices, check_vectors, check_weights
from surrokit.types import FloatArray

CallKind: TypeAlias = Literal[
    "value", "gradient", "forward", "jacobian", "vjp", "hessian", "metric", "rows"
]
"""Kinds of exact calls, counted in positions (``rows``: in data rows)."""

CALL_KINDS: tuple[CallKind, ...] = get_args(CallKind)
"""All kinds of exact calls."""


Factor: TypeAlias = Literal["vectors", "matrices", "weights"]
"""Second argument of a method, of shape ``(n, dim)``, ``(n, dim, dim)`` or ``(n, m, dim)``."""

_CHECKS = {"vectors": check_vectors, "matrices": check_matrices, "weights": check_weights}


@attrs.frozen
class Method:
    """A method that evaluates a potential at positions.

    Parameters
    ----------
    name
        Name of the method.
    capability
        Capability that promises it; None for a method of every potential.
    kind
        Kind that a call counts as; None for a call that is not counted.
    factor
        Second argument, with one item for each position; None for no second argument.
    gives
        The axes of each array that it returns, after that of the positions: ``q`` for one of dim
        numbers, and ``m`` for one of the outputs of a forward map.
    """

    name: str
    capability: str | None
    kind: CallKind | None
    factor: Factor | None = None
    gives: tuple[str, ...] = ("",)

    def check_factors(self, factors: npt.ArrayLike, positions: FloatArray) -> FloatArray:
        """Return the second argument, for ``positions (n, dim)``, as a double-precision array.

        Raises
        ------
        ShapeError
            If its shape is not what this method takes.
        """
        assert self.factor is not None
        return _CHECKS[self.factor](factors, positions)


METHODS: tuple[Method, ...] = (
    Method("value", None, "value"),
    Method("value_and_gradient", can.GRADIENT, "gradient", gives=("", "q")),
    Method("gradient", can.GRADIENT_ALONE, "gradient", gives=("q",)),
    Method("hessian", can.HESSIAN, "hessian", gives=("qq",)),
    Method("hessian_trace_gradient", can.HESSIAN_DERIVATIVE, "hessian", "matrices", ("q",)),
    Method("hessian_form_gradient", can.HESSIAN_DERIVATIVE, "hessian", "vectors", ("q",)),
    Method("hessian_product", can.HESSIAN_PRODUCT, "hessian", "vectors", ("q",)),
    Method("hessian_diagonal", can.HESSIAN_DIAGONAL, "hessian", gives=("q",)),
    Method("hessian_diagonal_gradient", can.HESSIAN_DIAGONAL, "hessian", "vectors", ("q",)),
    Method("metric", can.METRIC, "metric", gives=("qq",)),
    Method("metric_trace_gradient", can.METRIC_DERIVATIVE, "metric", "matrices", ("q",)),
    Method("metric_form_gradient", can.METRIC_DERIVATIVE, "metric", "vectors", ("q",)),
    Method("metric_product", can.METRIC_PRODUCT, "metric", "vectors", ("q",)),
    Method("forward", can.FORWARD, "forward", gives=("m",)),
    Method("forward_and_jacobian", can.JACOBIAN, "jacobian", gives=("m", "mq")),
    Method("forward_and_gradient", can.VJP, "vjp", gives=("m", "q")),
    Method("forward_hessian_product", can.FORWARD_HESSIAN, "jacobian", "weights", ("q",)),
    Method("variance", can.VARIANCE, None),
)
"""All methods; ``kind`` is that of potentials without a forward map."""

OF_MAPS: tuple[Method, ...] = (
    Method("forward_hessian", can.FORWARD_HESSIAN, "jacobian", gives=("mqq",)),
    Method("forward_to_second_order", can.FORWARD_HESSIAN, "jacobian", gives=("m", "mq", "mqq")),
)
"""What a forward map evaluates besides: its second derivatives, alone or with all before them."""

BY_NAME: Mapping[str, Method] = {method.name: method for method in METHODS}
"""Name to method."""

ALL_BY_NAME: Mapping[str, Method] = {**BY_NAME, **{method.name: method for method in OF_MAPS}}
"""Name to method, or to what else a model evaluates."""
