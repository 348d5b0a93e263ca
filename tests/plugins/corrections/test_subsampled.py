"""The correction that looks at a few rows: exact, cheap, and honest about both."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import CapabilityError, ConfigurationError, NumericalError, TargetError
from surrokit.interfaces import ChainState, Proposal
from surrokit.testing.wrappers import Wrapped
from surrokit_corrections.subsampled import Subsampled
from surrokit_corrections.thinning import BoundedRows, Thinning
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
    thinning = correction.thinning
    z = np.random.default_rng(seed).standard_normal((n, 3))
    return z, thinning.expansion.centre + np.linalg.solve(thinning.whitening.T, z.T).T


def move(correction, scale=1.0):
    """Return the ends of a move between two draws of the Laplace approximation."""
    centre = correction.thinning.expansion.centre
    return centre + scale * (draws(correction, 2, 3)[1] - centre)


def repeated(correction, start, end, c, n, seed=0):
    """Decide on one move n times."""
    state = ChainState(positions=np.tile(start, (n, 1)), values=np.zeros(n), cache={})
    proposal = Proposal(positions=np.tile(end, (n, 1)), log_correction=np.full(n, c))
    return correction.decide(state, proposal, np.random.default_rng(seed))


def rule(correction, start, end):
    """Return the rule as it is written, all rows evaluated one by one from their terms.

    It gives the probability of a move for any log correction.
    """
    target, centre = correction.potential, correction.thinning.expansion.centre
    everything = range(len(DESIGN))
    ends = np.stack([start, end])

    def remainder(i):
        term = target.select(np.array([i]))
        h = ends - centre
        e = 1e-3
        near = centre + e * np.concatenate([0 * h[:1], h, -h, 2 * h, -2 * h])
        hessians = term.hessian(near)
        second = term.value(near[:1]) + h @ term.gradient(near[:1])[0]
        second += 0.5 * np.einsum("ni,ij,nj->n", h, hessians[0], h)
        if correction.thinning.order == 3:
            ahead, behind, farther, farthest = hessians[1:].reshape(4, 2, *hessians.shape[1:])
            change = (8 * (ahead - behind) - (farther - farthest)) / (12 * e)
            second += np.einsum("ni,nij,nj->n", h, change, h) / 6
        return term.value(ends) - second

    remainders = np.array([remainder(i) for i in everything])
    v = target.value(ends) - remainders.sum(axis=0)
    second_factor = np.exp(-np.maximum(remainders[:, 1] - remainders[:, 0], 0.0).sum())
    return lambda c: min(1.0, np.exp(v[0] - v[1] + c)) * second_factor


# Terms of these models reach the correction in different ways; of all families test_by_rows shows
# that exact draws stay exact.
@pytest.mark.parametrize("model", [name for name in MODELS if name != "probit"])
@pytest.mark.parametrize(
    ("scale", "order"),
    [
        pytest.param(0.3, 2, marks=pytest.mark.long),
        pytest.param(1.5, 2, marks=pytest.mark.long),
        (3.0, None),
    ],
)
def test_a_move_is_accepted_with_the_probability_of_the_rule(model, scale, order):
    correction = prepared(MODELS[model], order=order)
    start, end = move(correction, scale)
    v_before, v_after = correction.thinning.expansion.value(np.stack([start, end]))
    probability = rule(correction, start, end)
    for c in (0.0, 1.0, v_after - v_before + np.log(0.5)):  # the last: a first factor of 1/2
        expected = probability(c)
        n = 20_000
        _, info = repeated(correction, start, end, c, n)
        sd = np.sqrt(expected * (1 - expected) / n)
        assert abs(info.accepted.mean() - expected) < SIGMAS * sd
        # what is told of it is unbiased too, and no more spread out
        assert abs(info.acceptance.mean() - expected) < SIGMAS * max(sd, 1e-6)
        assert info.acceptance.std() <= np.sqrt(expected * (1 - expected)) * 1.05 + 1e-6


@ORDERS
def test_where_more_rows_would_be_drawn_than_there_are_all_are_looked_at(order):
    correction, rows_of = counted(order)
    start, end = move(correction, 40.0)
    c = float(np.diff(correction.thinning.expansion.value(np.stack([start, end])))[0])
    # c makes the first factor 1
    rows, (_, info) = rows_of(lambda: repeated(correction, start, end, c, 3))
    assert rows == 3 * len(DESIGN)
    assert_allclose(info.acceptance, rule(correction, start, end)(c), rtol=1e-6, atol=1e-12)


def test_a_move_and_its_reverse_look_at_all_rows_or_both_at_few():
    correction, rows_of = counted(2)
    thinning, everyone = correction.thinning, np.ones(20, dtype=bool)

    def is_whole(start, end):
        ends = np.repeat([[start], [end]], 20, axis=1)
        rng = np.random.default_rng(0)
        return rows_of(lambda: thinning.survival(ends, everyone, rng))[0] == 20 * len(DESIGN)

    kinds = set()
    for scale in np.geomspace(1.0, 60.0, 40):
        start, end = move(correction, scale)
        start = thinning.expansion.centre + 0.1 * (start - end)  # nearer than the end
        assert is_whole(start, end) == is_whole(end, start)
        kinds.add(is_whole(start, end))
    assert kinds == {False, True}


@ORDERS
def test_rows_touched_are_as_many_as_expected(order):
    correction, rows_of = counted(order)
    n = 4000
    ends = draws(correction, 2 * n, 5)[1].reshape(2, n, 3)
    thinning = attrs.evolve(correction.thinning, n_rows=10**9)  # so that no move looks at all
    rng, everyone = np.random.default_rng(6), np.ones(n, dtype=bool)
    touched = rows_of(lambda: thinning.survival(ends, everyone, rng))[0] / n
    # angles below 60 degrees (45), common in three dimensions, need fewer; wider ones as many
    # fourth powers of 4000 distances and 1600 events: a standard error of 3 %
    assert 0.75 < touched / correction.expected_rows < {2: 1.0, 3: 1.1}[order]
    assert correction.expected_rows < 40 < len(DESIGN)


def predicted(correction):
    rng = np.random.default_rng(0)
    return np.mean([correction.predicted_acceptance(rng) for _ in range(10)])


def test_the_acceptance_of_independent_draws_is_predicted():
    correction = prepared(MODELS["logistic"])
    expansion, n = correction.thinning.expansion, 500
    z, q = draws(correction, 2 * n, 7)
    excess = expansion.value(q) - 0.5 * np.square(z).sum(axis=1)
    first = np.exp(np.minimum(excess[:n] - excess[n:], 0.0))
    exact = first * np.exp(-expansion.increases(q[:n], q[n:]))
    assert predicted(correction) == pytest.approx(exact.mean(), abs=0.03)


def test_no_prediction_is_made_where_it_would_be_dear():
    correction = prepared(MODELS["logistic"])
    few = attrs.evolve(correction.thinning, n_rows=0)
    dear = attrs.evolve(correction, thinning=few)
    assert dear.predicted_acceptance(np.random.default_rng(0)) is None


def test_it_is_exact_wherever_the_terms_are_expanded():
    correction = prepared(MODELS["logistic"])
    start, end = move(correction)
    # prepared at the mode whatever the start of its search, so move the centre by hand
    thinning = correction.thinning
    away = type(thinning).at(
        thinning.expansion.centre + 0.3,
        thinning.whitening @ thinning.whitening.T,
        correction.potential,
    )
    elsewhere = attrs.evolve(correction, thinning=away)
    expected = rule(elsewhere, start, end)(0.0)
    _, info = repeated(elsewhere, start, end, 0.0, 20_000)
    assert abs(info.accepted.mean() - expected) < SIGMAS * np.sqrt(expected * (1 - expected) / 2e4)


def test_an_indefinite_hessian_is_no_obstacle():
    correction = prepared(MODELS["student"])
    hessian = np.diag([1.0, -2.0, 0.0])
    odd = type(correction.thinning).at(np.zeros(3), hessian, correction.potential)
    assert np.isfinite(odd.draws.total)
    assert (np.linalg.eigvalsh(odd.whitening @ odd.whitening.T) > 0).all()


def test_a_bound_that_is_too_small_stops_the_run():
    class Optimist(Wrapped):
        def row_bounds(self, factor, order=2):
            return 0.05 * self.inner.row_bounds(factor, order)

    correction = prepared(lambda: Optimist(MODELS["logistic"]()))
    start, end = move(correction, 2.0)
    with pytest.raises(TargetError, match=r"row \d+ changes by .* more than its bound.*row_bounds"):
        repeated(correction, start, end, 5.0, 20_000)


def test_values_are_not_known_after_a_move_and_known_where_there_was_none():
    correction = prepared(MODELS["logistic"])
    start, end = move(correction)
    state, info = repeated(correction, start, end, 0.5, 200)
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
        def random(self, _):
            return np.array([0.0, 1.0])

    assert draws.draw(2, Ends())[0].tolist() == [1, 4]


@pytest.mark.parametrize("bound", [np.inf, np.nan])
def test_bounds_without_a_sum_are_refused(bound):
    class Boundless(Wrapped):
        def row_bounds(self, factor, order=2):
            return np.append(self.inner.row_bounds(factor, order)[1:], bound)

    with pytest.raises(NumericalError, match="must have a finite sum"):
        Thinning.at(np.zeros(3), np.eye(3), Boundless(MODELS["logistic"]()))


def test_a_centre_that_is_given_is_not_searched_for():
    found = prepared(MODELS["logistic"])
    assert found.mode is not None
    given = Subsampled(centre=found.mode.position, hessian=found.mode.hessian)
    target = RecordingPotential(MODELS["logistic"](), keep=False)
    bound = given.bind(target).prepare(np.full(target.dim, np.nan))
    assert target.calls_made.counts["gradient"] == 0
    assert bound.mode is None
    assert_array_equal(bound.thinning.whitening, found.thinning.whitening)
    assert_array_equal(bound.thinning.expansion.centre, found.mode.position)


@pytest.mark.parametrize(("given", "missing"), [("centre", "hessian"), ("hessian", "centre")])
def test_a_centre_and_its_derivatives_are_given_together(given, missing):
    with pytest.raises(ConfigurationError, match=f"got {given} alone; give {missing} too"):
        Subsampled(**{given: np.eye(3)})


def test_third_order_accepts_more_and_touches_fewer_rows():
    second, third = (prepared(MODELS["logistic"], order=order) for order in (2, 3))
    assert third.expected_rows < 0.7 * second.expected_rows
    assert predicted(third) > predicted(second)


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
    assert prepared(MODELS["logistic"]).thinning.order == order
    assert prepared(MODELS["probit"]).thinning.order == 2  # whose terms have no third derivatives


def test_third_order_needs_third_derivatives():
    with pytest.raises(CapabilityError, match=r"order=3 needs rows-third-order .* pass order=2"):
        prepared(MODELS["probit"], order=3)


@pytest.mark.parametrize("order", [1, 4, "3", 2.5])
def test_an_order_is_two_or_three(order):
    with pytest.raises(ConfigurationError, match="order must be 2, 3 or None, got"):
        Subsampled(order=order)
