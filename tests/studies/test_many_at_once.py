"""``ask(n)`` gives as many positions as there are workers, and ``show`` says what is waited for."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import surrokit as sk
from surrokit.cli.main import cli

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

PARAMETERS = {"x": None, "y": (0.0, None)}
FEW = {"surrogate": "quadratic", "sampler": "sub-chain", "explorer": "rounds"}


def log_density(positions):
    x, y = np.asarray(positions).T
    return -0.5 * ((x - 1.0) ** 2 + (np.log(y) - 0.5 * x) ** 2 / 0.1)


def call(*arguments):
    done = CliRunner().invoke(cli, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done


def begun(tmp_path, **settings):
    return sk.study(tmp_path / "a", **{"parameters": PARAMETERS, "seed": 1, **FEW, **settings})


def test_as_many_are_given_as_are_asked_for_up_to_half_of_the_calls(tmp_path):
    study = begun(tmp_path, max_calls=300)
    asked = study.ask(100)
    assert asked.shape == (100, 2)
    assert len(np.unique(asked, axis=0)) == 100
    assert (asked[:, 1] > 0).all()
    assert np.array_equal(asked[: len(study.ask())], study.ask())
    assert np.array_equal(sk.study(tmp_path / "a").ask(100), asked)  # in a later process
    assert len(study.ask(1000)) == 150 + len(study.ask())


def test_the_surrogate_learns_from_all_that_is_told(tmp_path):
    study = begun(tmp_path, max_calls=300)
    asked = study.ask(60)
    study.tell(asked, log_density(asked))
    assert study.run.asked["warm_start"] is ...
    last = study.ask(60)[-20:]  # draws of a normal density that fits what was told
    assert np.abs(last[:, 0] - 1.0).max() < 6.0
    assert np.median(log_density(last)) > np.median(log_density(asked[-20:])) - 10.0
    assert study.run.asked["max_calls"] == 300 - len(asked)


@pytest.mark.parametrize("schedule", ["once", sk.make("schedule", "once")])
def test_a_safety_beside_a_schedule_is_kept(tmp_path, schedule):
    safety = sk.Safety(patience=30)
    given = {"seed": 1, "schedule": (schedule, safety), "parameters": PARAMETERS}
    study = sk.study(tmp_path / "a", **given, **FEW)
    asked = study.ask(40)
    study.tell(asked, log_density(asked))
    assert study.run.asked["schedule"] == (schedule if schedule == "once" else ..., safety)
    again = {} if schedule == "once" else {"schedule": (schedule, safety)}
    assert len(sk.study(tmp_path / "a", **again).ask()) > 0


@pytest.mark.parametrize("kind", ["gradients", "outputs"])
def test_gradients_and_outputs_are_learnt_from_too(tmp_path, kind):
    of = {"gradients": {"parameters": {"x": (0.0, None), "y": None}, "gradients": True}}
    of["outputs"] = {"dim": 2, "data": [0.5, 0.2], "noise_sd": 0.4, "prior": sk.gaussian_prior()}
    study = sk.study(tmp_path / "a", seed=1, **of[kind], **FEW)
    at = study.ask(40)
    assert len(at) == 40
    if kind == "gradients":
        study.tell(at, -0.5 * (at**2).sum(axis=1), gradients=-at)
    else:
        study.tell(at, outputs=at)
    assert study.run.asked["warm_start"] is ...


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::surrokit.errors.EvaluationWarning")
def test_answers_are_right_where_positions_are_added(tmp_path):
    study, batches = sk.study(tmp_path / "a", parameters=PARAMETERS, seed=1, max_calls=300), 0
    while not study.done:
        asked = study.ask(100)
        study.tell(asked, log_density(asked))
        batches += 1
    assert batches < 8
    x = study.run.summary(["x"])
    assert abs(x["mean"][0] - 1.5) < 0.05  # of the density of x and log y, with a Jacobian
    assert abs(x["sd"][0] - 1.0) < 0.05


def test_a_part_of_them_may_come_late(tmp_path):
    study = begun(tmp_path, max_calls=200)
    asked, wanted = study.ask(30), study.ask()
    late = asked[20:]
    study.tell(asked[:20], log_density(asked[:20]))
    now = study.ask()
    assert len(now)
    assert not np.array_equal(now, wanted)
    study.tell(late, log_density(late))
    assert np.array_equal(study.ask(), now)


def test_a_study_without_a_surrogate_has_no_use_for_more(tmp_path):
    study = sk.study(tmp_path / "a", dim=2, sampler="random-walk", warmup=5, draws=5, seed=1)
    assert len(study.ask(100)) == len(study.ask()) == 4


def test_the_command_gives_as_many_and_says_where_it_does_not(tmp_path):
    file = tmp_path / "a"
    call("study", file, "x", "y=0:", "--seed", 1)
    done = call("ask", file, "--n", 100, "--out", tmp_path / "todo.csv")
    assert len((tmp_path / "todo.csv").read_text().splitlines()) == 101
    assert "are of use now" not in done.output
    call("study", tmp_path / "b", "x", "y=0:", "--seed", 1, "--max-calls", 20)
    done = call("ask", tmp_path / "b", "--n", 100, "--out", tmp_path / "todo.csv")
    assert "100 were asked for, and 14 are of use now" in done.output


def test_show_says_what_a_study_waits_for(tmp_path):
    file = tmp_path / "a"
    call("study", file, "x", "y=0:", "--seed", 1)
    shown = call("show", file).output
    assert "the study waits for log densities at 4 positions, (x, y) = " in shown
    assert (
        "; and 1 more. Get them by surrokit ask a, and pass the results by surrokit tell" in shown
    )
    assert "ended" not in shown
    study = sk.study(file)
    study.tell(study.ask()[:3], log_density(study.ask()[:3]))
    assert "at 1 positions" in call("show", file, "--follow").output


def test_show_of_a_study_that_is_done_is_that_of_its_run(tmp_path):
    study = sk.study(tmp_path / "a", dim=2, sampler="random-walk", warmup=2, draws=4, seed=1)
    while not study.done:
        study.tell(study.ask(), -0.5 * (study.ask() ** 2).sum(axis=1))
    shown = call("show", tmp_path / "a").output
    assert "waits" not in shown
    assert "q[1]" in shown
