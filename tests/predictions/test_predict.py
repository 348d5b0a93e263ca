"""Predictions from draws: means and intervals of new rows, classes, and data of forward models."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.predictive.families import (
    NAMES,
    MultinomialClasses,
    OrdinalClasses,
    response_family,
)
from surrokit.predictive.rows import RowPredictor

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")

# runs are too short for their verdicts
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

QUICK = {"sampler": "hmc", "warmup": 200, "draws": 250, "progress": False}
SHORT = {**QUICK, "warmup": 60, "draws": 100}


def table(n=200):
    rng = np.random.default_rng(1)
    age, clinic = rng.normal(40.0, 10.0, n), np.array(list("abc"))[rng.integers(0, 3, n)]
    exposure = rng.uniform(0.5, 3.0, n)
    visits = rng.poisson(exposure * np.exp(-0.5 + 0.02 * age + 0.4 * (clinic == "b")))
    ill = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(0.1 * (40.0 - age))), "yes", "no")
    grade = np.array(["low", "mid", "top"])[np.digitize(age + rng.normal(0, 8, n), [35, 45])]
    columns = {"age": age, "clinic": clinic, "visits": visits, "ill": ill, "grade": grade}
    return pandas.DataFrame({**columns, "log_exposure": np.log(exposure)})


FRAME = table()
NEW = FRAME.iloc[[3, 50, 120]]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("predict") / "run.surrokit"


def counting():
    formula = "visits ~ center(age) + C(clinic)"
    return sk.glm(formula, FRAME, "poisson", prior=2.5, offset="log_exposure")


@pytest.fixture(scope="module")
def counts(path):
    return sk.sample(counting(), path=path, seed=1, **QUICK)


def predictors(run, rows):
    """Return linear predictors by hand, shape (n_draws, n_rows)."""
    b = run.draws.reshape(-1, run.draws.shape[2])
    x = np.stack(
        [
            np.ones(len(rows)),
            rows.age - FRAME.age.mean(),
            rows.clinic == "b",
            rows.clinic == "c",
        ]
    )
    return b @ x.astype(float) + rows.log_exposure.to_numpy()


def test_means_and_intervals_are_those_of_the_draws(counts):
    found, means = counts.predict(NEW, interval=0.8), np.exp(predictors(counts, NEW))
    assert list(found.columns) == ["mean", "sd", "lower", "upper"]
    assert_array_equal(found.index, NEW.index)
    # transforms go by the data of the fit
    assert_allclose(counts.predict(NEW.iloc[[0]], interval=0.8)["mean"], found["mean"].iloc[[0]])
    assert_allclose(found["mean"], means.mean(axis=0))
    assert_allclose(found["sd"], means.std(axis=0))
    assert_allclose(found[["lower", "upper"]].T, np.quantile(means, [0.1, 0.9], axis=0))
    assert list(counts.predict(NEW, interval=None).columns) == ["mean", "sd"]


def test_new_responses_scatter_as_their_family_does(counts):
    found = counts.predict(NEW, kind="response", seed=1)
    mean = counts.predict(NEW)
    assert_allclose(found["mean"], mean["mean"], rtol=0.15)
    assert_allclose(found["sd"], np.sqrt(mean["mean"] + mean["sd"] ** 2), rtol=0.15)
    assert (found["upper"] - found["lower"] > mean["upper"] - mean["lower"]).all()
    assert found.equals(counts.predict(NEW, kind="response", seed=1))
    drawn = counts.posterior_predictive(NEW, seed=1)
    assert drawn.shape == (4, 250, 3)
    assert_array_equal(drawn, np.round(drawn))


def test_an_offset_is_read_from_the_new_rows_or_given(counts):
    given = counts.predict(NEW, offset=np.zeros(3))["mean"]
    assert_allclose(counts.predict(NEW, offset=0.0)["mean"], given)
    assert_allclose(counts.predict(NEW)["mean"], given * np.exp(NEW.log_exposure))
    with pytest.raises(ConfigurationError, match="asks for 'log_exposure'"):
        counts.predict(NEW.drop(columns="log_exposure"))
    target = sk.glm("visits ~ age", FRAME, "poisson", prior=2.5, offset=FRAME.log_exposure)
    run = sk.sample(target, seed=1, **SHORT)  # whose offset was an array
    with pytest.raises(ConfigurationError, match="predictions need one for each new row"):
        run.predict(NEW)
    assert len(run.predict(NEW, offset=NEW.log_exposure)) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows.assign(clinic="d"), "levels that never occurred in the fit"),
        (lambda rows: rows.drop(columns="age"), "asks for 'age'"),
        (lambda rows: rows.assign(age=np.nan), "data lacks values: 3 in 'age'"),
        (lambda rows: rows.assign(age="old"), "cannot be evaluated on new data"),
        (lambda rows: 3, "data must be a table in memory"),
    ],
)
def test_rows_that_are_none_of_the_fits_are_refused(counts, change, said):
    with pytest.raises(ConfigurationError, match=said):
        counts.predict(change(NEW))


def test_arguments_that_make_no_sense_are_refused(counts):
    with pytest.raises(ConfigurationError, match="kind must be 'mean' or 'response'"):
        counts.predict(NEW, kind="median")
    with pytest.raises(ConfigurationError, match="between"):
        counts.predict(NEW, interval=1.5)
    with pytest.raises(ConfigurationError, match="'poisson' has no classes"):
        counts.predict_proba(NEW)


def test_what_predicts_is_not_in_a_file(counts, path):
    with pytest.raises(ConfigurationError, match=r"surrokit\.resume\(path, target\)"):
        sk.open_run(path).predict(NEW)
    found = sk.resume(path, counting(), draws=300, progress=False).predict(NEW)
    assert_allclose(found["mean"], counts.predict(NEW)["mean"], rtol=0.1)


def test_functions_of_the_users_predict():
    target = sk.glm("visits ~ f(age)", FRAME, "poisson", prior=2.5, context={"f": np.sqrt})
    assert sk.sample(target, seed=1, **SHORT).predict(NEW)["mean"].min() > 0.0


@pytest.mark.parametrize("family", ["multinomial", "ordinal"])
def test_classes_have_a_row_for_each_level(family):
    levels = {"levels": ["low", "mid", "top"]} if family == "ordinal" else {}
    target = sk.glm("grade ~ age", FRAME, family, prior=2.5, **levels)
    run = sk.sample(target, seed=1, **QUICK)
    found, probabilities = run.predict(NEW), run.predict_proba(NEW)
    assert list(found["level"]) == ["low", "mid", "top"] * 3
    assert_array_equal(found.index, np.repeat(NEW.index, 3))
    assert_allclose(found["mean"].to_numpy().reshape(3, 3), probabilities)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    drawn = run.posterior_predictive(NEW, seed=1)
    shares = [(drawn == level).mean(axis=(0, 1)) for level in ("low", "mid", "top")]
    assert_allclose(np.array(shares).T, probabilities, atol=0.06)
    with pytest.raises(ConfigurationError, match="which have no mean and no interval"):
        run.predict(NEW, kind="response")


def test_two_levels_have_probabilities():
    run = sk.sample(sk.glm("ill ~ age", FRAME, "binomial", prior=2.5), seed=1, **SHORT)
    both = run.predict_proba(NEW)
    assert_allclose(both.sum(axis=1), 1.0)
    assert_allclose(both[:, 1], run.predict(NEW)["mean"])
    assert set(np.unique(run.posterior_predictive(NEW, seed=1))) == {"no", "yes"}


def test_small_probabilities_of_ordered_classes_keep_their_digits():
    (found,) = OrdinalClasses().means(
        np.array([[1.0, 0.0, 1.0]]), np.array([[-50.0], [50.0]]), np.zeros(2)
    )
    assert_allclose(found[0, 2], np.exp(-51.0))
    assert_allclose(found[1, 0], np.exp(-50.0))
    assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_responses_have_their_mean_and_scale(name):
    """Means of 20000 draws, within 6 standard errors."""
    family, e = response_family(name), np.full(20_000, 0.3)
    drawn = family.draw(np.random.default_rng(1), e, 1.0)
    assert abs(drawn.mean() - family.mean(e)[0]) < 6.0 * drawn.std() / np.sqrt(len(e))
    if family.of_errors:
        wider = response_family(name, {"scale": 2.0}).draw(np.random.default_rng(1), e, 2.0)
        assert_allclose(wider - e, 2.0 * (drawn - e))


def test_classes_without_names_are_numbers():
    for family, dim in ((OrdinalClasses(), 4), (MultinomialClasses(), 4)):
        assert RowPredictor.of(family, 2, has_offset=False).classes(dim) == ("0", "1", "2")


RNG = np.random.default_rng(2)
DESIGN = np.column_stack([np.ones(150), RNG.normal(size=(150, 2))])
ANSWER = RNG.poisson(np.exp(DESIGN @ [0.2, 0.5, -0.3]))


@pytest.fixture(scope="module")
def rows():
    return sk.rows_potential("poisson", DESIGN, ANSWER, prior=3.0)


def test_arrays_are_predicted_as_arrays(rows):
    run = sk.sample(rows, seed=1, **SHORT)
    found = run.predict(DESIGN[:4])
    means = np.exp(run.draws.reshape(-1, 3) @ DESIGN[:4].T)
    assert_allclose(found["mean"], means.mean(axis=0))
    with pytest.raises(ShapeError, match=r"must have shape \(n_rows, 3\)"):
        run.predict(DESIGN[:, :2])
    with pytest.raises(ConfigurationError, match="takes new rows, got none"):
        run.posterior_predictive()


@pytest.mark.long
def test_weighted_answers_predict_the_target_and_not_the_surrogate(rows):
    """Unweighted, the surrogate's draws are half as wide again."""
    exact = sk.sample(rows, seed=1, **{**QUICK, "draws": 8000}).predict(DESIGN[:4])
    few = ("weights", {"chains": 16, "warmup": 100, "effective": 16000})
    run = sk.sample(rows, correction=few, max_calls=150, seed=2, progress=False)
    found = run.predict(DESIGN[:4])
    for name in ("mean", "lower", "upper"):
        assert_allclose(found[name], exact[name], atol=0.1 * exact["sd"].max())
    assert_allclose(found["sd"], exact["sd"], rtol=0.1)
    drawn = run.posterior_predictive(DESIGN[:4], seed=1)
    assert drawn.shape == (1, run.log_weights.size, 4)


TIMES = np.arange(3.0, 31.0, 3.0)


def cooling(q):
    return q[1] + 60.0 * np.exp(-q[0] * TIMES)


def cooling_slopes(q):
    return np.stack([-60.0 * TIMES * np.exp(-q[0] * TIMES), np.ones(10)], axis=1)


def cooled(**observed):
    data = 20.0 + 60.0 * np.exp(-0.08 * TIMES) + np.random.default_rng(3).normal(0.0, 1.5, 10)
    parameters = {"rate": (0.0, None), "room": (0.0, 40.0)}
    observed = {"data": sk.observed(data, **observed)}
    return sk.forward_potential(cooling, cooling_slopes, parameters=parameters, **observed)


@pytest.mark.parametrize("family", [pytest.param("student", marks=pytest.mark.long), "lognormal"])
def test_data_of_forward_models_scatter_with_their_noise(family, tmp_path):
    scale, path = 0.05 if family == "lognormal" else 1.5, tmp_path / "run.surrokit"
    run = sk.sample(cooled(scale=scale, family=family), seed=1, path=path, **SHORT)
    found = run.posterior_predictive(seed=1)
    assert_array_equal(sk.open_run(path).posterior_predictive(seed=1), found)
    assert found.shape == run.outputs.shape
    apart = np.log(found / run.outputs) if family == "lognormal" else found - run.outputs
    # half of errors are within 0.674 sd of normal ones, and 0.741 scales of Student's t with 4
    within = {"student": 0.741}.get(family, 0.674) * scale
    assert (np.abs(apart) < within).mean() == pytest.approx(0.5, abs=0.03)


def test_unknown_noise_varies_with_its_draws():
    run = sk.sample(cooled(scale="estimate"), seed=1, **SHORT)
    found = (run.posterior_predictive(seed=1) - run.outputs) / run["scale"][..., None]
    assert found.std() == pytest.approx(1.0, abs=0.04)
    with pytest.raises(ConfigurationError, match="leave new rows and offset out"):
        run.posterior_predictive([1.0])
    with pytest.raises(ConfigurationError, match=r"or run\.posterior_predictive"):
        run.predict([1.0])


@pytest.mark.parametrize("noise_sd", [1.5, "estimate"])
def test_data_of_a_forward_model_are_drawn_from_a_file_alone(noise_sd, tmp_path):
    path, data = tmp_path / "run.surrokit", cooling((0.08, 20.0))
    parameters = {"rate": (0.0, None), "room": (0.0, 40.0)}
    target = sk.forward_potential(cooling, data=data, noise_sd=noise_sd, parameters=parameters)
    run = sk.sample(target, path=path, seed=1, **{**SHORT, "sampler": "random-walk"})
    opened = sk.open_run(path)
    assert_array_equal(opened.posterior_predictive(seed=1), run.posterior_predictive(seed=1))
    assert_array_equal(opened.observed_data["outputs"], run.observed_data["outputs"])
    kept = attrs.evolve(opened.kept, outputs=np.where(opened.outputs > 60.0, np.nan, 0.0))
    with pytest.raises(ConfigurationError, match=r"Evaluate the model at run\.draws"):
        attrs.evolve(opened, kept=kept).posterior_predictive()


def test_targets_without_predictions_say_which_have_them():
    run = sk.sample("banana", seed=1, **SHORT)
    with pytest.raises(ConfigurationError, match="the target of this run has no predictions"):
        run.predict([[1.0]])
    with pytest.raises(ConfigurationError, match="the target of this run has no predictions"):
        run.posterior_predictive()
