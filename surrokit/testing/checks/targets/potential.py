"""Checks of potentials, fitted surrogates and wrapped targets included."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import ShapeError
from surrokit.model.calls import Calls
from surrokit.model.model import change_model
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.evaluating import (
    answers,
    arguments,
    demand_derivative,
    evaluations_of,
    finite_positions,
    has,
    place,
    positions_for,
)
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.counting import WITH_FACTORS, methods_of
from surrokit.types import FloatArray

GOES_WITH: dict[str, str] = {
    can.HESSIAN_DERIVATIVE: can.HESSIAN,
    can.METRIC_DERIVATIVE: can.METRIC,
    can.METRIC_PRODUCT: can.METRIC,
    can.JACOBIAN: can.FORWARD,
    can.FORWARD_HESSIAN: can.FORWARD,
    can.VJP: can.FORWARD,
}
"""Capabilities that make no sense without another one."""

_OF_U = frozenset({can.GRADIENT_ALONE, can.HESSIAN, can.HESSIAN_PRODUCT, can.HESSIAN_DIAGONAL})


def check_value(make: Factory) -> None:
    """Values are a double-precision array with one number for each row, some of them finite."""
    potential = make()
    demand(
        isinstance(potential.dim, int) and potential.dim >= 1,
        f"dim must be a whole number of at least 1, got {potential.dim!r}",
    )
    positions = positions_for(potential)
    demand_shape(potential.value(positions), (len(positions),), "value")
    demand_shape(potential.value(positions[:1]), (1,), "value of one row")
    finite_positions(potential)


def check_capabilities(make: Factory) -> None:
    """Capabilities are a frozenset of known names, and each does what its name says."""
    potential = make()
    declared = potential.capabilities
    demand(
        isinstance(declared, frozenset),
        f"capabilities must be a frozenset of names, got {type(declared).__name__}",
    )
    unknown = sorted(declared - can.KNOWN)
    demand(
        not unknown,
        f"capabilities hold {unknown}, which no part can ask for; known names are "
        f"{sorted(can.KNOWN)}",
    )
    for name in sorted(declared):
        for method in methods_of(name):
            demand(
                callable(getattr(potential, method, None)),
                f"capability {name!r} is declared, but there is no method {method}",
            )
    positions = finite_positions(potential)
    n, dim = positions.shape
    found = answers(potential, positions)
    _demand_shapes(found, n, dim)
    if declared & _OF_U:
        demand(
            can.GRADIENT in declared,
            f"{sorted(declared)} holds derivatives of U but not 'gradient', which goes with them",
        )
    for name, without in GOES_WITH.items():
        demand(
            name not in declared or without in declared,
            f"capability {name!r} is declared without {without!r}",
        )
    if can.INITIAL in declared:
        demand_shape(potential.initial(np.random.default_rng(3), 3), (3, dim), "initial")


def _demand_shapes(found: dict[str, FloatArray], n: int, dim: int) -> None:
    shapes: dict[str, tuple[int, ...]] = {
        "value_and_gradient[0]": (n,),
        "value_and_gradient[1]": (n, dim),
        "gradient[0]": (n, dim),
        "hessian[0]": (n, dim, dim),
        "hessian_diagonal[0]": (n, dim),
        "metric[0]": (n, dim, dim),
        "variance[0]": (n,),
    }
    shapes |= {f"{name}[0]": (n, dim) for name in WITH_FACTORS}
    if "forward[0]" in found:
        demand(
            found["forward[0]"].ndim == 2,
            f"forward must return shape (n, m), got {found['forward[0]'].shape}",
        )
        m = found["forward[0]"].shape[1]
        shapes |= {
            "forward[0]": (n, m),
            "forward_and_jacobian[0]": (n, m),
            "forward_and_jacobian[1]": (n, m, dim),
            "forward_and_gradient[0]": (n, m),
            "forward_and_gradient[1]": (n, dim),
        }
    for name, shape in shapes.items():
        if name in found:
            demand_shape(found[name], shape, name)


def check_gradient(make: Factory) -> None:
    """The gradient is that of the value, and comes with the same value."""
    potential, positions = place(make)
    values, gradients = potential.value_and_gradient(positions)
    demand_close(values, potential.value(positions), "value that comes with the gradient")
    demand_derivative(gradients, potential.value, positions, "gradient against differences")


def check_gradient_alone(make: Factory) -> None:
    """The gradient by itself is the one that comes with the value."""
    potential, positions = place(make)
    _, joint = potential.value_and_gradient(positions)
    demand_close(potential.gradient(positions), joint, "gradient alone against value_and_gradient")


def check_hessian(make: Factory) -> None:
    """The Hessian is symmetric, and the derivative of the gradient."""
    potential, positions = place(make)
    hessian = potential.hessian(positions)
    scale = np.abs(hessian).max(axis=(1, 2), keepdims=True)
    demand_close(
        hessian, hessian.transpose(0, 2, 1), "Hessian against its transpose", atol=1e-9 * scale
    )
    demand_derivative(
        hessian,
        lambda q: potential.value_and_gradient(q)[1],
        positions,
        "Hessian against differences of the gradient",
    )


def check_metric_matrix(make: Factory) -> None:
    """The metric is symmetric and has no negative eigenvalue."""
    potential = make()
    metric = potential.metric(finite_positions(potential))
    scale = np.abs(metric).max(axis=(1, 2), keepdims=True)
    demand_close(
        metric, metric.transpose(0, 2, 1), "metric against its transpose", atol=1e-9 * scale
    )
    least = np.linalg.eigvalsh(metric)[:, 0] / scale[:, 0, 0]
    demand(
        least.min() > -1e-9,
        f"a Fisher or Gauss-Newton matrix has no negative eigenvalue, but the least here is "
        f"{least.min():.3g} times the largest entry",
    )


def check_variance(make: Factory) -> None:
    """The variance is finite and not negative."""
    potential = make()
    variance = potential.variance(finite_positions(potential))
    demand(
        np.isfinite(variance).all() and (variance >= 0).all(),
        f"variance must be finite and at least 0, got {variance}",
    )


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


def check_rows(make: Factory) -> None:
    """A batch gives what its rows give one by one."""
    potential = make()
    positions = positions_for(potential)
    batch = answers(potential, positions)
    singles = [answers(potential, positions[i : i + 1]) for i in range(len(positions))]
    for name, array in batch.items():
        stacked = np.concatenate([one[name] for one in singles])
        finite = np.abs(array[np.isfinite(array)])
        scale = finite.max() if finite.size else 1.0
        demand_close(
            array, stacked, f"{name} of a batch against its rows", rtol=1e-7, atol=1e-9 * scale
        )


def check_wrong_shape(make: Factory) -> None:
    """Positions that are not rows of dim numbers raise ShapeError; so do wrong factors."""
    potential = make()
    dim = potential.dim
    for name in sorted(evaluations_of(potential)):
        method = getattr(potential, name)
        positions, *factors = arguments(potential, name, np.zeros((2, dim)))
        for shape in ((dim,), (2, dim + 1), (1, 2, dim)):
            _demand_refused(
                partial(method, np.zeros(shape), *factors),
                f"{name} of positions of shape {shape}",
                f"since dim is {dim}; surrokit.arguments.check_positions does",
            )
        for right in factors:
            for wrong in (right[:1], right[..., 0], right[..., None]):
                _demand_refused(
                    partial(method, positions, wrong),
                    f"{name} at 2 positions of dim {dim} with factors of shape {wrong.shape}",
                    f"since shape {right.shape} is expected; surrokit.arguments has checks of both",
                )


def _demand_refused(call: Callable[[], object], what: str, advice: str) -> None:
    try:
        call()
    except ShapeError:
        return
    except Exception as error:
        raise AssertionError(
            f"{what} must raise ShapeError, but raised {type(error).__name__}: {error}"
        ) from error
    raise AssertionError(f"{what} must raise ShapeError, {advice}")


def check_far_values(make: Factory) -> None:
    """Values far away are numbers or ``inf``, never NaN; only EvaluationError may be raised."""
    potential = make()
    positions = positions_for(potential)
    rng = np.random.default_rng(11)
    directions = rng.standard_normal(positions.shape)
    with np.errstate(all="ignore"):
        for scale in (3.0, 30.0, 1e3, 1e6):
            nan = np.isnan(_values_or_reasons(potential, positions + scale * directions))
            demand(
                not nan.any(),
                f"value is NaN at {int(nan.sum())} of {len(nan)} positions at a distance of "
                f"about {scale:g}; return inf where there is no density, or raise EvaluationError",
            )


def _values_or_reasons(potential: Any, positions: FloatArray) -> FloatArray:
    """Return values as a run has them, with ``inf`` in rows that the model explains."""
    calls = Calls("reject", 0)
    bound = change_model(potential, lambda model: attrs.evolve(model, calls=calls))
    calls.begin(len(positions))
    values = np.array(bound.value(positions))
    values[list(calls.causes)] = np.inf
    return values


CHECKS: tuple[Check, ...] = (
    Check(check_value),
    Check(check_capabilities),
    Check(check_gradient, applies=has(can.GRADIENT)),
    Check(check_gradient_alone, applies=has(can.GRADIENT_ALONE)),
    Check(check_hessian, applies=has(can.HESSIAN)),
    Check(check_metric_matrix, applies=has(can.METRIC)),
    Check(check_variance, applies=has(can.VARIANCE)),
    Check(check_input_untouched),
    Check(check_same_answer),
    Check(check_rows),
    Check(check_wrong_shape),
    Check(check_far_values),
)
"""For every potential.

There are more for forward potentials, in :mod:`~surrokit.testing.checks.targets.forward`, and for
products and derivatives of matrices, in :mod:`~surrokit.testing.checks.targets.matrices`.
"""
