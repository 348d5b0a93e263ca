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
from surrokit.potentials import CONSTANT_CURVATURES, energy_capabilities, offers_curvatures
from surrokit.testing import must
from surrokit.testing.checks import (
    Factory,
    answers,
    arguments,
    check,
    evaluations_of,
    place,
    positions_for,
)
from surrokit.testing.wrappers import methods_of
from surrokit.types import FloatArray

placed = partial(check, "potential", cases=lambda make: [place(make)])
"""Declares a check of a potential at positions where U is finite."""


@check("potential")
def check_capabilities(make: Factory) -> None:
    """Capabilities are known names, and each evaluates what its name says, in double precision."""
    potential = make()
    declared, dim = potential.capabilities, potential.dim
    whole = isinstance(dim, int) and dim >= 1
    must.hold(whole, f"dim must be a whole number of at least 1, got {dim!r}")
    known = isinstance(declared, frozenset) and declared <= can.KNOWN
    must.hold(known, f"capabilities must be a frozenset of {sorted(can.KNOWN)}, got {declared!r}")
    for name in sorted(declared):
        for method in methods_of(name):
            has = callable(getattr(potential, method, None))
            must.hold(has, f"capability {name!r} is declared, but there is no method {method}")
    positions = place(lambda: potential)[1]
    for some in (positions, positions[:1]):
        found, sizes = answers(potential, some), {"q": dim}
        if "forward[0]" in found:
            outputs = found["forward[0]"].shape
            must.hold(len(outputs) == 2, f"forward must return shape (n, m), got {outputs}")
            sizes["m"] = outputs[1]
        for name, array in found.items():
            method, _, number = name.rstrip("]").partition("[")
            axes = BY_NAME[method].gives[int(number)]
            must.shape(array, (len(some), *(sizes[axis] for axis in axes)), name)
    if can.INITIAL in declared:
        must.shape(potential.initial(np.random.default_rng(3), 3), (3, dim), "initial")


@check("potential")
def check_same_answer(make: Factory) -> None:
    """The same positions give the same answers, in new arrays, whatever is asked in between.

    Positions are not changed, and may be read-only or a slice.
    """
    potential = make()
    positions = positions_for(potential)
    strided = np.repeat(positions, 2, axis=0)[::2]
    strided.setflags(write=False)
    held = answers(potential, positions.copy())
    first = {name: array.copy() for name, array in held.items()}
    potential.value(positions[::-1] + 0.1)
    answers(potential, positions[:2] - 0.3)
    second = answers(potential, positions.copy())
    for name in first:
        must.equal(second[name], first[name], f"{name} asked twice at the same positions")
        must.equal(held[name], first[name], f"{name} kept by the caller over a later evaluation")
    for name, array in answers(potential, strided).items():
        must.close(array, first[name], f"{name} of positions that are a slice", atol=1e-9)


@check("potential")
def check_rows(make: Factory) -> None:
    """A batch gives what its rows give one by one."""
    potential = make()
    positions = positions_for(potential)
    singles = [answers(potential, positions[i : i + 1]) for i in range(len(positions))]
    for name, array in answers(potential, positions).items():
        stacked = np.concatenate([one[name] for one in singles])
        atol = 1e-9 * np.abs(array[np.isfinite(array)]).max(initial=0.0)
        must.close(array, stacked, f"{name} of a batch against its rows", rtol=1e-7, atol=atol)


@check("potential")
def check_wrong_shape(make: Factory) -> None:
    """Positions that are not rows of dim numbers raise ShapeError; so do wrong factors."""
    potential = make()
    dim = potential.dim
    for name in sorted(evaluations_of(potential)):
        positions, *factors = arguments(name, np.zeros((2, dim)))
        wrong = [[np.zeros(shape), *factors] for shape in ((dim,), (2, dim + 1), (1, 2, dim))]
        wrong += [[positions, right[..., 0]] for right in factors]
        for given in wrong:
            found = "returned; surrokit.arguments has checks of shapes"
            try:
                getattr(potential, name)(*given)
            except ShapeError:
                continue
            except Exception as error:
                found = f"raised {type(error).__name__}: {error}"
            shapes = " and ".join(str(array.shape) for array in given)
            what = f"{name} of arrays of shape {shapes}, where dim is {dim},"
            raise AssertionError(f"{what} must raise ShapeError, but {found}")


@check("potential")
def check_far_values(make: Factory) -> None:
    """Values far away are numbers or ``inf``, never NaN; only EvaluationError may be raised."""
    potential = make()
    positions = positions_for(potential)
    directions = np.random.default_rng(11).standard_normal(positions.shape)
    calls = Calls("reject", 0)  # of a run, which knows the rows that the model explains
    bound = change_model(potential, lambda model: attrs.evolve(model, calls=calls))
    for scale in (3.0, 30.0, 1e3, 1e6):
        calls.begin(len(positions))
        with np.errstate(all="ignore"):
            values = np.array(bound.value(positions + scale * directions))
        values[list(calls.causes)] = np.inf
        n, what = int(np.isnan(values).sum()), f"positions about {scale:g} away"
        advice = "return inf where there is no density, or raise EvaluationError"
        must.hold(n == 0, f"value is NaN at {n} of {len(values)} {what}; {advice}")


@placed(can.GRADIENT)
def check_gradient(potential: Any, positions: FloatArray) -> None:
    """The gradient is that of the value, comes with the same value, and is the same alone."""
    values, gradients = potential.value_and_gradient(positions)
    must.close(values, potential.value(positions), "value that comes with the gradient")
    must.derivative(gradients, potential.value, positions, "gradient")
    if can.GRADIENT_ALONE in potential.capabilities:
        alone = potential.gradient(positions)
        must.close(alone, gradients, "gradient alone against value_and_gradient")


def _slope(potential: Any) -> Callable[[FloatArray], FloatArray]:
    return lambda positions: potential.value_and_gradient(positions)[1]


def _weigh(arrays: Any, weights: FloatArray, positions: FloatArray) -> FloatArray:
    """Return the sums of weighted entries of an array for each position."""
    return np.asarray((weights * arrays(positions)).reshape(len(positions), -1).sum(axis=1))


def _demand_contractions(potential: Any, positions: FloatArray, matrix: str) -> None:
    """Demand that both contractions of a matrix's derivative agree with differences."""
    of_trace, of_form = f"{matrix}_trace_gradient", f"{matrix}_form_gradient"
    _, matrices = arguments(of_trace, positions)
    _, vectors = arguments(of_form, positions)
    outer = vectors[:, :, None] * vectors[:, None, :]
    trace = getattr(potential, of_trace)
    form = getattr(potential, of_form)(positions, vectors)
    for found, weights, what in (
        (trace(positions, matrices), matrices, "tr(A d_k G)"),
        (form, outer, "u^T d_k G u"),
    ):
        weighed = partial(_weigh, getattr(potential, matrix), weights)
        must.derivative(found, weighed, positions, f"{what}, G the {matrix},")
    what, atol = "tr(A d_k G) with A = u u^T against u^T d_k G u", 1e-9 * (1 + np.abs(form).max())
    must.close(trace(positions, outer), form, f"{what}, G the {matrix}", atol=atol)


def _hessian(potential: Any, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Hessian and its error, from differences if the Hessian is not offered."""
    if can.HESSIAN in potential.capabilities:
        hessian = potential.hessian(positions)
        return hessian, np.zeros_like(hessian)
    return must.difference(_slope(potential), positions)


@placed(claimed=lambda each: each.capabilities & can.HESSIANS)
def check_hessian(potential: Any, positions: FloatArray) -> None:
    """The Hessian is symmetric, and the derivative of the gradient.

    Products, the diagonal, and contractions of the derivative agree with it and with differences.
    """
    offers, (hessian, error) = potential.capabilities, _hessian(potential, positions)
    if can.HESSIAN in offers:
        must.matrices(hessian, "Hessian")
        must.derivative(hessian, _slope(potential), positions, "Hessian")
    if can.HESSIAN_DERIVATIVE in offers:
        _demand_contractions(potential, positions, "hessian")
    if can.HESSIAN_PRODUCT in offers:
        _, vectors = arguments("hessian_product", positions)
        expected = np.einsum("nij,nj->ni", hessian, vectors)
        found = potential.hessian_product(positions, vectors)
        must.near(found, expected, error.sum(axis=2), "product with the Hessian")
    if can.HESSIAN_DIAGONAL in offers:
        found = potential.hessian_diagonal(positions)
        expected, apart = (np.einsum("nkk->nk", array) for array in (hessian, error))
        must.near(found, expected, apart, "diagonal of the Hessian")
        _, weights = arguments("hessian_diagonal_gradient", positions)
        found = potential.hessian_diagonal_gradient(positions, weights)
        weighed = partial(_weigh, potential.hessian_diagonal, weights)
        must.derivative(found, weighed, positions, "sum_j c_j d_k G_jj")


@check("potential", can.CONVEX, can.GRADIENT)
def check_convex(make: Factory) -> None:
    """The Hessian is positive definite, at the positions and farther out."""
    potential, near = place(make)
    centre = near.mean(axis=0)
    for scale in (1.0, 3.0):
        positions = centre + scale * (near - centre)
        hessian, _ = _hessian(potential, positions[np.isfinite(potential.value(positions))])
        least = np.linalg.eigvalsh(hessian).min(initial=np.inf)
        must.hold(least > 0, f"of a convex potential the Hessian has the eigenvalue {least:.3g}")


@placed(can.GAUSSIAN)
def check_gaussian(potential: Any, positions: FloatArray) -> None:
    """Mean and factor are those of the normal distribution whose potential this is."""
    dim, mean, factor = potential.dim, potential.mean, potential.factor
    must.shape(mean, (dim,), "mean")
    must.shape(factor, (dim, dim), "factor")
    must.equal(np.triu(factor, 1), np.zeros((dim, dim)), "factor above its diagonal")
    with np.errstate(all="ignore"):
        white = np.linalg.solve(factor, (positions - mean).T)
        expected = 0.5 * np.square(white).sum(axis=0)
    values, atol = potential.value(positions), 1e-8 * (1.0 + np.abs(expected).max())
    what = "differences of values against |L^-1 (q - mean)|^2 / 2"
    must.close(values - values[0], expected - expected[0], what, rtol=1e-7, atol=atol)


@placed(can.METRIC)
def check_metric_matrix(potential: Any, positions: FloatArray) -> None:
    """The metric is symmetric without a negative eigenvalue, and gives products and derivatives."""
    metric = potential.metric(positions)
    must.matrices(metric, "the metric, a Fisher or Gauss-Newton matrix,", 0.0)
    must.hold(np.abs(metric).max(axis=(1, 2)).all(), "the metric is zero at some position")
    if can.METRIC_PRODUCT in potential.capabilities:
        _, vectors = arguments("metric_product", positions)
        expected = np.einsum("nij,nj->ni", metric, vectors)
        found, atol = potential.metric_product(positions, vectors), 1e-9 * (1 + abs(expected).max())
        must.close(found, expected, "product with the metric", atol=atol)
    if can.METRIC_DERIVATIVE in potential.capabilities:
        _demand_contractions(potential, positions, "metric")


@placed(can.FORWARD)
def check_forward(potential: Any, positions: FloatArray) -> None:
    """Jacobian and adjoint of the outputs agree with differences."""
    offers, outputs = potential.capabilities, potential.forward(positions)
    if can.JACOBIAN in offers:
        same, jacobian = potential.forward_and_jacobian(positions)
        must.close(same, outputs, "outputs that come with the Jacobian")
        must.derivative(jacobian, potential.forward, positions, "Jacobian")
    if can.VJP in offers:
        same, gradients = potential.forward_and_gradient(positions)
        must.close(same, outputs, "outputs that come with the gradient")
        must.derivative(gradients, potential.value, positions, "gradient by the adjoint")


def _demand_partial(
    found: Any, function: Any, outputs: FloatArray, positions: FloatArray, what: str
) -> None:
    """Demand that two arrays are a function's derivatives by outputs and by positions."""
    by_outputs, by_positions = found
    for name, array, of_one, where in (
        ("outputs", by_outputs, lambda x: function(x, positions), outputs),
        ("positions", by_positions, lambda q: function(outputs, q), positions),
    ):
        must.shape(array, where.shape, f"{what} in the {name}")
        must.derivative(array, of_one, where, f"{what} in the {name}")


@placed(can.FORWARD)
def check_energy(potential: Any, positions: FloatArray) -> None:
    """The value is the energy of the outputs, whose gradients are those of its value."""
    outputs, energy = potential.forward(positions), potential.energy
    expected = energy.value(outputs, positions)
    must.shape(expected, (len(positions),), "energy.value")
    must.close(potential.value(positions), expected, "value against the energy of the outputs")
    value, *gradients = energy.value_and_gradients(outputs, positions)
    must.close(value, expected, "value that comes with the gradients")
    _demand_partial(gradients, energy.value, outputs, positions, "gradient of the energy")


@placed(can.FORWARD, claimed=lambda part: offers_curvatures(part.energy))
def check_energy_curvatures(potential: Any, positions: FloatArray) -> None:
    """The energy's curvatures have no negative eigenvalue, and constant ones are so everywhere."""
    outputs, energy = potential.forward(positions), potential.energy
    found: list[FloatArray] = []
    must.untouched(
        lambda: found.extend(energy.curvatures(outputs, positions)),
        {"outputs": outputs, "positions": positions},
    )
    by_outputs, by_positions = found
    (n, m), dim = outputs.shape, positions.shape[1]
    what, diagonal = "curvature of the energy in the", by_outputs.ndim == 2
    must.shape(by_outputs, (n, m) if diagonal else (n, m, m), f"{what} outputs")
    must.shape(by_positions, (n, dim, dim), f"{what} positions")
    whole = by_outputs[:, :, None] * np.eye(m) if diagonal else by_outputs
    must.matrices(whole, f"{what} outputs", 0.0)
    must.matrices(by_positions, f"{what} positions", 0.0)
    if CONSTANT_CURVATURES in energy_capabilities(energy):
        must.close(by_outputs, by_outputs[[0] * n], f"constant {what} outputs")
        must.close(by_positions, by_positions[[0] * n], f"constant {what} positions")
