"""Checks of potentials: values, derivatives, matrices, forward maps.

Fitted surrogates and wrapped targets are potentials too. What sums over rows must do besides is in
:mod:`surrokit.testing.rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.capabilities import BY_NAME
from surrokit.errors import ShapeError
from surrokit.model.calls import Calls
from surrokit.model.model import change_model
from surrokit.potentials import offers_curvature_derivatives, offers_curvatures
from surrokit.testing.demands import (
    Factory,
    answers,
    arguments,
    check,
    demand,
    demand_close,
    demand_derivative,
    demand_equal,
    demand_near,
    demand_semi_definite,
    demand_shape,
    difference,
    evaluations_of,
    place,
    positions_for,
)
from surrokit.testing.wrappers import methods_of
from surrokit.types import FloatArray

GOES_WITH: tuple[tuple[str, str], ...] = (
    *((name, can.GRADIENT) for name in (can.GRADIENT_ALONE, can.VJP)),
    *((name, can.GRADIENT) for name in (can.HESSIAN, can.HESSIAN_PRODUCT, can.HESSIAN_DIAGONAL)),
    (can.HESSIAN_DERIVATIVE, can.HESSIAN),
    *((name, can.METRIC) for name in (can.METRIC_DERIVATIVE, can.METRIC_PRODUCT)),
    *((name, can.FORWARD) for name in (can.VJP, can.JACOBIAN, can.FORWARD_HESSIAN)),
)
"""Capabilities, each with one without which it makes no sense."""

placed = partial(check, "potential", cases=lambda make: [place(make)])
"""Declares a check of a potential at positions where U is finite."""


@check("potential")
def check_capabilities(make: Factory) -> None:
    """Capabilities are known names, and each evaluates what its name says, in double precision."""
    potential = make()
    declared, dim = potential.capabilities, potential.dim
    whole = isinstance(dim, int) and dim >= 1
    demand(whole, f"dim must be a whole number of at least 1, got {dim!r}")
    what = "capabilities must be a frozenset of names"
    demand(isinstance(declared, frozenset), f"{what}, got {type(declared).__name__}")
    unknown = sorted(declared - can.KNOWN)
    known = sorted(can.KNOWN)
    demand(not unknown, f"capabilities hold {unknown}, but known names are {known}")
    for name in sorted(declared):
        for method in methods_of(name):
            has = callable(getattr(potential, method, None))
            demand(has, f"capability {name!r} is declared, but there is no method {method}")
    for name, without in GOES_WITH:
        fits = name not in declared or without in declared
        demand(fits, f"capability {name!r} is declared without {without!r}, which goes with it")
    positions = place(lambda: potential)[1]
    for some in (positions, positions[:1]):
        _demand_shapes(answers(potential, some), len(some), dim)
    if can.INITIAL in declared:
        demand_shape(potential.initial(np.random.default_rng(3), 3), (3, dim), "initial")


def _demand_shapes(found: dict[str, FloatArray], n: int, dim: int) -> None:
    sizes = {"q": dim}
    if "forward[0]" in found:
        outputs = found["forward[0]"].shape
        demand(len(outputs) == 2, f"forward must return shape (n, m), got {outputs}")
        sizes["m"] = outputs[1]
    for name, array in found.items():
        method, _, number = name.rstrip("]").partition("[")
        axes = BY_NAME[method].gives[int(number or 0)]
        demand_shape(array, (n, *(sizes[axis] for axis in axes)), name)


@check("potential")
def check_input_untouched(make: Factory) -> None:
    """Positions are not changed, and may be read-only or a slice."""
    potential = make()
    positions = positions_for(potential)
    frozen = positions.copy()
    frozen.setflags(write=False)
    spaced = np.repeat(positions, 2, axis=0)[::2]
    expected = answers(potential, positions.copy())
    for given, how in ((frozen, "read-only"), (spaced, "strided"), (positions, "writable")):
        before = given.copy()
        found = answers(potential, given)
        demand_equal(given, before, f"{how} positions before and after an evaluation")
        for name, array in found.items():
            demand_close(array, expected[name], f"{name} of {how} positions", atol=1e-9)


@check("potential")
def check_same_answer(make: Factory) -> None:
    """The same positions give the same answers, in new arrays, whatever is asked in between."""
    potential = make()
    positions = positions_for(potential)
    first = {name: array.copy() for name, array in answers(potential, positions).items()}
    held = answers(potential, positions)
    potential.value(positions[::-1] + 0.1)
    answers(potential, positions[:2] - 0.3)
    second = answers(potential, positions)
    for name in first:
        demand_equal(second[name], first[name], f"{name} asked twice at the same positions")
        demand_equal(held[name], first[name], f"{name} kept by the caller over a later evaluation")


@check("potential")
def check_rows(make: Factory) -> None:
    """A batch gives what its rows give one by one."""
    potential = make()
    positions = positions_for(potential)
    singles = [answers(potential, positions[i : i + 1]) for i in range(len(positions))]
    for name, array in answers(potential, positions).items():
        stacked = np.concatenate([one[name] for one in singles])
        finite = np.abs(array[np.isfinite(array)])
        atol = 1e-9 * (finite.max() if finite.size else 1.0)
        demand_close(array, stacked, f"{name} of a batch against its rows", rtol=1e-7, atol=atol)


@check("potential")
def check_wrong_shape(make: Factory) -> None:
    """Positions that are not rows of dim numbers raise ShapeError; so do wrong factors."""
    potential = make()
    dim = potential.dim
    for name in sorted(evaluations_of(potential)):
        method = getattr(potential, name)
        positions, *factors = arguments(potential, name, np.zeros((2, dim)))
        for shape in ((dim,), (2, dim + 1), (1, 2, dim)):
            what = f"{name} of positions of shape {shape}, where dim is {dim},"
            _demand_shape_error(partial(method, np.zeros(shape), *factors), what)
        for right in factors:
            for wrong in (right[:1], right[..., 0], right[..., None]):
                what = f"{name} with factors of shape {wrong.shape} in place of {right.shape}"
                _demand_shape_error(partial(method, positions, wrong), what)


def _demand_shape_error(call: Callable[[], object], what: str) -> None:
    found = "returned; surrokit.arguments has checks of shapes"
    try:
        call()
    except ShapeError:
        return
    except Exception as error:
        found = f"raised {type(error).__name__}: {error}"
    raise AssertionError(f"{what} must raise ShapeError, but {found}")


@check("potential")
def check_far_values(make: Factory) -> None:
    """Values far away are numbers or ``inf``, never NaN; only EvaluationError may be raised."""
    potential = make()
    positions = positions_for(potential)
    directions = np.random.default_rng(11).standard_normal(positions.shape)
    with np.errstate(all="ignore"):
        for scale in (3.0, 30.0, 1e3, 1e6):
            nan = np.isnan(_values_or_reasons(potential, positions + scale * directions))
            demand(
                not nan.any(),
                f"value is NaN at {int(nan.sum())} of {len(nan)} positions about {scale:g} away; "
                "return inf where there is no density, or raise EvaluationError",
            )


def _values_or_reasons(potential: Any, positions: FloatArray) -> FloatArray:
    """Return values as a run has them, with ``inf`` in rows that the model explains."""
    calls = Calls("reject", 0)
    bound = change_model(potential, lambda model: attrs.evolve(model, calls=calls))
    calls.begin(len(positions))
    values = np.array(bound.value(positions))
    values[list(calls.causes)] = np.inf
    return values


@placed(can.GRADIENT)
def check_gradient(potential: Any, positions: FloatArray) -> None:
    """The gradient is that of the value, comes with the same value, and is the same alone."""
    values, gradients = potential.value_and_gradient(positions)
    demand_close(values, potential.value(positions), "value that comes with the gradient")
    demand_derivative(gradients, potential.value, positions, "gradient")
    if can.GRADIENT_ALONE in potential.capabilities:
        alone = potential.gradient(positions)
        demand_close(alone, gradients, "gradient alone against value_and_gradient")


def _slope(potential: Any) -> Callable[[FloatArray], FloatArray]:
    return lambda positions: potential.value_and_gradient(positions)[1]


@placed(can.HESSIAN)
def check_hessian(potential: Any, positions: FloatArray) -> None:
    """The Hessian is symmetric, and the derivative of the gradient."""
    hessian = potential.hessian(positions)
    atol = 1e-9 * np.abs(hessian).max(axis=(1, 2), keepdims=True)
    turned = hessian.transpose(0, 2, 1)
    demand_close(hessian, turned, "Hessian against its transpose", atol=atol)
    demand_derivative(hessian, _slope(potential), positions, "Hessian")


@placed(can.HESSIAN_DERIVATIVE)
def check_hessian_derivative(potential: Any, positions: FloatArray) -> None:
    """Both contractions of the Hessian's derivative agree with differences and each other."""
    _demand_contractions(potential, positions, "hessian")


def _demand_contractions(potential: Any, positions: FloatArray, matrix: str) -> None:
    of_trace, of_form = f"{matrix}_trace_gradient", f"{matrix}_form_gradient"
    _, matrices = arguments(potential, of_trace, positions)
    _, vectors = arguments(potential, of_form, positions)
    outer = vectors[:, :, None] * vectors[:, None, :]
    trace = getattr(potential, of_trace)
    form = getattr(potential, of_form)(positions, vectors)
    for found, weights, what in (
        (trace(positions, matrices), matrices, "tr(A d_k G)"),
        (form, outer, "u^T d_k G u"),
    ):
        weighed = partial(_weigh, getattr(potential, matrix), weights)
        demand_derivative(found, weighed, positions, f"{what}, G the {matrix},")
    what, atol = "tr(A d_k G) with A = u u^T against u^T d_k G u", 1e-9 * (1 + np.abs(form).max())
    demand_close(trace(positions, outer), form, f"{what}, G the {matrix}", atol=atol)


def _weigh(arrays: Any, weights: FloatArray, positions: FloatArray) -> FloatArray:
    """Return the sums of weighted entries of an array for each position."""
    return np.asarray((weights * arrays(positions)).reshape(len(positions), -1).sum(axis=1))


def _hessian(potential: Any, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Hessian and its error, from differences if the Hessian is not offered."""
    if can.HESSIAN in potential.capabilities:
        hessian = potential.hessian(positions)
        return hessian, np.zeros_like(hessian)
    return difference(_slope(potential), positions)


@placed(can.HESSIAN_PRODUCT, can.GRADIENT)
def check_hessian_product(potential: Any, positions: FloatArray) -> None:
    """A product with the Hessian agrees with the matrix, or with differences of the gradient."""
    _, vectors = arguments(potential, "hessian_product", positions)
    hessian, error = _hessian(potential, positions)
    expected = np.einsum("nij,nj->ni", hessian, vectors)
    found = potential.hessian_product(positions, vectors)
    what = "product with the Hessian against that of the matrix"
    demand_near(found, expected, error.sum(axis=2), what)


@placed(can.HESSIAN_DIAGONAL, can.GRADIENT)
def check_hessian_diagonal(potential: Any, positions: FloatArray) -> None:
    """The diagonal is that of the Hessian, and its gradient agrees with differences."""
    diagonal = potential.hessian_diagonal(positions)
    expected, error = (np.einsum("nkk->nk", array) for array in _hessian(potential, positions))
    demand_near(diagonal, expected, error, "diagonal of the Hessian against that of the matrix")
    _, weights = arguments(potential, "hessian_diagonal_gradient", positions)
    found = potential.hessian_diagonal_gradient(positions, weights)
    weighed = partial(_weigh, potential.hessian_diagonal, weights)
    demand_derivative(found, weighed, positions, "sum_j c_j d_k G_jj")


@check("potential", can.CONVEX, can.GRADIENT)
def check_convex(make: Factory) -> None:
    """The Hessian is positive definite, at the positions and farther out."""
    potential, near = place(make)
    centre = near.mean(axis=0)
    for scale in (1.0, 3.0):
        positions = centre + scale * (near - centre)
        positions = positions[np.isfinite(potential.value(positions))]
        hessian, _ = _hessian(potential, positions)
        least = np.linalg.eigvalsh(hessian)[:, 0] if len(hessian) else np.empty(0)
        demand(
            (least > 0).all(),
            "capability 'convex' says that the Hessian is positive definite everywhere, but its "
            f"least eigenvalue is {least.min(initial=np.inf):.3g} at one of {len(positions)} "
            "positions",
        )


@placed(can.GAUSSIAN)
def check_gaussian(potential: Any, positions: FloatArray) -> None:
    """Mean and factor are those of the normal distribution whose potential this is."""
    dim, mean, factor = potential.dim, potential.mean, potential.factor
    demand_shape(mean, (dim,), "mean")
    demand_shape(factor, (dim, dim), "factor")
    demand_equal(np.triu(factor, 1), np.zeros((dim, dim)), "factor above its diagonal")
    with np.errstate(all="ignore"):
        white = np.linalg.solve(factor, (positions - mean).T)
        expected = 0.5 * np.square(white).sum(axis=0)
    values, atol = potential.value(positions), 1e-8 * (1.0 + np.abs(expected).max())
    what = "differences of values against |L^-1 (q - mean)|^2 / 2"
    demand_close(values - values[0], expected - expected[0], what, rtol=1e-7, atol=atol)


@placed(can.VARIANCE)
def check_variance(potential: Any, positions: FloatArray) -> None:
    """The variance is finite and not negative."""
    variance = potential.variance(positions)
    right = np.isfinite(variance).all() and (variance >= 0).all()
    demand(right, f"variance must be finite and at least 0, got {variance}")


@placed(can.METRIC)
def check_metric_matrix(potential: Any, positions: FloatArray) -> None:
    """The metric is symmetric and has no negative eigenvalue, and gives the products with it."""
    metric = potential.metric(positions)
    demand_semi_definite(metric, "the metric, a Fisher or Gauss-Newton matrix,")
    demand(np.abs(metric).max(axis=(1, 2)).all(), "the metric is zero at some position")
    if can.METRIC_PRODUCT in potential.capabilities:
        _, vectors = arguments(potential, "metric_product", positions)
        expected = np.einsum("nij,nj->ni", metric, vectors)
        found, atol = potential.metric_product(positions, vectors), 1e-9 * (1 + abs(expected).max())
        demand_close(found, expected, "product with the metric against the matrix", atol=atol)


@placed(can.METRIC_DERIVATIVE)
def check_metric_derivative(potential: Any, positions: FloatArray) -> None:
    """Both contractions of the metric's derivative agree with differences and each other."""
    _demand_contractions(potential, positions, "metric")


@placed(can.FORWARD)
def check_forward_value(potential: Any, positions: FloatArray) -> None:
    """The value is the energy of the outputs."""
    expected = potential.energy.value(potential.forward(positions), positions)
    demand_shape(expected, (len(positions),), "energy.value")
    demand_close(potential.value(positions), expected, "value against the energy of the outputs")


@placed(can.FORWARD)
def check_energy_gradients(potential: Any, positions: FloatArray) -> None:
    """The energy's gradients, in outputs and in positions, are those of its value."""
    outputs, energy = potential.forward(positions), potential.energy
    value, *gradients = energy.value_and_gradients(outputs, positions)
    demand_close(value, energy.value(outputs, positions), "value that comes with the gradients")
    _demand_partial(gradients, energy.value, outputs, positions, "gradient of the energy")


def _demand_partial(
    found: Any, function: Any, outputs: FloatArray, positions: FloatArray, what: str
) -> None:
    """Demand that two arrays are a function's derivatives by outputs and by positions."""
    by_outputs, by_positions = found
    for name, array, of_one, where in (
        ("outputs", by_outputs, lambda x: function(x, positions), outputs),
        ("positions", by_positions, lambda q: function(outputs, q), positions),
    ):
        demand_shape(array, where.shape, f"{what} in the {name}")
        demand_derivative(array, of_one, where, f"{what} in the {name}")


@placed(can.JACOBIAN)
def check_jacobian(potential: Any, positions: FloatArray) -> None:
    """The Jacobian is the derivative of the outputs, and comes with the same outputs."""
    outputs, jacobian = potential.forward_and_jacobian(positions)
    demand_close(outputs, potential.forward(positions), "outputs that come with the Jacobian")
    demand_derivative(jacobian, potential.forward, positions, "Jacobian")


@placed(can.VJP)
def check_vjp(potential: Any, positions: FloatArray) -> None:
    """The adjoint gives the gradient of U, and comes with the outputs."""
    outputs, gradients = potential.forward_and_gradient(positions)
    demand_close(outputs, potential.forward(positions), "outputs that come with the gradient")
    demand_derivative(gradients, potential.value, positions, "gradient by the adjoint")


@placed(can.FORWARD_HESSIAN, can.JACOBIAN)
def check_forward_hessian(potential: Any, positions: FloatArray) -> None:
    """A contraction of the outputs' second derivatives agrees with differences of the Jacobian."""
    _, weights = arguments(potential, "forward_hessian_product", positions)
    weighed = partial(_weigh, lambda q: potential.forward_and_jacobian(q)[1], weights)
    found = potential.forward_hessian_product(positions, weights)
    demand_derivative(found, weighed, positions, "sum of W_mi d_i d_k F_m")


@placed(can.FORWARD, claimed=lambda part: offers_curvatures(part.energy))
def check_energy_curvatures(potential: Any, positions: FloatArray) -> None:
    """The energy's curvatures, in outputs and in positions, have no negative eigenvalue."""
    outputs = potential.forward(positions)
    kept = outputs.copy(), positions.copy()
    by_outputs, by_positions = potential.energy.curvatures(outputs, positions)
    demand_equal(outputs, kept[0], "outputs before and after the energy's curvatures")
    demand_equal(positions, kept[1], "positions before and after the energy's curvatures")
    (n, m), dim = outputs.shape, positions.shape[1]
    what = "curvature of the energy in the"
    demand_shape(by_outputs, (n, m) if by_outputs.ndim == 2 else (n, m, m), f"{what} outputs")
    demand_shape(by_positions, (n, dim, dim), f"{what} positions")
    if by_outputs.ndim == 2:
        by_outputs = by_outputs[:, :, None] * np.eye(m)
    demand_semi_definite(by_outputs, f"{what} outputs")
    demand_semi_definite(by_positions, f"{what} positions")


@placed(can.FORWARD, claimed=lambda part: offers_curvature_derivatives(part.energy))
def check_energy_curvature_gradients(potential: Any, positions: FloatArray) -> None:
    """Gradients of the energy's curvatures, in outputs and positions, agree with differences."""
    outputs, energy = potential.forward(positions), potential.energy
    by_outputs, by_positions = energy.curvatures(outputs, positions)
    rng = np.random.default_rng(7)
    first, second = rng.standard_normal(by_outputs.shape), rng.standard_normal(by_positions.shape)
    first = first if first.ndim == 2 else first + first.transpose(0, 2, 1)
    second = second + second.transpose(0, 2, 1)

    def weigh(x: FloatArray, q: FloatArray) -> FloatArray:
        c, r = energy.curvatures(x, q)
        return _weigh(lambda _: c, first, x) + _weigh(lambda _: r, second, x)

    found = energy.curvature_gradients(outputs, positions, first, second)
    _demand_partial(found, weigh, outputs, positions, "gradient of the energy's curvatures")
