"""The correction that looks at a few rows: exact, cheap, and honest about both."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import CapabilityError, ConfigurationError, NumericalError, TargetError
from surrokit.interfaces import ChainState, Proposal
from surrokit.testing.wrappers import Wrapped
from surrokit_corrections.poisson import BoundedRows, PoissonEstimator
from surrokit_corrections.subsampled import Subsampled
from surrokit_problems.families import family
from surrokit_problems.rows import GeneralizedLinearModel

SIGMAS = 5.0
"""Of every comparison of a mean: a false alarm in 1.7 million."""


def regression(n=400, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    design = rng.standard_normal((n, dim)) * np.array([0.3, 1.0, 2.0])[:dim]
    design[:, 0] = 1.0
    response = (rng.random(n) < 1 / (1 + np.exp(-design @ np.full(dim, 0.8)))).astype(float)
    return design, response


DESIGN, RESPONSE = regression()
SHORT = 0.4 * DESIGN
COUNTS = np.random.default_rng(11).poisson(np.exp(SHORT @ np.full(3, 0.5))).astype(float)
CLASSES = np.arange(len(DESIGN)) % 4
MODELS = {
    "logistic": lambda: sk.make("potential", "logistic", design=DESIGN, response=RESPONSE),
    "sparse": lambda: sk.make(
        "potential", "logistic", design=sparse.csr_array(DESIGN), response=RESPONSE
    ),
    "probit": lambda: GeneralizedLinearModel(DESIGN, RESPONSE, family("probit")),
    "student": lambda: GeneralizedLinearModel(
        DESIGN, RESPONSE, family("student", degrees=3.0, scale=0.5)
    ),
    "weighted": lambda: sk.rows_potential(
        "logistic", DESIGN, RESPONSE, prior=10.0, offset=0.3 * COUNTS, weights=1.0 + COUNTS
    ),
    "multinomial": lambda: sk.rows_potential("multinomial", DESIGN[:, :1], CLASSES, prior=3.0),
    "poisson": lambda: sk.rows_potential("poisson", SHORT, COUNTS, prior=2.0),
}
ORDERS = pytest.mark.parametrize("order", [2, 3])


def prepared(model, order=None):
    return Subsampled(order=order).bind(model()).prepare(np.zeros(3))


def counted(order):
    """Return a correction of logistic rows, and a function that counts rows touched by a call."""
    target = RecordingPotential(MODELS["logistic"](), keep=False)

    def rows_of(call):
        before = target.calls["rows"]
        found = call()
        return target.calls["rows"] - before, found

    return prepared(lambda: target, order), rows_of


def draws(correction, n, seed):
    """Return whitened draws of the Laplace approximation, and their positions."""
    thinning = correction.estimator
    z = np.random.default_rng(seed).standard_normal((n, 3))
    return z, thinning.expansion.centre + np.linalg.solve(thinning.whitening.T, z.T).T


def move(correction, scale=1.0):
    """Return the ends of a move between two draws of the Laplace approximation."""
    centre = correction.estimator.expansion.centre
    return centre + scale * (draws(correction, 2, 3)[1] - centre)


def repeated(correction, start, end, c, n, seed=0):
    """Decide on one move n times."""
    state = ChainState(positions=np.tile(start, (n, 1)), values=np.zeros(n), cache={})
    proposal = Proposal(positions=np.tile(end, (n, 1)), log_correction=np.full(n, c))
    return correction.decide(state, proposal, np.random.default_rng(seed))


# Terms of these models reach the correction in different ways; of all families test_by_rows shows
# that exact draws stay exact.
@pytest.mark.parametrize("model", [name for name in MODELS if name != "probit"])
@pytest.mark.parametrize(("scale", "order"), [(0.3, 2), (1.0, 2), (1.0, None)])
def test_estimates_are_unbiased_at_proposals_and_have_their_law_at_chains(model, scale, order):
    """Of densities; weighted by themselves at proposals, they are as at chains."""
    correction, n, rng = prepared(MODELS[model], order=order), 20_000, np.random.default_rng(0)
    at = move(correction, scale)[:1]
    exact, places = correction.potential.value(at), np.repeat(at, n, axis=0)
    there = np.exp(exact - correction.estimator.values(places, rng))
    here = np.exp(exact - correction.estimator.values(places, rng, given=True))
    for found, weights, expected in ((there, 1.0, 1.0), (here, 1.0 / here, 1.0)):
        mean, error = (found * weights).mean(), (found * weights).std() / np.sqrt(n)
        assert abs(mean - expected) <= SIGMAS * error + 1e-12
    error = np.hypot(here.std(), np.square(there).std()) / np.sqrt(n)
    assert abs(here.mean() - np.square(there).mean()) <= SIGMAS * error + 1e-12
    assert np.var(np.log(there)) < 0.5


def test_a_move_is_accepted_as_estimates_say_and_takes_its_own_along():
    correction = prepared(MODELS["logistic"])
    start, end = move(correction)
    n, known = 20_000, {"positions": np.tile(start, (20_000, 1)), "cache": {}}
    state = ChainState(values=np.zeros(n), estimates=np.full(n, 7.0), **known)
    proposal = Proposal(
        positions=np.tile(end, (n, 1)),
        estimates=np.full(n, 9.0),
        log_correction=np.full(n, 1.5),
    )
    after, info = correction.decide(state, proposal, np.random.default_rng(0))
    expected = np.exp(-0.5)
    assert_allclose(info.acceptance, expected)
    assert abs(info.accepted.mean() - expected) < SIGMAS * np.sqrt(expected / n)
    assert_array_equal(after.estimates, np.where(info.accepted, 9.0, 7.0))


def test_a_chain_without_an_estimate_draws_it_from_its_law_there():
    correction, n = prepared(MODELS["logistic"]), 20_000
    start, end = move(correction)
    state = ChainState(positions=np.tile(start, (n, 1)), values=np.zeros(n), cache={})
    rejected = Proposal(positions=np.tile(end, (n, 1)), estimates=np.full(n, 1e9))
    after, _ = correction.decide(state, rejected, np.random.default_rng(0))
    inverse = np.exp(after.estimates - correction.potential.value(start[None]))
    assert abs(inverse.mean() - 1.0) < SIGMAS * inverse.std() / np.sqrt(n)


def test_where_more_rows_would_be_drawn_than_there_are_u_is_evaluated():
    correction = prepared(MODELS["logistic"])
    far = move(correction, 40.0)
    for given in (False, True):
        found = correction.estimator.values(far, np.random.default_rng(0), given=given)
        assert_array_equal(found, correction.potential.value(far))


@ORDERS
def test_rows_touched_are_as_many_as_expected(order):
    correction, rows_of = counted(order)
    z = draws(correction, 4000, 5)[0]
    z *= np.sqrt(3.0) / np.linalg.norm(z, axis=1)[:, None]
    steps = np.linalg.solve(correction.estimator.whitening.T, z.T).T
    positions, rng = correction.estimator.expansion.centre + steps, np.random.default_rng(6)
    for given, times in ((False, 1.0), (True, 2.0)):
        touched = rows_of(lambda: correction.estimator.values(positions, rng, given=given))[0]  # noqa: B023
        expected = 4000 * times * correction.expected_rows
        assert abs(touched - expected) < SIGMAS * np.sqrt(expected)
    assert correction.expected_rows < 40 < len(DESIGN)


def test_the_acceptance_of_independent_draws_is_predicted():
    correction, rng = prepared(MODELS["logistic"]), np.random.default_rng(0)
    z, q = draws(correction, 4000, 7)
    excess = correction.potential.value(q) - 0.5 * np.square(z).sum(axis=1)
    exact = np.exp(np.minimum(excess[:2000] - excess[2000:], 0.0)).mean()
    predicted = np.mean([correction.predicted_acceptance(rng) for _ in range(10)])
    assert exact - 0.1 < predicted < exact + 0.01


def test_an_indefinite_hessian_is_no_obstacle():
    correction = prepared(MODELS["student"])
    hessian = np.diag([1.0, -2.0, 0.0])
    odd = type(correction.estimator).at(np.zeros(3), hessian, correction.potential)
    assert np.isfinite(odd.draws.total)
    assert (np.linalg.eigvalsh(odd.whitening @ odd.whitening.T) > 0).all()


def test_a_bound_that_is_too_small_stops_the_run():
    class Optimist(Wrapped):
        def row_bounds(self, factor, order=2, ball=None):
            return 0.05 * self.inner.row_bounds(factor, order, ball)

    correction = prepared(lambda: Optimist(MODELS["logistic"]()))
    start, end = move(correction, 2.0)
    with pytest.raises(TargetError, match=r"row \d+ is .* more than its bound.*row_bounds"):
        repeated(correction, start, end, 5.0, 20_000)


def test_values_are_not_known_after_a_move_and_known_where_there_was_none():
    correction = prepared(MODELS["logistic"])
    start, end = move(correction)
    u = correction.potential.value(np.stack([start, end]))
    state, info = repeated(correction, start, end, u[1] - u[0] + np.log(0.5), 200)
    assert 0 < info.accepted.sum() < 200
    assert np.isnan(state.values[info.accepted]).all()
    assert (state.values[~info.accepted] == 0).all()


def test_proposals_made_on_the_exact_potential_are_decided_by_their_values():
    target = RecordingPotential(MODELS["logistic"](), keep=False)
    correction = Subsampled().bind(target)  # need not even be prepared
    q = np.zeros((2, 3))
    state = ChainState(
        positions=q, values=np.full(2, np.nan), cache={"value": np.array([1.0, 1.0])}
    )
    cache = {"value": np.array([0.5, 900.0])}
    proposal = Proposal(positions=q + 1.0, cache=cache, source=target)
    after, info = correction.decide(state, proposal, np.random.default_rng(0))
    assert info.accepted.tolist() == [True, False]
    assert info.acceptance.tolist() == [1.0, 0.0]
    assert after.values.tolist() == [0.5, 1.0]
    assert sum(target.calls.values()) == 0


def test_it_says_what_is_missing():
    unprepared = Subsampled().bind(MODELS["logistic"]())
    state = ChainState(positions=np.zeros((1, 3)), values=np.zeros(1), cache={})
    with pytest.raises(ConfigurationError, match=r"call prepare\(near\)"):
        unprepared.decide(state, Proposal(positions=np.ones((1, 3))), None)
    with pytest.raises(ConfigurationError, match=r"call prepare\(near\)"):
        _ = unprepared.expected_rows


def test_rows_are_drawn_in_proportion_to_their_bounds():
    """Counts of 100,000 draws, within 5 standard errors; at both ends of the unit interval too."""
    bounds, n = np.array([0.0, 3.0, 0.0, 1.0, 6.0, 0.0]), 100_000
    draws = BoundedRows(bounds=bounds)
    rows, psi = draws.draw(n, np.random.default_rng(0))
    assert_array_equal(psi, bounds[rows])
    shares = bounds / draws.total
    off = np.bincount(rows, minlength=6) - n * shares
    assert (np.abs(off) <= SIGMAS * np.sqrt(n * shares * (1.0 - shares))).all()

    class Ends:
        def standard_exponential(self, _):
            return np.array([0.0, 1.0, 0.0])

    assert draws.draw(2, Ends())[0].tolist() == [1, 4]


@pytest.mark.parametrize("bound", [np.inf, np.nan])
def test_bounds_without_a_sum_are_refused(bound):
    class Boundless(Wrapped):
        def row_bounds(self, factor, order=2, ball=None):
            return np.append(self.inner.row_bounds(factor, order, ball)[1:], bound)

    with pytest.raises(NumericalError, match="must have a finite sum"):
        PoissonEstimator.at(np.zeros(3), np.eye(3), Boundless(MODELS["logistic"]()))


def test_a_centre_that_is_given_is_not_searched_for():
    found = prepared(MODELS["logistic"])
    assert found.mode is not None
    given = Subsampled(centre=found.mode.position, hessian=found.mode.hessian)
    target = RecordingPotential(MODELS["logistic"](), keep=False)
    bound = given.bind(target).prepare(np.full(target.dim, np.nan))
    assert target.calls_made.counts["gradient"] == 0
    assert bound.mode is None
    assert_array_equal(bound.estimator.whitening, found.estimator.whitening)
    assert_array_equal(bound.estimator.expansion.centre, found.mode.position)


@pytest.mark.parametrize(("given", "missing"), [("centre", "hessian"), ("hessian", "centre")])
def test_a_centre_and_its_derivatives_are_given_together(given, missing):
    with pytest.raises(ConfigurationError, match=f"got {given} alone; give {missing} too"):
        Subsampled(**{given: np.eye(3)})


def test_third_order_touches_fewer_rows():
    second, third = (prepared(MODELS["logistic"], order=order) for order in (2, 3))
    assert third.expected_rows < 0.7 * second.expected_rows


@pytest.mark.parametrize(
    ("limits", "order"),
    [
        ({}, 3),
        ({"_FEW_OPERATIONS": 0.0}, 3),
        ({"_FEW_OPERATIONS": 0.0, "_ROW_IN_OPERATIONS": 1e-3}, 2),
        ({"_FEW_OPERATIONS": 0.0, "_MANY_OPERATIONS": 1e3}, 2),
    ],
    ids=["cheap", "many rows touched", "few rows touched", "too dear"],
)
def test_dear_third_order_is_taken_where_it_saves_rows(limits, order, monkeypatch):
    for name, value in limits.items():
        monkeypatch.setattr(f"surrokit_corrections.subsampled.{name}", value)
    assert prepared(MODELS["logistic"]).estimator.order == order
    assert prepared(MODELS["probit"]).estimator.order == 2  # whose terms have no third derivatives


def test_third_order_needs_third_derivatives():
    with pytest.raises(CapabilityError, match=r"order=3 needs rows-third-order .* pass order=2"):
        prepared(MODELS["probit"], order=3)


@pytest.mark.parametrize("order", [1, 4, "3", 2.5])
def test_an_order_is_two_or_three(order):
    with pytest.raises(ConfigurationError, match="order must be 2, 3 or None, got"):
        Subsampled(order=order)
