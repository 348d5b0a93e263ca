"""Inverse problems of a diffusion: elements, modes, the paper's problem and a benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

import surrokit as sk
from surrokit import capabilities as can
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import (
    ConfigurationError,
    EvaluationError,
    NumericalError,
)
from surrokit_problems.elliptic_pde import AristoffBangerth, EllipticPde, square_modes

SMALL = {"mesh": 6, "modes": 4, "observations": 4}


@pytest.fixture(scope="module")
def potential():
    return EllipticPde(**SMALL)


@pytest.fixture
def positions(potential):
    return potential.initial(np.random.default_rng(0), 3)


def test_the_solution_for_a_constant_coefficient():
    # cosines along x1 times hyperbolic sines along x2: exact up to the elements' error
    mesh_sizes, errors = (20, 40, 80), []
    for cells in mesh_sizes:
        flow = EllipticPde(mesh=cells, modes=1, observations=6).flow
        x = np.linspace(0, 1, 6)
        expected = np.full((6, 6), 0.5)
        for k in range(1, 400, 2):
            # x1 = 1/2 - sum of 4 / (pi k)^2 cos(pi k x1), odd about the middle of x2
            along = 4.0 / (np.pi * k) ** 2 * np.cos(np.pi * k * x)
            profile = np.exp(-np.pi * k * (1 - x)) - np.exp(-np.pi * k * x)
            expected += np.outer(along, profile / (1 - np.exp(-np.pi * k)))
        pressure = flow.solve(np.zeros(1)).outputs.reshape(6, 6)
        errors.append(np.abs(pressure - expected)[:, 1:-1].max())
    assert errors[-1] < 2e-4
    assert_allclose(np.array(errors[:-1]) / errors[1:], 4.0, rtol=0.1)


def test_the_problem_of_the_paper():
    potential = sk.make("potential", "elliptic-pde")
    assert (potential.dim, len(potential.energy.data), potential.flow.mesh.cells) == (20, 121, 30)
    assert_allclose(potential.energy.blocks[0].scale, 0.1)
    assert_allclose(potential.prior_sd, 0.5)
    # so that a change of the data is seen, on whatever machine
    constant = 121 * np.log(0.1) + 20 * np.log(0.5) + 0.5 * 141 * np.log(2.0 * np.pi)
    values = potential.value(np.array([np.zeros(20), potential.truth]))
    assert_allclose(values - constant, [58.7213621081, 64.5387160789], rtol=1e-10)


@pytest.mark.long
def test_with_two_threads_it_is_the_same_problem():
    """LAPACK's basis of a pair of modes with one eigenvalue depends on threads; tests have one."""
    ours = EllipticPde()
    with threadpool_limits(2):
        theirs = EllipticPde()
    found = theirs.value_and_gradient(ours.truth[None])
    assert_allclose(theirs.energy.data, ours.energy.data, rtol=1e-10, atol=1e-10)
    for one, other in zip(found, ours.value_and_gradient(ours.truth[None]), strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_capabilities_follow_the_settings():
    both = EllipticPde(**SMALL).capabilities
    assert {can.FORWARD, can.JACOBIAN, can.GRADIENT, can.METRIC} < both
    assert EllipticPde(**SMALL, derivatives=False).capabilities == {can.FORWARD, can.INITIAL}
    alone = EllipticPde(**SMALL, outputs=False, derivatives=False)
    assert alone.capabilities == {can.INITIAL}
    gradients = EllipticPde(**SMALL, outputs=False).capabilities
    assert can.GRADIENT in gradients
    assert not gradients & {can.FORWARD, can.JACOBIAN}


def test_a_coefficient_that_varies_too_much_costs_the_others_nothing(potential, positions):
    expected = potential.value(positions)
    positions[1] = 1e4
    message = "where the logarithm of the coefficient goes from .*; start nearer to the"
    with pytest.raises(EvaluationError, match=message) as caught:
        potential.value(positions)
    assert isinstance(caught.value.causes[1], NumericalError)
    found = RecordingPotential(potential, keep=False).value(positions)
    assert_allclose(found, [expected[0], np.inf, expected[2]])


@pytest.mark.parametrize("name", ["mesh", "observations"])
@pytest.mark.parametrize("value", [1, 2.5, True])
def test_sizes_must_be_whole_numbers(name, value):
    message = f"{name} must be a whole number of at least 2, got {value}"
    with pytest.raises(ConfigurationError, match=message):
        EllipticPde(**{name: value})


# --- modes ---

LENGTH = 0.2
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(50)
POINTS, WEIGHTS = 0.5 * (POINTS + 1.0), 0.5 * WEIGHTS


def covariance(first, second, length=LENGTH):
    return np.exp(-0.5 * ((first[:, None] - second) / length) ** 2)


def test_eigenvalues_are_those_of_the_operator_on_the_square():
    found, _ = square_modes(20, LENGTH, POINTS)
    nodes, weights = np.polynomial.legendre.leggauss(18)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    roots = np.sqrt(np.outer(weights, weights).ravel())
    line = covariance(nodes, nodes)
    dense = roots[:, None] * np.kron(line, line) * roots
    assert_allclose(found, np.linalg.eigvalsh(dense)[::-1][:20], rtol=1e-6)
    # the authors' discretisation gave these
    assert_allclose(found[[0, 19]], [0.194, 0.0046], atol=5e-4)
    assert_allclose(found.sum(), 0.971, atol=5e-4)


@pytest.mark.parametrize(("length", "room"), [(LENGTH, 1e-10), (0.05, 1e-7), (1.0, 1e-8)])
def test_eigenfunctions_are_orthonormal_and_those_of_the_operator(length, room):
    eigenvalues, values = square_modes(12, length, POINTS)
    line = covariance(POINTS, POINTS, length) * WEIGHTS
    applied = line @ values @ line.T
    assert_allclose(applied, eigenvalues[:, None, None] * values, atol=room)
    flat, weights = values.reshape(12, -1), np.outer(WEIGHTS, WEIGHTS).ravel()
    assert_allclose((flat * weights) @ flat.T, np.eye(12), atol=room)


def test_order_and_sign_are_fixed():
    eigenvalues, values = square_modes(20, LENGTH, np.array([0.0, 0.1, 0.9]))
    assert (np.diff(eigenvalues) <= 0).all()
    assert (values[:, 0, 0] > 0).all()
    # of two that are one another's transpose, the first is that without a node along x1
    for first, second in ((1, 2), (4, 5)):
        assert_allclose(values[first], values[second].T, rtol=1e-12)
    assert values[1][-1, 0] > 0 > values[1][0, -1]


@pytest.mark.parametrize("n_modes", [0, 10_000])
def test_modes_that_cannot_be_told_apart_are_refused(n_modes):
    message = r"modes must be between 1 and \d+ for the length 0.2, .*; got \d+"
    with pytest.raises(ConfigurationError, match=message):
        square_modes(n_modes, LENGTH, POINTS)


# --- the benchmark of Aristoff and Bangerth, against numbers of its authors' own code ---

CHECKS = json.loads(Path(__file__).with_name("aristoff-bangerth.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def blocks():
    return AristoffBangerth()


@pytest.mark.parametrize("check", CHECKS)
def test_the_authors_outputs_and_densities(blocks, check):
    """Their density is that of theta; in log theta the Jacobian sum(log theta) joins it."""
    x = np.log(check["theta"])[None]
    assert_allclose(blocks.forward(x)[0], check["outputs"], rtol=1e-9)
    expected = check["log_likelihood"] + check["log_prior"] + x.sum()
    constant = 64 * 2.0  # of the square that is completed: -x^2 / 8 + x = 2 - (x - 4)^2 / 8
    constant += 64 * np.log(2.0 * np.sqrt(2.0 * np.pi)) + 169 * np.log(0.05 * np.sqrt(2.0 * np.pi))
    assert_allclose(blocks.value(x), constant - expected, rtol=1e-9)


@pytest.mark.parametrize("level", [-800.0, np.nan])
def test_positions_without_a_solution(blocks, level):
    assert_allclose(blocks.forward(np.full((1, 64), 900.0)), 0.0)  # theta itself overflows
    x = np.full((2, 64), 4.0)
    x[1] = level
    with pytest.raises(EvaluationError, match="nearer to the prior's mean") as caught:
        blocks.value_and_gradient(x)
    assert isinstance(caught.value.causes[1], NumericalError)
    values = RecordingPotential(blocks, keep=False).value_and_gradient(x)[0]
    assert np.isfinite(values).tolist() == [True, False]
