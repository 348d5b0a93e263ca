"""The verdict on a run: nothing that is wrong goes untold."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.cli.report import print_run
from surrokit.errors import SamplingWarning
from surrokit.result.verdict import judge
from surrokit.testing.targets.densities import Gaussian

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
    assert str(sound.summary()).count("\n") == 2


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
    from surrokit.testing.targets.densities import Mixture

    starts = np.array([[-6.0, 0.0], [6.0, 0.0]] * 2)
    with (
        pytest.warns(SamplingWarning, match="R-hat is above 1.01"),
        pytest.warns(SamplingWarning, match="the target has 2 modes"),
    ):
        sk.sample(Mixture(half_distance=6.0), sampler="nuts", initial=starts, **SIZES)
