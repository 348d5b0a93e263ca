"""How targets, runs and summaries are shown in notebooks, and as tables."""

from __future__ import annotations

import sys

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pages import HOSTILE, HOSTILE_SHOWN, Parsed
from scipy import stats
from scipy.stats import norm

import surrokit as sk
from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.result.records import Finding, Verdict
from surrokit.shown.target import describe_value
from surrokit.testing.targets import Gaussian


def facts(shown):
    """Return words with what stands beside them."""
    found = Parsed(shown._repr_html_())
    words, told = ([text for tag, text in found.texts if tag == each] for each in ("dt", "dd"))
    return dict(zip(words, told, strict=True))


def cells(shown):
    return Parsed(shown._repr_html_()).cells()


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
    assert (told["target"], told["dimension"]) == ("Differences", "15")
    assert told["can be evaluated"] == "value, gradient by 31 values each"


@pytest.mark.parametrize(
    ("target", "can"),
    [
        (("banana", {}), "value, gradient, Hessian, metric"),
        (("lynx-hare", {}), "outputs of the forward map, Jacobian of the outputs"),
        (("simulated-logistic", {"n_rows": 1200, "dim": 3}), "terms of 1,200 rows of data"),
        (sk.forward_potential(lambda q: q, data=[1.0, 2.0], noise_sd=0.1, dim=2), "value"),
        (sk.one_by_one(Gaussian()), "value"),
    ],
)
def test_targets_of_all_doors_are_shown(target, can):
    target = sk.make("potential", target[0], **target[1]) if isinstance(target, tuple) else target
    assert can in facts(target)["can be evaluated"]


def test_of_many_parameters_and_numbers_the_first_are_shown():
    target = sk.potential(lambda q: 0.0, parameters={f"a{i}": None for i in range(23)})
    found = Parsed(target._repr_html_())
    assert len(found.named("tr")) == 21
    assert "3 more parameters." in found.text("p")
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=30)
    run = sk.sample(target, sampler="hmc", warmup=20, draws=20, seed=1, progress=False)
    more = "10 more numbers: print(run.summary()), or run.report('run.html')."
    for shown in (run, run.summary()):
        found = Parsed(shown._repr_html_())
        assert len(found.named("tr")) == 21
        assert more in found.text("p")


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
        assert set(cells(each)) == HOSTILE_SHOWN


def test_a_run_is_shown_with_its_verdict_first(run):
    told = Finding(name="x", message="look <here>; do that", warns=True)
    text = attrs.evolve(run, verdict=Verdict((told,)))._repr_html_()
    found = Parsed(text)
    said = " ".join(found.text().split())
    assert said.startswith("1 warning: read before you use the draws. Warning: look <here>")
    assert f"{run.total_calls:,.0f} exact calls" in found.text("p")
    assert f"{run.summary()['mean'][3]:.4g}" in found.text("td")
    assert len(text) < 5000


# --- tables ---


def test_a_data_frame_has_a_row_for_each_draw(run, weighted, monkeypatch):
    pytest.importorskip("pandas", reason="a data frame is pandas'")
    frame = run.to_pandas()
    assert list(frame.columns) == ["chain", "draw", "a", "b", "w[0]", "w[1]"]
    assert frame.shape == (4 * 400, 6)
    second = frame[frame["chain"] == 1]
    assert_array_equal(second["w[1]"], run["w"][1, :, 1])
    assert_array_equal(second["draw"], np.arange(400))
    assert_array_equal(weighted.to_pandas()["log_weight"], weighted.log_weights.ravel())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"surrokit\[pandas\]'"):
        run.to_pandas()


def test_a_summary_of_some_parameters_has_their_rows(run):
    whole, some = run.summary(), run.summary(parameters=["w", "a", "w[0]"])
    assert some.labels == ["w[0]", "w[1]", "a"]
    for name, column in whole.columns.items():
        assert_allclose(some[name], column[[2, 3, 0]], rtol=1e-9)
    assert run.summary(parameters="b").labels == ["b"]
    with pytest.raises(ConfigurationError, match=r"no parameter is named 'w\[2\]'; name some of a"):
        run.summary(parameters=["w[2]"])


def test_a_summary_with_an_interval_has_its_ends(run, weighted):
    summary = run.summary(interval=0.8)
    assert list(summary.columns)[5:7] == ["hdi_low", "hdi_high"]
    inside = (run.draws >= summary["hdi_low"]) & (run.draws <= summary["hdi_high"])
    assert_allclose(inside.mean(axis=(0, 1)), 0.8, atol=0.002)
    assert "hdi_low" not in run.summary().columns
    for interval in (0.0, 1.0, 90, "0.9", True, np.nan):
        with pytest.raises(ConfigurationError, match="must be a number between zero and one"):
            run.summary(interval=interval)
    low, high = weighted.highest_density(0.9)[0]
    assert_allclose([low, high], [-1.645, 1.645], atol=0.2)  # of a normal one, from few calls
    assert norm.cdf(high) - norm.cdf(low) == pytest.approx(0.9, abs=0.02)
    assert_array_equal(weighted.summary(interval=0.9)["hdi_low"][0], low)
