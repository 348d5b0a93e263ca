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
    gives_matrices
        Whether it returns arrays of shape (n, dim, dim).
    """

    name: str
    capability: str | None
    kind: CallKind | None
    factor: Factor | None = None
    gives_matrices: bool = False

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
    Method("value_and_gradient", can.GRADIENT, "gradient"),
    Method("gradient", can.GRADIENT_ALONE, "gradient"),
    Method("hessian", can.HESSIAN, "hessian", gives_matrices=True),
    Method("hessian_trace_gradient", can.HESSIAN_DERIVATIVE, "hessian", "matrices"),
    Method("hessian_form_gradient", can.HESSIAN_DERIVATIVE, "hessian", "vectors"),
    Method("hessian_product", can.HESSIAN_PRODUCT, "hessian", "vectors"),
    Method("hessian_diagonal", can.HESSIAN_DIAGONAL, "hessian"),
    Method("hessian_diagonal_gradient", can.HESSIAN_DIAGONAL, "hessian", "vectors"),
    Method("metric", can.METRIC, "metric", gives_matrices=True),
    Method("metric_trace_gradient", can.METRIC_DERIVATIVE, "metric", "matrices"),
    Method("metric_form_gradient", can.METRIC_DERIVATIVE, "metric", "vectors"),
    Method("metric_product", can.METRIC_PRODUCT, "metric", "vectors"),
    Method("forward", can.FORWARD, "forward"),
    Method("forward_and_jacobian", can.JACOBIAN, "jacobian"),
    Method("forward_and_gradient", can.VJP, "vjp"),
    Method("forward_hessian_product", can.FORWARD_HESSIAN, "jacobian", "weights"),
    Method("variance", can.VARIANCE, None),
)
"""All methods; ``kind`` is that of potentials without a forward map."""

BY_NAME: Mapping[str, Method] = {method.name: method for method in METHODS}
"""Name to method."""
