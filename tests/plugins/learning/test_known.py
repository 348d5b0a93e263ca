"""Rounds that begin with evaluations of other posteriors of the same model."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import surrokit as sk
from surrokit_learning import rounds

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

TIMES = np.linspace(0.0, 4.0, 12)
SETTINGS = {
    "surrogate": "additive",
    "sampler": "sub-chain",
    "explorer": "rounds",
    "draws": 30,
    "progress": False,
}


def decay(q):
    return q[0] * np.exp(-q[1] * TIMES)


def slopes(q):
    curve = np.exp(-q[1] * TIMES)
    return np.column_stack([curve, -q[0] * TIMES * curve])


def decaying():
    return sk.model(
        decay,
        slopes,
        parameters={"height": (0, None), "rate": (0, None)},
        plausible={"height": (1.0, 3.0), "rate": (0.3, 1.0)},
    )


def observed(height, rate, seed):
    noise = 0.05 * np.random.default_rng(seed).standard_normal(len(TIMES))
    return {"data": decay([height, rate]) + noise, "noise_sd": 0.05}


@pytest.fixture(scope="module")
def explored():
    """A model one posterior of which has been drawn from."""
    model = decaying()
    sk.sample(model.posterior(**observed(2.0, 0.7, 1)), seed=1, **SETTINGS)
    return model


def second_and_alone(explored, height, rate):
    """Return a run after one with other data, and the same run of a model of its own."""
    other = observed(height, rate, 2)
    models = copy.deepcopy(explored), decaying()
    return [sk.sample(model.posterior(**other), seed=11, **SETTINGS) for model in models]


@pytest.mark.long
def test_other_data_take_no_jacobian_where_the_surrogate_is_good(explored):
    """Instead of some 59: neither starts nor ways to the mode are evaluated."""
    second, alone = second_and_alone(explored, 2.05, 0.72)
    assert second.calls["jacobian"] == 0
    assert alone.calls["jacobian"] > 40
    assert second.adaptation.training_rows > alone.adaptation.training_rows
    off, sd = (second.draws - alone.draws).mean(axis=(0, 1)), alone.draws.std(axis=(0, 1))
    # 120 draws each: 0.13 sd are a standard error of the difference, and five a false alarm in 10^6
    assert (np.abs(off) < 0.65 * sd).all()
    assert np.allclose(second.draws.std(axis=(0, 1)), sd, rtol=0.4)


@pytest.mark.long
def test_a_mode_where_other_data_had_none_is_found():
    """A second output tells the sign of a number, but hardly so in the second posterior."""
    shared = sk.model(
        lambda q: np.array([q[0] ** 2, q[0], q[1]]),
        lambda q: np.array([[2.0 * q[0], 0.0], [1.0, 0.0], [0.0, 1.0]]),
        dim=2,
    )
    first, second = (
        sk.sample(
            shared.posterior(data=[4.0, 2.0, 0.0], noise_sd=[0.4, sd, 1.0]), seed=seed, **SETTINGS
        )
        for seed, sd in ((1, 0.1), (2, 50.0))
    )
    assert (first.draws[..., 0] > 0.0).all()
    assert second.modes.matters.sum() == 2
    np.testing.assert_allclose(np.sort(second.modes.places[:2, 0]), [-2.0, 2.0], atol=0.05)


def grid_mean(data, noise_sd):
    """Return posterior means and sds by quadrature, in logarithms, as flat bounds have them."""
    height, rate = np.meshgrid(np.linspace(1.6, 2.6, 300), np.linspace(0.5, 1.0, 300))
    outputs = height[..., None] * np.exp(-rate[..., None] * TIMES)
    weights = np.exp(-0.5 * np.square((outputs - data) / noise_sd).sum(axis=-1))
    places = np.stack([height, rate])
    mean = (weights * places).sum(axis=(1, 2)) / weights.sum()
    square = (weights * np.square(places)).sum(axis=(1, 2)) / weights.sum()
    return mean, np.sqrt(square - mean**2)


def test_twenty_calls_answer_another_question_and_are_found_again(tmp_path):
    """Not one of them is for timing, starts or modes, and a model without a store resumes it."""
    few = ("weights", {"chains": 32, "warmup": 60, "effective": 1500})
    parts = {"sampler": "hmc", "surrogate": ("additive", {"n_nodes": 60}), "explorer": "rounds"}
    settings = {**parts, "correction": few, "progress": False}
    model, other = decaying(), observed(2.05, 0.72, 2)
    sk.sample(model.posterior(**observed(2.0, 0.7, 1)), max_calls=80, seed=1, **settings)
    path = tmp_path / "run"
    run = sk.sample(model.posterior(**other), max_calls=20, seed=2, path=path, **settings)
    assert [len(each) for each in run.answer.rounds] == [16]
    assert run.total_calls == 20
    mean, sd = grid_mean(**other)
    found = run.summary().columns
    assert (np.abs(found["mean"] - mean) < 0.1 * sd).all()  # errors are some 0.01 sd
    np.testing.assert_allclose(found["sd"], sd, rtol=0.1)
    again = sk.resume(path, decaying().posterior(**other), progress=False)
    np.testing.assert_array_equal(again.draws, run.draws)


@pytest.mark.long
def test_where_calls_make_no_round_none_is_spent_on_judging(monkeypatch):
    """Though nothing that is known says how good the surrogate is."""
    monkeypatch.setattr(rounds, "fit_quality_of", lambda surrogate: None)
    few = ("weights", {"chains": 8, "warmup": 100, "effective": 800})
    settings = {"correction": few, "progress": False}
    model = decaying()
    sk.sample(model.posterior(**observed(2.0, 0.7, 1)), max_calls=80, seed=1, **settings)
    run = sk.sample(model.posterior(**observed(2.05, 0.72, 2)), max_calls=20, seed=2, **settings)
    assert [len(each) for each in run.answer.rounds] == [16]
