"""The command line: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import re
import sys
import warnings
from importlib import metadata

import pytest

from surrokit.cli.main import main
from surrokit.cli.target import parse_settings, specs_of
from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import default_catalogue

TARGETS = """
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import surrokit as sk


@dataclass
class Scale:
    sd: float = 2.0


def value(q):
    return 0.5 * q @ q / Scale().sd**2


def gradient(q):
    return q / Scale().sd**2


long_name = "a_parameter_with_quite_a_long_name_that_nobody_would_want_to_see_cut"
target = sk.potential(value, gradient, parameters={"a": None, long_name: None})
calls = []


def scaled(sd=1.0, dim=2):
    return sk.potential(lambda q: 0.5 * q @ q / sd**2, lambda q: q / sd**2, dim=dim)


def needs(sd):
    return scaled(sd)


def refuses():
    return sk.potential(value, dim=0)


def raises():
    raise RuntimeError("no data today")


def number():
    return 3


def impatient(after=400):
    def interrupted(q):
        calls.append(q)
        if len(calls) == after:
            raise KeyboardInterrupt
        return 0.5 * q @ q

    return sk.potential(interrupted, lambda q: q, dim=2)


def before_the_run():
    raise KeyboardInterrupt


five = 5
"""
SHORT = ("--chains", "2", "--warmup", "40", "--draws", "12", "--seed", "3")
EXACT = (*SHORT, "--surrogate", "none")


@pytest.fixture
def surrokit(monkeypatch, capsys):
    """Run the command line in this process; return exit code, output and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["surrokit", *map(str, arguments)])
        with warnings.catch_warnings(action="default"), pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return caught.value.code, out, err

    return run


@pytest.fixture
def figures(surrokit, tmp_path):
    """Run the command line; return its output, and the figures that it writes as JSON."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    def run(*arguments, code=0):
        found, out, _ = surrokit(*arguments, "--json", tmp_path / "run.json")
        assert found == code
        return out, json.loads((tmp_path / "run.json").read_text(), parse_constant=refuse)

    return run


@pytest.fixture
def targets(tmp_path, monkeypatch):
    path = tmp_path / "my_targets.py"
    path.write_text(TARGETS)
    monkeypatch.chdir(tmp_path)
    yield path
    sys.modules.pop("surrokit_target_my_targets", None)


def assert_one_line(result, said):
    code, _, err = result
    lines = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert (code, lines) == (1, err.splitlines()[-1:]), err
    assert said in lines[0]


# --- plugins ---


def test_plugins_lists_every_part_with_its_settings(surrokit, figures):
    out, rows = figures("plugins")
    for entry in default_catalogue():
        assert entry.name in out
        assert entry.plugin in out
    assert len(rows) == len(default_catalogue().entries)
    parts = {(row["kind"], row["name"]): row for row in rows}
    hmc = parts["sampler", "hmc"]
    assert hmc["plugin"] == "surrokit[hmc]"
    assert hmc["references"]
    metric, randomize = hmc["settings"]["metric"], hmc["settings"]["randomize"]
    assert (metric["default"], metric["takes"]) == ("dense", "a part of kind metric")
    assert (randomize["default"], randomize["takes"]) == (True, "bool")
    assert randomize["help"].startswith("Draw the number of steps uniformly")
    assert hmc["settings"]["target_acceptance"]["takes"] == "a number between 0 and 1"
    assert parts["explorer", "sampler"]["settings"]["sampler"]["default"] == "the run's own sampler"
    assert parts["potential", "logistic"]["settings"]["design"]["default"] == "required"


def test_plugins_shows_the_settings_of_parts_by_name(surrokit, figures):
    out, rows = figures("plugins", "gaussian", "once")
    assert "potential gaussian, of surrokit[problems]: Gaussian of given mean" in out
    assert "arXiv:1202.0709" in out
    assert "target_acceptance  0.35     a number between 0 and 1" in out
    assert "``" not in out
    assert [row["name"] for row in rows] == ["gaussian", "once", "gaussian"]
    assert_one_line(surrokit("plugins", "hmcc"), "no part is named 'hmcc'; did you mean 'hmc'")


# --- sample ---


def test_what_is_not_named_is_picked_and_all_of_it_is_told(figures):
    out, found = figures("sample", "gaussian", *SHORT, "--set", "target.dim=2")
    assert out.splitlines()[0] == f"Picked: {found['choice']}"
    assert found["choice"].startswith("sampler='hmc': a gradient takes")
    assert "acceptance rate" in out
    assert "exact calls per effective draw" in out
    assert set(found["summary"]) == {"q[0]", "q[1]"}
    assert found["parts"]["surrogate"] == "none"
    assert "compare" not in found


def test_parts_and_settings_that_are_named_are_taken(figures):
    out, found = figures(
        *("sample", "gaussian", *EXACT, "--step-size", "0.2", "--n-steps", "3"),
        *("--set", "sampler.randomize=False", "--set", "sampler.metric=identity"),
    )
    assert "Picked" not in out
    assert found["choice"] is None
    assert found["calls"]["gradient"] == 2 + 2 * 52 * 3
    assert (found["chains"], found["draws"]) == (2, 12)
    out, found = figures(
        *("sample", "gaussian", *SHORT, "--surrogate", "additive", "--explorer", "sampler"),
        *("--correction", "metropolis", "--set", "explorer.iterations=15"),
    )
    assert found["parts"]["explorer"] == "sampler(iterations=15)"
    assert found["adaptation"]["deployments"] == [15]


def test_settings_of_a_surrogate_are_those_of_the_usual_one(surrokit, figures):
    out, found = figures("sample", "gaussian", *SHORT, "--set", "surrogate.hold_out=0.2")
    assert "surrogate, held-out Var(V - U)" in out
    assert found["parts"]["surrogate"] == "additive(hold_out=0.2)"
    result = surrokit("sample", "gaussian", *EXACT, "--set", "surrogate.n_nodes=5")
    assert_one_line(
        result, "there is no surrogate, so n_nodes cannot be set; name one with --surrogate"
    )


def test_a_target_in_a_file_is_sampled_from_anywhere(surrokit, targets, monkeypatch):
    code, out, err = surrokit("sample", "my_targets.py:target", *EXACT)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:3]] == [
        "a",
        "a_parameter_with_quite_a_long_name_that_nobody_would_want_to_see_cut",
    ]
    settings = ("--set", "target.dim=3", "--set", "target.sd=2")
    assert "q[2]" in surrokit("sample", "my_targets.py:scaled", *EXACT, *settings)[1]
    (targets.parent / "my_neighbour.py").write_text("sd = 3.0\n")
    importing = targets.parent / "importing.py"
    importing.write_text(
        "from my_neighbour import sd\nfrom surrokit import potential\n"
        "target = potential(lambda q: 0.5 * q @ q / sd, lambda q: q / sd, dim=1)\n"
    )
    path = list(sys.path)
    monkeypatch.chdir("/")
    assert surrokit("sample", f"{importing}:target", *EXACT)[0] == 0
    assert sys.path == path
    sys.modules.pop("my_neighbour")


@pytest.mark.parametrize(
    ("option", "value", "stopped", "said"),
    [
        ("--max-calls", "60", "max_calls", "max_calls was reached."),
        ("--target-rhat", "2", "target_rhat", "target_rhat was reached."),
        ("--target-mcse", "0.3", "target_mcse", "every error is as small as was aimed at."),
    ],
)
def test_a_budget_stops_the_run_and_the_notes_say_so(figures, option, value, stopped, said):
    sizes = ("--chains", "2", "--warmup", "40", "--seed", "3", "--surrogate", "none")
    out, found = figures("sample", "gaussian", *sizes, option, value)
    assert f"the run stopped because {said}" in out
    assert found["stopped"] == stopped
    assert ("there are no draws:" in out) == (found["draws"] == 0)


def test_compare_adds_a_run_of_plain_hmc(figures):
    out, found = figures("sample", "gaussian", *SHORT, "--surrogate", "additive", "--compare")
    assert "plain HMC" in out
    assert set(found["compare"]) == set(found) - {"compare"}
    assert found["compare"]["parts"]["surrogate"] == "none"
    assert found["compare"]["calls"]["gradient"] > found["calls"]["gradient"]


def test_files_that_cannot_be_written_are_found_out_before_the_run(surrokit, tmp_path):
    code, _, err = surrokit("sample", "gaussian", "--chains", "many")
    assert code == 2
    assert "Invalid value for '--chains'" in err
    code, out, err = surrokit("sample", "gaussian", *EXACT, "--out", tmp_path / "run.txt")
    assert (code, out) == (1, "")
    assert "the ending of 'run.txt' does not say how to write" in err
    assert list(tmp_path.iterdir()) == []
    for option in ("--out", "--json"):
        code, out, err = surrokit("sample", "gaussian", *EXACT, option, "nowhere/run.csv")
        assert (code, out) == (1, "")
        assert "nowhere" in err


def test_notes_and_warnings_tell_what_to_look_at(surrokit):
    steps = ("--step-size", "50", "--n-steps", "5", "--set", "sampler.metric=identity")
    _, out, _ = surrokit("sample", "gaussian", *EXACT, *steps)
    assert re.search("paths diverged.*; a smaller step size would help", out)
    code, _, err = surrokit("sample", "gaussian", *EXACT, "--warmup", "0")
    assert code == 0
    assert err.startswith("Warning: there is no warm-up to tune")
    assert len(err.splitlines()) == 1


# --- failures ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gausian",), "no potential is named 'gausian'; did you mean 'gaussian'"),
        (("nope.py:target",), "there is no file nope.py; give the path"),
        (("my_targets.py",), "registered name or path/to/file.py:object, got 'my_targets.py'"),
        (("my_targets:target",), "path/to/file.py:object, got 'my_targets:target'"),
        (("my_targets.py:targt",), "has no object 'targt'; it has annotations, dataclass, np, sk"),
        (("my_targets.py:five",), "is of type int; it must be a potential"),
        (("my_targets.py:number",), "returned a int; it must return a potential"),
        (("my_targets.py:raises",), "raised RuntimeError: no data today"),
        (("my_targets.py:needs",), "missing 1 required positional argument: 'sd'"),
        (("my_targets.py:refuses",), "dim must be a whole number of at least 1, got 0"),
        (("my_targets.py:scaled", "--set", "target.nope=1"), "'nope'"),
        (("my_targets.py:target", "--set", "target.sd=1"), "is a potential already"),
        (("gaussian", "--set", "target.dimm=3"), "has no setting 'dimm'; did you mean 'dim'"),
        (("gaussian", "--sampler", "hmcc"), "did you mean 'hmc'"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, tuple) else "",
)
def test_errors_are_one_line_that_says_what_to_do(surrokit, targets, arguments, said):
    assert_one_line(surrokit("sample", *EXACT, *arguments), said)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 / 0", "bad.py could not be imported: ZeroDivisionError: division by zero; try python"),
        ("def (", "SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named(surrokit, targets, source, said):
    (targets.parent / "bad.py").write_text(source)
    assert_one_line(surrokit("sample", "bad.py:target", *EXACT), said)


def test_the_command_is_installed():
    (command,) = metadata.entry_points(group="console_scripts", name="surrokit")
    assert command.load() is main


# --- interrupts ---


def test_an_interrupted_run_is_saved_and_not_compared_and_the_shell_is_told(
    surrokit, figures, targets, tmp_path
):
    command = ("sample", "my_targets.py:impatient", *EXACT)
    draws = ("--draws", "500", "--compare", "--out", tmp_path / "run.csv")
    out, found = figures(*command, *draws, code=130)
    assert "the run was interrupted; these are the draws until then." in out
    assert "plain HMC" not in out
    assert found["stopped"] == "interrupted"
    assert 0 < found["draws"] < 500
    assert len((tmp_path / "run.csv").read_text().splitlines()) == 1 + 2 * found["draws"]
    sys.modules.pop("surrokit_target_my_targets")
    calls = ("--step-size", "0.5", "--n-steps", "1", "--set", "target.after=150")
    code, out, _ = surrokit(*command, *calls, "--compare")  # within the second run
    assert code == 130
    assert "plain HMC" in out


def test_an_interrupt_before_the_run_is_told_to_the_shell(surrokit, targets):
    code, _, err = surrokit("sample", "my_targets.py:before_the_run", *EXACT)
    assert code == 130
    assert err.strip().endswith("Interrupted.")


# --- settings ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("(1, 2)", (1, 2)),
        ("{'a': 1}", {"a": 1}),
        ("a=b", "a=b"),
        ("__import__('os')", "__import__('os')"),
    ],
)
def test_values_are_literals_or_text(text, value):
    assert parse_settings(["sampler.a=1", f"surrogate.x={text}"]) == {
        "sampler": {"a": 1},
        "surrogate": {"x": value},
    }


@pytest.mark.parametrize(
    ("item", "said"),
    [
        *((item, "--set takes part.setting") for item in ("sampler", "sampler.a", "sampler=1")),
        *((item, "--set takes part.setting") for item in ("sampler.=1", "a b")),
        *((f"{part}.a=1", f"no part '{part}'; parts are") for part in ("potential", "Sampler", "")),
    ],
)
def test_what_is_no_setting_is_refused(item, said):
    with pytest.raises(ConfigurationError, match=said):
        parse_settings([item])


def test_names_and_settings_are_joined_and_a_part_without_name_gets_its_default():
    settings = {"sampler": {"a": 1}, "metric": {"b": 2}}
    specs = specs_of({"sampler": "hmc", "schedule": None}, settings, default_catalogue())
    assert specs == {"sampler": ("hmc", {"a": 1}), "schedule": None, "metric": ("dense", {"b": 2})}
