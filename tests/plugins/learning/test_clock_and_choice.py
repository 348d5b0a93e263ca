"""Of all that a run does, only the choice of parts may go by the clock; named parts stay."""

import time

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.cost.budget import Budget
from surrokit.errors import StopRun
from surrokit_corrections.subsampled import Subsampled
from surrokit_learning.automatic import Automatic


class Slow:
    """A log density with gradients, each call of which takes as long as a function says."""

    def __init__(self, seconds):
        self.seconds, self.calls = seconds, 0

    def wait(self):
        time.sleep(self.seconds(self.calls))
        self.calls += 1

    def value(self, q):
        self.wait()
        return 0.5 * q @ q + 0.1 * q[0] ** 4

    def gradient(self, q):
        q = q.copy()
        q[0] += 0.4 * q[0] ** 3
        return q


class Quick(Automatic):
    """Chooses parts that learn fast, whatever calls cost, and keeps them."""

    def choose(self, composer, recipe, target, costs, rng):
        chosen = super().choose(composer, recipe, target, costs, rng)
        parts = {"surrogate": "quadratic", "sampler": "hmc", "correction": "metropolis"}
        parts |= {"schedule": "once"}
        chosen = chosen.fill("it is quick", explorer=("rounds", {"evaluations": 20}), **parts)
        return attrs.evolve(chosen, fallback=None, exploration=Budget())


def sampled(seconds, **given):
    slow = Slow(seconds)
    target = sk.potential(slow.value, slow.gradient, dim=2)
    return sk.sample(target, max_calls=150, seed=7, progress=False, **given)


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.long
def test_the_time_that_calls_take_changes_no_draw_where_the_same_parts_are_chosen():
    # all quick, all slow, and quick at the start alone
    takes = [lambda _: 0.0, lambda _: 0.006, lambda n: 0.0 if n < 9 else 0.006]
    first, *others = [sampled(each, warmup=20, sampler=Quick()) for each in takes]
    assert first.draws.size
    for run in others:
        assert dict(run.parts) == dict(first.parts)
        assert run.calls == first.calls
        np.testing.assert_array_equal(run.draws, first.draws)


def rows(n=600):
    rng = np.random.default_rng(5)
    design = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])
    response = (rng.random(n) < 1.0 / (1.0 + np.exp(-design @ [0.3, 0.5, -0.2]))).astype(float)
    return sk.rows_potential("probit", design, response, prior=2.0)


SHORT = {"warmup": 40, "draws": 20, "seed": 3, "progress": False}


GIVEN = ["subsampled", ("subsampled", {"order": 2}), Subsampled(), Subsampled(order=2)]


def test_a_correction_as_an_object_chooses_the_parts_that_its_name_does(monkeypatch):
    monkeypatch.setattr("surrokit_learning.automatic.CHEAP_ROWS", 0.0)
    policy = Automatic()
    by_name, by_pair, default, second = (
        sk.sample(rows(2000), sampler=policy, correction=each, **SHORT) for each in GIVEN
    )
    parts = ("sampler", "surrogate", "explorer", "schedule")
    for one, other in ((by_name, default), (by_pair, second)):
        assert [one.parts[kind] for kind in parts] == [other.parts[kind] for kind in parts]
        np.testing.assert_array_equal(one.draws, other.draws)
    assert by_name.parts["sampler"] == "gaussian"


class Clumsy:
    """A surrogate that is right nowhere, so that the run gives it up."""

    dim, capabilities = 3, frozenset({"gradient"})

    def value(self, positions):
        return 0.5 * np.square(50.0 * positions).sum(axis=1)

    def value_and_gradient(self, positions):
        return self.value(positions), 2500.0 * positions


class WithClumsy(Automatic):
    """Chooses it whatever calls cost."""

    def choose(self, composer, recipe, target, costs, rng):
        chosen = super().choose(composer, recipe, target, costs, rng)
        clumsy = sk.batch_surrogate(lambda evaluations, rng: Clumsy())
        parts = {"surrogate": clumsy, "sampler": "hmc", "schedule": "once"}
        return chosen.fill("this is a test", explorer=("rounds", {"evaluations": 12}), **parts)


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize("correction", ["subsampled", Subsampled(), "metropolis"])
def test_a_correction_that_was_named_stays_where_the_surrogate_is_given_up(correction):
    run = sk.sample(rows(), sampler=WithClumsy(), correction=correction, **SHORT)
    assert run.parts["surrogate"] == "none"
    assert run.parts["correction"] in (correction, type(correction).__name__)
    assert "replaced the surrogate: " in str(run.verdict)


# --- what is told of the choice ---


class AtOnce:
    """Ends a run when its parts are chosen."""

    def surrokit_run_started(self, run):
        raise StopRun


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_reasons_stand_beside_parts_whose_settings_hold_colons():
    explorer = ("rounds", {"evaluations": 40})
    run = sampled(lambda _: 0.002, explorer=explorer, observers=[AtOnce()])
    assert run.parts["correction"] == "weights"
    assert run.chosen.parts["explorer"] == repr(explorer)
    first, second = run.chosen.reasons
    assert first.startswith("a gradient takes ")
    assert second == "chains would take 4000 calls, so answers are weighted"
    parts = ", ".join(f"{kind}={part}" for kind, part in run.chosen.parts.items())
    assert run.choice == f"{parts}: {first}; {second}"
    assert run.chosen.fallback == ()


def test_a_choice_is_read_again_from_a_file(tmp_path):
    path = tmp_path / "run.surrokit"
    run = sk.sample(rows(), sampler=WithClumsy(), path=path, **SHORT)
    opened = sk.open_run(path)
    assert opened.chosen == run.chosen
    assert opened.choice == run.choice
    assert opened.chosen.fallback[0] == "hmc"
