"""Studies: the run that calls a model itself, by asking and telling, in however many processes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import surrokit as sk
from surrokit.errors import ConfigurationError, LedgerError, ShapeError

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

PARAMETERS = {"x": None, "y": (-5.0, 5.0)}
SEED = {"chains": 2, "seed": 1}
FEW = {"surrogate": ("additive", {"n_nodes": 20}), **SEED}
WEIGHTS = {"sampler": "sub-chain", "explorer": "rounds", "correction": "weights", **FEW}
CHAINS = {"sampler": "sub-chain", "explorer": ("rounds", {"evaluations": 60}), "draws": 5, **FEW}
WALK = {"sampler": "random-walk", "warmup": 6, "draws": 6, "chains": 4, "seed": 1}
PLAIN = {**SEED, "sampler": ("hmc", {"step_size": 0.3, "n_steps": 1}), "warmup": 4, "draws": 4}
DATA = {"data": [0.5, 0.2, 0.3], "noise_sd": 0.4, "prior": sk.gaussian_prior()}


def log_density(q):
    return -0.5 * q[0] ** 2 - 0.5 * ((q[1] - 0.3 * (q[0] ** 2 - 1.0)) / 0.5) ** 2


def gradient(q):
    away = (q[1] - 0.3 * (q[0] ** 2 - 1.0)) / 0.25
    return np.array([-q[0] + 0.6 * q[0] * away, -away])


def outputs(q):
    return np.array([q[0] + 0.1 * q[1] ** 2, q[1] - 0.2 * q[0], np.sin(0.5 * q[0])])


def results_at(study, positions):
    """Return what a person would tell."""
    if study.description.data is not None:
        return {"outputs": [outputs(q) for q in positions]}
    told = {"log_density": [log_density(q) for q in positions]}
    if study.description.gradients:
        told["gradients"] = [gradient(q) for q in positions]
    return told


def tell_all(study, n=None):
    """Tell until nothing is wanted; return how many positions were asked for."""
    asked = 0
    while not study.done:
        positions = study.ask(n)
        asked += len(positions)
        study.tell(positions, **results_at(study, positions))
    return asked


@pytest.mark.parametrize(
    ("described", "target", "settings"),
    [
        pytest.param(
            {"parameters": PARAMETERS},
            lambda: sk.potential(log_density=log_density, parameters=PARAMETERS),
            {**WEIGHTS, "max_calls": 130},
            marks=pytest.mark.long,
        ),
        (
            {"parameters": PARAMETERS, "gradients": True},
            lambda: sk.potential(log_density=log_density, gradient=gradient, parameters=PARAMETERS),
            PLAIN,
        ),
        pytest.param(
            {"dim": 2, **DATA},
            lambda: sk.forward_potential(outputs, dim=2, **DATA),
            CHAINS,
            marks=pytest.mark.long,
        ),
    ],
    ids=["values", "gradients", "outputs"],
)
def test_draws_are_those_of_a_run_that_calls_the_model(described, target, settings, tmp_path):
    study = sk.study(tmp_path / "a", **described, **settings)
    asked = tell_all(study)
    run = sk.sample(target(), **settings)
    assert np.array_equal(study.run.draws, run.draws)
    assert 0 < asked <= study.run.total_calls  # a run may look at a position again
    assert not len(study.ask())
    if run.answer is not None:
        assert str(study.run.summary()) == str(run.summary())


@pytest.mark.filterwarnings("ignore::surrokit.errors.EvaluationWarning")
def test_a_study_goes_on_in_later_processes_with_any_part_told(tmp_path):
    """Each time it is opened anew, some positions are told of, in another order; some failed."""
    settings = {"parameters": PARAMETERS, **WALK}

    def values_at(positions):
        values = np.array([log_density(q) for q in positions])
        return np.where(positions[:, 0] > 1.0, np.nan, values)

    sk.study(tmp_path / "a", **settings)
    rng, asked, failed = np.random.default_rng(3), 0, 0
    while not (study := sk.study(tmp_path / "a")).done:
        positions = rng.permutation(study.ask(3))
        asked += len(positions)
        left = len(study.ask()) - len(positions)
        values = values_at(positions)
        failed += int(np.isnan(values).sum())
        study.tell(positions, values)
        assert left == 0 or len(study.ask()) == left
    whole = sk.study(tmp_path / "b", **settings)
    while not whole.done:
        whole.tell(whole.ask(), values_at(whole.ask()))
    assert np.array_equal(study.run.draws, whole.run.draws)
    assert 0 < asked <= whole.run.total_calls
    assert study.run.failures >= failed > 0
    assert study.run.draws[..., 0].max() <= 1.0
    paid = sk.potential(log_density=log_density, parameters=PARAMETERS)
    longer = sk.resume(tmp_path / "a", paid, draws=8)  # a finished study is extended as a run is
    assert np.array_equal(longer.draws[:, :6], study.run.draws)


def test_a_bad_answer_is_refused_and_nothing_is_lost(tmp_path):
    study = sk.study(tmp_path / "a", parameters=PARAMETERS, gradients=True, **CHAINS)
    at = study.ask()
    told = results_at(study, at)
    for wrong, message in (
        ({"log_density": told["log_density"]}, "needs log_density and gradients, got log_density"),
        ({}, "got nothing"),
        ({**told, "outputs": [1.0]}, "got log_density and gradients and outputs"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            study.tell(at, **wrong)
    with pytest.raises(ShapeError, match=r"gradients of 2 positions must have shape \(2, 2\), got"):
        study.tell(at, told["log_density"], gradients=[1.0, 2.0])
    with pytest.raises(
        ConfigurationError, match=r"position 0 was not asked for; .* all its digits"
    ):
        study.tell(at + 1e-9, **told)
    with pytest.raises(ConfigurationError, match="n must be a whole number of at least 1, got 0"):
        study.ask(0)
    study.tell(at[1:], told["log_density"][1:], gradients=told["gradients"][1:])
    assert np.array_equal(study.ask(), at[:1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "number of parameters is not known"),
        ({"dim": 2, "data": [1.0]}, "data and noise_sd belong together"),
        ({"dim": 2, "prior": sk.gaussian_prior()}, "and a prior to them"),
        ({"dim": 2, **DATA, "prior": 3.0}, "must be surrokit.gaussian_prior"),
        ({"dim": 2, **DATA, "gradients": True}, "learnt without their derivatives"),
        ({"dim": 2, "gradients": 1}, "gradients must be"),
        ({"parameters": {"a": sk.real(prior=scipy.stats.norm())}}, "holds no prior of 'a'"),
    ],
)
def test_what_describes_no_study_is_refused(given, message, tmp_path):
    with pytest.raises(ConfigurationError, match=message):
        sk.study(tmp_path / "a", **given)
    assert not (tmp_path / "a").exists()


def test_files_of_another_kind_are_refused(tmp_path):
    sk.sample("banana", sampler="hmc", warmup=5, draws=5, seed=1, path=tmp_path / "run")
    with pytest.raises(LedgerError, match="is no study's"):
        sk.study(tmp_path / "run")
    sk.study(tmp_path / "a", dim=2, **CHAINS)
    with pytest.raises(ConfigurationError, match=r"holds the dim, seed of its study; leave them"):
        sk.study(tmp_path / "a", dim=2, seed=1)


@pytest.mark.parametrize("schedule", ["once", sk.make("schedule", "once")])
def test_a_safety_beside_a_schedule_is_kept(tmp_path, schedule):
    given = {"schedule": (schedule, sk.Safety(patience=30)), "parameters": PARAMETERS, **WEIGHTS}
    first = sk.study(tmp_path / "a", **given).ask()
    again = {} if schedule == "once" else {"schedule": given["schedule"]}
    assert np.array_equal(sk.study(tmp_path / "a", **again).ask(), first)
