"""How notebooks show targets, surrogates, runs and summaries."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hostile_names import HOSTILE
from parsed import Parsed
from scipy import stats

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.result.records import Finding, Verdict
from surrokit.shown.target import LONGEST, describe_value
from surrokit.surrogate.quality import FitQuality
from surrokit.testing.targets import Gaussian
from surrokit.testing.wrappers import CountingPotential


def facts(shown):
    """Return words with what stands beside them."""
    found = Parsed(shown._repr_html_())
    words, told = ([text for tag, text in found.texts if tag == each] for each in ("dt", "dd"))
    return dict(zip(words, told, strict=True))


def cells(shown):
    """Return the first column of the table with the cells beside it."""
    rows = {}
    for tag, text in Parsed(shown._repr_html_()).texts:
        if tag == "bdi":
            rows[text] = []
        elif tag == "td":
            rows[list(rows)[-1]].append(text)
    return rows


PARAMETERS = {
    "mu": sk.real(2, prior=stats.norm(0, 3)),
    "tau": sk.positive(prior=stats.gamma(2, scale=1.5)),
    "share": (0, 1),
    "late": (2, None),
    "early": (None, -1),
    "w": sk.simplex(4),
    "m": sk.Parameter((3, 2)),
}


@pytest.fixture(scope="module")
def declared():
    def density(mu, tau, share, late, early, w, m):
        raise AssertionError("a repr evaluates nothing")

    return sk.potential(log_density=density, gradient="differences", parameters=PARAMETERS)


def test_a_target_tells_its_parameters(declared):
    assert cells(declared) == {
        "mu": ["2", "anywhere", "norm(0, 3)"],
        "tau": ["number", "positive", "gamma(2, scale=1.5)"],
        "share": ["number", "between 0 and 1"],
        "late": ["number", "above 2"],
        "early": ["number", "below -1"],
        "w": ["4", "positive numbers that sum to 1"],
        "m": ["3 by 2", "anywhere"],
    }


def test_a_target_tells_what_can_be_evaluated_and_what_it_costs(declared):
    told = facts(declared)
    assert told["target"] == "Differences of ConstrainedPotential of FunctionPotential"
    assert told["dimension"] == "16, sampled by 15 numbers on the line"
    assert told["can be evaluated"] == "value, gradient by 31 values each"
    assert "calls so far" not in told


@pytest.mark.parametrize(
    ("name", "settings", "can"),
    [
        ("banana", {}, "value, gradient, Hessian, metric"),
        ("gaussian", {}, "value, gradient"),
        ("lynx-hare", {}, "outputs of the forward map, Jacobian of the outputs"),
        ("elliptic-pde", {}, "outputs of the forward map"),
        ("simulated-logistic", {"n_rows": 1200, "dim": 3}, "terms of 1,200 rows of data"),
    ],
)
def test_built_in_targets_are_shown(name, settings, can):
    assert can in facts(sk.make("potential", name, **settings))["can be evaluated"]


@pytest.mark.parametrize(
    "target",
    [
        sk.forward_potential(lambda q: q, data=[1.0, 2.0], noise_sd=0.1, dim=2),
        sk.rows_potential("logistic", np.eye(2), [0, 1], prior=1.0),
        sk.rows_potential(lambda q, rows: rows @ q, np.eye(2), dim=2),
        sk.one_by_one(Gaussian()),
    ],
)
def test_targets_of_other_front_doors_are_shown(target):
    assert facts(target)["can be evaluated"].startswith("value")


def test_a_target_tells_what_was_observed():
    assert facts(sk.make("potential", "lynx-hare"))["observed"] == "outputs (42)"
    assert "observed" not in facts(sk.make("potential", "gaussian"))


@pytest.mark.parametrize("wrap", [CountingPotential, lambda t: RecordingPotential(t, keep=False)])
def test_calls_are_told_where_they_are_counted(wrap):
    counted = wrap(Gaussian())
    assert facts(counted)["calls so far"] == "none"
    counted.value(np.zeros((3, 2)))
    assert facts(counted)["calls so far"] == "3 of value"


def test_of_many_parameters_the_first_are_shown():
    target = sk.potential(lambda q: 0.0, parameters={f"a{i}": None for i in range(23)})
    found = Parsed(target._repr_html_())
    assert len(found.named("tr")) == 21
    assert "3 more parameters." in found.text("p")


# --- surrogates ---


@pytest.mark.parametrize("name", ["additive", "rbf", "quadratic", "rows", "gp", "fitc"])
def test_surrogates_tell_their_settings(name):
    surrogate = sk.make("surrogate", name)
    told, rows = facts(surrogate), cells(surrogate)
    assert told["surrogate"].startswith(type(surrogate).__name__ + ": ")
    assert told["fitted"] == "not yet"
    assert rows
    assert all(len(cell) <= LONGEST for row in rows.values() for cell in row)


def test_a_setting_is_shown_as_it_was_given():
    surrogate = sk.make("surrogate", "additive", n_nodes=40, activation="tanh")
    assert cells(surrogate)["n_nodes"] == ["40"]
    assert cells(surrogate)["activation"] == ["tanh"]
    assert cells(surrogate)["training"] == ["Training()"]
    own = sk.batch_surrogate(lambda rows, rng: Gaussian(), uses={"gradient", "value"})
    assert cells(own)["uses"] == ["gradient, value"]


def test_a_regressor_is_shown():
    surrogate = sk.make("surrogate", "sklearn", estimator="sklearn.linear_model.Ridge")
    assert cells(surrogate)["estimator"] == ["sklearn.linear_model.Ridge"]


def test_a_fitted_surrogate_tells_how_good_it_is(run):
    fitted, quality = run.surrogate, run.fit_quality
    told = facts(fitted)
    assert told["fitted to"] == f"{fitted.n_points:,} distinct points"
    assert told["held out"] == f"{quality.n_points} points"
    assert told["variance of V - U there"] == f"{quality.variance:.3g} squared nats"
    assert told["foretold acceptance"] == f"{quality.acceptance:.1%} of independent draws"
    assert told["nodes"] == str(fitted.n_nodes)


def test_other_fits_are_shown():
    from surrokit.surrogate.shown import ShownFit

    class Own(ShownFit):
        dim, n_points, n_gradients = 2, 1300, 12
        capabilities = frozenset({"variance"})
        quality = None

    told = facts(Own())
    assert told["surrogate"] == "Own"
    assert told["fitted to"] == "1,300 distinct points, with the gradient at 12"
    assert told["held out"] == "nothing, so that its error is not known"
    assert told["can be evaluated"] == "value, predictive variance"
    Own.quality = FitQuality(variance=0.5, gradient_error=None, n_points=9)
    assert "error of its gradient" not in facts(Own())


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "None"),
        (True, "True"),
        (0.1 + 0.2, "0.3"),
        (np.zeros((2, 3)), "array of shape (2, 3)"),
        ({"a": 1, "b": (1.5, "x")}, "a: 1, b: 1.5, x"),
        (frozenset({"b", "a"}), "a, b"),
        (describe_value, "describe_value()"),
        (object(), "object"),
        (sk.Parameter((2,), lower=0.0), "Parameter(shape=2, lower=0)"),
        ("word " * 100, ("word " * 19).strip() + " …"),
    ],
)
def test_values_are_told_in_few_words(value, told):
    assert describe_value(value) == told


# --- runs and summaries ---


def test_hostile_names_are_text(hostile):
    target = sk.potential(lambda q: 0.0, parameters=dict(HOSTILE))
    for each in (hostile, hostile.summary(), target):
        assert "<script" not in each._repr_html_()
        assert set(cells(each)) == set(HOSTILE)


def test_a_run_is_shown_with_its_verdict_first(run):
    told = Finding(name="x", message="look <here>; do that", warns=True)
    text = attrs.evolve(run, verdict=Verdict((told,)))._repr_html_()
    found = Parsed(text)
    said = " ".join(found.text().split())
    assert said.startswith("1 warning: read before you use the draws. Warning: look <here>")
    assert f"{run.total_calls:,.0f} exact calls" in found.text("p")
    assert f"{run.summary()['mean'][3]:.4g}" in found.text("td")
    assert len(text) < 5000


def test_a_summary_is_shown_as_a_table_with_what_it_has(run):
    found = Parsed(run.summary(parameters=["w"], interval=0.9)._repr_html_())
    assert [text for tag, text in found.texts if tag == "bdi"] == ["w[0]", "w[1]"]
    assert "hdi_low" in found.text("th")
    assert "more numbers" not in found.text()


def test_weighted_answers_are_shown(weighted):
    assert "the answers are weighted" in weighted._repr_html_()


def test_of_many_numbers_the_first_are_shown():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=30)
    run = sk.sample(target, sampler="hmc", warmup=20, draws=20, seed=1, progress=False)
    for shown in (run, run.summary()):
        found = Parsed(shown._repr_html_())
        assert len(found.named("tr")) == 21
        assert "10 more numbers: print(run.summary()), or run.report('run.html')." in found.text(
            "p"
        )


def test_a_run_without_draws_is_shown(run):
    kept = attrs.evolve(run.kept, draws=run.kept.draws[:, :0], seconds=run.kept.seconds[:0])
    assert "There are no draws." in attrs.evolve(run, kept=kept)._repr_html_()
