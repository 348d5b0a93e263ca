"""What every target of this plugin must do, at the settings its component names."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit import capabilities as can
from surrokit.errors import ShapeError
from surrokit_problems.plugin import surrokit_components

COMPONENTS = surrokit_components()
CASES = [
    pytest.param(component, settings, id=f"{component.name}-{number}")
    for component in COMPONENTS
    for number, settings in enumerate(component.examples)
]


def starts(potential, n):
    rng = np.random.default_rng(0)
    if can.INITIAL in potential.capabilities:
        return potential.initial(rng, n)
    return 0.5 * rng.standard_normal((n, potential.dim))


def test_names():
    assert [component.name for component in COMPONENTS] == [
        *("gaussian", "gaussian-32", "banana", "lynx-hare", "elliptic-pde"),
        "aristoff-bangerth",
        *("logistic", "regression", "row-terms", "simulated-logistic", "bank", "a9a"),
    ]


@pytest.mark.parametrize(("component", "settings"), CASES)
def test_capabilities_are_kept(component, settings):
    potential = component.make(settings)
    assert potential.capabilities <= can.KNOWN
    q = starts(potential, 3)
    n, dim = q.shape
    value, gradient = potential.value_and_gradient(q)
    assert (value.shape, gradient.shape) == ((n,), (n, dim))
    assert_allclose(value, potential.value(q), atol=1e-6)
    if can.GRADIENT_ALONE in potential.capabilities:
        assert_allclose(potential.gradient(q), gradient, rtol=1e-10)
    for name in potential.capabilities & {can.HESSIAN, can.METRIC}:
        matrices = getattr(potential, name)(q)
        assert matrices.shape == (n, dim, dim)
        assert_allclose(matrices, matrices.transpose(0, 2, 1))


@pytest.mark.parametrize(("component", "settings"), CASES)
def test_no_rows(component, settings):
    potential = component.make(settings)
    value, gradient = potential.value_and_gradient(np.empty((0, potential.dim)))
    assert value.shape == (0,)
    assert gradient.shape == (0, potential.dim)


@pytest.mark.parametrize(("component", "settings"), CASES)
def test_rows_do_not_depend_on_their_batch(component, settings):
    potential = component.make(settings)
    q = starts(potential, 5)
    q.setflags(write=False)
    together = potential.value(q)
    alone = np.concatenate([potential.value(q[i : i + 1]) for i in range(5)])
    assert_allclose(alone, together, rtol=1e-12, atol=1e-5)


@pytest.mark.parametrize(("component", "settings"), CASES)
def test_positions_must_be_rows(component, settings):
    potential = component.make(settings)
    for method in (potential.value, potential.value_and_gradient):
        with pytest.raises(ShapeError, match=rf"must have shape \(n, {potential.dim}\), got"):
            method(np.ones(potential.dim + 1))
