"""Calibration by simulated data: uniform ranks where all is right, and what is found where not.

Rates of false alarms are stated; seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import surrokit as sk
from surrokit.calibration import (
    RANKED,
    TESTED,
    Calibration,
    are_accepted,
    chances,
    ranks_of,
)
from surrokit.cli.main import cli
from surrokit.errors import CapabilityError, ConfigurationError, ShapeError, TargetError

DESIGN = np.random.default_rng(0).standard_normal((6, 2))
PRIORS = {"a": sk.real(prior=stats.norm(0.0, 1.0)), "b": sk.real(prior=stats.norm(1.0, 2.0))}


def linear(noise=1.0):
    model = sk.model(lambda q: DESIGN @ q, lambda q: DESIGN, parameters=PRIORS)
    return model.posterior(data=np.zeros(6), noise_sd=noise)


def scattered(scale):
    return lambda rng, outputs, position: outputs + scale * rng.standard_normal(len(outputs))


# --- exact ranks by a bad surrogate ---


@pytest.fixture(scope="module")
def accepted():
    """Positions and log weights where V is N(1, 0.7^2) and the target N(0, 1), if V is accepted."""
    rng = np.random.default_rng(1)
    x = 1.0 + 0.7 * rng.standard_normal((12_000, 1 + RANKED))
    x[:, 0] = rng.standard_normal(len(x))
    logs = -0.5 * x**2 + 0.5 * ((x - 1.0) / 0.7) ** 2
    passed = are_accepted(logs[:, 1 : 1 + TESTED])
    return x[passed], logs[passed]


def ranks_by(accepted, weigh):
    rng = np.random.default_rng(2)
    pairs = zip(*accepted, strict=True)
    return np.array([ranks_of(x[:, None], weigh(logs), rng)[0] for x, logs in pairs])


def p_value(ranks):
    return stats.kstest(ranks, "uniform").pvalue


def test_ranks_are_uniform_whatever_the_surrogate(accepted):
    """False alarms: 1 in 1000. Without weights, or the test of theta, they are not uniform."""
    assert p_value(ranks_by(accepted, chances)) > 1e-3
    assert p_value(ranks_by(accepted, np.zeros_like)) < 1e-6
    assert p_value(ranks_by(accepted, np.copy)) < 1e-4


def test_a_rank_among_equal_ones_is_drawn_from_theirs():
    ranks = [
        ranks_of(np.zeros((4, 1)), np.zeros(4), np.random.default_rng(seed))[0]
        for seed in range(200)
    ]
    assert p_value(ranks) > 1e-3


# --- tests of uniformity ---


def calibration(ranks, **settings):
    given = {
        "requested": len(ranks),
        "rejected": 0,
        "failures": 0,
        "calls": {"forward": 9 * len(ranks)},
    }
    labels = (*(f"q[{i}]" for i in range(ranks.shape[1] - 1)), "log density")
    given["effective"] = np.full(len(ranks), 9.0)
    return Calibration(labels=labels, ranks=ranks, **given | settings)


@pytest.mark.parametrize("n", [20, 150])
def test_p_values_of_uniform_ranks_are_uniform(n):
    """False alarms: 1 in 1000 for each n."""
    p = calibration(np.random.default_rng(2).random((n, 500))).p_values
    below = [stats.binomtest(int((p <= level).sum()), 500, level).pvalue for level in (0.05, 0.3)]
    assert min(below) > 5e-4


def test_a_band_holds_an_ecdf_unless_its_p_value_is_small():
    found = calibration(np.random.default_rng(3).random((60, 300)))
    places, low, high = found.bands(0.9)
    shares = (found.ranks.T[:, :, None] <= places).mean(axis=1)
    inside = ((shares >= low - 1e-9) & (shares <= high + 1e-9)).all(axis=1)
    assert np.mean(inside == (found.p_values > 0.1)) > 0.98
    assert 0.8 < inside.mean() < 0.97


@pytest.mark.parametrize(
    ("law", "how"),
    [
        (stats.beta(0.5, 0.5), "too narrow"),
        (stats.beta(3.0, 3.0), "too wide"),
        (stats.beta(2.0, 1.0), "too low"),
        (stats.beta(1.0, 2.0), "too high"),
    ],
)
def test_the_verdict_says_which_and_in_which_way(law, how):
    rng = np.random.default_rng(4)
    found = calibration(np.stack([law.rvs(200, random_state=rng), rng.random(200)], axis=1))
    (finding,) = found.verdict.warnings
    assert finding.name == "ranks"
    assert "'q[0]'" in finding.message
    assert how in finding.message


def test_few_sets_and_rejected_ones_are_findings():
    found = calibration(
        np.random.default_rng(5).random((20, 2)), requested=60, rejected=30, failures=2
    )
    assert [each.name for each in found.verdict.warnings] == ["few", "rejected"]
    assert {each.name for each in found.verdict} == {
        "ranks",
        "few",
        "rejected",
        "stopped",
        "failures",
    }
    blind = calibration(np.random.default_rng(5).random((80, 2)), effective=np.ones(80))
    assert [each.name for each in blind.verdict.warnings] == ["effective"]
    empty = calibration(np.empty((0, 2)), requested=3, rejected=3)
    assert not empty.verdict.sound
    assert "0 data sets" in str(empty)
    with pytest.raises(ConfigurationError, match="no ranks to show; give more calls"):
        empty.plot()


# --- whole calibrations ---


@pytest.fixture(scope="module")
def right():
    return sk.calibrate(linear(), n=60, seed=1)


def test_a_linear_map_is_calibrated_at_nine_calls_a_data_set(right):
    """False alarms: 1 in 100."""
    assert right.verdict.sound, right
    assert right.ranks.shape == (60, 3)
    assert right.total_calls == 20 + 60 * (1 + RANKED)
    assert right.effective.mean() > 8.0
    assert right.labels == ("a", "b", "log density")


@pytest.mark.parametrize(
    ("noise", "settings", "wrong"),
    [
        (1.0, {"simulate": scattered(2.5)}, "a"),
        pytest.param(1.0, {"simulate": scattered(0.4)}, "log density", marks=pytest.mark.long),
        pytest.param(
            1.0,
            {"simulate": lambda rng, f, q: f + DESIGN[:, 0] + rng.standard_normal(6)},
            "a",
            marks=pytest.mark.long,
        ),
        pytest.param(10.0, {"prior": {"b": stats.norm(1.0, 6.0)}}, "b", marks=pytest.mark.long),
        pytest.param(10.0, {"prior": {"b": stats.norm(1.0, 0.3)}}, "b", marks=pytest.mark.long),
    ],
)
def test_wrong_errors_and_priors_are_found(noise, settings, wrong):
    found = sk.calibrate(linear(noise), n=80, seed=1, **settings)
    assert any(f"'{wrong}'" in each.message for each in found.verdict.warnings), found


def failing(q):
    if q[0] > 1.0:
        raise ArithmeticError("no solution")
    return np.array([q[0] + q[1], np.nan if q[1] < -0.5 else np.exp(0.5 * q[1])])


@pytest.mark.long
def test_a_map_that_fails_for_some_parameters_is_calibrated_where_it_works():
    """Values alone, two outputs; false alarms: 1 in 100."""
    parameters = {"a": sk.real(prior=stats.norm()), "b": sk.interval(-1.0, 2.0)}
    target = sk.model(failing, parameters=parameters).posterior(data=[0.0, 1.0], noise_sd=0.5)
    found = sk.calibrate(target, n=60, surrogate="quadratic", seed=2)
    assert found.verdict.sound, found
    assert found.failures > 10
    assert found.verdict.named("failures")
    assert len(found.ranks) + found.rejected == 60
    assert found.total_calls <= 15 * 60


def test_an_answer_that_is_not_accepted_counts_as_such():
    def rough(q):
        return 3.0 * np.sin(200.0 * q)

    target = sk.model(rough, parameters=PRIORS).posterior(data=np.zeros(2), noise_sd=0.3)
    found = sk.calibrate(target, n=5, seed=1, max_calls=200)
    assert found.rejected > 0
    assert found.verdict.named("rejected")
    assert found.total_calls <= 200


def test_a_limit_ends_a_calibration():
    found = sk.calibrate(linear(), n=50, max_calls=100, seed=1)
    assert found.total_calls <= 100
    assert len(found.ranks) == 8
    assert found.verdict.named("stopped")


def test_a_killed_calibration_finds_what_it_evaluated(tmp_path, right):
    class Killed(BaseException):
        pass

    calls = [0]

    def forward(q):
        calls[0] += 1
        if calls[0] == 80:
            raise Killed
        return DESIGN @ q

    def target():
        path = tmp_path / "model.surrokit"
        model = sk.model(forward, lambda q: DESIGN, parameters=PRIORS, path=path)
        return model.posterior(data=np.zeros(6), noise_sd=1.0)

    with pytest.raises(Killed):
        sk.calibrate(target(), n=12, seed=3)
    again = sk.calibrate(target(), n=12, seed=3)
    whole = sk.calibrate(linear(), n=12, seed=3)
    np.testing.assert_allclose(again.ranks, whole.ranks)
    assert whole.total_calls == 20 + 12 * 9
    # those of the batch in progress are lost
    assert again.total_calls <= whole.total_calls - 79 + RANKED


@pytest.mark.long
def test_a_run_is_a_prior_whose_data_count_in_each_posterior():
    """False alarms: 1 in 100. Twice as large errors are found beside the data of the run."""
    target = linear()
    run = sk.sample(target, sampler="hmc", surrogate="none", seed=1, progress=False)
    assert sk.calibrate(target, run, n=60, seed=1).verdict.sound
    wrong = sk.calibrate(target, run, n=60, seed=1, simulate=scattered(2.5))
    assert not wrong.verdict.sound


# --- errors ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n": 0}, "n and max_calls must be numbers of at least 1"),
        ({"surrogate": linear()}, "calibration needs a surrogate that learns"),
        ({"max_calls": np.nan}, "n and max_calls must be numbers of at least 1"),
        ({"prior": {"c": stats.norm()}}, "no parameter is named 'c'"),
        ({"prior": {"a": 3.0}}, "no prior of 'a' can be drawn from"),
        ({"simulate": lambda rng, f, q: f[:2]}, r"data must have shape \(6,\), got \(2,\)"),
        ({"simulate": lambda rng, f, q: f + np.nan}, "data must be finite"),
    ],
)
def test_what_makes_no_sense_is_an_error(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.calibrate(linear(), **settings)


def test_flat_priors_and_other_targets_are_errors():
    flat = sk.model(lambda q: DESIGN @ q, parameters={"a": None, "b": None})
    with pytest.raises(ConfigurationError, match="no prior of 'a' can be drawn from; give prior="):
        sk.calibrate(flat.posterior(data=np.zeros(6), noise_sd=1.0))
    with pytest.raises(CapabilityError, match="need a forward map with errors"):
        sk.calibrate("gaussian")


def test_a_model_that_always_fails_is_an_error():
    def fails(q):
        raise ArithmeticError("never")

    target = sk.model(fails, parameters=PRIORS).posterior(data=np.zeros(6), noise_sd=1.0)
    with pytest.raises(TargetError, match="the model failed at 100 draws of the prior in a row"):
        sk.calibrate(target, n=3, max_calls=500)


def test_other_data_are_as_many():
    energy = linear().energy
    with pytest.raises(ShapeError, match="must have shape"):
        energy.with_data(np.zeros(3))


# --- predictions ---


def test_prior_predictive_data_have_the_prior_and_the_errors():
    """Means within 5 standard errors, sds within 15 %; false alarms: 1 in 1000."""
    model = sk.model(lambda q: DESIGN @ q, lambda q: DESIGN, parameters=PRIORS)
    settings = {"data": np.zeros(6), "noise_sd": 1.0}
    found = model.prior_predictive(400, seed=1, **settings)
    assert abs(found["b"].mean() - 1.0) < 5.0 * 2.0 / 20.0
    assert abs(found["b"].std() / 2.0 - 1.0) < 0.15
    draws = np.stack([found["a"], found["b"]], axis=1)
    np.testing.assert_allclose(found["outputs"], draws @ DESIGN.T)
    assert abs((found["data"] - found["outputs"]).std() - 1.0) < 0.15
    assert len(model) == 400
    with pytest.raises(ConfigurationError, match="n must be a whole number of at least 1"):
        model.prior_predictive(0, **settings)


def test_a_run_of_a_forward_model_predicts_outputs_and_data():
    run = sk.sample(linear(), sampler="hmc", surrogate="none", seed=1, progress=False)
    outputs, data = run.predict(), run.predict(kind="response", seed=1)
    np.testing.assert_allclose(outputs["mean"], run.outputs.mean(axis=(0, 1)))
    assert np.all(data["sd"] > 0.9)
    assert np.all(outputs["sd"] < 0.9)
    assert np.all((outputs["lower"] < outputs["mean"]) & (outputs["mean"] < outputs["upper"]))
    assert [*run.predict(interval=None)] == ["mean", "sd"]


# --- the command ---

FILE = """
import numpy as np
import surrokit as sk
from scipy import stats

PRIORS = {"a": sk.real(prior=stats.norm()), "b": sk.real(prior=stats.norm(1.0, 2.0))}
DESIGN = np.random.default_rng(0).standard_normal((6, 2))


def made(noise=1.0):
    model = sk.model(lambda q: DESIGN @ q, lambda q: DESIGN, parameters=PRIORS)
    return model.posterior(data=np.zeros(6), noise_sd=noise)
"""


def test_the_command_prints_ranks_and_writes_a_picture(tmp_path):
    file, picture, figures = (tmp_path / name for name in ("m.py", "ranks.svg", "ranks.json"))
    file.write_text(FILE)
    wanted = ["--n", "20", "--seed", "1", "--picture", str(picture), "--json", str(figures)]
    done = CliRunner().invoke(cli, ["calibrate", f"{file}:made", *wanted])
    assert done.exit_code == 0, done.output
    assert "log density" in done.output
    assert "20 data sets" in done.output
    assert picture.stat().st_size > 1000
    assert '"ranks"' in figures.read_text()
