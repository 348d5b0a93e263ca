"""Stories of users, from a model to its answer; most of them take minutes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.linalg import inv, solve
from scipy import stats
from scipy.special import logsumexp

import simulators
import surrokit as sk
from surrokit.errors import SamplingWarning

# --- evidence of two universes, and the Bayes factor between them ---


M = sk.real(prior=stats.norm(43, 1))
Om = sk.interval(0.05, 0.95, prior=stats.uniform(0.05, 0.9))


def log_likelihood(misfit):
    return -0.5 * np.square(misfit).sum(axis=-1) - 30 * np.log(0.1 * np.sqrt(2 * np.pi))


def by_quadrature(matter):
    """Log evidence over M and these values of Om, which are equally likely."""
    places = np.linspace(42.5, 44.0, 1501)
    shape = np.array([simulators.moduli(0.0, each) for each in matter])
    misfit = (simulators.SUPERNOVAE - places[:, None, None] - shape) / 0.1
    log = stats.norm(43, 1).logpdf(places)[:, None] + log_likelihood(misfit)
    return logsumexp(log) + np.log(places[1] - places[0]) - np.log(len(matter))


def log_evidence(parameters, forward):
    target = sk.forward_potential(
        forward, data=simulators.SUPERNOVAE, noise_sd=0.1, parameters=parameters
    )
    run = sk.sample(target, correction="weights", max_calls=150, seed=1)
    return run.log_evidence()


@pytest.mark.long
def test_evidence_of_two_universes():
    with_lambda = log_evidence({"M": M, "Om": Om}, lambda q: simulators.moduli(*q))
    without = log_evidence({"M": M}, lambda q: simulators.moduli(q[0], 1.0))
    edges = np.linspace(0.05, 0.95, 401)
    truth = by_quadrature(0.5 * (edges[1:] + edges[:-1])), by_quadrature([1.0])
    for estimate, exact in zip((with_lambda, without), truth, strict=True):
        assert not estimate.unnormalized
        low, high = estimate.interval(0.999)
        assert low - 0.01 < exact < high + 0.01
    assert abs(with_lambda.value - without.value - (truth[0] - truth[1])) < 0.1


# --- two spectral lines, whose labels may be exchanged ---


WAVES = np.linspace(0.0, 10.0, 60)
TRUTH = (4.0, 6.0, (1.0, 0.7), 0.5)
NOISE = 0.05
DATA = simulators.spectrum(WAVES, *TRUTH) + NOISE * np.random.default_rng(4).standard_normal(60)


def log_density(places, heights, width):
    misfit = (DATA - simulators.spectrum(WAVES, *places, heights, width)) / NOISE
    return -0.5 * misfit @ misfit


def lines(places):
    return sk.potential(
        log_density=log_density,
        parameters={
            "places": places,
            "heights": sk.interval(0.0, 3.0, shape=2),
            "width": sk.interval(0.1, 2.0),
        },
    )


@pytest.mark.long
def test_lines_whose_labels_exchange_are_both_found_or_warned_of():
    target = lines(sk.interval(0.0, 10.0, shape=2))
    with pytest.warns(SamplingWarning) as warned:
        run = sk.sample(target, max_calls=3000, seed=1)
    first = run["places"][..., 0] < run["places"][..., 1]
    assert 0.3 < first.mean() < 0.7 or any("mode" in str(each.message) for each in warned)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:searches for modes:surrokit.errors.SamplingWarning")
def test_lines_in_order():
    target = lines(sk.ordered(2))
    initial = {"places": [3.5, 6.5], "heights": [1.0, 1.0], "width": 0.5}
    run = sk.sample(target, initial=initial, max_calls=3000, seed=1)
    means = run.draws.mean(axis=(0, 1))
    assert np.allclose(means, [4.0, 6.0, 1.0, 0.7, 0.5], atol=0.06)


# --- a differential equation whose errors are of unknown size ---


@pytest.mark.long
def test_an_equation_with_unknown_noise():
    truth, noise = (2.0, 0.3), 0.05
    angles = simulators.swing(*truth) + noise * np.random.default_rng(3).standard_normal(40)
    target = sk.forward_potential(
        lambda q: simulators.swing(*q),
        data=angles,
        noise_sd="estimate",
        parameters={"frequency": (0.5, 5), "damping": sk.positive()},
        plausible={"frequency": (1, 3), "damping": (0.05, 1)},
    )
    run = sk.sample(target, max_calls=200, seed=1)
    summary = run.summary()
    assert summary.labels == ["frequency", "damping", "noise_sd"]
    apart = (summary["mean"] - np.array([*truth, noise])) / summary["sd"]
    assert np.all(np.abs(apart) < 3)
    assert 0.04 < summary["mean"][2] < 0.065
    assert run.total_calls <= 200


# --- a simulator that takes seconds a call, 300 calls, and priors that say where ---


def moments():
    """Mean and standard deviation of M and Om, on a grid."""
    M, Om = np.linspace(42.9, 43.5, 241), np.linspace(0.051, 0.899, 241)
    shape = np.array([simulators.moduli(0.0, each) for each in Om])
    misfit = (simulators.SUPERNOVAE - M[:, None, None] - shape) / 0.1
    log = stats.norm(43, 1).logpdf(M)[:, None] - 0.5 * np.square(misfit).sum(axis=-1)
    mass = np.exp(log - log.max())
    places = np.stack(np.meshgrid(M, Om, indexing="ij"))
    mean = (places * mass).sum(axis=(1, 2)) / mass.sum()
    square = (places**2 * mass).sum(axis=(1, 2)) / mass.sum()
    return mean, np.sqrt(square - mean**2)


@pytest.mark.long
def test_a_simulator_of_some_seconds(tmp_path):
    target = sk.potential(
        log_density=simulators.supernovae,
        parameters={"M": sk.real(prior=stats.norm(43, 1)), "Om": sk.interval(0.05, 0.9)},
    )
    file = tmp_path / "run.surrokit"
    run = sk.sample(target, max_calls=300, seed=1, path=file, compute=sk.Compute(workers=2))
    mean, sd = moments()
    assert np.all(np.abs(run.summary()["mean"] - mean) < 0.1 * sd)
    assert np.all(np.abs(run.summary()["sd"] / sd - 1) < 0.1)
    assert run.total_calls <= 300
    assert sk.open_run(file).verdict.findings == run.verdict.findings


# --- a table of 300,000 rows ---


def laplace(design, response):
    """Mode and standard deviations of a logistic regression under a flat prior."""
    q = np.zeros(design.shape[1])
    for _ in range(12):
        p = 1 / (1 + np.exp(-design @ q))
        curvature = (design.T * (p * (1 - p))) @ design
        q += solve(curvature, design.T @ (response - p))
    return q, np.sqrt(np.diag(inv(curvature)))


def made(n):
    rng = np.random.default_rng(1)
    income, age = rng.lognormal(10.5, 0.5, n), rng.normal(48, 12, n)
    logit = -2.0 + 2e-5 * income + 0.02 * age - 0.3 * (age > 60)
    response = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    return np.column_stack([np.ones(n), income, age, age > 60.0]).astype(float), response


@pytest.mark.long
def test_a_table_of_many_rows():
    design, response = made(300_000)
    run = sk.sample(sk.rows_potential("binomial", design, response), seed=1)
    mode, sd = laplace(design, response)
    assert np.all(np.abs(run.draws.mean(axis=(0, 1)) - mode) < 0.15 * sd)
    assert np.all(np.abs(run.draws.std(axis=(0, 1)) / sd - 1) < 0.1)
    assert run.ess().min() > 500


def test_a_table_with_a_formula():
    pytest.importorskip("formulaic")
    design, response = made(20_000)
    table = {"bought": response, "income": design[:, 1], "age": design[:, 2]}
    target = sk.glm("bought ~ income + age + I(age > 60)", table, "binomial")
    run = sk.sample(target, seed=1)
    mode, sd = laplace(design, response)
    assert np.all(np.abs(run.draws.mean(axis=(0, 1)) - mode) < 0.15 * sd)
    predicted = run.predict({"income": [30_000.0], "age": [40.0]})
    assert 0 < float(np.asarray(predicted["mean"])[0]) < 1
