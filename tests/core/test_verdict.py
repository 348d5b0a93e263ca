"""The verdict on a run: nothing that is wrong goes untold."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.cli.show import print_run
from surrokit.errors import SamplingWarning
from surrokit.modes import Modes
from surrokit.result.records import Stray
from surrokit.result.verdict import judge
from surrokit.testing.targets import Gaussian

SIZES = {"warmup": 200, "draws": 500, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def sound():
    return sk.sample(Gaussian(), sampler="nuts", **SIZES)


def moved(run, draws):
    return judged(attrs.evolve(run, kept=attrs.evolve(run.kept, draws=draws)))


def judged(run):
    return attrs.evolve(run, verdict=judge(run))


@pytest.fixture
def apart(sound):
    """A run of which one chain is elsewhere in its first number."""
    draws = sound.draws.copy()
    draws[0, :, 0] += 10.0
    return moved(sound, draws)


def test_of_a_sound_run_nothing_is_said(sound):
    assert sound.verdict.sound
    assert sound.verdict.messages == ()
    assert str(sound.verdict) == ""
    assert str(sound.summary()).splitlines()[3:] == [
        "",
        "Modes: one, since the target is log-concave.",
    ]


def test_chains_apart_are_told_of_with_the_parameter(apart):
    (finding,) = apart.verdict.named("r_hat")
    assert finding.warns
    assert finding.message.startswith("R-hat is above 1.01 for 'q[0]' ")
    assert "'q[1]'" not in finding.message
    assert not apart.verdict.sound


def test_few_effective_draws_are_told_of(sound):
    slow = np.repeat(sound.draws[:, ::50], 50, axis=1)  # each draw stands for fifty
    (finding,) = moved(sound, slow).verdict.named("effective_draws")
    assert finding.warns
    assert "effective ones where 100 are the least to go by" in finding.message


def test_warnings_come_first_and_are_plain_data(apart):
    run = judged(attrs.evolve(apart, failures=3))
    assert [finding.warns for finding in run.verdict] == sorted(
        (finding.warns for finding in run.verdict), reverse=True
    )
    told = run.to_dict()["verdict"]
    assert told["sound"] is False
    assert told["findings"][0]["name"] == "effective_draws" or told["findings"][0]["warns"]
    assert {"name", "message", "warns"} == set(told["findings"][-1])


def test_the_summary_and_the_command_say_it(apart, capsys):
    assert "Warning: R-hat is above 1.01 for 'q[0]'" in str(apart.summary())
    print_run(apart)
    assert "Warning: R-hat is above 1.01 for 'q[0]'" in capsys.readouterr().out


def test_the_caller_is_warned():
    """Two modes so far apart that no chain goes from one to the other."""
    from surrokit.testing.targets import Mixture

    starts = np.array([[-6.0, 0.0], [6.0, 0.0]] * 2)
    with (
        pytest.warns(SamplingWarning, match="R-hat is above 1.01"),
        pytest.warns(SamplingWarning, match="the target has 2 modes"),
    ):
        sk.sample(Mixture(half_distance=6.0), sampler="nuts", initial=starts, **SIZES)


def test_energies_that_momenta_hardly_change_are_told_of(sound):
    """A random walk of the energy in one chain: its fraction of missing information is near 0."""
    energy = sound.kept.energy.copy()
    energy[2] += np.cumsum(np.random.default_rng(1).standard_normal(energy.shape[1]))
    run = judged(attrs.evolve(sound, kept=attrs.evolve(sound.kept, energy=energy)))
    (finding,) = run.verdict.named("energy")
    assert finding.warns
    assert "missing information is 0.0" in finding.message
    assert "in chain 2, where 0.3 is the least" in finding.message


def test_a_run_without_draws_warns():
    with pytest.warns(SamplingWarning, match="there are no draws: max_calls allowed not even"):
        run = sk.sample(Gaussian(), sampler="nuts", max_calls=2, seed=1, progress=False)
    assert not run.verdict.sound


def test_what_became_of_strays_is_told(sound):
    strays = (
        Stray(iteration=50, chain=2, above=312.5, begun_again=True),
        Stray(iteration=100, chain=1, above=40.0, begun_again=False),
    )
    run = judged(attrs.evolve(sound, adaptation=attrs.evolve(sound.adaptation, strays=strays)))
    (again,), (own,) = run.verdict.named("begun_again"), run.verdict.named("own_modes")
    assert again.warns
    assert "once in warm-up, the last time chain 2 after iteration 50: it was 312.5 nats" in (
        again.message
    )
    assert own.warns
    assert own.message.startswith("modes of their own hold chain 1 (40 nats above the others);")


@pytest.mark.parametrize(("beyond", "told"), [(0.005, False), (0.25, True)])
def test_draws_beyond_what_the_surrogate_has_learnt_are_told_of(sound, beyond, told):
    class Bordered(Gaussian):
        def is_beyond(self, positions):
            return np.arange(len(positions)) < beyond * len(positions)

    found = judged(attrs.evolve(sound, surrogate=Bordered())).verdict.named("border")
    assert [finding.warns for finding in found] == [False] * told
    assert all(finding.message.startswith("0.25 of the draws lie beyond") for finding in found)


@pytest.mark.parametrize(("surrogate", "missed"), [(Gaussian(), 2), (Gaussian(), 0), (None, 2)])
def test_mass_that_an_exploration_has_not_found_is_told_of(sound, surrogate, missed):
    adaptation = attrs.evolve(sound.adaptation, missed=missed)
    run = judged(attrs.evolve(sound, surrogate=surrogate, adaptation=adaptation))
    found = run.verdict.named("missed")
    assert [finding.warns for finding in found] == [True] * (missed > 0 and surrogate is not None)
    assert all("schedule=surrokit.Safety(mix=0.1)" in finding.message for finding in found)


@pytest.mark.parametrize(("mix", "more"), [(0.0, "0.1"), (0.2, "0.4"), (0.9, "0.95")])
def test_where_exact_transitions_are_mixed_in_more_of_them_are_advised(sound, mix, more):
    adaptation = attrs.evolve(sound.adaptation, missed=2, mix=mix)
    run = judged(attrs.evolve(sound, surrogate=Gaussian(), adaptation=adaptation))
    (found,) = run.verdict.named("missed")
    assert found.message.endswith(f"schedule=surrokit.Safety(mix={more})")
    assert ("mix in more exact" in found.message) == (mix > 0)


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


def test_a_limit_that_allows_for_a_single_search_is_told_of(sound):
    modes = Modes(
        positions=np.zeros((1, 2)),
        values=np.zeros(1),
        covariances=np.eye(2)[None],
        ended=np.array([1]),
        unfinished=1,
    )
    run = judged(attrs.evolve(sound, modes=modes, stopped="max_calls"))
    (finding,) = run.verdict.named("unseen_modes")
    assert finding.warns
    assert "a single search for modes came to its end, of 2; nothing says" in finding.message
    assert "raise max_calls" in finding.message
    for others in ({"ended": np.array([3])}, {"concave": True}):
        enough = attrs.evolve(run, modes=attrs.evolve(modes, **others))
        assert not judged(enough).verdict.named("unseen_modes")


def test_modes_that_are_not_believed_are_told_of(sound):
    modes = Modes(
        positions=np.zeros((1, 2)),
        values=np.array([-93.25]),
        covariances=np.eye(2)[None],
        ended=np.array([4]),
        believed=False,
    )
    run = judged(attrs.evolve(sound, modes=modes))
    (finding,) = run.verdict.named("modes_left")
    assert not finding.warns
    assert "hardly any mass is (potential -93.25 is the least)" in finding.message
    assert "chains began at their starts" in finding.message
    believed = attrs.evolve(run, modes=attrs.evolve(modes, believed=True))
    assert not judged(believed).verdict.named("modes_left")
