"""The door to regressions: families by name, offsets, weights, events and priors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from autograd import elementwise_grad
from autograd import numpy as anp
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import log_softmax

import surrokit as sk
from surrokit import capabilities as can
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.registry.catalogue import Catalogue
from surrokit.testing import check_potential
from surrokit_problems.logistic import LogisticRegression

RNG = np.random.default_rng(0)
X = 0.6 * RNG.standard_normal((300, 3)) * (RNG.random((300, 3)) < 0.7)
ETA = X @ [0.5, -0.4, 0.8]
COUNTS = RNG.poisson(np.exp(ETA)).astype(float)
TIMES = RNG.exponential(np.exp(-ETA))
EVENTS = (RNG.random(300) < 0.7).astype(float)
OFFSET = 0.3 * RNG.standard_normal(300)
WEIGHTS = RNG.integers(0, 4, 300).astype(float)
POSITIONS = 0.5 * RNG.standard_normal((3, 3))

FAMILIES = {
    "gaussian": (COUNTS, {"scale": 0.5}),
    "student": (COUNTS, {"degrees": 3.0}),
    "logistic-errors": (COUNTS, {"scale": 2.0}),
    "logistic": (EVENTS, {}),
    "probit": (EVENTS, {}),
    "poisson": (COUNTS, {}),
    "negative-binomial": (COUNTS, {"size": 2.0}),
    "gamma": (TIMES, {"shape": 1.5}),
    "exponential": (TIMES, {"event": EVENTS}),
    "weibull": (TIMES, {"event": EVENTS, "shape": 1.3}),
}
EACH = pytest.mark.parametrize("name", FAMILIES)


def target(name, design=X, prior=2.0, chosen=slice(None), **more):
    response, settings = FAMILIES[name]
    event = {"event": EVENTS[chosen]} if "event" in settings else {}
    return sk.rows_potential(
        name, design, response[chosen], prior=prior, **{**settings, **event, **more}
    )


@EACH
def test_every_family_keeps_to_the_contract(name):
    """Dense designs are checked with the examples of the part."""
    thin = sparse.csr_array(X)
    results = check_potential(lambda: target(name, thin, offset=OFFSET, weights=WEIGHTS))
    assert [result for result in results if result.outcome == "failed"] == []
    assert "check_row_bounds" in [result.name.partition("[")[0] for result in results]


@EACH
def test_weights_count_rows_as_often(name):
    often = np.repeat(np.arange(300), WEIGHTS.astype(int))
    weighted = target(name, weights=WEIGHTS)
    repeated = target(name, X[often], chosen=often)
    for method in ("value", "gradient", "hessian"):
        found, expected = (getattr(one, method)(POSITIONS) for one in (weighted, repeated))
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@EACH
def test_an_offset_is_a_column_whose_coefficient_is_one(name):
    beside = target(name, np.column_stack([X, OFFSET]), prior=None)
    ours = target(name, offset=OFFSET, prior=None)
    with_one = np.column_stack([POSITIONS, np.ones(3)])
    assert_allclose(ours.value(POSITIONS), beside.value(with_one), rtol=1e-10)
    assert_allclose(ours.gradient(POSITIONS), beside.gradient(with_one)[:, :3], rtol=1e-9)


def written_out(name, e):
    """Return the terms as autograd can read them, up to a constant."""
    y, exp, log = FAMILIES[name][0], anp.exp, anp.log
    return {
        "gaussian": lambda: (y - e) ** 2 / 0.5,
        "student": lambda: 2.0 * log(1.0 + (y - e) ** 2 / 3.0),
        "logistic-errors": lambda: 2.0 * log(1.0 + exp((y - e) / 2.0)) - (y - e) / 2.0,
        "logistic": lambda: log(1.0 + exp(e)) - y * e,
        "poisson": lambda: exp(e) - y * e,
        "negative-binomial": lambda: (y + 2.0) * log(2.0 + exp(e)) - y * e,
        "gamma": lambda: 1.5 * (e + y * exp(-e)),
        "exponential": lambda: y * exp(e) - EVENTS * e,
        "weibull": lambda: y**1.3 * exp(e) - EVENTS * e,
    }[name]()


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "probit"])
def test_derivatives_are_those_of_automatic_differentiation(name):
    ours = target(name, prior=None)
    derivatives = [lambda e: written_out(name, e)]
    for _ in range(3):
        derivatives.append(elementwise_grad(derivatives[-1]))
    for q in POSITIONS:
        first, second, third = (function(X @ q) for function in derivatives[1:])
        assert_allclose(ours.gradient(q[None])[0], X.T @ first, rtol=1e-9, atol=1e-9)
        hessian = X.T @ (second[:, None] * X)
        assert_allclose(ours.hessian(q[None])[0], hessian, rtol=1e-9, atol=1e-9)
        if can.ROWS_THIRD_ORDER in ours.capabilities:
            h = 0.1 * POSITIONS
            along = h @ X.T
            expansion = ours.value(q[None]) + along @ first + along**2 @ second / 2
            expansion += along**3 @ third / 6
            found = ours.expand(q, order=3).value(q + h)
            assert_allclose(found, expansion, rtol=1e-10, atol=1e-10)
    constant = ours.value(POSITIONS) - [derivatives[0](X @ q).sum() for q in POSITIONS]
    assert_allclose(constant, constant[0], atol=1e-8)


def test_priors_are_normal_and_flat_unless_given():
    flat = target("poisson", prior=None)
    normal = sk.gaussian_prior([0.5, 0.0, -1.0], [1.0, 2.0, 0.3])
    pulled = target("poisson", prior=normal)
    value, gradient = normal.value_and_gradient(POSITIONS)
    assert_allclose(pulled.value(POSITIONS) - flat.value(POSITIONS), value, rtol=1e-8)
    assert_allclose(pulled.gradient(POSITIONS) - flat.gradient(POSITIONS), gradient, rtol=1e-8)
    v = pulled.expand(POSITIONS[0]).value(POSITIONS) - flat.expand(POSITIONS[0]).value(POSITIONS)
    assert_allclose(v, value, rtol=1e-7)
    assert can.CONVEX in pulled.capabilities
    assert can.CONVEX not in flat.capabilities


@pytest.mark.parametrize(
    "prior",
    [
        *(2.0, None, sk.gaussian_prior(0.0, [2.0, 3.0, 0.5]), sk.gaussian_prior(0.0, [np.inf] * 3)),
        sk.gaussian_prior([0.5, 0.0, -1.0], [np.inf, 2.0, 1.0]),
    ],
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_fast_logistic_regression_is_that_of_the_family(prior, form):
    fast = target("logistic", form(X), prior=prior)
    plain = target("logistic", form(X), prior=prior, weights=np.ones(300))
    assert isinstance(fast, LogisticRegression)
    assert not isinstance(plain, LogisticRegression)
    vectors = POSITIONS[::-1]
    pairs = [(t.value(POSITIONS), *t.value_and_gradient(POSITIONS)) for t in (fast, plain)]
    for found, expected in zip(*pairs, strict=True):
        assert_allclose(found, expected, rtol=1e-12)
    assert_allclose(fast.hessian(POSITIONS), plain.hessian(POSITIONS), rtol=1e-12, atol=1e-12)
    diagonal = np.einsum("nii->ni", plain.hessian(POSITIONS))
    assert_allclose(fast.hessian_diagonal(POSITIONS), diagonal)
    product = plain.hessian_product(POSITIONS, vectors)
    assert_allclose(fast.hessian_product(POSITIONS, vectors), product)
    assert_allclose(fast.value(1e4 * POSITIONS), plain.value(1e4 * POSITIONS), rtol=1e-12)
    assert (can.CONVEX in fast.capabilities) == (can.CONVEX in plain.capabilities)


@EACH
def test_regressions_and_their_expansions_travel(name):
    for ours in (target(name), target(name, sparse.csr_array(X), weights=WEIGHTS)):
        again = pickle.loads(pickle.dumps(ours))
        expansion = pickle.loads(pickle.dumps(again.expand(POSITIONS[0])))
        assert_allclose(expansion.value(POSITIONS[:1]), ours.value(POSITIONS[:1]))


CLASSES = np.arange(300) % 4


def multinomial(design=X, response=CLASSES, **more):
    return sk.rows_potential("multinomial", design, response, **{"prior": 2.0, **more})


def test_multinomial_regressions_keep_to_the_contract():
    results = check_potential(lambda: multinomial(sparse.csr_array(X), weights=WEIGHTS))
    assert [result for result in results if result.outcome == "failed"] == []


def test_multinomial_values_are_those_of_softmax():
    q = RNG.standard_normal((2, 9))
    found = multinomial(prior=None).value(q)
    for one, b in zip(found, q.reshape(2, 3, 3), strict=True):
        predictors = np.column_stack([np.zeros(300), X @ b.T])
        assert one == pytest.approx(-log_softmax(predictors, axis=1)[range(300), CLASSES].sum())


def test_with_two_classes_it_is_logistic_regression():
    two, logistic = multinomial(response=EVENTS), target("logistic")
    assert_allclose(two.value(POSITIONS), logistic.value(POSITIONS), rtol=1e-12)
    assert_allclose(two.hessian(POSITIONS), logistic.hessian(POSITIONS), rtol=1e-10)
    factor = np.tril(np.ones((3, 3)))
    rows, owners = np.arange(300), np.arange(300) % 3
    for order in (2, 3):
        bounds = logistic.row_bounds(factor, order=order)
        assert_allclose(two.row_bounds(factor, order=order), bounds, rtol=1e-12)
        ours, theirs = (one.expand(POSITIONS[0], order=order) for one in (two, logistic))
        assert_allclose(ours.value(POSITIONS), theirs.value(POSITIONS), rtol=1e-12)
        for size in (1e-3, 0.3, 30.0):
            ends = POSITIONS[0] + size * POSITIONS
            found = ours.remainders(ends, rows, owners)
            expected = theirs.remainders(ends, rows, owners)
            assert_allclose(found, expected, rtol=1e-6, atol=1e-15 + 1e-15 * size**2)


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


@pytest.mark.parametrize(
    ("family", "response", "settings", "message"),
    [
        ("poison", COUNTS, {}, "family must be one of exponential, gamma, .*, or a Family, got"),
        ("poisson", COUNTS + 0.5, {}, "response must be whole numbers of at least 0, got"),
        ("gamma", COUNTS, {}, "response must be positive, got 0 in row"),
        ("logistic", COUNTS, {}, r"response must be zeros and ones, got .* in row \d+; recode"),
        ("poisson", COUNTS, {"scale": 2.0}, "the family 'poisson' has no scale; leave that out"),
        ("multinomial", CLASSES, {"offset": OFFSET}, "'multinomial' has no offset; leave that out"),
        ("multinomial", CLASSES + 1, {}, r"must be whole numbers 0, 1, \.\.\., m, each of which"),
        ("gamma", TIMES, {"event": EVENTS}, "event goes with times, which the family 'gamma"),
        ("weibull", -TIMES, {}, "response must be times above 0, got -"),
        ("weibull", TIMES, {"event": 2 * EVENTS}, "event must be zeros and ones, got others"),
        ("poisson", COUNTS, {"weights": -WEIGHTS}, "weights must not be negative, got -3"),
        ("poisson", COUNTS, {"offset": OFFSET * np.nan}, "offset must be finite, got"),
        ("poisson", COUNTS, {"prior": "wide"}, "prior must be that of surrokit.gaussian_prior"),
        ("negative-binomial", COUNTS, {"size": -1.0}, "size must be positive and finite, got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(family, response, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.rows_potential(family, X, response, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": WEIGHTS[:-1]}, r"weights must have shape \(300,\), one number for each row"),
        ({"prior": sk.gaussian_prior(0.0, [1.0, 2.0])}, r"sd of the prior must .* shape \(3,\)"),
    ],
)
def test_shapes_are_to_agree(settings, message):
    for family in ("poisson", "logistic"):
        with pytest.raises(ShapeError, match=message):
            sk.rows_potential(family, X, EVENTS, **settings)
    with pytest.raises(ShapeError, match=message):
        sk.rows_potential("multinomial", X[:, :1], CLASSES, **settings)


@pytest.mark.parametrize("first", [X, sparse.csr_array(X), X.tolist(), 3])
def test_the_family_comes_first(first):
    message = "family must be a name or a Family, got .*\\. Give the family first, then des"
    with pytest.raises(ConfigurationError, match=message):
        sk.rows_potential(first, COUNTS, "poisson")


def test_events_and_times_are_to_agree():
    with pytest.raises(ShapeError, match=r"event must have the shape of response, \(300,\), got"):
        sk.rows_potential("weibull", X, TIMES, event=EVENTS[:-1])


def test_multinomial_expansions_and_bounds_say_what_they_need():
    ours = multinomial()
    with pytest.raises(ShapeError, match=r"centre must have shape \(9,\), got \(3,\)"):
        ours.expand(np.zeros(3))
    with pytest.raises(ShapeError, match=r"factor must have shape \(9, 9\), got \(3,\)"):
        ours.row_bounds(np.zeros(3))
    for ask in (ours.expand, ours.row_bounds):
        with pytest.raises(ConfigurationError, match="to an order of 2 or 3, got 4"):
            ask(np.eye(9), order=4)


def test_bounds_that_hold_in_balls_alone_need_one():
    with pytest.raises(ConfigurationError, match="'poisson' have no bound at every position; give"):
        target("poisson").row_bounds(np.eye(3))


def test_without_a_plugin_it_says_what_to_do(monkeypatch):
    nothing = Catalogue(entries={})
    monkeypatch.setattr("surrokit.tables.rows.default_catalogue", lambda: nothing)
    with pytest.raises(ConfigurationError, match="plugin with a potential that serves 'rows', got"):
        target("poisson")
