"""Regressions of classes, in order and not: values by hand, bounds, draws, and refusals."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import expit, log_softmax

import surrokit as sk
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.testing import check_potential

RNG = np.random.default_rng(6)
X = RNG.standard_normal((200, 2))
OFFSET = 0.3 * RNG.standard_normal(200)
GRADES = np.digitize(X @ [1.0, -0.5] + OFFSET + RNG.logistic(size=200), [-1.0, 0.3, 1.5])
WEIGHTS = RNG.integers(0, 4, 200).astype(float)
POSITIONS = np.array([[0.8, -0.3, -1.1, 0.2, 1.4], [0.1, 0.2, -3.0, -2.9, 8.0]])
UNORDERED = np.array([[0.8, -0.3, -1.1, 1.4, 0.2]])


def target(design=X, response=GRADES, **more):
    return sk.rows_potential("ordinal", design, response, **more)


def by_hand(q, weights=1.0, offset=0.0):
    """Return U at one position, of differences of distribution functions."""
    ends = np.concatenate([[-np.inf], q[2:], [np.inf]])
    predictors = X @ q[:2] + offset
    chances = expit(ends[GRADES + 1] - predictors) - expit(ends[GRADES] - predictors)
    return -(weights * np.log(chances)).sum()


@pytest.mark.parametrize(
    ("family", "form", "more"),
    [
        ("ordinal", sparse.csr_array, {"offset": OFFSET, "prior": 2.0}),
        ("multinomial", sparse.csr_array, {"prior": 2.0}),
    ],
)
def test_they_keep_to_the_contract(family, form, more):
    results = check_potential(
        lambda: sk.rows_potential(family, form(X), GRADES, weights=WEIGHTS, **more)
    )
    assert len(results) > 12
    assert [result for result in results if result.outcome == "failed"] == []


def test_values_are_those_of_differences_of_the_distribution_function():
    ours = target(weights=WEIGHTS, offset=OFFSET, prior=2.0)
    constant = POSITIONS.shape[1] * np.log(2.0 * np.sqrt(2.0 * np.pi))
    expected = [by_hand(q, WEIGHTS, OFFSET) + (q @ q) / 8.0 + constant for q in POSITIONS]
    assert_allclose(ours.value(POSITIONS), expected, rtol=1e-12)


def test_the_most_likely_position_is_that_of_statsmodels():
    """The figures are those of statsmodels 0.15.0, OrderedModel with distr="logit"."""
    found = np.array([[0.89606877, -0.51161207, -0.87625062, 0.32855728, 1.64181960]])
    assert_allclose(target().value(found), 247.26763089)
    assert_allclose(target().gradient(found), 0.0, atol=1e-5)
    spread = np.sqrt(np.diag(np.linalg.inv(target().hessian(found)[0])))
    assert_allclose(spread[:2], [0.14125774, 0.1374321], rtol=1e-6)


def test_cutpoints_out_of_order_have_no_chance_and_no_slope_of_their_own():
    ours = target(prior=2.0)
    assert ours.value(UNORDERED).tolist() == [np.inf]
    value, gradient = ours.value_and_gradient(UNORDERED)
    assert value.tolist() == [np.inf]
    assert np.isfinite(gradient).all()
    assert np.isfinite(ours.hessian(UNORDERED)).all()
    equal = np.array([[0.8, -0.3, -1.1, 0.2, 0.2]])
    assert ours.value(equal).tolist() == [np.inf]


def test_with_two_categories_it_is_logistic_regression():
    events = (GRADES > 1).astype(float)
    ours = target(response=events)
    theirs = sk.rows_potential("logistic", np.column_stack([X, np.ones(200)]), events)
    q = POSITIONS[:, :3]
    assert_allclose(ours.value(q), theirs.value(q * [1.0, 1.0, -1.0]), rtol=1e-12)


@pytest.mark.parametrize("order", [2, 3])
def test_expansions_leave_what_cutpoints_cost_as_it_is(order):
    ours = target(prior=2.0)
    expansion = pickle.loads(pickle.dumps(ours.expand(POSITIONS[0], order=order)))
    assert_allclose(expansion.value(POSITIONS[:1]), ours.value(POSITIONS[:1]))
    assert expansion.value(UNORDERED).tolist() == [np.inf]
    assert (expansion.third is None) == (order == 2)


def test_starts_are_in_order_and_of_the_scale_of_the_columns():
    starts = target(X * [1.0, 1e6]).initial(np.random.default_rng(1), 50)
    assert (np.diff(starts[:, 2:], axis=1) > 0.0).all()
    assert np.abs(starts[:, 1]).max() < 1e-6
    assert np.isfinite(target(X * [1.0, 1e6]).value(starts)).all()


# --- without an order ---


def multinomial(design=X, response=GRADES, **more):
    return sk.rows_potential("multinomial", design, response, **{"prior": 2.0, **more})


def test_multinomial_values_are_those_of_softmax():
    q = RNG.standard_normal((2, 6))
    found = multinomial(prior=None).value(q)
    for one, b in zip(found, q.reshape(2, 3, 2), strict=True):
        predictors = np.column_stack([np.zeros(200), X @ b.T])
        assert one == pytest.approx(-log_softmax(predictors, axis=1)[range(200), GRADES].sum())


PAIRS = 0.5 * np.random.default_rng(1).standard_normal((3, 2))


def test_with_two_classes_multinomial_is_logistic_regression():
    events = (GRADES > 1).astype(float)
    two = multinomial(response=events)
    logistic = sk.rows_potential("logistic", X, events, prior=2.0)
    assert_allclose(two.value(PAIRS), logistic.value(PAIRS), rtol=1e-12)
    assert_allclose(two.hessian(PAIRS), logistic.hessian(PAIRS), rtol=1e-10)
    products = (one.hessian_product(PAIRS, PAIRS[::-1]) for one in (two, logistic))
    assert_allclose(*products, rtol=1e-10)
    factor = np.tril(np.ones((2, 2)))
    rows, owners = np.arange(200), np.arange(200) % 3
    for order in (2, 3):
        bounds = logistic.row_bounds(factor, order=order)
        assert_allclose(two.row_bounds(factor, order=order), bounds, rtol=1e-12)
        ours, theirs = (one.expand(PAIRS[0], order=order) for one in (two, logistic))
        assert_allclose(ours.value(PAIRS), theirs.value(PAIRS), rtol=1e-12)
        for size in (1e-3, 0.3, 30.0):
            ends = PAIRS[0] + size * PAIRS
            found = ours.remainders(ends, rows, owners)
            expected = theirs.remainders(ends, rows, owners)
            assert_allclose(found, expected, rtol=1e-6, atol=1e-14 + 1e-15 * size**2)


@pytest.mark.parametrize("power", [3, 4])
def test_multinomial_bounds_hold_and_are_attained(power):
    """Third and fourth derivatives along directions, against ranges of predictors' changes."""
    rng = np.random.default_rng(1)
    largest = 0.0
    constant = {3: 1 / (6 * np.sqrt(3)), 4: 1 / 8}[power]
    for _ in range(3000):
        chances = rng.dirichlet(np.full(4, rng.choice([0.1, 0.5, 3.0])))
        v = np.append(rng.standard_normal(3), 0.0) * (rng.random(4) < 0.7)
        centred = v - chances @ v
        derivative = chances @ centred**power
        derivative -= 3.0 * (chances @ centred**2) ** 2 if power == 4 else 0.0
        limit = constant * np.ptp(v) ** power
        assert abs(derivative) <= limit * (1 + 1e-9)
        largest = max(largest, abs(derivative) / max(limit, 1e-300))
    assert largest > 0.98


# --- what is refused ---


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"response": np.zeros(200)}, r"at least two, got \[0.0\]; number the classes"),
        ({"response": GRADES + 1}, r"must be whole numbers 0, 1, \.\.\., m that all occur"),
        ({"response": GRADES * 2}, "number the classes from 0, without those that never occur"),
        ({"weights": (GRADES < 3) * 1.0}, "response 3 of .* has rows of weight 0 alone"),
        ({"weights": (GRADES != 1) * 1.0}, r"got \[0.0, 2.0, 3.0\]"),
        ({"scale": 2.0}, "the family 'ordinal' has no scale; leave that out"),
        ({"event": GRADES}, "the family 'ordinal' has no event; leave that out"),
        ({"design": np.column_stack([X, np.ones(200)])}, "column 2 of the design is 1 in every"),
        ({"design": sparse.csr_array(np.ones((200, 1)))}, "column 0 of the design is 1 in every"),
        ({"prior": "wide"}, "prior must be that of surrokit.gaussian_prior"),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(ConfigurationError, match=message):
        target(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"offset": OFFSET}, "'multinomial' has no offset; leave that out"),
        ({"response": GRADES + 1}, r"must be whole numbers 0, 1, \.\.\., m that all occur"),
    ],
)
def test_what_makes_no_sense_without_an_order_is_refused(given, message):
    with pytest.raises(ConfigurationError, match=message):
        multinomial(**given)


def test_shapes_are_to_agree():
    with pytest.raises(ShapeError, match=r"offset must have shape \(200,\), one number for each"):
        target(offset=OFFSET[:3])
    with pytest.raises(ShapeError, match=r"sd of a prior must .* shape \(5,\)"):
        target(prior=sk.gaussian_prior(0.0, [1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"centre must have shape \(6,\), got \(3,\)"):
        multinomial().expand(np.zeros(3))
    with pytest.raises(ShapeError, match=r"factor must have shape \(6, 6\), got \(3,\)"):
        multinomial().row_bounds(np.zeros(3))
    for ask in (multinomial().expand, multinomial().row_bounds):
        with pytest.raises(ConfigurationError, match="to an order of 2 or 3, got 4"):
            ask(np.eye(6), order=4)
