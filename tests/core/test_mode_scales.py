"""The scales that a search for a mode by gradients goes by."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.mode.descent import Scales
from surrokit.mode.search import find_mode

COVARIANCE = np.array([[1e6, 9e-1], [9e-1, 1e-6]])
MODE = np.array([3000.0, 0.001])
START = np.array([-2.0, 1.0])


def potential():
    precision = np.linalg.inv(COVARIANCE)
    return sk.potential(
        lambda q: 5.0 + 0.5 * (q - MODE) @ precision @ (q - MODE),
        lambda q: precision @ (q - MODE),
        dim=2,
    )


def test_a_unit_step_leads_to_a_known_mode_of_the_same_covariance():
    values, gradients = potential().value_and_gradient(START[None])
    root = Scales(covariance=COVARIANCE, least=5.0).root(values[0], gradients[0])
    slope = root.T @ gradients[0]
    assert_allclose(START - root @ slope / np.linalg.norm(slope), MODE, rtol=1e-6)


@pytest.mark.parametrize(("value", "gradient"), [(4.0, 1.0), (9.0, 0.0), (np.inf, 1.0)])
def test_where_nothing_is_gained_the_root_is_that_of_the_covariance(value, gradient):
    root = Scales(covariance=COVARIANCE, least=5.0).root(value, np.full(2, gradient))
    assert_allclose(root @ root.T, COVARIANCE)


def test_a_search_in_known_scales_takes_few_calls():
    known = find_mode(potential(), START, scales=Scales(covariance=COVARIANCE, least=5.0))
    assert known.converged
    assert known.calls <= 6
    assert_allclose(known.value, 5.0, atol=1e-3)
    plain = find_mode(potential(), START)
    assert plain.calls > 2 * known.calls or plain.value > 6.0
