"""What a potential may offer, and the methods by which it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import attrs
import numpy.typing as npt

from surrokit.arguments import check_matrices, check_vectors
from surrokit.errors import CapabilityError
from surrokit.types import FloatArray

if TYPE_CHECKING:
    from surrokit.types import Capabilities

GRADIENT = "gradient"
"""``value_and_gradient(positions) -> (n,), (n, dim)``."""

GRADIENT_ALONE = "gradient-alone"
"""``gradient(positions) -> (n, dim)``, cheaper than value and gradient together."""

HESSIAN = "hessian"
"""``hessian(positions) -> (n, dim, dim)``: second derivatives of the potential."""

HESSIAN_DERIVATIVE = "hessian-derivative"
"""``hessian_trace_gradient(positions, matrices (n, dim, dim)) -> (n, dim)``, and
``hessian_form_gradient(positions, vectors (n, dim)) -> (n, dim)``: two contractions of the third
derivatives, without the whole tensor."""

HESSIAN_PRODUCT = "hessian-product"
"""``hessian_product(positions, vectors (n, dim)) -> (n, dim)``: the Hessian times a vector, cheaper
than the Hessian."""

HESSIAN_DIAGONAL = "hessian-diagonal"
"""``hessian_diagonal(positions) -> (n, dim)``, and
``hessian_diagonal_gradient(positions, weights (n, dim)) -> (n, dim)``: the diagonal of the Hessian,
and the gradient of its weighted sum."""

HESSIANS: Capabilities = frozenset({HESSIAN, HESSIAN_DERIVATIVE, HESSIAN_PRODUCT, HESSIAN_DIAGONAL})
"""All that concerns the Hessian."""

CONVEX = "convex"
"""Nothing to call: the Hessian is positive definite everywhere."""

GAUSSIAN = "gaussian"
"""Attributes ``mean (dim,)`` and ``factor (dim, dim)``, L lower triangular: the potential is
exactly that of the normal distribution with this mean and covariance L L^T."""

METRIC = "metric"
"""``metric(positions) -> (n, dim, dim)``: Fisher or Gauss-Newton matrix of the target."""

METRIC_DERIVATIVE = "metric-derivative"
"""``metric_trace_gradient(positions, matrices (n, dim, dim)) -> (n, dim)``, and
``metric_form_gradient(positions, vectors (n, dim)) -> (n, dim)``: two contractions of the metric's
derivative."""

METRIC_PRODUCT = "metric-product"
"""``metric_product(positions, vectors (n, dim)) -> (n, dim)``: the metric times a vector, cheaper
than the metric."""

METRICS: Capabilities = frozenset({METRIC, METRIC_DERIVATIVE, METRIC_PRODUCT})
"""All that concerns the metric."""

FORWARD = "forward"
"""``forward(positions) -> (n, m)``, and ``energy`` of outputs and positions."""

JACOBIAN = "jacobian"
"""``forward_and_jacobian(positions) -> (n, m), (n, m, dim)``."""

VJP = "vjp"
"""``forward_and_gradient(positions) -> (n, m), (n, dim)``: outputs and the gradient of U, by an
adjoint that avoids the Jacobian."""

ROWS = "rows"
"""``n_rows``, ``expand(centre)``, ``row_bounds(factor) -> (n_rows,)`` and ``select(rows)``: a
sum over rows of data, with bounded third derivatives (:mod:`surrokit.potentials`)."""

ROWS_THIRD_ORDER = "rows-third-order"
"""Besides ``rows``: ``expand(centre, order=3)``, which keeps third-order terms, and
``row_bounds(factor, order=3)``, which bounds fourth derivatives."""

ROWS_IN_BALLS = "rows-in-balls"
"""Besides ``rows``: ``row_bounds(factor, ball=ball)`` bounds terms in a ball of positions
(:class:`surrokit.potentials.Ball`). It needs one where there are no bounds everywhere."""

ROWS_DRAWN = "rows-drawn"
"""Besides ``rows``: ``row_draws(factor)``, which draws rows in proportion to their bounds without
bringing all bounds together (:class:`surrokit.potentials.RowDraws`)."""

OF_ROWS: Capabilities = frozenset({ROWS, ROWS_THIRD_ORDER, ROWS_IN_BALLS, ROWS_DRAWN})
"""All that concerns sums over rows."""

VARIANCE = "variance"
"""``variance(positions) -> (n,)``: predictive variance of a fitted surrogate, in nats squared."""

COVARIANCE = "covariance"
"""``covariance(positions) -> (n, n)``, and ``noise_sd``: what a fitted process does not know of U,
at positions together, and the noise of values that it has found; with ``variance``."""

INITIAL = "initial"
"""``initial(rng, n) -> (n, dim)``: starting positions for chains."""

KNOWN: Capabilities = frozenset(
    {
        *(GRADIENT, GRADIENT_ALONE, *HESSIANS, CONVEX, GAUSSIAN, *METRICS),
        *(FORWARD, JACOBIAN, VJP, *OF_ROWS, VARIANCE, COVARIANCE, INITIAL),
    }
)
"""All names above."""


def reasons_of(potential: object) -> Mapping[str, str]:
    """Return why a potential lacks capabilities, by their names, as far as it gives a reason.

    A potential may have an attribute ``missing``; a wrapper's ``target`` is asked for it.
    """
    reasons: Mapping[str, str] = getattr(getattr(potential, "target", potential), "missing", {})
    return reasons


def require(
    who: str,
    needs: Capabilities,
    offered: Capabilities,
    whose: str,
    advice: str,
    reasons: Mapping[str, str] | None = None,
) -> None:
    """Raise CapabilityError unless a potential offers every capability that a part needs.

    ``who`` names the part and ``whose`` the potential; ``reasons`` say why some are missing.
    """
    missing = sorted(needs - offered)
    if missing:
        known = "".join(f"; {reasons[name]}" for name in missing if reasons and name in reasons)
        raise CapabilityError(
            f"{who} needs {', '.join(missing)} from {whose}, which offers "
            f"{', '.join(sorted(offered)) or 'values only'}{known}; {advice}"
        )


CallKind: TypeAlias = Literal[
    "value", "gradient", "forward", "jacobian", "vjp", "hessian", "metric", "rows", "cheap"
]
"""Kinds of calls, counted in positions (``rows``: in data rows). Those of a ``cheap`` model beside
the target are not exact, and count for no limit."""

CALL_KINDS: tuple[CallKind, ...] = get_args(CallKind)
"""All kinds of exact calls."""


Factor: TypeAlias = Literal["vectors", "matrices"]
"""Second argument of a method, of shape ``(n, dim)`` or ``(n, dim, dim)``."""


@attrs.frozen
class Method:
    """A method that evaluates a potential at positions.

    ``capability`` promises it; None for a method of every potential. Calls count as ``kind``, None
    for not at all. ``factor`` is the second argument, with one item for each position. ``gives``
    are the axes of each array that it returns, after that of the positions: ``q`` for one of dim
    numbers, and ``m`` for one of the outputs of a forward map.
    """

    name: str
    capability: str | None
    kind: CallKind | None
    factor: Factor | None = None
    gives: tuple[str, ...] = ("",)

    def check_factors(self, factors: npt.ArrayLike, positions: FloatArray) -> FloatArray:
        """Return the second argument in double precision; ShapeError if its shape is not right."""
        check = check_vectors if self.factor == "vectors" else check_matrices
        return check(factors, positions)


METHODS: tuple[Method, ...] = (
    Method("value", None, "value"),
    Method("value_and_gradient", GRADIENT, "gradient", gives=("", "q")),
    Method("gradient", GRADIENT_ALONE, "gradient", gives=("q",)),
    Method("hessian", HESSIAN, "hessian", gives=("qq",)),
    Method("hessian_trace_gradient", HESSIAN_DERIVATIVE, "hessian", "matrices", ("q",)),
    Method("hessian_form_gradient", HESSIAN_DERIVATIVE, "hessian", "vectors", ("q",)),
    Method("hessian_product", HESSIAN_PRODUCT, "hessian", "vectors", ("q",)),
    Method("hessian_diagonal", HESSIAN_DIAGONAL, "hessian", gives=("q",)),
    Method("hessian_diagonal_gradient", HESSIAN_DIAGONAL, "hessian", "vectors", ("q",)),
    Method("metric", METRIC, "metric", gives=("qq",)),
    Method("metric_trace_gradient", METRIC_DERIVATIVE, "metric", "matrices", ("q",)),
    Method("metric_form_gradient", METRIC_DERIVATIVE, "metric", "vectors", ("q",)),
    Method("metric_product", METRIC_PRODUCT, "metric", "vectors", ("q",)),
    Method("forward", FORWARD, "forward", gives=("m",)),
    Method("forward_and_jacobian", JACOBIAN, "jacobian", gives=("m", "mq")),
    Method("forward_and_gradient", VJP, "vjp", gives=("m", "q")),
    Method("variance", VARIANCE, None),
)
"""All methods; ``kind`` is that of potentials without a forward map."""

TO_SECOND_ORDER = Method("forward_to_second_order", None, "jacobian", gives=("m", "mq", "mqq"))
"""What a forward map evaluates besides: its outputs with their first and second derivatives."""

BY_NAME: Mapping[str, Method] = {method.name: method for method in METHODS}
"""Name to method."""

ALL_BY_NAME: Mapping[str, Method] = {**BY_NAME, TO_SECOND_ORDER.name: TO_SECOND_ORDER}
"""Name to method, or to what else a model evaluates."""
