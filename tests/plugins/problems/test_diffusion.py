"""Inverse problems of a diffusion: elements, modes, the paper's problem and a benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit import capabilities as can
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import (
    ConfigurationError,
    EvaluationError,
    EvaluationWarning,
    NumericalError,
    ShapeError,
)
from surrokit_problems.aristoff_bangerth import AristoffBangerth, block_diffusion
from surrokit_problems.diffusion import SquareMesh, interpolation
from surrokit_problems.elliptic_pde import EllipticPde, LineModes, SquareModes, steady_flow

SMALL = {"mesh": 6, "modes": 4, "observations": 4}


@pytest.fixture(scope="module")
def potential():
    return EllipticPde(**SMALL)


@pytest.fixture
def positions(potential):
    return potential.initial(np.random.default_rng(0), 3)


def dense_stiffness(mesh, coefficient):
    """Assemble over all nodes, cell by cell, with slopes from differences of the hats."""
    n, gauss = mesh.cells, (0.5 - 0.5 / np.sqrt(3.0), 0.5 + 0.5 / np.sqrt(3.0))
    field = coefficient.reshape(2, 2, n, n)
    stiffness = np.zeros(((n + 1) ** 2, (n + 1) ** 2))
    for e1 in range(n):
        for e2 in range(n):
            numbers = [(e1 + a) * (n + 1) + e2 + b for a in (0, 1) for b in (0, 1)]
            for g1, s in enumerate(gauss):
                for g2, t in enumerate(gauss):
                    by_x1 = np.array([t - 1, -t, 1 - t, t])
                    by_x2 = np.array([s - 1, 1 - s, -s, s])
                    product = np.outer(by_x1, by_x1) + np.outer(by_x2, by_x2)
                    stiffness[np.ix_(numbers, numbers)] += 0.25 * field[g1, g2, e1, e2] * product
    return stiffness


def unbanded(bands):
    width, size = bands.shape
    matrix = np.zeros((size, size))
    for k in range(width):
        matrix += np.diag(bands[width - 1 - k, k:], k)
        matrix += np.diag(bands[width - 1 - k, k:], -k) if k else 0
    return matrix


@pytest.mark.parametrize("cells", [2, 3, 4, 7])
def test_bands_hold_the_stiffness_matrix_of_the_free_nodes(cells):
    mesh = SquareMesh(cells)
    coefficient = np.random.default_rng(0).uniform(0.5, 2.0, (4, cells**2))
    free = np.arange((cells + 1) ** 2).reshape(cells + 1, cells + 1)[:, 1:-1].ravel()
    expected = dense_stiffness(mesh, coefficient)[np.ix_(free, free)]
    assert_allclose(unbanded(mesh.stiffness(coefficient)), expected, atol=1e-13)


def test_loads_of_slopes_are_the_stiffness_matrix():
    mesh = SquareMesh(5)
    rng = np.random.default_rng(0)
    coefficient, function = rng.uniform(0.5, 2.0, (4, 25)), rng.standard_normal((3, 6, 6))
    loads = mesh.loads(coefficient * mesh.slopes(function))
    expected = function.reshape(3, -1) @ dense_stiffness(mesh, coefficient)
    assert_allclose(loads.reshape(3, -1), expected, atol=1e-13)


def test_interpolation_is_exact_for_linear_functions():
    mesh = SquareMesh(4)
    where = np.array([0.0, 0.1, 0.25, 0.77, 1.0])
    assert_allclose(interpolation(4, where) @ (3 * mesh.nodes - 1), 3 * where - 1, atol=1e-15)


def test_the_solution_for_a_constant_coefficient():
    # cosines along x1 times hyperbolic sines along x2: exact up to the elements' error
    mesh_sizes, errors = (20, 40, 80), []
    for cells in mesh_sizes:
        flow = steady_flow(cells=cells, n_modes=1, observed=6, length=0.2)
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


def test_value_is_the_misfit_plus_the_prior(potential, positions):
    outputs = potential.forward(positions)
    data = potential.energy.data
    expected = 0.5 * np.square((outputs - data) / 0.1).sum(axis=1)
    expected += 0.5 * np.square(positions / 0.5).sum(axis=1)
    expected += (
        len(data) * np.log(0.1) + 4 * np.log(0.5) + 0.5 * (len(data) + 4) * np.log(2 * np.pi)
    )
    assert_allclose(potential.value(positions), expected)


def test_second_derivatives_along_one_direction_are_those_of_the_product(potential, positions):
    rng, solved = np.random.default_rng(0), potential.flow.solve(positions[0])
    vector, by_outputs = rng.standard_normal((1, 4)), rng.standard_normal((1, 16))
    whole = solved.hessian_product(by_outputs[:, :, None] * vector[:, None])
    assert_allclose(solved.hessian_form(by_outputs, vector), whole, atol=1e-13)


def test_data_are_pressures_with_noise():
    quiet = EllipticPde(**SMALL, noise_sd=1e-6)
    assert_allclose(quiet.forward(quiet.truth[None])[0], quiet.energy.data, atol=1e-5)
    loud = EllipticPde(**SMALL)
    assert_allclose(loud.truth, quiet.truth)
    errors = (loud.energy.data - quiet.energy.data) / loud.noise_sd
    assert 0.4 < errors.std() < 1.6
    assert not np.allclose(EllipticPde(**SMALL, seed=1).energy.data, loud.energy.data)


def test_the_problem_of_the_paper():
    potential = sk.make("potential", "elliptic-pde")
    assert (potential.dim, len(potential.energy.data), potential.flow.mesh.cells) == (20, 121, 30)
    assert_allclose(potential.energy.noise_sd, 0.1)
    assert_allclose(potential.prior_sd, 0.5)
    # so that a change of the data is seen, on whatever machine
    constant = 121 * np.log(0.1) + 20 * np.log(0.5) + 0.5 * 141 * np.log(2.0 * np.pi)
    values = potential.value(np.array([np.zeros(20), potential.truth]))
    assert_allclose(values - constant, [58.7213621081, 64.5387160789], rtol=1e-10)


_IN_A_PROCESS_OF_ITS_OWN = """
import json

import numpy as np
from threadpoolctl import threadpool_info

from surrokit_problems.elliptic_pde import EllipticPde

potential = EllipticPde()
positions = 0.5 * np.cos(np.arange(60.0)).reshape(3, 20)
values, gradients = potential.value_and_gradient(positions)
found = {
    "truth": potential.truth,
    "data": potential.energy.data,
    "values": values,
    "gradients": gradients,
    "threads": [library["num_threads"] for library in threadpool_info()],
}
print(json.dumps({name: np.asarray(array).tolist() for name, array in found.items()}))
"""


def test_processes_with_one_and_two_threads_have_the_same_problem():
    processes = []
    for threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        command = [sys.executable, "-c", _IN_A_PROCESS_OF_ITS_OWN]
        processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
    one, two = (json.loads(process.communicate(timeout=60)[0]) for process in processes)
    if (os.cpu_count() or 1) > 1:  # else no library starts a second
        assert max(one.pop("threads")) < max(two.pop("threads"))
    for name in ("truth", "data", "values", "gradients"):
        assert_allclose(one[name], two[name], rtol=1e-10, atol=1e-10, err_msg=name)


def test_capabilities_follow_the_settings():
    both = EllipticPde(**SMALL).capabilities
    assert {can.FORWARD, can.JACOBIAN, can.FORWARD_HESSIAN, can.GRADIENT, can.METRIC} < both
    assert EllipticPde(**SMALL, derivatives=False).capabilities == {can.FORWARD, can.INITIAL}
    alone = EllipticPde(**SMALL, outputs=False, derivatives=False)
    assert alone.capabilities == {can.INITIAL}
    gradients = EllipticPde(**SMALL, outputs=False).capabilities
    assert can.GRADIENT in gradients
    assert not gradients & {can.FORWARD, can.JACOBIAN, can.FORWARD_HESSIAN}


def test_a_coefficient_that_varies_too_much_costs_the_others_nothing(potential, positions):
    expected = potential.value(positions)
    positions[1] = 1e4
    message = "where the logarithm of the coefficient goes from .*; start nearer to the"
    with pytest.raises(EvaluationError, match=message) as caught:
        potential.value(positions)
    assert isinstance(caught.value.causes[1], NumericalError)
    with pytest.warns(EvaluationWarning, match=message):
        found = RecordingPotential(potential, keep=False).value(positions)
    assert_allclose(found, [expected[0], np.inf, expected[2]])


def test_weights_must_be_those_of_the_outputs(potential, positions):
    message = r"weights must hold one row for each of the 16 outputs, got 15; pass shape \(3, 16, 4"
    with pytest.raises(ShapeError, match=message):
        potential.forward_hessian_product(positions, np.ones((3, 15, 4)))


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


@pytest.fixture(scope="module")
def modes():
    return SquareModes.leading(20, LENGTH)


def test_eigenvalues_are_those_of_the_operator_on_the_square(modes):
    nodes, weights = np.polynomial.legendre.leggauss(18)
    nodes, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    roots = np.sqrt(np.outer(weights, weights).ravel())
    line = covariance(nodes, nodes)
    dense = roots[:, None] * np.kron(line, line) * roots
    expected = np.linalg.eigvalsh(dense)[::-1][:20]
    assert_allclose(modes.eigenvalues, expected, rtol=1e-6)
    # the authors' discretisation gave these
    assert_allclose(modes.eigenvalues[[0, 19]], [0.194, 0.0046], atol=5e-4)
    assert_allclose(modes.eigenvalues.sum(), 0.971, atol=5e-4)


@pytest.mark.parametrize(("length", "room"), [(LENGTH, 1e-10), (0.05, 1e-7), (1.0, 1e-8)])
def test_eigenfunctions_are_orthonormal_and_those_of_the_operator(length, room):
    modes = SquareModes.leading(12, length)
    values = modes.on_grid(POINTS, POINTS)
    line = covariance(POINTS, POINTS, length) * WEIGHTS
    applied = line @ values @ line.T
    assert_allclose(applied, modes.eigenvalues[:, None, None] * values, atol=room)
    flat, weights = values.reshape(12, -1), np.outer(WEIGHTS, WEIGHTS).ravel()
    assert_allclose((flat * weights) @ flat.T, np.eye(12), atol=room)


def test_order_and_sign_are_fixed(modes):
    assert modes.pairs[:7].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [0, 2], [2, 0], [1, 2]]
    assert (np.diff(modes.eigenvalues) <= 0).all()
    assert (LineModes.of(LENGTH).at(np.zeros(1)) > 0).all()
    x = np.array([0.1, 0.4])
    first, second = SquareModes.leading(3, LENGTH).on_grid(x, x)[1:]
    assert_allclose(first, second.T, rtol=1e-14)


def test_fewer_modes_are_the_first_of_more(modes):
    few = SquareModes.leading(2, LENGTH)  # cuts a pair in half
    assert_allclose(few.on_grid(POINTS, POINTS), modes.on_grid(POINTS, POINTS)[:2], rtol=0)


@pytest.mark.parametrize("n_modes", [0, 10_000])
def test_modes_that_cannot_be_told_apart_are_refused(n_modes):
    message = r"modes must be between 1 and \d+ for the length 0.2, .*; got \d+"
    with pytest.raises(ConfigurationError, match=message):
        SquareModes.leading(n_modes, LENGTH)


@pytest.mark.parametrize("length", [0.0, -1.0, np.inf])
def test_the_length_must_be_positive(length):
    with pytest.raises(ConfigurationError, match="length must be positive and finite, got"):
        LineModes.of(length)


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


def test_without_jacobian_the_adjoint_is_left(blocks):
    """Numbers are the same, and nothing that needs a Jacobian is offered."""
    with_both, without = blocks, AristoffBangerth(jacobian=False)
    positions = blocks.initial(np.random.default_rng(0), 2)
    assert with_both.capabilities - without.capabilities == {can.JACOBIAN, can.METRIC}
    for one, other in zip(
        with_both.value_and_gradient(positions), without.value_and_gradient(positions), strict=True
    ):
        assert_allclose(one, other)


@pytest.mark.parametrize("level", [-800.0, np.nan])
def test_positions_without_a_solution(blocks, level):
    x = np.full((2, 64), 4.0)
    x[1] = level
    with pytest.raises(EvaluationError, match="nearer to the prior's mean") as caught:
        blocks.value_and_gradient(x)
    assert isinstance(caught.value.causes[1], NumericalError)
    with pytest.warns(EvaluationWarning, match="nearer to the prior's mean"):
        values = RecordingPotential(blocks, keep=False).value_and_gradient(x)[0]
    assert np.isfinite(values).tolist() == [True, False]


def test_a_coefficient_that_overflows_gives_no_solution_to_speak_of(blocks):
    assert_allclose(blocks.forward(np.full((1, 64), 900.0)), 0.0)
