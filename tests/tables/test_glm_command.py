"""``surrokit glm``: the same run as in Python, and one line for each mistake."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import SurrokitError

REASON = "reads formulas and tables: the extra surrokit[formula]"
pytest.importorskip("formulaic", reason=REASON)
pandas = pytest.importorskip("pandas", reason=REASON)

RNG = np.random.default_rng(5)
FRAME = pandas.DataFrame(
    {
        "visits": RNG.poisson(3.0, 60),
        "age": RNG.normal(0.0, 1.0, 60),
        "weeks": RNG.exponential(1.0, 60) + 0.01,
        "died": RNG.integers(0, 2, 60),
    }
)
QUICK = ["--surrogate", "none", "--warmup", "150", "--draws", "50", "--seed", "1"]
SIZES = {"surrogate": "none", "warmup": 150, "draws": 50, "seed": 1, "progress": False}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "visits.csv"
    FRAME.to_csv(path, index=False)
    return path


def call(*arguments):
    return CliRunner().invoke(cli, ["glm", *map(str, arguments)], catch_exceptions=True)


def test_it_draws_as_sample_does(table, tmp_path):
    out, figures = tmp_path / "draws.csv", tmp_path / "run.json"
    given = ("--family", "poisson", "--prior", "2.5", "--intercept-prior", "1:3")
    done = call("visits ~ age", table, *given, *QUICK, "--out", out, "--json", figures)
    assert done.exit_code == 0, done.output
    assert "Intercept" in done.output
    target = sk.glm("visits ~ age", FRAME, "poisson", prior=2.5, intercept_prior=(1.0, 3.0))
    run = sk.sample(target, **SIZES)
    np.testing.assert_allclose(pandas.read_csv(out)["age"], run["age"].ravel(), rtol=1e-6)
    assert "age" in json.loads(figures.read_text())["summary"]


def test_priors_by_name_levels_and_settings_of_the_family_are_given(table, tmp_path):
    out = tmp_path / "draws.csv"
    given = ("--event", "died", "--set", "target.shape=1.5", "--prior", "age=0.5:0.1")
    done = call("weeks ~ age", table, "--family", "weibull", *given, *QUICK, "--out", out)
    assert done.exit_code == 0, done.output
    settings = {"event": "died", "shape": 1.5, "prior": {"age": (0.5, 0.1)}}
    run = sk.sample(sk.glm("weeks ~ age", FRAME, "weibull", **settings), **SIZES)
    np.testing.assert_allclose(pandas.read_csv(out)["age"], run["age"].ravel(), rtol=1e-6)
    grades = np.array(["low", "mid", "high"])[np.arange(60) % 3]
    FRAME.assign(grade=grades).to_csv(tmp_path / "grades.csv", index=False)
    given = ("--family", "ordinal", "--levels", "low, mid,high", "--prior", "1.0")
    done = call("grade ~ age", tmp_path / "grades.csv", *given, *QUICK)
    assert done.exit_code == 0, done.output
    assert "low|mid" in done.output
    assert "mid|high" in done.output


def test_a_table_may_be_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="writes .parquet: the extra surrokit[parquet]")
    path = tmp_path / "visits.parquet"
    FRAME.to_parquet(path)
    assert call("visits ~ age", path, "--family", "poisson", *QUICK).exit_code == 0


def test_rows_are_left_out_if_that_is_asked_for(tmp_path):
    path = tmp_path / "holes.csv"
    FRAME.assign(age=FRAME.age.where(FRAME.index > 2)).to_csv(path, index=False)
    given = ("visits ~ age", path, "--family", "poisson", *QUICK)
    assert "lacks values: 3 in 'age'" in str(call(*given).exception)
    assert call(*given, "--drop-missing").exit_code == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--prior", "wide"], "a prior must be a standard deviation or MEAN:SD, got 'wide'"),
        (["--prior", "1:2"], "has a mean, but no name; write NAME=1:2"),
        (["--prior", "age=1", "--prior", "2"], "--prior takes one SD, or NAME=SD"),
        (["--offset", "years"], "offset asks for 'years', which is no column of data"),
        (["--set", "target.sizes=2"], "has no setting 'sizes'"),
    ],
)
def test_mistakes_are_told(table, given, said):
    done = call("visits ~ age", table, "--family", "poisson", *given)
    assert isinstance(done.exception, SurrokitError)
    assert said in str(done.exception)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("absent.csv", None, "there is no file"),
        ("table.txt", "a", "does not say what table it is; give a .csv or a .parquet"),
        ("empty.csv", "", "could not be read from"),
    ],
)
def test_files_that_hold_no_table_are_told(tmp_path, name, text, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    done = call("visits ~ age", tmp_path / name, "--family", "poisson")
    assert isinstance(done.exception, SurrokitError)
    assert said in str(done.exception)
