"""The benchmark of Aristoff and Bangerth against numbers from its authors' own code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit import capabilities as can
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import EvaluationError, EvaluationWarning, NumericalError
from surrokit_problems.aristoff_bangerth import (
    AristoffBangerth,
    block_diffusion,
    read_measurements,
)

CHECKS = json.loads(Path(__file__).with_name("aristoff-bangerth.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def potential():
    return AristoffBangerth()


@pytest.fixture
def positions(potential):
    return potential.initial(np.random.default_rng(0), 2)


@pytest.mark.parametrize("check", CHECKS)
def test_the_authors_outputs_and_densities(potential, check):
    """Their density is that of theta; in log theta the Jacobian sum(log theta) joins it."""
    x = np.log(check["theta"])[None]
    assert_allclose(potential.forward(x)[0], check["outputs"], rtol=1e-9)
    expected = check["log_likelihood"] + check["log_prior"] + x.sum()
    constant = 64 * 2.0  # of the square that is completed: -x^2 / 8 + x = 2 - (x - 4)^2 / 8
    constant += 64 * np.log(2.0 * np.sqrt(2.0 * np.pi)) + 169 * np.log(0.05 * np.sqrt(2.0 * np.pi))
    assert_allclose(potential.value(x), constant - expected, rtol=1e-9)


def test_the_solution_for_one_coefficient():
    """The Fourier series of -4 lap u = 10, to which bilinear elements converge at second order."""
    x, k = np.array([0.25, 0.5]), np.arange(1, 200, 2)
    sines = np.sin(np.pi * np.outer(x, k))
    weights = 160.0 / 4.0 / (np.pi**4 * np.outer(k, k) * np.add.outer(k**2, k**2))
    exact = (sines @ weights @ sines.T).ravel()
    errors = []
    for cells in (8, 16, 32):
        solved = block_diffusion(cells, 2, source=10.0, observed=x)
        errors.append(np.abs(solved.solve(np.full(4, np.log(4.0))).outputs - exact).max())
    assert_allclose(np.array(errors[:-1]) / errors[1:], 4.0, rtol=0.1)


def test_blocks_run_along_x1_first(potential):
    """A very stiff block lowers u where it is: block 1 lies at x1 in (1/8, 1/4), x2 < 1/8."""
    x = np.zeros(64)
    x[1] = 8.0
    change = (potential.forward(x[None]) - potential.forward(np.zeros((1, 64)))).reshape(13, 13)
    k, m = np.unravel_index(np.argmin(change), change.shape)
    assert (k + 1) / 14 == pytest.approx(3 / 16, abs=1 / 14)
    assert (m + 1) / 14 <= 1 / 4


def test_without_jacobian_the_adjoint_is_left(positions):
    """Numbers are the same, and nothing that needs a Jacobian is offered."""
    with_both, without = AristoffBangerth(), AristoffBangerth(jacobian=False)
    assert with_both.capabilities - without.capabilities == {can.JACOBIAN, can.METRIC}
    for one, other in zip(
        with_both.value_and_gradient(positions), without.value_and_gradient(positions), strict=True
    ):
        assert_allclose(one, other)


@pytest.mark.parametrize("level", [-800.0, np.nan])
def test_positions_without_a_solution(potential, level):
    x = np.full((2, 64), 4.0)
    x[1] = level
    with pytest.raises(EvaluationError, match="nearer to the prior's mean") as caught:
        potential.value_and_gradient(x)
    assert isinstance(caught.value.causes[1], NumericalError)
    with pytest.warns(EvaluationWarning, match="nearer to the prior's mean"):
        values = RecordingPotential(potential, keep=False).value_and_gradient(x)[0]
    assert np.isfinite(values).tolist() == [True, False]


def test_a_coefficient_that_overflows_gives_no_solution_to_speak_of(potential):
    assert_allclose(potential.forward(np.full((1, 64), 900.0)), 0.0)


def test_measurements_are_read_once_and_kept():
    assert read_measurements() is read_measurements()
    assert read_measurements().shape == (169,)
    assert not read_measurements().flags.writeable
