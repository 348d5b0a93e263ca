"""Exploration by the exact sampler's own burn-in."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Start
from surrokit_corrections.metropolis import Metropolis
from surrokit_hmc.independent import RandomWalk


class Normal:
    dim = 2
    capabilities = frozenset({"gradient", "gradient-alone"})

    def value(self, q):
        return 0.5 * np.square(q).sum(axis=1)

    def gradient(self, q):
        return q.copy()

    def value_and_gradient(self, q):
        return self.value(q), q.copy()


def explorer(sampler="hmc", **settings):
    return sk.make("explorer", "sampler", sampler=sampler, correction="metropolis", **settings)


def start_at(target, positions, warmup=60):
    return Start(
        potential=target,
        positions=positions,
        warmup=warmup,
        evaluated=target.drain,
        fit=lambda rows: None,
    )


def explored(made, warmup=60, chains=3, seed=1):
    """Drive an explorer as a run does; return its items, the rows of each, and the target."""
    target = RecordingPotential(Normal(), keep=True)
    rng = np.random.default_rng(seed)
    start = start_at(target, rng.standard_normal((chains, 2)), warmup)
    first, *items = made.explore(start, rng)
    assert first.rows is None
    assert first.step is None
    assert [item.done for item in items] == [False] * (len(items) - 1) + [True]
    return items, [item.rows for item in items], target


# --- how long ---


@pytest.mark.parametrize(
    ("settings", "iterations"),
    [({}, 15), ({"iterations": 7}, 7), ({"iterations": 60}, 60), ({"evaluations": 10**6}, 60)],
)
def test_the_length_is_a_quarter_of_the_warm_up_unless_given(settings, iterations):
    assert len(explored(explorer(**settings))[0]) == iterations


def test_without_gradients_the_length_is_half_the_warm_up():
    assert len(explored(explorer("random-walk"))[0]) == 30


@pytest.mark.parametrize("wanted", [1, 10, 40])
def test_exploration_ends_as_soon_as_there_are_enough_rows(wanted):
    _, rows, _ = explored(explorer("random-walk", evaluations=wanted))
    assert sum(map(len, rows)) >= wanted
    assert sum(map(len, rows[:-1])) < wanted


def test_whichever_comes_first_ends_it():
    assert len(explored(explorer("random-walk", evaluations=10**6, iterations=4))[0]) == 4


# --- what is learnt from ---


def test_all_that_was_paid_is_learnt_from():
    _, rows, target = explored(explorer())
    assert sum(map(len, rows)) == target.calls["gradient"]


@pytest.mark.parametrize("learn_from", ["all", "accepted", "states"])
def test_rows_are_exact(learn_from):
    _, rows, _ = explored(explorer(learn_from=learn_from))
    for found in rows:
        assert_allclose(found.values, Normal().value(found.positions))


def test_states_are_one_row_a_chain_and_iteration():
    _, rows, _ = explored(explorer(learn_from="states"))
    assert [len(found) for found in rows] == [3] * 15


def test_accepted_are_fewer_where_some_are_rejected():
    _, rows, _ = explored(explorer("random-walk", learn_from="accepted"))
    assert 0 < sum(map(len, rows)) < 3 * 30


def test_rows_at_the_start_are_discarded():
    _, rows, _ = explored(explorer(discard=12))
    assert [len(found) for found in rows[:12]] == [0] * 12
    assert len(rows[12]) > 0


# --- what is found ---


def test_findings_are_chains_covariance_and_step_size():
    findings = explored(explorer(iterations=400), warmup=400)[0][-1].findings
    assert_allclose(findings.covariance, np.eye(2), atol=0.35)
    assert 0.1 < findings.step_size < 3.0


def test_values_of_the_chains_are_exact():
    for item in explored(explorer())[0]:
        chains = item.findings.chains
        assert_allclose(chains.values, Normal().value(chains.positions))


def test_the_same_generator_gives_the_same_exploration():
    one, two = (explored(explorer())[0][-1].findings.chains for _ in range(2))
    assert_array_equal(one.positions, two.positions)


def test_the_start_pays_once_for_each_chain():
    target = RecordingPotential(Normal(), keep=True)
    next(explorer().explore(start_at(target, np.zeros((5, 2))), np.random.default_rng(1)))
    assert target.calls["gradient"] == 5
    assert target.calls["value"] == 0


def test_a_step_size_given_is_kept():
    items, _, _ = explored(explorer(("hmc", {"step_size": 0.2, "n_steps": 3})))
    assert max(item.step.n_steps.max() for item in items) <= 3


@pytest.mark.parametrize(("sampler", "needs"), [("hmc", {"gradient"}), ("random-walk", set())])
def test_needs_are_those_of_the_sampler(sampler, needs):
    assert explorer(sampler).needs == needs


def test_objects_are_taken_as_they_are():
    sampler, correction = RandomWalk(), Metropolis()
    made = sk.make("explorer", "sampler", sampler=sampler, correction=correction)
    assert made.sampler is sampler
    assert made.correction is correction


# --- what is refused ---


@pytest.mark.parametrize("name", ["iterations", "evaluations"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3"])
def test_lengths_are_positive_whole_numbers(name, value):
    with pytest.raises(ConfigurationError, match=f"{name} must be a whole number of at least 1"):
        explorer(**{name: value})


@pytest.mark.parametrize("value", [-1, 2.5, None, True])
def test_discarded_iterations_are_a_whole_number(value):
    with pytest.raises(
        ConfigurationError, match="discard must be a whole number of at least 0, got"
    ):
        explorer(discard=value)


def test_numpy_integers_are_whole_numbers():
    assert explorer(discard=np.int64(3), iterations=np.int64(9)).discard == 3


def test_an_unknown_choice_of_rows_is_refused():
    with pytest.raises(ConfigurationError, match="learn_from must be one of all, accepted, states"):
        explorer(learn_from="some")


def started(warmup, **settings):
    start = start_at(RecordingPotential(Normal(), keep=True), np.zeros((2, 2)), warmup)
    next(explorer(**settings).explore(start, np.random.default_rng(1)))


def test_more_iterations_than_the_warm_up_has_are_refused():
    message = "asks for 100 iterations, but warmup is 60 and counts them; raise warmup or lower"
    with pytest.raises(ConfigurationError, match=message):
        started(60, iterations=100)


@pytest.mark.parametrize("settings", [{"discard": 30}, {"iterations": 5, "discard": 5}])
def test_discarding_everything_is_refused(settings):
    with pytest.raises(ConfigurationError, match="nothing is left to learn from; raise warmup or"):
        started(60, **settings)


@pytest.mark.parametrize("warmup", [0, 1])
def test_a_warm_up_too_short_is_refused(warmup):
    with pytest.raises(ConfigurationError, match="raise warmup"):
        started(warmup)
