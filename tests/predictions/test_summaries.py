"""Summaries that a terminal holds, the verdict once, and coefficients by the names of features."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import ConfigurationError, SamplingWarning

LONG = "a_parameter_with_a_name_of_forty_letters"


@pytest.fixture(scope="module")
def run():
    names = dict.fromkeys((LONG, "b"))
    target = sk.potential(value=lambda q: 0.5 * q @ q, gradient=lambda q: q, parameters=names)
    return sk.sample(target, sampler="hmc", warmup=300, draws=500, seed=1, progress=False)


def test_a_printed_summary_has_eight_columns_and_a_wide_one_all(run):
    summary = run.summary(["b"])
    head = str(summary).splitlines()[0].split()
    assert head == ["mean", "sd", "q05", "q50", "q95", "ess", "rhat", "mcse"]
    head = str(run.summary(["b"], interval=0.9)).splitlines()[0].split()
    assert head == ["mean", "sd", "hdi_low", "q50", "hdi_high", "ess", "rhat", "mcse"]
    wide = run.summary(wide=True)
    assert str(wide).splitlines()[0].split() == list(wide.columns) == list(summary.columns)


def test_lines_hold_eighty_characters_whatever_the_names(run):
    lines = str(run.summary()).splitlines()
    assert max(map(len, lines[:3])) <= 80
    assert lines[1].startswith(LONG)
    assert lines[3].startswith("(left out to fit the line: ")


SHORT = ["sample", "banana", "--sampler", "hmc", "--warmup", "20", "--draws", "20", "--seed", "1"]
FOUND = "effective ones, and at least 100 are"


def test_a_command_prints_the_verdict_once_with_its_table():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is warned of besides would be printed twice
        done = CliRunner().invoke(cli, SHORT, catch_exceptions=False)
    assert done.output.count(FOUND) == 1


def test_a_quiet_command_warns_and_prints_nothing(tmp_path):
    out = tmp_path / "draws.csv"
    quiet = [*SHORT, "--quiet", "--out", str(out)]
    with pytest.warns(SamplingWarning, match=FOUND):
        done = CliRunner().invoke(cli, quiet, catch_exceptions=False)
    assert done.stdout == ""
    assert out.stat().st_size > 0


def test_a_command_shows_all_columns_where_wide():
    shown = [
        CliRunner().invoke(cli, [*SHORT, *more], catch_exceptions=False).output
        for more in ([], ["--wide"])
    ]
    assert ["calls_per_ess" in each for each in shown] == [False, True]


def test_estimators_call_coefficients_by_their_features():
    pandas = pytest.importorskip("pandas")
    from surrokit_sklearn import BayesianGLMRegressor, BayesianLogisticRegression

    rng = np.random.default_rng(1)
    x = pandas.DataFrame(rng.normal(size=(60, 2)), columns=["age", "income"])
    quick = {"random_state": 1, "target_ess": 200}
    several = BayesianLogisticRegression(**quick).fit(x, rng.choice(["no", "so", "yes"], 60))
    assert several.run_.labels[:3] == ["so: Intercept", "so: age", "so: income"]
    assert several.run_.labels[3:] == ["yes: Intercept", "yes: age", "yes: income"]
    counts = BayesianGLMRegressor(family="poisson", **quick).fit(x, rng.poisson(2.0, 60))
    assert "age" in str(counts.run_.summary())
    bare = BayesianGLMRegressor(family="poisson", fit_intercept=False, **quick)
    assert bare.fit(x.to_numpy(), rng.poisson(2.0, 60)).run_.labels == ["x0", "x1"]
    # these coefficients are of standardised features
    with pytest.raises(ConfigurationError, match="has no predictions"):
        counts.run_.predict(x)
