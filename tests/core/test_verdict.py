"""The verdict on a run: nothing that is wrong goes untold."""

from __future__ import annotations

import re

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.cli.show import print_run
from surrokit.errors import SamplingWarning
from surrokit.modes import Modes
from surrokit.result.advice import advice
from surrokit.result.records import Repair, Verdict, note, warning
from surrokit.result.verdict import judge
from surrokit.testing.targets import Gaussian

SIZES = {"warmup": 200, "draws": 500, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def sound():
    return sk.sample(Gaussian(), sampler="nuts", **SIZES)


def moved(run, **arrays):
    return judged(run, kept=attrs.evolve(run.kept, **arrays))


def judged(run, **changed):
    run = attrs.evolve(run, **changed)
    return attrs.evolve(run, verdict=judge(run))


def adapted(run, **changed):
    return judged(run, adaptation=attrs.evolve(run.adaptation, **changed))


@pytest.fixture
def apart(sound):
    """A run of which one chain is elsewhere in its first number."""
    draws = sound.draws.copy()
    draws[0, :, 0] += 10.0
    return moved(sound, draws=draws)


def test_of_a_sound_run_nothing_is_said(sound):
    assert sound.verdict.sound
    assert sound.verdict.messages == ()
    assert str(sound.verdict) == ""
    assert len(str(sound.summary()).splitlines()) == 3


def test_chains_apart_are_told_of_with_the_parameter_everywhere(apart, capsys):
    (finding,) = apart.verdict.named("r_hat")
    assert finding.warns
    assert finding.message.startswith("R-hat is above 1.01 for 'q[0]' ")
    assert "'q[1]'" not in finding.message
    assert not apart.verdict.sound
    assert "Warning: R-hat is above 1.01 for 'q[0]'" in str(apart.summary())
    went = attrs.evolve(apart.adaptation, missed=2, mix=0.2)  # a note, and a warning behind it
    run = judged(apart, failures=3, surrogate=Gaussian(), adaptation=went)
    warns = [finding.warns for finding in run.verdict]
    assert warns == sorted(warns, reverse=True)
    told = run.to_dict()["verdict"]
    assert (told["sound"], told["findings"][0]["warns"]) == (False, True)
    assert {"name", "message", "warns"} == set(told["findings"][-1])
    print_run(apart)
    assert "Warning: R-hat is above 1.01 for 'q[0]'" in capsys.readouterr().out


def test_few_effective_draws_are_told_of(sound):
    slow = np.repeat(sound.draws[:, ::50], 50, axis=1)  # each draw stands for fifty
    (finding,) = moved(sound, draws=slow).verdict.named("effective_draws")
    assert finding.warns
    assert "effective ones, and at least 100 are needed" in finding.message


def test_energies_that_momenta_hardly_change_are_told_of(sound):
    """A random walk of the energy in one chain: its fraction of missing information is near 0."""
    energy = sound.kept.energy.copy()
    energy[2] += np.cumsum(np.random.default_rng(1).standard_normal(energy.shape[1]))
    (finding,) = moved(sound, energy=energy).verdict.named("energy")
    assert finding.warns
    assert "missing information is 0.0" in finding.message
    assert "in chain 2, where 0.3 is the least" in finding.message


RESCUES = (Repair(iteration=8, reason="x"), Repair(iteration=80, reason="chain 1 had not moved"))


@pytest.mark.parametrize(
    ("changed", "name", "warns", "said"),
    [
        ({"mix": 0.25}, "mix", False, "were exact transitions with probability 0.25"),
        ({"recalled": True}, "recalled", False, "draws of an earlier run without explor"),
        ({"frozen_before_draws": False}, "adaptation", False, "while the surrogate still adapted"),
        ({"repairs": RESCUES[1:]}, "repairs", False, "once in warm-up, the last time after iterat"),
        ({"repairs": RESCUES}, "repairs", False, "2 times in warm-up, .* 80: chain 1 had not mov"),
        ({"missed": 2, "mix": 0.2}, "missed", True, r"or mix in more exact .*Safety\(mix=0\.4\)"),
        ({"missed": 2, "mix": 0.9}, "missed", True, r"schedule=surrokit\.Safety\(mix=0\.95\)"),
        ({"missed": 2}, "missed", True, r"or mix in exact .*=surrokit\.Safety\(mix=0\.1\)"),
    ],
)
def test_the_course_of_a_run_is_told(sound, changed, name, warns, said):
    run = adapted(attrs.evolve(sound, surrogate=Gaussian()), **changed)
    (finding,) = run.verdict.named(name)
    assert finding.warns == warns
    assert re.search(said, finding.message)
    assert not sound.verdict.named(name)
    if name == "missed":  # only runs on a surrogate can
        assert not adapted(sound, **changed).verdict.named(name)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"stopped": "interrupted"}, "the run was interrupted; these are the draws until then"),
        ({"stopped": "observer"}, "an observer stopped the run; these are the draws until then"),
        ({"stopped": "max_calls"}, "max_calls allowed no more draws, as decided before the first"),
        ({"noticed": ("it is flat",)}, "it is flat"),
        ({"failures": 3}, "the target could not be evaluated at 3 positions, which were rejected"),
    ],
)
def test_notes_tell_what_the_table_does_not(sound, changed, said):
    assert said in judge(attrs.evolve(sound, **changed)).messages
    assert said not in judge(sound).messages


@pytest.mark.parametrize(("beyond", "told"), [(0.005, False), (0.25, True)])
def test_draws_beyond_what_the_surrogate_has_learnt_are_told_of(sound, beyond, told):
    class Bordered(Gaussian):
        def is_beyond(self, positions):
            return np.arange(len(positions)) < beyond * len(positions)

    found = judged(sound, surrogate=Bordered()).verdict.named("border")
    assert [finding.warns for finding in found] == [False] * told
    assert all(finding.message.startswith("0.25 of the draws lie beyond") for finding in found)


def test_a_run_without_draws_warns():
    with pytest.warns(SamplingWarning, match="there are no draws: max_calls allowed not even"):
        run = sk.sample(Gaussian(), sampler="nuts", max_calls=2, seed=1, progress=False)
    assert not run.verdict.sound


def test_a_limit_that_leaves_a_few_draws_warns():
    """Where as few were asked for, it is a note."""
    asked = sk.sample(Gaussian(), sampler="hmc", warmup=50, draws=3, seed=1, progress=False)
    (note,) = asked.verdict.named("r_hat")
    assert not note.warns
    with pytest.warns(SamplingWarning, match="R-hat is missing"):
        run = sk.sample(
            Gaussian(), sampler="random-walk", warmup=20, max_calls=96, seed=1, progress=False
        )
    assert 0 < run.draws.shape[1] < 4


def one_mode(**changed):
    found = {"positions": np.zeros((1, 2)), "values": np.array([-93.25])}
    return Modes(**found, covariances=np.eye(2)[None], **changed)


def test_a_limit_that_allows_for_a_single_search_is_told_of(sound):
    modes = one_mode(ended=np.array([1]), unfinished=1)
    run = judged(sound, modes=modes, stopped="max_calls")
    (finding,) = run.verdict.named("unseen_modes")
    assert finding.warns
    assert "a single search for modes of 2 ended, so that other modes" in finding.message
    assert "Raise max_calls" in finding.message
    (note,) = judged(run, modes=attrs.evolve(modes, reliable=False)).verdict.named("modes_left")
    assert not note.warns
    assert "little mass (least potential -93.25)" in note.message
    for others in ({"ended": np.array([3])}, {"concave": True}):
        enough = judged(run, modes=attrs.evolve(modes, **others))
        assert not enough.verdict.named("unseen_modes")


@pytest.mark.parametrize(("rarely", "warned"), [(4, True), (12, False)])
def test_a_mode_of_much_mass_that_searches_hardly_find_is_warned_of(sound, rarely, warned):
    modes = Modes(
        positions=np.array([[0.0, 0.0], [50.0, 0.0]]),
        values=np.zeros(2),
        covariances=np.stack([np.eye(2)] * 2),
        ended=np.array([90, rarely]),
    )
    found = judged(sound, modes=modes).verdict.named("unseen_modes")
    assert bool(found) == warned
    if warned:
        assert "1 of these places, of 50% of the mass, were found less than a tenth as often" in (
            found[0].message
        )


@pytest.mark.parametrize(("each", "warned"), [(2, True), (4, False)])
def test_modes_found_as_easily_as_the_known_ones_may_be_missing(sound, each, warned):
    modes = Modes(
        positions=np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]]),
        values=np.zeros(3),
        covariances=np.stack([np.eye(2)] * 3),
        ended=np.full(3, each),
    )
    found = judged(sound, modes=modes).verdict.named("unseen_modes")
    assert bool(found) == warned
    if warned:
        assert "so few searches miss 0.41 modes, if others are found as easily" in found[0].message
        assert "12% of the mass if they are alike" in found[0].message


# --- chains that do not move, and what is blamed ---

START = np.array([1.0, 1.0])
FEW = {"chains": 4, "draws": 60, "seed": 1, "progress": False, "initial": START}


@attrs.frozen
class NoGradient(Gaussian):
    """A surrogate on which every path from the start fails, whatever the step size."""

    def value_and_gradient(self, positions):
        value, gradient = super().value_and_gradient(positions)
        return value, np.where(positions == START, gradient, np.nan)


def sub_chain(**kernel):
    return ("sub-chain", {"kernel": ("hmc", {"metric": "identity", **kernel}), "length": 4})


@pytest.fixture(scope="module")
def stuck():
    with pytest.warns(SamplingWarning, match="step size of 50 is too large. Give the sampler a sm"):
        return sk.sample(
            Gaussian(), sampler=sub_chain(step_size=50.0), surrogate=Gaussian(), warmup=0, **FEW
        )


def test_a_sub_chain_that_never_moves_has_accepted_nothing(stuck):
    assert (np.ptp(stuck.draws, axis=1) == 0).all()
    np.testing.assert_array_equal(stuck.acceptance, 0.0)
    assert not stuck.kept.accepted.any()
    assert np.isnan(stuck.kept.acceptance).all()  # nothing was ever decided
    assert stuck.kept.path_acceptance.max() < 1e-6
    assert stuck.to_dict()["acceptance"] == [0.0] * 4


def test_a_step_size_that_nobody_gave_is_not_blamed():
    """In warm-up the paths failed at every step size: the surrogate's gradient is NaN."""
    with pytest.warns(SamplingWarning, match="nearly all proposals were rejected") as caught:
        run = sk.sample(Gaussian(), sampler=sub_chain(), surrogate=NoGradient(), warmup=100, **FEW)
    (complaint,) = advice(run)
    assert str(caught[0].message) == complaint
    failing = attrs.evolve(run.kept, path_acceptance=np.zeros((4, 60)))
    (about_paths,) = advice(attrs.evolve(run, kept=failing))
    assert "warm-up found no steps that work" in about_paths
    assert "surrokit.check_gradient" in about_paths
    for said in (complaint, about_paths):
        assert "step size" not in said
        assert "step_size" not in said
        assert "initial=..." in said
        assert "another surrogate or sampler" in said


def test_where_no_warm_up_tuned_the_step_size_that_is_said():
    with pytest.warns(SamplingWarning):
        run = sk.sample(Gaussian(), sampler=sub_chain(), surrogate=NoGradient(), warmup=0, **FEW)
    (complaint,) = advice(run)
    assert "no warm-up tuned the step size of 0.5. Pass warmup=..., or give" in complaint


def test_where_all_chains_stand_together_that_is_said(stuck):
    """Paths neither fail nor work, and nothing was decided that a surrogate could be blamed for."""
    kept = attrs.evolve(stuck.kept, path_acceptance=np.full((4, 60), 0.1))
    run = attrs.evolve(stuck, kept=kept)
    (complaint,) = advice(run)
    assert complaint == (
        "nearly all proposals were rejected: chains moved in 0.000 of the kept iterations. Start "
        "elsewhere with initial=..., warm up for longer, or use another surrogate or sampler"
    )
    (alone,) = advice(attrs.evolve(run, surrogate=None))
    assert alone.endswith("or use another sampler")


@pytest.mark.parametrize(("n", "last"), [(5, "Note: 4."), (7, "Note: 3 more findings, 0 of them")])
def test_a_verdict_has_at_most_five_lines_with_warnings_first(n, last):
    found = [warning("a", "0"), *(note("b", str(i)) for i in range(1, n))]
    lines = str(Verdict(tuple(found))).splitlines()
    assert len(lines) == 5
    assert lines[0] == "Warning: 0."
    assert lines[-1].startswith(last)
