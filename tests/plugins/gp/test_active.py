"""Exploration by values alone, where a process is least sure."""

import math
import warnings

import numpy as np
import pytest

import surrokit as sk
from surrokit.capabilities import INITIAL
from surrokit.errors import ConfigurationError, SamplingWarning
from surrokit.interfaces import Evaluations, Start
from surrokit.surrogate.whitening import Whitening
from surrokit_gp.active import Active, _Elsewhere, _Search, choose
from surrokit_gp.bend import Bend
from surrokit_gp.coordinates import about_lowest, flat_from, refocus
from surrokit_gp.quadratic import QuadraticProcess
from surrokit_gp.rows import TrainingRows

BENDS = np.array([0.5, -0.3, 0.2])
PARTS = {"sampler": "sub-chain", "surrogate": "quadratic-gp", "explorer": "active"}


class Target:
    """A target that counts, and that is told where its mass may lie."""

    def __init__(self, value, low, high):
        self.value_of, self.low, self.high = value, np.asarray(low), np.asarray(high)
        self.dim, self.calls, self.capabilities = len(self.low), 0, frozenset({INITIAL})

    def value(self, positions):
        self.calls += len(positions)
        return self.value_of(positions)

    def initial(self, rng, n):
        return rng.uniform(self.low, self.high, (n, self.dim))


def correlated(q):
    return 0.5 * (np.square(q[:, 0]) + np.square((q[:, 1] - 0.95 * q[:, 0]) / 0.1))


def both(q):
    rest = (q[:, 1] - 0.95 * q[:, 0]) / 0.01
    return correlated(q), np.column_stack([q[:, 0] - 0.95 * rest, rest])


def banana(q):
    away = (q[:, 1:] - BENDS * (np.square(q[:, :1]) - 1.0)) / 0.5
    return 0.5 * np.square(q[:, 0]) + 0.5 * np.square(away).sum(axis=1)


def explore(target, surrogate=None, warmup=1000, calls=None, **settings):
    """Return all that an exploration yields."""
    rng = np.random.default_rng(1)
    parts = {"tuned": sk.make("sampler", "hmc"), "correction": sk.make("correction", "metropolis")}
    start = Start(
        potential=target,
        positions=target.initial(rng, 4),
        warmup=warmup,
        evaluated=lambda: Evaluations(positions=np.empty((0, target.dim)), values=np.empty(0)),
        fit=lambda rows, modes=None: surrogate,
        calls=calls,
    )
    return list(Active(**parts, **settings).explore(start, rng))


def test_points_are_chosen_that_tell_most_of_the_mass():
    """Not the one of largest variance, far from all others; and no twin of one chosen before."""
    rng = np.random.default_rng(1)
    z = rng.standard_normal((20, 2))
    rows = TrainingRows.of(
        Evaluations(positions=z, values=0.5 * np.square(z).sum(axis=1) + np.sin(z[:, 0])), "full"
    )
    process = QuadraticProcess.fit(rows, Whitening.identity(2)).process
    groups = [[4.0, 0.0], [0.0, -4.0]]
    near = np.concatenate([at + 0.1 * rng.standard_normal((30, 2)) for at in groups])
    among = np.concatenate([near, [[-8.0, 8.0]]])
    assert np.argmax(process.variance(among)) == 60
    chosen = choose(process, among, np.zeros(61), 2)
    assert chosen[0] < 60
    assert chosen[0] // 30 != chosen[1] // 30
    # of two like groups the denser one
    apart = np.concatenate([near[:30], 1.5 * near[30:]])
    assert choose(process, apart, np.full(60, 2.0), 1) < 30


@pytest.mark.long
def test_a_correlated_density_is_found_with_few_values_and_the_sampler_tuned_on_the_surrogate():
    target = Target(correlated, [-1.0, -9.0], [9.0, 3.0])
    *before, last = explore(target, sk.potential(value_and_gradient=both, dim=2, batched=True))
    assert target.calls <= 80
    assert [each.done for each in before] == [False] * len(before)
    found = last.findings
    truth = np.array([[1.0, 0.95], [0.95, 0.95**2 + 0.01]])
    np.testing.assert_allclose(found.covariance, truth, rtol=0.4)
    assert found.acceptance >= 0.9
    assert (found.chains.values < flat_from(2)).all()
    np.testing.assert_array_equal(found.chains.values, correlated(found.chains.positions))
    assert found.tuning.step_size > 0.0
    assert before[-1].findings.tuning is None


@pytest.mark.parametrize(
    ("settings", "paid"),
    [
        pytest.param({"evaluations": 33}, 33, marks=pytest.mark.long),
        ({"evaluations": 33, "calls": 20}, 33),
        pytest.param({"calls": 40}, 40, marks=pytest.mark.long),
        ({"calls": 0}, 6),  # starts, the middle of the box and one more
        ({"warmup": 2}, None),
    ],
)
def test_it_ends_with_its_evaluations_its_budget_and_the_warm_up(settings, paid):
    target = Target(banana, [-4.0] * 4, [4.0] * 4)
    found = explore(target, **settings)
    assert found[-1].done
    assert len(found) == 3 if paid is None else target.calls == paid


@pytest.mark.parametrize("setting", [{"evaluations": 0}, {"acceptance": 1.5}])
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(ConfigurationError, match=next(iter(setting))):
        explore(Target(correlated, [-4, -4], [4, 4]), **setting)


def test_failures_are_avoided():
    values = []

    def half(q):
        values.extend(np.where(q[:, 0] > 0.5, np.nan, 0.5 * np.square(q).sum(axis=1)))
        return np.array(values[-len(q) :])

    found = explore(Target(half, [-4.0, -4.0], [4.0, 4.0]), evaluations=80)[-1].findings
    failed = np.isnan(values)
    assert 1 <= failed.sum() < 40
    # later points are sought less where evaluations fail
    assert failed[-20:].mean() < 0.5
    assert np.isfinite(found.chains.values).all()


def test_a_target_that_always_fails_ends():
    target = Target(lambda q: np.full(len(q), np.nan), [-1.0, -1.0], [1.0, 1.0])
    found = explore(target, evaluations=40)[-1].findings
    assert (target.calls, found.mode) == (40, None)
    assert not np.isfinite(found.chains.values).any()


@pytest.mark.long
def test_it_goes_to_a_mass_outside_of_where_it_was_told_to_look():
    def away(q):
        return 0.5 * np.square((q - [6.0, -4.0]) / [0.5, 1.0]).sum(axis=1)

    found = explore(Target(away, [-2.0, -2.0], [2.0, 2.0]), evaluations=120)[-1].findings
    # within two standard deviations
    assert np.abs((found.mode - [6.0, -4.0]) / [0.5, 1.0]).max() < 2.0


@pytest.mark.long
def test_points_are_looked_for_within_reach_of_where_mass_is_expected_or_was_found(monkeypatch):
    """Far values of a steep density would teach next to nothing."""
    places, learnt, find_modes = [], [], _Elsewhere.find_modes

    def steep(q):
        places.extend(q)
        return 50.0 * banana(q)

    def find(others):
        learnt.append(len(places))  # values at several modes come on top
        find_modes(others)

    monkeypatch.setattr(_Elsewhere, "find_modes", find)
    explore(Target(steep, [-2.0] * 4, [2.0] * 4), evaluations=60)
    assert learnt == [60]
    assert len(places) <= 62
    # found masses may extend the box, by a quarter of it on each side at a time
    assert np.abs(places).max() < 5.0


def test_values_that_are_far_too_high_bring_the_next_ones_nearer_to_the_best(rng):
    """By as much as a quadratic about it says, so that thin masses are found in wide boxes."""
    positions, top = rng.standard_normal((20, 2)), flat_from(2)
    values = np.linspace(0.0, 30.0, 20)
    for height, part in ((1.5 * top, None), (4.0 * top, 0.5), (1e6, 0.3)):
        search = _Search(Target(correlated, [-1.0] * 2, [1.0] * 2), positions, values)
        search.whitening = Whitening.identity(2)
        search._follow(positions, 1.0, 6.0, np.array([0.0, height, 1e9]))
        expected = about_lowest(positions, values)
        if part is not None:
            expected = Whitening(mean=positions[0], factor=part * np.eye(2))
        assert np.allclose(search.whitening.mean, expected.mean)
        assert np.allclose(search.whitening.factor, expected.factor)


def test_a_bend_gives_way_where_a_quadratic_predicts_all_values(rng):
    """Far from the mass one may be likelier by chance."""
    positions = 3.0 * rng.standard_normal((30, 2))
    search = _Search(Target(correlated, [-1.0] * 2, [1.0] * 2), positions, correlated(positions))
    bend = Bend(centre=np.zeros(2), direction=np.array([1.0, 0.0]), shift=np.array([0.0, 0.5]))
    for value_of, is_straight in ((correlated, True), (lambda q: correlated(bend.apply(q)), False)):
        search.bend, search.values = bend, value_of(positions)
        search.whitening = Whitening.identity(2)
        search._follow_quadratic()
        assert search.bend.changes_nothing == is_straight
        at = search.whitening.apply(search.bend.apply(positions))
        assert np.allclose(0.5 * np.square(at).sum(axis=1), search.values)


@pytest.mark.long
def test_tails_heavier_than_a_normal_density_move_the_wall(monkeypatch):
    reaches, real = [], QuadraticProcess.fit
    monkeypatch.setattr(
        QuadraticProcess,
        "fit",
        lambda *given, reach, **more: reaches.append(reach) or real(*given, reach=reach, **more),
    )

    def heavy(q):
        return 2.5 * np.log1p(np.square(q).sum(axis=1) / 2.0)

    explore(Target(heavy, [-4.0, -4.0], [4.0, 4.0]), evaluations=80, acceptance=0.9999)
    assert reaches[0] == 1.0 < reaches[-1] <= 4.0


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")  # of 100 draws
@pytest.mark.long
def test_chains_pay_about_one_value_for_a_draw():
    target = sk.potential(banana, dim=4, batched=True)
    run = sk.sample(target, draws=100, seed=2, **PARTS)
    # 200 values and a few of warm-up before 400 draws
    assert run.total_calls <= 700
    assert np.mean(run.acceptance) > 0.9


def test_weighted_answers_from_values_say_what_they_cannot_see():
    target = sk.potential(correlated, dim=2, batched=True)
    few = ("weights", {"chains": 16, "warmup": 100, "effective": 1000})
    with pytest.warns(SamplingWarning, match="learnt from values alone"):
        run = sk.sample(target, max_calls=120, correction=few, seed=1, **PARTS)
    assert not run.exact
    assert run.total_calls <= 120
    summary = run.summary()
    means, errors = np.asarray(summary["mean"]), np.asarray(summary["mcse"])
    # a normal density, which the process expects; both coordinates have mean 0
    assert (np.abs(means) < 5.0 * errors + 0.01).all()


def test_values_whose_weights_are_rejected_still_have_draws_a_density_and_an_evidence():
    """They say first that nothing is verified, and their errors are infinite."""

    def funnel(q):
        return 0.125 * q[0] ** 2 + 0.5 * math.exp(-q[0]) * float(q[1:] @ q[1:]) + 1.5 * q[0]

    with pytest.warns(SamplingWarning, match="not verified"):
        run = sk.sample(sk.potential(funnel, dim=4), max_calls=60, seed=2, progress=False)
    assert not run.accepted
    assert not run.exact
    assert run.total_calls <= 60
    assert run.draws.size
    first = run.verdict.messages[0]
    assert first.startswith("not verified")
    assert run.weights.reason in first
    assert "Raise max_calls by" in first
    assert "not verified" in str(run.summary())
    assert np.isfinite(run.density.logpdf(np.zeros(4)))
    for found in (run.log_evidence(), run.expectation(lambda q: q[0])):
        assert np.isfinite(found.value)
        assert np.isinf(found.error)
        assert found.effective == 0.0


@pytest.mark.long
def test_a_normal_density_has_weighted_answers_from_seventy_values():
    sds = np.arange(1.0, 6.0)

    names = [f"x{i}" for i in range(5)]
    target = sk.potential(
        lambda q: 0.5 * float(np.sum((q / sds) ** 2)),
        parameters=dict.fromkeys(names),
        plausible=dict.fromkeys(names, (-10.0, 10.0)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        run = sk.sample(target, max_calls=70, seed=3, progress=False)
    assert run.accepted
    assert run.total_calls <= 70
    truth = 2.5 * math.log(2.0 * math.pi) + np.log(sds).sum()
    assert abs(float(run.log_evidence().value) - truth) < 0.05
    assert np.allclose(run.answer.sd().value, sds, rtol=0.1)


def test_coordinates_turn_along_clear_correlations_alone():
    draws = np.random.default_rng(3).standard_normal((100, 3))
    straight = refocus(Whitening.identity(3), draws).factor
    assert np.count_nonzero(straight) == 3
    draws[:, 1] += 2.0 * draws[:, 0]
    turned = refocus(Whitening.identity(3), draws).factor
    assert abs(turned[1, 0]) > 1.0
    assert np.allclose(turned[2, :2], 0.0)
