"""The suite itself: targets, reference parts, selection, messages, fixtures."""

import subprocess
import sys
import types

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.registry.components import Component
from surrokit.registry.hooks import hookimpl
from surrokit.testing import (
    check_plugin,
    check_potential,
    checks_for,
    parametrize_with_checks,
    run_checks,
)
from surrokit.testing.parts import (
    ConstantMetric,
    CurvedMetric,
    LeaningWalk,
    SubChain,
)
from surrokit.testing.statistics import CHECK_RATE, Verdict, normality
from surrokit.testing.targets import ALL


@parametrize_with_checks(ALL)
def test_targets_are_sound(check):
    check()


@parametrize_with_checks(
    [LeaningWalk, SubChain, ConstantMetric, CurvedMetric, lambda: CurvedMetric(False)]
)
def test_reference_parts_are_sound(check):
    check()


@pytest.mark.parametrize("target", ALL)
def test_potential_is_that_of_the_samples(target):
    target = target()
    normals = target.to_normals(target.sample(np.random.default_rng(0), 20_000))
    normality(normals).require("draws are exact")
    # E q_i dU/dq_i = 1 for every density that vanishes at the edge of its support
    positions = target.sample(np.random.default_rng(1), 200_000)
    virial = positions * target.gradient(positions)
    error = virial.std(axis=0) / np.sqrt(len(virial))
    assert (np.abs(virial.mean(axis=0) - 1.0) < 5.0 * error).all()


# --- statistics ---


def test_sound_samples_pass_and_their_p_values_are_spread():
    p_values = []
    for seed in range(200):
        verdict = normality(np.random.default_rng(seed).standard_normal((500, 2)))
        p_values += [one.p_value for one in verdict.comparisons]
        assert not verdict.rejected
    for level in (0.01, 0.1):
        assert np.mean(np.array(p_values) < level) == pytest.approx(level, rel=0.35)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda z: 1.03 * z,
        lambda z: z + np.array([0.05, 0.0]),
        lambda z: z @ np.array([[1.0, 0.06], [0.0, 1.0]]),
        lambda z: z[np.square(z).sum(axis=1) < 9.0],
    ],
    ids=["scale", "shift", "correlation", "truncation"],
)
def test_small_errors_are_seen(spoilt):
    assert normality(spoilt(np.random.default_rng(2).standard_normal((20_000, 2)))).rejected


def test_message_lists_the_worst():
    z = 2.0 * np.random.default_rng(4).standard_normal((1000, 2))
    with pytest.raises(AssertionError, match=r"are normal, but of 13 .*\n.*mean square"):
        normality(z).require("draws are normal")
    assert Verdict(()).p_value == 1.0 > CHECK_RATE  # nothing was compared


# --- selection ---


def test_names_levels_and_labels():
    names = [case.name for case in checks_for(LeaningWalk)]
    assert "check_invariant[LeaningWalk]" in names
    assert names[0] == "check_builds[LeaningWalk]"
    levels = {case.check.level for case in checks_for(LeaningWalk, levels=("statistical",))}
    assert levels == {"statistical"}
    component = Component(
        kind="sampler",
        name="leaning",
        factory=lambda *, lean=0.5: LeaningWalk(lean=lean),
        summary="leans",
        examples=({}, {"lean": 0.1}),
    )
    assert {case.part for case in checks_for(component)} == {"leaning", "leaning-lean=0.1"}


@pytest.mark.parametrize("capabilities", [frozenset(), frozenset({"gradient"})])
def test_declared_capabilities_choose(capabilities):
    flat = types.SimpleNamespace(
        dim=2, capabilities=capabilities, value=lambda positions: np.zeros(len(positions))
    )
    names = {case.check.name for case in checks_for(lambda: flat)}
    assert ("check_gradient" in names) == bool(capabilities)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks_of(LeaningWalk, kind="smapler"), r"kind='smapler' is none\. .*one of p"),
        (lambda: checks_of(dict), "a dict has the methods of no kind of part"),
        (lambda: checks_of(LeaningWalk()), "zero-argument factories, got LeaningWalk"),
    ],
)
def test_what_cannot_be_checked(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()


def test_what_a_part_raises_is_the_message():
    def broken():
        raise ValueError("no luck")

    def decide(self, moment, rng):
        raise RuntimeError("forgot")

    (result,) = check_potential(broken)
    assert (result.name, result.outcome) == ("check_builds[broken]", "failed")
    assert "cannot be made: ValueError: no luck" in result.message
    forgetful = type("Forgetful", (), {"learns": False, "decide": decide})
    results = run_checks(checks_for(forgetful, kind="schedule"))
    messages = {result.name: result.message for result in results}
    assert messages["check_decisions[Forgetful]"] == "RuntimeError: forgot"
    assert messages["check_builds[Forgetful]"] == ""


def test_wrong_choices_are_caught():
    def make():
        policy = sk.make("policy", "automatic")
        return types.SimpleNamespace(
            choose=lambda *told: attrs.evolve(policy.choose(*told), sampler="hmcc")
        )

    for case in checks_for(make, kind="policy"):
        if case.check.name == "check_choices":
            with pytest.raises(AssertionError, match="cannot be made: no sampler is na"):
                case()


def checks_of(part, **options):
    return list(checks_for(part, **options))


# --- plugins ---


def surrokit_components():
    return []


@hookimpl
def surrokit_register_widgets():
    return []


@hookimpl
def surrokit_run_started(run=None):
    pass


def leaning(*, lean=0.5):
    """Return a walk.

    Parameters
    ----------
    lean
        To the right.
    """
    return LeaningWalk(lean=lean)


def unexplained(*, lean):
    return LeaningWalk(lean=lean)


def offering(*components, **settings):
    """A hook that returns components, or a sampler with some settings."""
    sound = {"factory": leaning, "summary": "A walk that leans", "references": ("nobody",)}
    made = {"kind": "sampler", "name": "toy", **sound, **settings}

    @hookimpl
    def surrokit_components():
        return list(components) or [Component(**made)]

    return surrokit_components


def module(function, name="toy"):
    made = types.ModuleType(name)
    setattr(made, function.__name__, function)
    return made


def failure(of, name):
    results = check_plugin(of, levels=("quick",))
    (result,) = [r for r in results if r.name.startswith(f"{name}[")]
    assert result.outcome == "failed"
    return result.message


def test_sound_plugin_passes_with_its_parts():
    results = check_plugin(module(offering()), levels=("quick",))
    failed = {result.name for result in results if result.outcome == "failed"}
    assert failed == {"check_imports_light[toy]"}  # it is in no file
    assert any(result.name == "check_proposal[toy]" for result in results)


@pytest.mark.parametrize(
    ("function", "check", "message"),
    [
        (surrokit_components, "check_registers", "named as a hook but not marked"),
        (surrokit_register_widgets, "check_registers", "unknown hook"),
        (surrokit_run_started, "check_registers", "pluggy never passes"),
        (
            hookimpl(specname="surrokit_run_started")(lambda ran: None),
            "check_registers",
            "{'ran'} are declared",
        ),
        (offering(references=()), "check_settings", "has no references"),
        (offering(examples=()), "check_settings", "lists no examples"),
        (
            offering(factory=unexplained),
            "check_settings",
            "sampler 'toy' does not say what lean means; the section Parameters",
        ),
        (
            offering(factory="nowhere:Walk"),
            "check_settings",
            "sampler 'toy' is to be made by 'nowhere:Walk', but that cannot be",
        ),
        (
            offering(3),
            "check_registers",
            "surrokit_components returned 3; every item must be a Component",
        ),
        (
            offering(*2 * [Component(kind="sampler", name="toy", factory=leaning, summary="x")]),
            "check_registers",
            "sampler toy are registered twice",
        ),
    ],
    ids=lambda told: told if isinstance(told, str) else "",
)
def test_what_is_wrong_with_a_plugin_is_told(function, check, message):
    assert message in failure(module(function), check)


def test_heavy_import(tmp_path, monkeypatch):
    (tmp_path / "heavy_toy.py").write_text("import scipy\n")
    monkeypatch.syspath_prepend(tmp_path)
    import heavy_toy

    assert "imports scipy" in failure(heavy_toy, "check_imports_light")


def test_one_line_opts_in(tmp_path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["surrokit.testing.fixtures"]\n')
    (tmp_path / "test_it.py").write_text(_AUTHORS_TEST)
    options = ("-q", "-W", "error", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


_AUTHORS_TEST = """
from surrokit.testing import parametrize_with_checks
from surrokit.testing.parts import LeaningWalk

@parametrize_with_checks([LeaningWalk])
def test_contract(check):
    check()
"""
