"""The suite itself: targets, reference parts, selection, messages, fixtures."""

import subprocess
import sys
import types

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError, PluginLoadError
from surrokit.interfaces import ChainState
from surrokit.registry.components import Component
from surrokit.registry.hooks import hookimpl
from surrokit.run.book import EVENTS
from surrokit.testing import (
    check_names,
    check_plugin,
    check_policy,
    check_sampler,
    check_schedule,
    checks_for,
    kind_of,
    parametrize_with_checks,
    write_and_read,
)
from surrokit.testing.parts import (
    ConstantMetric,
    CurvedMetric,
    IndependentDraws,
    LeaningWalk,
    OneSidedWalk,
    SubChain,
)
from surrokit.testing.samplers import start
from surrokit.testing.statistics import CHECK_RATE, Verdict, balance, normality
from surrokit.testing.targets import ALL, ExactCallRefusedError, Gaussian, seal


@parametrize_with_checks(ALL)
def test_targets_are_sound(check):
    check()


@parametrize_with_checks(
    [
        *(LeaningWalk, OneSidedWalk, SubChain),
        *(ConstantMetric, CurvedMetric, lambda: CurvedMetric(False)),
    ],
    known_failures={
        f"check_positions_alone[{name}]": "it needs no potential, and is finite where one fails"
        for name in ("curved-metric", "curved-metric-2")
    },
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


def test_sealed_targets_refuse():
    with seal(), pytest.raises(ExactCallRefusedError, match="Gaussian was evaluated at 3 pos"):
        Gaussian().value(np.zeros((3, 2)))
    assert np.isfinite(Gaussian().value(np.zeros((1, 2)))).all()


class TestStatistics:
    def test_sound_samples_pass_and_their_p_values_are_spread(self):
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
    def test_small_errors_are_seen(self, spoilt):
        z = np.random.default_rng(2).standard_normal((20_000, 2))

        assert normality(spoilt(z)).rejected

    def test_one_way_moves_between_two_regions_of_many_are_seen(self):
        z = np.random.default_rng(3).standard_normal((20_000, 2))
        back = np.roll(z, len(z) // 2, axis=0)  # who is here goes there, and the other way round
        assert not balance(z, back).rejected
        astray = np.full((150, 2), 2.0)
        assert balance(np.concatenate([z, -astray]), np.concatenate([back, astray])).rejected

    def test_message_lists_the_worst(self):
        z = 2.0 * np.random.default_rng(4).standard_normal((1000, 2))

        with pytest.raises(AssertionError, match=r"are normal, but of 13 .*\n.*mean square"):
            normality(z).require("draws are normal")
        assert Verdict(()).p_value == 1.0 > CHECK_RATE  # nothing was compared


class TestSelection:
    def test_names_carry_check_and_part(self):
        names = [case.name for case in checks_for(LeaningWalk)]
        assert "check_invariant[leaning-walk]" in names
        assert names[0] == "check_builds[leaning-walk]"
        assert "check_reversible" in check_names("integrator")

    def test_levels(self):
        assert {case.level for case in checks_for(LeaningWalk, levels=("long",))} == {"long"}

    def test_declared_capabilities_choose(self):
        for capabilities in (frozenset(), frozenset({"gradient"})):
            names = {case.check.name for case in checks_for(lambda: _Flat(capabilities))}  # noqa: B023
            assert ("check_gradient" in names) == bool(capabilities)

    def test_labels_of_equal_factories_and_of_examples_differ(self):
        component = Component(
            kind="sampler",
            name="leaning",
            factory=lambda *, lean=0.5: LeaningWalk(lean=lean),
            summary="leans",
            examples=({}, {"lean": 0.1}),
        )
        parts = (lambda: SubChain(), lambda: SubChain(length=2), component)
        labels = {"sub-chain", "sub-chain-2", "leaning", "leaning-lean=0.1"}
        assert {case.part for case in checks_for(*parts)} == labels

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: check_names("smapler"), r"kind must be one of potential, .*'smapler'"),
            (lambda: kind_of({}), "a dict has the methods of no kind of part"),
            (lambda: list(checks_for(LeaningWalk())), "zero-argument factories, got LeaningWalk"),
        ],
    )
    def test_what_cannot_be_checked(self, call, message):
        with pytest.raises(ConfigurationError, match=message):
            call()

    def test_part_that_cannot_be_made_fails_one_check(self):
        def broken():
            raise ValueError("no luck")

        (result,) = check_sampler(broken)
        assert (result.name, result.outcome) == ("check_builds[broken]", "failed")
        assert "cannot be made: ValueError: no luck" in result.message


class _Flat:
    dim = 2

    def __init__(self, capabilities):
        self.capabilities = capabilities

    def value(self, positions):
        return np.zeros(len(positions))


class TestKnownFailures:
    @pytest.mark.parametrize(
        ("known", "message"),
        [
            ({"check_flux": ""}, "'check_flux' needs a reason, got ''"),
            ({"check_fluxx": "because"}, r"names no check of .* mean 'check_flux"),
        ],
    )
    def test_reason_and_known_name_are_needed(self, known, message):
        with pytest.raises(ConfigurationError, match=message):
            parametrize_with_checks([LeaningWalk], known_failures=known)

    def test_marks_are_strict(self):
        mark = parametrize_with_checks(
            [LeaningWalk], known_failures={"check_flux[leaning-walk]": "because"}
        )
        (parameters,) = [p for p in mark.args[1] if p.id == "check_flux[leaning-walk]"]
        xfail = next(mark for mark in parameters.marks if mark.name == "xfail")

        assert xfail.kwargs == {"reason": "because", "strict": True}
        assert "statistical" in {mark.name for mark in parameters.marks}

    def test_plain_results(self):
        class Forgetful:
            learns = False

            def decide(self, moment, rng):
                raise RuntimeError("forgot")

        results = check_schedule(
            Forgetful, known_failures={"check_builds": "x", "check_learns": "known"}
        )
        by_name = {result.name.partition("[")[0]: result for result in results}

        assert by_name["check_learns"].outcome == "known failure"
        assert by_name["check_learns"].message == "known"
        assert by_name["check_builds"].outcome == "failed"  # it passed, though known to fail
        assert "passed, though it was known to fail because x" in by_name["check_builds"].message
        assert by_name["check_decisions"].message == "RuntimeError: forgot"


class TestPlain:
    def test_round_trip_shares_nothing_and_what_cannot_be_written_is_named(self):
        copy = write_and_read(state := _state())
        assert type(copy) is type(state)
        assert copy.positions is not state.positions
        np.testing.assert_array_equal(copy.cache["value"], state.cache["value"])
        for what, kind in ((_state, "function"), (np.array([_state]), "array of object")):
            with pytest.raises(AssertionError, match=rf"ChainState.cache\['f'\] is of type {kind}"):
                write_and_read(_state(f=what))


def _state(**cache):
    positions = np.zeros((3, 2))
    return ChainState(positions=positions, values=np.zeros(3), cache={"value": np.ones(3), **cache})


def surrokit_components():
    return []


@hookimpl
def surrokit_register_widgets():
    return []


@hookimpl
def surrokit_run_started(run=None):
    pass


def run_started_with_a_wrong_argument():
    @hookimpl
    def surrokit_run_started(ran):
        pass

    return surrokit_run_started


def offering(*components, **settings):
    """A hook that returns components, or a sampler with some settings."""
    made = {"kind": "sampler", "name": "toy", "factory": LeaningWalk, "summary": "A toy"} | settings

    @hookimpl
    def surrokit_components():
        return list(components) or [Component(**made)]

    return surrokit_components


def unexplained(*, lean):
    return LeaningWalk(lean=lean)


BROKEN_PLUGINS = [
    (surrokit_components, "check_hooks", "named as a hook but not marked"),
    (surrokit_register_widgets, "check_hooks", "is no hook of this version"),
    (surrokit_run_started, "check_hooks", "pluggy never passes"),
    (
        run_started_with_a_wrong_argument(),
        "check_hooks",
        "takes 'ran', which the hook does not pass",
    ),
    (offering(), "check_descriptions", "has no references"),
    (offering(examples=()), "check_settings", "lists no examples"),
    (
        offering(factory=unexplained),
        "check_settings",
        "sampler 'toy' does not say what lean means; the section Parameters",
    ),
    (
        offering(factory="nowhere:Walk"),
        "check_settings",
        "sampler 'toy' is to be made by 'nowhere:Walk', but nowhere cannot be",
    ),
    (
        offering(3),
        "check_registers",
        "surrokit_components returned 3; every item must be a Component",
    ),
    (
        offering(*2 * [Component(kind="sampler", name="toy", factory=LeaningWalk, summary="x")]),
        "check_registers",
        "sampler toy are registered twice",
    ),
]


class TestCheckPlugin:
    def test_sound_plugin(self):
        results = check_plugin(_module(_sound), levels=("quick",))

        failed = [r for r in results if r.outcome == "failed"]
        assert {r.name for r in failed} == {"check_imports_light[toy]"}  # it is in no file
        assert any(r.name == "check_proposal[toy]" for r in results)

    @pytest.mark.parametrize("told", BROKEN_PLUGINS, ids=lambda told: told[2])
    def test_what_is_wrong_is_told(self, told):
        function, check, message = told

        assert message in _failure(_module(function), check)

    def test_heavy_import(self, tmp_path, monkeypatch):
        (tmp_path / "heavy_toy.py").write_text("import scipy\n")
        monkeypatch.syspath_prepend(tmp_path)
        import heavy_toy

        assert "imports scipy" in _failure(heavy_toy, "check_imports_light")


def leaning(*, lean=0.5):
    """Return a walk.

    Parameters
    ----------
    lean
        To the right.
    """
    return LeaningWalk(lean=lean)


@hookimpl
def _sound():
    return [
        Component(
            kind="sampler",
            name="toy",
            factory=leaning,
            summary="A walk that leans",
            references=("nobody",),
        )
    ]


def _module(function):
    module = types.ModuleType("toy")
    name = "surrokit_components" if function is _sound else function.__name__
    setattr(module, name, function)
    return module


def _failure(module, name):
    results = check_plugin(module, levels=("quick",))
    (result,) = [r for r in results if r.name.startswith(f"{name}[")]
    assert result.outcome == "failed"
    return result.message


class TestPolicies:
    @pytest.mark.parametrize(
        ("change", "check", "message"),
        [
            ({"sampler": "hmcc"}, "check_choices_can_be_made", "cannot be made: no sampler is na"),
            ({"sampler": "hmc"}, "check_choices_can_be_made", "the sampler needs gradient from"),
            ({"explorer": "rounds"}, "check_fixed_parts", "explorer='sampler' was given, and 'ro"),
        ],
    )
    def test_wrong_choices_are_caught(self, change, check, message):
        def make():
            policy = sk.make("policy", "automatic")
            return types.SimpleNamespace(
                choose=lambda *told: attrs.evolve(policy.choose(*told), **change),
                plain=policy.plain,
            )

        (result,) = [r for r in check_policy(make) if r.name.startswith(check)]

        assert result.outcome == "failed"
        assert message in result.message


class TestFixtures:
    def test_plugin_set_starts_empty_and_takes_modules(self, surrokit_plugins):
        assert not surrokit_plugins.plugins.get_plugins()
        surrokit_plugins.add(module := _module(_sound))
        assert surrokit_plugins.plugins.get_plugins() == {module}
        assert surrokit_plugins.catalogue.names("sampler") == ["toy"]

    def test_plugin_set_refuses_unknown_hooks(self, surrokit_plugins):
        with pytest.raises(PluginLoadError, match="surrokit_register_widgets"):
            surrokit_plugins.add(_module(surrokit_register_widgets))

    def test_hook_calls_observe_in_order(self, hook_calls):
        assert all(callable(getattr(hook_calls, event)) for event in EVENTS)
        hook_calls.surrokit_run_started(run=1)
        hook_calls.surrokit_transition_done(run=1, state=2, info=3)

        assert hook_calls.names == ["surrokit_run_started", "surrokit_transition_done"]
        assert hook_calls.of("surrokit_transition_done")[0].arguments["state"] == 2

    def test_one_line_opts_in(self, tmp_path):
        (tmp_path / "conftest.py").write_text('pytest_plugins = ["surrokit.testing.fixtures"]\n')
        (tmp_path / "test_it.py").write_text(_AUTHORS_TEST)

        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"],
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

def test_fixtures(surrokit_plugins, hook_calls):
    assert not surrokit_plugins.plugins.get_plugins() and not hook_calls.calls
"""


def test_independent_draws_with_idle_chains_report_them():
    draws = IndependentDraws(surrogate=Gaussian(), idle=0.5)
    proposal = draws.propose(start(draws, Gaussian(), 200), np.random.default_rng(0))

    assert 60 < proposal.moved.sum() < 140
