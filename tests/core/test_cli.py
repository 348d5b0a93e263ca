"""The command line: what it prints, what it writes, and how it fails."""

from __future__ import annotations

import json
import re
import sys
import warnings
from importlib import metadata

import attrs
import pytest

from surrokit.cli.main import main
from surrokit.cli.target import parse_settings, specs_of
from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import default_catalogue
from surrokit.result.records import Adaptation, Rescue
from surrokit.result.verdict import judge

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


target = sk.potential(value, gradient, parameters={"a": None, "b": None})


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


def nowhere():
    return sk.potential(lambda q: np.inf, lambda q: q, dim=1)


def gradientless():
    return sk.potential(value, dim=2)


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
def targets(tmp_path, monkeypatch):
    path = tmp_path / "my_targets.py"
    path.write_text(TARGETS)
    monkeypatch.chdir(tmp_path)
    yield path
    sys.modules.pop("surrokit_target_my_targets", None)


def figures(path):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(path.read_text(), parse_constant=refuse)


def assert_one_line(result, *parts):
    code, _, err = result
    assert code == 1
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, err
    assert err.splitlines()[-1] == lines[0]
    for part in parts:
        assert part in lines[0]


# --- plugins ---


def test_plugins_lists_every_part(surrokit):
    code, out, _ = surrokit("plugins")
    assert code == 0
    for entry in default_catalogue():
        assert entry.component.name in out
        assert entry.plugin in out


def test_plugins_as_json_have_settings_and_defaults(surrokit, tmp_path):
    surrokit("plugins", "--json", tmp_path / "parts.json")
    rows = figures(tmp_path / "parts.json")
    assert len(rows) == len(default_catalogue().entries)
    (hmc,) = [row for row in rows if (row["kind"], row["name"]) == ("sampler", "hmc")]
    assert hmc["plugin"] == "surrokit[hmc]"
    assert hmc["settings"]["metric"]["default"] == "dense"
    assert hmc["settings"]["metric"]["takes"] == "a part of kind metric"
    assert hmc["settings"]["randomize"]["default"] is True
    assert hmc["settings"]["randomize"]["takes"] == "bool"
    assert hmc["settings"]["randomize"]["help"].startswith("Draw the number of steps uniformly")
    assert hmc["settings"]["shortest"]["takes"] == "a number of at least 0 and below 1"
    assert hmc["references"]
    (explorer,) = [row for row in rows if row["kind"] == "explorer" and row["name"] == "sampler"]
    assert explorer["settings"]["sampler"]["default"] == "the run's own sampler"
    (logistic,) = [row for row in rows if row["name"] == "logistic"]
    assert logistic["settings"]["design"]["default"] == "required"


def test_plugins_shows_the_settings_of_parts_by_name(surrokit, tmp_path):
    code, out, _ = surrokit("plugins", "gaussian", "once", "--json", tmp_path / "parts.json")
    assert code == 0
    assert "potential gaussian, of surrokit[problems]: Gaussian of given mean" in out
    assert "sampler gaussian, of surrokit[hmc]: " in out
    assert "schedule once, of surrokit[learning]: " in out
    assert "arXiv:1202.0709" in out
    assert "target_acceptance  0.35     a number between 0 and 1" in out
    assert "``" not in out
    assert [row["name"] for row in figures(tmp_path / "parts.json")] == [
        *("gaussian", "once", "gaussian")
    ]


def test_plugins_refuses_a_name_of_nothing(surrokit):
    assert_one_line(surrokit("plugins", "hmcc"), "no part is named 'hmcc'; did you mean 'hmc'")


@pytest.mark.parametrize("flag", ["--help", "-h", "--version"])
def test_help_and_version_are_there(surrokit, flag):
    code, out, _ = surrokit(flag)
    assert code == 0
    assert "surrokit" in out


# --- sample ---


def test_a_registered_target_is_sampled(surrokit):
    code, out, err = surrokit("sample", "gaussian", *EXACT)
    assert (code, err) == (0, "")
    assert "q[0]" in out
    assert "acceptance rate" in out
    assert "exact calls per effective draw" in out


def test_a_target_in_a_file_is_sampled(surrokit, targets):
    code, out, err = surrokit("sample", "my_targets.py:target", *EXACT)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["a", "b"]


def test_a_file_in_another_folder_is_found(surrokit, targets, monkeypatch):
    monkeypatch.chdir("/")
    assert surrokit("sample", f"{targets}:target", *EXACT)[0] == 0


def test_a_file_may_import_its_neighbour(surrokit, targets):
    (targets.parent / "my_neighbour.py").write_text("sd = 3.0\n")
    (targets.parent / "importing.py").write_text(
        "from my_neighbour import sd\nfrom surrokit import potential\n"
        "target = potential(lambda q: 0.5 * q @ q / sd, lambda q: q / sd, dim=1)\n"
    )
    path = list(sys.path)
    assert surrokit("sample", "importing.py:target", *EXACT)[0] == 0
    assert sys.path == path
    sys.modules.pop("my_neighbour")


def test_a_function_in_a_file_is_called_with_settings(surrokit, targets):
    code, out, _ = surrokit(
        "sample", "my_targets.py:scaled", *EXACT, "--set", "target.dim=3", "--set", "target.sd=2"
    )
    assert code == 0
    assert "q[2]" in out


def test_what_is_not_named_is_picked_and_the_first_line_says_so(surrokit, tmp_path):
    code, out, _ = surrokit("sample", "gaussian", *SHORT, "--json", tmp_path / "run.json")
    assert code == 0
    found = figures(tmp_path / "run.json")
    assert out.splitlines()[0] == f"Picked: {found['choice']}"
    assert found["choice"].startswith("sampler='hmc': a gradient takes")
    assert found["parts"]["surrogate"] == "none"


def test_where_a_part_is_named_nothing_is_picked(surrokit, tmp_path):
    code, out, _ = surrokit("sample", "gaussian", *EXACT, "--json", tmp_path / "run.json")
    assert code == 0
    assert "Picked" not in out
    assert figures(tmp_path / "run.json")["choice"] is None


def test_explorer_and_correction_can_be_named(surrokit, tmp_path):
    code, _, _ = surrokit(
        *("sample", "gaussian", *SHORT, "--surrogate", "additive", "--explorer", "sampler"),
        *("--correction", "metropolis", "--set", "explorer.iterations=15"),
        *("--json", tmp_path / "run.json"),
    )
    assert code == 0
    found = figures(tmp_path / "run.json")
    assert found["parts"]["explorer"] == "sampler(iterations=15)"
    assert found["adaptation"]["deployments"] == [15]


@pytest.mark.parametrize(
    ("option", "value", "stopped"),
    [
        ("--max-calls", "60", "max_calls"),
        ("--max-seconds", "1e-3", "max_seconds"),
        ("--target-ess", "20", "target_ess"),
        ("--target-rhat", "2", "target_rhat"),
    ],
)
def test_a_budget_stops_the_run_and_the_notes_say_so(surrokit, tmp_path, option, value, stopped):
    sizes = ("--chains", "2", "--warmup", "40", "--seed", "3", "--surrogate", "none")
    code, out, _ = surrokit(
        "sample", "gaussian", *sizes, option, value, "--json", tmp_path / "run.json"
    )
    assert code == 0
    assert f"the run stopped because {stopped} was reached." in out
    found = figures(tmp_path / "run.json")
    assert found["stopped"] == stopped
    assert ("there are no draws:" in out) == (found["draws"] == 0)


def test_an_error_aimed_at_stops_the_run(surrokit, tmp_path):
    sizes = ("--chains", "2", "--warmup", "40", "--seed", "3", "--surrogate", "none")
    code, out, _ = surrokit(
        "sample", "gaussian", *sizes, "--target-mcse", "0.3", "--json", tmp_path / "run.json"
    )
    assert code == 0
    assert "because every error is as small as was aimed at." in out
    assert figures(tmp_path / "run.json")["stopped"] == "target_mcse"


def test_a_budget_out_of_range_is_refused(surrokit):
    result = surrokit("sample", "gaussian", *EXACT, "--target-rhat", "0.9")
    assert_one_line(result, "target_rhat must be a finite number above 1")


def test_the_surrogate_that_is_set_is_additive(surrokit, tmp_path):
    code, out, _ = surrokit(
        *("sample", "gaussian", *SHORT, "--set", "surrogate.hold_out=0.2"),
        *("--json", tmp_path / "run.json"),
    )
    assert code == 0
    assert "surrogate, held-out Var(V - U)" in out
    found = figures(tmp_path / "run.json")
    assert found["parts"]["surrogate"] == "additive(hold_out=0.2)"
    assert found["adaptation"]["deployments"] == [10]


def test_the_same_seed_gives_the_same_output(surrokit, tmp_path):
    for name in ("one", "two"):
        surrokit("sample", "gaussian", *EXACT, "--json", tmp_path / f"{name}.json")
    one, two = (figures(tmp_path / f"{name}.json") for name in ("one", "two"))
    assert one["summary"] == two["summary"]


def test_options_reach_the_run(surrokit, tmp_path):
    code, _, _ = surrokit(
        *("sample", "gaussian", *EXACT, "--step-size", "0.2", "--n-steps", "3"),
        *("--set", "sampler.randomize=False", "--set", "sampler.metric=identity"),
        *("--set", "target.dim=2", "--json", tmp_path / "run.json"),
    )
    assert code == 0
    found = figures(tmp_path / "run.json")
    assert found["calls"]["gradient"] == 2 + 2 * 52 * 3
    assert (found["chains"], found["draws"]) == (2, 12)


KEYS = {"acceptance", "calls", "seconds", "ess", "rhat_max", "summary", "parts", "complete"}


def test_json_has_the_figures(surrokit, tmp_path):
    surrokit("sample", "gaussian", *EXACT, "--json", tmp_path / "run.json")
    found = figures(tmp_path / "run.json")
    assert set(found) >= KEYS
    assert set(found["ess"]) == {"min", "median", "max"}
    assert len(found["acceptance"]) == 2
    assert set(found["seconds"]) == {"warmup", "training", "sampling"}
    assert set(found["summary"]) == {"q[0]", "q[1]"}
    assert found["calls"]["gradient"] > 0
    assert "compare" not in found


def test_compare_adds_a_run_of_plain_hmc(surrokit, tmp_path):
    code, out, _ = surrokit(
        *("sample", "gaussian", *SHORT, "--surrogate", "additive", "--compare"),
        *("--json", tmp_path / "run.json"),
    )
    assert code == 0
    assert "plain HMC" in out
    found = figures(tmp_path / "run.json")
    assert set(found["compare"]) >= KEYS
    assert found["compare"]["parts"]["surrogate"] == "none"
    assert found["compare"]["calls"]["gradient"] > found["calls"]["gradient"]


def test_out_saves_the_draws(surrokit, tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5py")
    code, out, _ = surrokit("sample", "gaussian", *EXACT, "--out", tmp_path / "run.nc")
    assert code == 0
    assert f"draws saved to {tmp_path / 'run.nc'}" in out
    with xarray.open_datatree(tmp_path / "run.nc", engine="h5netcdf") as tree:
        assert tree["posterior"]["q"].shape == (2, 12, 2)


def test_out_saves_a_table(surrokit, tmp_path):
    code, out, _ = surrokit("sample", "gaussian", *EXACT, "--out", tmp_path / "run.csv")
    assert code == 0
    assert f"draws saved to {tmp_path / 'run.csv'}" in out
    lines = (tmp_path / "run.csv").read_text().splitlines()
    assert lines[0] == "chain,draw,q[0],q[1]"
    assert len(lines) == 1 + 2 * 12


def test_another_ending_is_a_matter_of_usage_before_anything_is_sampled(surrokit, tmp_path):
    code, out, err = surrokit("sample", "gaussian", *EXACT, "--out", tmp_path / "run.txt")
    assert (code, out) == (2, "")
    assert "Invalid value for '--out': the ending of 'run.txt' does not say how to write" in err
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_not_cut_in_a_file(surrokit, targets):
    name = "a_parameter_with_quite_a_long_name_that_nobody_would_want_to_see_cut"
    (targets.parent / "long.py").write_text(
        "import surrokit as sk\ntarget = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, "
        f"parameters={{{name!r}: None}})\n"
    )
    _, out, _ = surrokit("sample", "long.py:target", *EXACT)
    assert name in out


def test_notes_tell_what_to_look_at(surrokit):
    _, out, _ = surrokit(
        *("sample", "gaussian", *EXACT, "--step-size", "50", "--n-steps", "5"),
        *("--set", "sampler.metric=identity"),
    )
    assert re.search("paths diverged.*; a smaller step size would help", out)
    assert "R-hat" in out


def test_a_warning_is_one_line(surrokit):
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
        (("my_targets.py:nowhere",), "no start was found in 100 attempts"),
        (("my_targets.py:gradientless",), "the sampler needs gradient from the target"),
        (("gaussian", "--retries", "2"), "retries is given, but on_error is 'reject'"),
        (("gaussian", "--on-error", "retry", "--retries", "0"), "at least 1, got 0"),
        (("gaussian", "--set", "target.dimm=3"), "has no setting 'dimm'; did you mean 'dim'"),
        (("gaussian", "--sampler", "hmcc"), "did you mean 'hmc'"),
        (("gaussian", "--surrogate", "aditive"), "did you mean 'additive'"),
        (("gaussian", "--schedule", "once"), "deploys a surrogate, but none is named"),
        (("gaussian", "--chains", "0"), "chains must be a whole number of at least 1, got 0"),
        (("gaussian", "--draws", "0"), "draws must be a whole number of at least 1, got 0"),
        (("gaussian", "--warmup", "-1"), "warmup must be a whole number of at least 0, got -1"),
        (("gaussian", "--step-size", "0"), "step_size must be a positive finite number"),
        (("gaussian", "--step-size", "nan"), "step_size must be a positive finite number"),
        (("gaussian", "--n-steps", "0"), "n_steps must be a whole number of at least 1"),
        (("gaussian", "--seed", "-1"), "seed must be a whole number of at least 0"),
        (("gaussian", "--json", "nowhere/run.json"), "nowhere"),
        (("gaussian", "--out", "nowhere/run.nc"), "nowhere"),
        (("gaussian", "--set", "sampler"), "--set takes part.setting=value, got 'sampler'"),
        (("gaussian", "--set", "sampler.n_stepz=3"), "did you mean 'n_steps'"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, tuple) else "",
)
def test_errors_are_one_line_that_says_what_to_do(surrokit, targets, arguments, said):
    assert_one_line(surrokit("sample", *EXACT, *arguments), said)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 / 0", "could not be imported: ZeroDivisionError: division by zero; try python bad.py"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_imported_is_named(surrokit, targets, source, said):
    (targets.parent / "bad.py").write_text(source)
    assert_one_line(surrokit("sample", "bad.py:target", *EXACT), "bad.py", said)


def test_a_file_that_cannot_be_written_is_found_out_before_the_run(surrokit, targets):
    _, out, _ = surrokit("sample", "gaussian", *EXACT, "--out", "nowhere/run.nc")
    assert out == ""


def test_what_click_refuses_is_a_matter_of_usage(surrokit):
    code, _, err = surrokit("sample", "gaussian", "--chains", "many")
    assert code == 2
    assert "Invalid value for '--chains'" in err


def test_the_command_is_installed():
    (command,) = metadata.entry_points(group="console_scripts", name="surrokit")
    assert command.load() is main


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"stopped": "interrupted"}, "the run was interrupted; these are the draws until then."),
        ({"failures": 3}, "could not be evaluated at 3 positions, which were rejected."),
        (
            {
                "adaptation": Adaptation(
                    deployments=(70,), training_rows=1, frozen_before_draws=False
                )
            },
            "draws were kept while the surrogate still adapted.",
        ),
        (
            {
                "adaptation": Adaptation(
                    deployments=(70, 90),
                    training_rows=1,
                    frozen_before_draws=True,
                    rescues=(Rescue(iteration=80, reason="chain 1 had not moved"),),
                )
            },
            "once in warm-up, the last time after iteration 80: chain 1 had not moved.",
        ),
        (
            {
                "adaptation": Adaptation(
                    deployments=(70, 90),
                    training_rows=1,
                    frozen_before_draws=True,
                    restarts=(Rescue(iteration=8, reason="x"), Rescue(iteration=80, reason="y")),
                )
            },
            "draws were thrown back into warm-up 2 times, the last time after iteration 80: y.",
        ),
    ],
)
def test_notes_tell_what_the_table_does_not(bounded_run, changed, note):
    def told(run):
        return any(f"{line}.".endswith(note) for line in judge(run).messages)

    assert told(attrs.evolve(bounded_run, **changed))
    assert not told(bounded_run)


def test_settings_of_no_surrogate_are_refused(surrokit):
    result = surrokit("sample", "gaussian", *EXACT, "--set", "surrogate.n_nodes=5")
    message = "there is no surrogate, so n_nodes cannot be set; name one with --surrogate"
    assert_one_line(result, message)


# --- interrupts ---

IMPATIENT = """
import numpy as np
import surrokit as sk

calls = []


def impatient(after=400):
    def value(q):
        calls.append(q)
        if len(calls) == after:
            raise KeyboardInterrupt
        return 0.5 * q @ q

    return sk.potential(value, lambda q: q, dim=2)


def before_the_run():
    raise KeyboardInterrupt
"""


@pytest.fixture
def impatient(tmp_path, monkeypatch):
    (tmp_path / "impatient.py").write_text(IMPATIENT)
    monkeypatch.chdir(tmp_path)
    yield "impatient.py:impatient"
    sys.modules.pop("surrokit_target_impatient", None)


def test_an_interrupted_run_is_printed_saved_and_told_to_the_shell(surrokit, impatient, tmp_path):
    files = {"--json": tmp_path / "run.json", "--out": tmp_path / "run.csv"}
    code, out, _ = surrokit(
        *("sample", impatient, *EXACT, "--draws", "500"),
        *(text for option in files.items() for text in option),
    )
    assert code == 130
    assert "the run was interrupted; these are the draws until then." in out
    found = figures(files["--json"])
    assert found["stopped"] == "interrupted"
    assert 0 < found["draws"] < 500
    assert len(files["--out"].read_text().splitlines()) == 1 + 2 * found["draws"]


def test_an_interrupted_run_is_not_compared(surrokit, impatient, tmp_path):
    code, out, _ = surrokit(
        *("sample", impatient, *EXACT, "--draws", "500", "--compare"),
        *("--json", tmp_path / "run.json"),
    )
    assert code == 130
    assert "plain HMC" not in out
    assert "compare" not in figures(tmp_path / "run.json")


def test_an_interrupt_of_the_comparison_is_told_to_the_shell(surrokit, impatient):
    calls = ("--step-size", "0.5", "--n-steps", "1")
    code, out, _ = surrokit(
        *("sample", impatient, *EXACT, *calls, "--compare", "--set", "target.after=150")
    )
    assert code == 130
    assert "plain HMC" in out


def test_an_interrupt_before_the_run_is_told_to_the_shell(surrokit, impatient):
    code, _, err = surrokit("sample", "impatient.py:before_the_run", *EXACT)
    assert code == 130
    assert err.strip().endswith("Interrupted.")


# --- settings ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("True", True),
        ("None", None),
        ("(1, 2)", (1, 2)),
        ("{'a': 1}", {"a": 1}),
        ("some/path.csv", "some/path.csv"),
        ("a=b", "a=b"),
        ("", ""),
        ("'3'", "3"),
        ("1e-3", 0.001),
        ("__import__('os')", "__import__('os')"),
    ],
)
def test_values_are_literals_or_text(text, value):
    assert parse_settings([f"surrogate.x={text}"]) == {"surrogate": {"x": value}}


def test_settings_of_one_part_gather():
    parsed = parse_settings(["sampler.a=1", "metric.c=3", "sampler.b=2"])
    assert parsed == {"sampler": {"a": 1, "b": 2}, "metric": {"c": 3}}


@pytest.mark.parametrize("item", ["sampler", "sampler.a", "sampler=1", ".a=1", "sampler.=1", "a b"])
def test_what_is_no_setting_is_refused(item):
    with pytest.raises(ConfigurationError, match="--set"):
        parse_settings([item])


@pytest.mark.parametrize("part", ["potential", "samplr", "Sampler"])
def test_unknown_parts_are_refused(part):
    with pytest.raises(ConfigurationError, match=f"there is no part '{part}'; parts are target, "):
        parse_settings([f"{part}.a=1"])


def test_names_and_settings_are_joined():
    settings = {"sampler": {"a": 1}, "metric": {"b": 2}}
    specs = specs_of({"sampler": "hmc", "schedule": None}, settings, default_catalogue())
    assert specs == {"sampler": ("hmc", {"a": 1}), "schedule": None, "metric": ("dense", {"b": 2})}


def test_a_part_without_name_gets_its_default():
    specs = specs_of({"schedule": None}, {"schedule": {"x": 1}}, default_catalogue())
    assert specs == {"schedule": ("once", {"x": 1})}
