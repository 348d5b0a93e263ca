"""Networks that go on learning without keeping rows."""

import copy
import pickle
from functools import partial

import attrs
import numpy as np
import pytest
import smooth
from equations_by_hand import rows_of
from numpy.testing import assert_allclose, assert_array_equal
from smooth import DIM, potential

import surrokit as sk
from surrokit.errors import ConfigurationError, ShapeError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.testing.targets import Banana
from surrokit_networks.learner import NetworkLearner, OnlineLearner
from surrokit_networks.online import OnlineFit
from surrokit_networks.training_rows import TrainingRows

additive, rbf = (partial(sk.make, "surrogate", name) for name in ("additive", "rbf"))


evaluations = partial(smooth.evaluations, centre=1.0, spread=1.5)
FRESH = evaluations(60, seed=99).positions


def problem(dim=DIM, rate=0.0, energy=None):
    return LearningProblem(dim=dim, capabilities=frozenset(), energy=energy, deployment_rate=rate)


def learner(factory=additive, rate=0.0, seed=3, updates="greville", **settings):
    settings = {"n_nodes": 40, "learns": "potential", "updates": updates, **settings}
    return factory(**settings).learner(problem(rate=rate), np.random.default_rng(seed))


def parts(gradients):
    """A first block, and many small ones of which some have gradients."""
    later = [
        evaluations(1 + 4 * (i % 2), seed=i, gradients=gradients and i % 3 != 0)
        for i in range(1, 25)
    ]
    return [evaluations(100, gradients=gradients), *later]


def shown(learns, blocks):
    for i, block in enumerate(blocks):
        learns.observe(block)
        if i == 0:
            learns.fit()
    return learns


def refitted(learns, blocks):
    """The batch solution to all rows, weighted as they were, in the frame of an online learner."""
    online, frame = learns.online, learns.online.frame
    whole, tail = Evaluations.join(blocks, DIM), learns.refits.training.tail
    rows = TrainingRows.of(whole, tail, bound=learns.bound)
    basis = frame.basis
    left, right = rows_of(basis, frame.less(frame.equations(rows, online.training)))
    bottom = np.zeros((len(basis.nodes), left.shape[1]))
    np.fill_diagonal(bottom[:, basis.n_free :], np.sqrt(frame.ridge))
    targets = np.concatenate([right[:, 0], np.zeros(len(bottom))])
    found = np.linalg.lstsq(np.vstack([left, bottom]), targets, rcond=None)[0]
    where = frame.whitening.apply(FRESH)
    values = basis.features(where) @ found
    if frame.matrix is not None:
        values += 0.5 * np.einsum("nd,nd->n", where, where @ frame.matrix)
    return values - values.mean()


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize(
    ("factory", "settings"),
    [
        (additive, {"ridge": 1e-6}),
        (rbf, {"trend": "constant", "ridge": 1e-3, "level": "minimum"}),
        (rbf, {"trend": "linear", "ridge": 1e-3}),
        (additive, {"trend": "linear", "ridge": 0.0, "n_nodes": 10}),
        (additive, {"trend": "quadratic", "ridge": 1e-3, "train_on": "values"}),
    ],
)
def test_learning_online_is_the_batch_fit_in_the_first_frame(factory, settings, gradients):
    blocks = parts(gradients)
    learns = shown(learner(factory, tail="full", **settings), blocks)
    # The border is checked apart, and so is the level.
    found = attrs.evolve(learns.fit(), border=None).value(FRESH)
    assert_allclose(found - found.mean(), refitted(learns, blocks), atol=2e-5)
    assert np.mean(found - potential(FRESH)) == pytest.approx(0.0, abs=0.3)


@pytest.mark.parametrize("gradients", [False, True])
def test_networks_asked_for_in_between_change_nothing(gradients):
    """Rows that come by one and by many take other ways through the engine."""
    often, once = (learner(ridge=1e-5) for _ in range(2))
    blocks = parts(gradients)
    shown(once, blocks)
    for block in blocks:
        often.observe(block)
        often.fit()
    one, other = often.fit(), once.fit()
    assert_allclose(one.value(FRESH), other.value(FRESH), atol=1e-5)
    assert one.degrees == pytest.approx(other.degrees, rel=1e-4)
    assert one.gcv_error == pytest.approx(other.gcv_error, rel=1e-4)
    assert one.n_points == other.n_points == sum(map(len, blocks))


@pytest.mark.parametrize("gradients", [False, True])
def test_the_first_fit_is_that_of_a_learner_that_refits(gradients):
    online, refits = (learner(updates=updates, ridge=1e-4) for updates in ("greville", "refit"))
    for learns in (online, refits):
        learns.observe(evaluations(100, gradients=gradients))
    one, other = online.fit(), refits.fit()
    assert_allclose(one.value(FRESH), other.value(FRESH), atol=1e-6)
    assert_allclose(one.gradient(FRESH), other.gradient(FRESH), atol=1e-5)
    assert (one.quality, one.ridge) == (other.quality, other.ridge)
    assert_array_equal(online.fit().value(FRESH), one.value(FRESH))


@pytest.mark.parametrize("gradients", [False, True])
def test_a_ridge_left_to_the_data_follows_them(gradients):
    """It is that of a batch fit in the same frame, and changes only when rows have doubled."""
    learns = shown(learner(tail="full", trend="linear"), [evaluations(50)])
    first = learns.fit().ridge
    blocks = [evaluations(49, seed=1), evaluations(100, seed=2, gradients=gradients)]
    learns.observe(blocks[0])
    assert learns.fit().ridge == first
    learns.observe(blocks[1])
    fitted = learns.fit()
    assert fitted.ridge != first
    fit = OnlineFit(training=learns.online.training, frame=learns.online.frame)
    for block in (evaluations(50), *blocks):
        fit.absorb(TrainingRows.of(block, "full"))
    expected = fit.network()
    fit.choose_ridge()
    assert fitted.ridge == pytest.approx(fit.frame.ridge, rel=1e-6)
    assert_allclose(fitted.value(FRESH), expected.value(FRESH), atol=1e-3)


def test_a_quadratic_stays_as_the_first_fit_found_it_and_no_row_is_kept():
    """Later rows might take its convexity."""
    settings = {"trend": "quadratic", "train_on": "values", "ridge": 1e-3}
    learns = shown(learner(**settings), [evaluations(100)])
    before, sizes = learns.fit().network.trend.matrices, []
    for seed in (1, 2):
        learns.observe(evaluations(2000, seed=seed))
        assert_array_equal(learns.fit().network.trend.matrices, before)
        sizes.append(len(pickle.dumps(learns.state())))
    assert sizes[1] == sizes[0]
    assert len(learns.refits.join_observed()) == 0


@pytest.mark.parametrize(("factory", "settings"), [(additive, {}), (rbf, {})])
@pytest.mark.parametrize("fits", [0, 1])
def test_restored_learners_go_on_bit_for_bit(factory, settings, fits):
    first = learner(factory, **settings)
    first.observe(evaluations(80, gradients=True))
    for _ in range(fits):
        first.fit()
    first.observe(evaluations(15, seed=2))
    second = learner(factory, seed=44, **settings).restore(copy.deepcopy(first.state()))
    for learns in (first, second):
        learns.fit()
        learns.observe(evaluations(20, seed=3, gradients=True))
    one, other = first.fit(), second.fit()
    assert_array_equal(one.value(FRESH), other.value(FRESH))
    assert_array_equal(one.gradient(FRESH), other.gradient(FRESH))
    assert one.quality == other.quality
    assert first.online is not None
    assert second.online is not None


def test_rows_are_judged_before_they_are_learnt_from_and_few_say_nothing():
    learns = learner(trend="constant", ridge=1e-3, tail="full")
    learns.observe(evaluations(60, gradients=True, spread=0.7))
    before = learns.fit()
    few, more = (evaluations(n, seed=n, gradients=True, spread=0.7) for n in (9, 21))
    learns.observe(few)
    assert learns.fit().quality == before.quality
    learns = shown(
        learner(trend="constant", ridge=1e-3, tail="full"), [evaluations(60, spread=0.7)]
    )
    before = learns.fit()
    learns.observe(more)
    after, factor = learns.fit(), learns.online.frame.whitening.factor
    errors = before.value(more.positions) - more.values
    exact = more.gradients @ factor
    slopes = before.gradient(more.positions) @ factor - exact
    assert after.quality.n_points == 21
    assert after.quality.variance == pytest.approx(np.var(errors), rel=1e-6)
    error = np.linalg.norm(slopes) / np.linalg.norm(exact)
    assert after.quality.gradient_error == pytest.approx(error, rel=1e-6)
    # Once learnt from, the rows would look better.
    assert np.var(after.value(more.positions) - more.values) < after.quality.variance


def test_the_quality_is_the_error_at_rows_not_yet_seen():
    learns = shown(learner(), [evaluations(100)])
    for i in range(40):
        learns.observe(evaluations(5, seed=200 + i))
        fitted = learns.fit()
    assert fitted.quality.n_points < 200  # far rows are not judged
    learns.observe(evaluations(250, seed=300))
    assert learns.fit().quality.n_points == 200
    away = evaluations(2000, seed=7)
    away = away.take(learns.bound.trust(away.values) == 1.0)
    exact = np.var(fitted.value(away.positions) - away.values)
    assert 0.3 * exact < fitted.quality.variance < 5.0 * exact


def test_far_rows_do_no_harm_and_weigh_by_the_least_value_known_on_arrival():
    learns = shown(learner(), [evaluations(100)])
    clean, least = np.var(learns.fit().value(FRESH) - potential(FRESH)), learns.bound.least
    far = evaluations(20, seed=3, spread=1e4)
    failed = attrs.evolve(far, values=np.full(20, np.inf))
    for block in (far, failed, Evaluations.empty(DIM)):
        learns.observe(block)
    assert np.var(learns.fit().value(FRESH) - potential(FRESH)) < 2.0 * clean
    learns.observe(Evaluations(positions=np.ones((2, DIM)), values=np.array([-100.0, np.inf])))
    assert learns.bound.least == -100.0 < least
    assert learns.weigh(evaluations(5, seed=1)).trust.max() < 0.1


@pytest.mark.parametrize(("gradients", "few", "more"), [(False, 65, 35), (True, 15, 10)])
def test_few_points_are_refitted_and_more_learnt_online(gradients, few, more):
    learns = learner(rate=0.5, updates="auto")
    learns.observe(evaluations(few, gradients=gradients))
    learns.fit()
    assert learns.online is None
    assert len(learns.refits.join_observed()) == few
    learns.observe(evaluations(more, seed=1, gradients=gradients))
    learns.fit()
    assert learns.online is not None


def test_a_refit_waits_until_there_are_a_fifth_more_rows():
    learns = learner(rate=0.5, updates="auto")
    learns.observe(evaluations(20))
    first = learns.fit()
    learns.observe(evaluations(3, seed=1))
    assert learns.fit() is first
    again = learner(rate=0.5, updates="auto").restore(learns.state()).fit()
    assert_array_equal(again.value(FRESH), first.value(FRESH))
    learns.observe(evaluations(1, seed=2))
    assert learns.fit().n_points == 24


def test_outputs_and_one_deployment_are_refitted():
    rng, forward = np.random.default_rng(0), problem(2, 0.5, Banana().energy)
    assert isinstance(additive().learner(forward, rng), NetworkLearner)
    assert isinstance(learner(updates="auto"), NetworkLearner)
    assert isinstance(learner(rate=0.1, updates="auto"), OnlineLearner)
    with pytest.raises(ConfigurationError, match="use learns='potential', or updates='refit'"):
        additive(updates="greville").learner(forward, rng)


def test_what_is_refused_changes_nothing_and_what_cannot_be_solved_is_reported():
    learns = shown(learner(ridge=1e-3), [evaluations(60)])
    before = learns.fit().value(FRESH)
    with pytest.raises(ShapeError, match=r"must have shape \(n, 3\), got \(1, 2\)"):
        learns.observe(Evaluations(positions=np.zeros((1, 2)), values=np.zeros(1)))
    with pytest.raises(ConfigurationError, match="got NaN in row 0 of 1"):
        learns.observe(Evaluations(positions=np.zeros((1, DIM)), values=np.array([np.nan])))
    assert_array_equal(learns.fit().value(FRESH), before)
    rows = learns.weigh(evaluations(60, seed=1))
    learns.online.absorb(attrs.evolve(rows, values=rows.values * np.nan))
    with pytest.raises(SurrogateFitError, match=r"not finite\); use updates='refit'"):
        learns.fit()
