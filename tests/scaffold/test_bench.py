"""``surrokit bench``: parts compared over targets and seeds, against a long exact run."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import surrokit as sk
from surrokit.bench import compare, exact_run, rows_of
from surrokit.cli.main import cli

FEW = ["--seeds", "2", "--warmup", "100", "--draws", "100", "--reference-draws", "200"]


def bell(shift):
    return sk.potential(
        value_and_gradient=lambda q: (0.5 * (q - shift) @ (q - shift), q - shift), dim=2
    )


def test_parts_are_compared_over_targets_and_seeds(tmp_path):
    (tmp_path / "line.py").write_text(
        "import surrokit as sk\nline = sk.potential(log_density=lambda q: -0.5 * q @ q, dim=1)\n"
    )
    file = f"{tmp_path / 'line.py'}:line"
    asked = ["--sampler", "hmc", "--sampler", "gaussian", "--surrogate", "quadratic"]
    where = ["--json", tmp_path / "a.json"]
    arguments = ["bench", *asked, "--target", "gaussian", "--target", file, *FEW, *where]
    done = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    runs = json.loads((tmp_path / "a.json").read_text())
    assert len(runs) == 2 * 2 * 2
    assert {run["parts"] for run in runs} == {"hmc", "gaussian"}
    assert sum(run["right"] for run in runs) >= 7
    assert all(run["calls"] > run["ess"] * 0.1 > 0 for run in runs)
    assert "calls/ESS" in done.output


def test_a_run_that_is_wrong_is_called_wrong():
    """It is compared with the exact run of another target, half a standard deviation away."""
    there, parts = exact_run(bell(0.0), 300), {"hmc": {"sampler": "hmc", "warmup": 100}}
    found = {
        shift: list(compare({"a": bell(shift)}, parts, (1, 2), {"a": there}, draws=300))
        for shift in (0.0, 0.5)
    }
    assert [run.right for run in found[0.0]] == [True, True]
    assert [run.right for run in found[0.5]] == [False, False]
    assert all(0.3 < run.error < 0.7 for run in found[0.5])
    assert rows_of(found[0.5])[0]["right"] == 0


def test_a_part_that_fails_leaves_the_others(tmp_path):
    parts = {"needs more": {"sampler": "rmhmc"}, "hmc": {"sampler": "hmc"}}
    target = bell(0.0)
    runs = list(compare({"a": target}, parts, (1,), {"a": exact_run(target, 100)}, draws=50))
    assert "the target" in runs[0].failure
    assert runs[1].failure is None
    assert [row["failure"] is None for row in rows_of(runs)] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "nothing to compare"), (["--surrogate", "no-such"], "no-such")],
)
def test_what_cannot_be_compared_is_refused_or_shown(arguments, said):
    done = CliRunner().invoke(cli, ["bench", "--target", "gaussian", *arguments, *FEW])
    assert said in done.output + str(done.exception)
