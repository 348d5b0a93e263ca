"""Exploration in rounds."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.capabilities import FORWARD, GRADIENT
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import CapabilityError, ConfigurationError, SurrogateFitError
from surrokit.interfaces import LearningProblem, Start
from surrokit.potentials import with_forward
from surrokit.surrogate.whitening import Whitening
from surrokit.testing.targets import Banana, Gaussian
from surrokit_learning.draws import Region, surrogate_draws
from surrokit_learning.judgement import CLEAR, JUDGES, predicted_acceptance
from surrokit_learning.rounds import FREE, OUTER

FLAT = Gaussian(mean=(2.0, -1.0), covariance=((4.0, 0.0), (0.0, 0.01)))


@attrs.define
class Without:
    """A target that hides what else it can do."""

    target: object
    capabilities: frozenset[str] = frozenset()

    @property
    def dim(self):
        return self.target.dim

    def value(self, q):
        return self.target.value(q)

    def value_and_gradient(self, q):
        return self.target.value_and_gradient(q)

    def gradient(self, q):
        return self.target.gradient(q)


@attrs.define
class TwoWells:
    """A narrow well of potential 0 at (-4, 0), and one of potential ``higher`` at (4, 0)."""

    higher: float = 8.0
    dim: int = 2
    capabilities: frozenset[str] = frozenset({"gradient"})

    def value(self, q):
        return self.value_and_gradient(q)[0]

    def value_and_gradient(self, q):
        left, right = q - [-4.0, 0.0], q - [4.0, 0.0]
        terms = np.stack(
            [2.0 * np.square(left).sum(1), self.higher + 2.0 * np.square(right).sum(1)]
        )
        values = -np.logaddexp(-terms[0], -terms[1])
        shares = np.exp(values - terms)
        return values, 4.0 * (shares[0, :, None] * left + shares[1, :, None] * right)


def explorer(sampler="hmc", tuned="hmc", **settings):
    return sk.make("explorer", "rounds", sampler=sampler, tuned=tuned, **settings)


class Drive:
    """An exploration driven as a run does it, by a surrogate that learns or is given."""

    def __init__(
        self,
        target,
        made,
        starts,
        *,
        surrogate="additive",
        warmup=200,
        seed=1,
        calls=None,
        fit=None,
    ):
        self.target = RecordingPotential(target, keep=True)
        rng = np.random.default_rng(seed)
        energy = with_forward(target).energy if FORWARD in target.capabilities else None
        problem = LearningProblem(dim=target.dim, capabilities=target.capabilities, energy=energy)
        self.learner = sk.make("surrogate", surrogate).learner(problem, rng)
        self.items, self.paid, self.rows, self.surrogate = [], [], [], None
        self.n_first = 0  # items before there was a surrogate
        self.given = fit
        start = Start(
            potential=self.target,
            positions=np.array(starts, dtype=float),
            warmup=warmup,
            evaluated=self.target.drain,
            fit=self.fit,
            calls=calls,
        )
        self.steps = made.explore(start, rng)

    def run(self):
        before = 0
        for item in self.steps:
            self.items.append(item)
            paid, before = self.n_evaluated - before, self.n_evaluated
            self.paid.append(paid)
            if item.rows is not None:
                self.observe(item.rows)
        self.found = self.items[-1].findings
        return self

    @property
    def n_evaluated(self):
        return sum(self.target.calls.values())

    def observe(self, rows):
        self.learner.observe(rows)
        self.rows.append(rows)

    def fit(self, rows, modes=None):
        self.n_first = self.n_first or len(self.items)
        self.observe(rows)
        if self.given is not None:
            return self.given()
        try:
            self.surrogate = self.learner.fit()
        except SurrogateFitError:
            self.surrogate = None
        return self.surrogate


def starts(dim, n=4, seed=3, scale=1.0):
    return scale * np.random.default_rng(seed).standard_normal((n, dim))


@pytest.fixture(scope="module")
def banana():
    return Drive(Banana(), explorer(), starts(2)).run()


# --- what it finds ---


def test_on_a_normal_target_little_is_paid_and_everything_is_right():
    drive = Drive(FLAT, explorer(), starts(2)).run()
    found = drive.found
    assert found.acceptance > 0.99
    assert_allclose(found.mode, [2.0, -1.0], atol=0.01)
    assert_allclose(np.diag(found.covariance), [4.0, 0.01], rtol=0.4)
    assert sum(drive.target.calls.values()) < 60
    assert 0.3 < found.tuning.step_size < 3.0  # in units of the standard deviations
    assert found.step_size == found.tuning.step_size
    assert found.tuning.covariance is not None


def test_on_a_banana_rounds_go_on_until_draws_of_the_surrogate_are_accepted(banana):
    assert banana.found.acceptance >= 0.9
    # the truth, at independent points: the surrogate's draws by a long run on it
    draws = Banana().sample(np.random.default_rng(5), 400)
    weights = banana.surrogate.value(draws) - Banana().value(draws)
    assert predicted_acceptance(-weights) > 0.8


def test_chains_end_at_distinct_points_of_the_last_round_with_their_exact_values(banana):
    chains = banana.found.chains
    assert_allclose(chains.values, Banana().value(chains.positions))
    assert len(np.unique(chains.positions, axis=0)) == 4
    assert (banana.rows[-1].find(chains.positions) >= 0).all()


def test_a_step_pays_for_no_more_than_a_round_or_a_slice_of_the_search(banana):
    assert max(banana.paid) <= 100  # values with gradients and matrices of one slice
    assert max(banana.paid[banana.n_first + 1 :]) <= 20


def test_rows_are_all_learnt_from_but_for_those_far_from_the_mode():
    drive = Drive(Without(FLAT, frozenset({GRADIENT})), explorer(), [[300.0, 9.0]]).run()
    rows = sk.Evaluations.join(drive.rows, 2)
    values = FLAT.value(rows.positions)
    assert len(rows) < drive.target.calls["gradient"]
    assert values.max() < 10 * (2 + 20)
    assert_allclose(drive.found.mode, [2.0, -1.0], atol=0.1)


def test_without_gradients_no_gradient_is_paid_for_and_none_is_made_of_differences():
    made = explorer(evaluations=300)
    drive = Drive(Without(FLAT), made, starts(2)).run()
    assert drive.found.acceptance > 0.9
    assert {k for k, n in drive.target.calls.items() if n} == {"value"}
    assert_allclose(drive.found.mode, [2.0, -1.0], atol=0.2)
    positions = np.concatenate([rows.positions for rows in drive.rows])
    nearest = np.linalg.norm(positions[:, None] - positions, axis=2)
    assert nearest[np.triu_indices(len(positions), 1)].min() > 1e-4


def test_outputs_without_a_jacobian_are_learnt_from_few_solves():
    rng = np.random.default_rng(2)
    inside, slopes = rng.standard_normal((20, 4)) / 3.0, rng.standard_normal((15, 20)) / 4.0

    def forward(q):
        return np.sin(q @ inside.T + 0.3) @ slopes.T

    data = forward(rng.standard_normal((1, 4)))[0]
    target = sk.forward_potential(
        forward, data=data, noise_sd=0.1, prior=sk.gaussian_prior(0.0, 1.0), dim=4, batched=True
    )
    drive = Drive(target, explorer(), starts(4)).run()
    assert drive.found.acceptance >= 0.9
    assert drive.target.calls["forward"] <= 150


# --- the search for the mode ---


def test_chains_are_shared_out_among_modes_by_what_these_weigh():
    places = [[1.0, 0.3], [0.4, 1.2], [2.0, -1.0], [0.1, 1.0]]  # all of them on one side
    drive = Drive(TwoWells(higher=4.0), explorer(evaluations=150), places).run()
    sides = np.sign(drive.found.chains.positions[:, 0])
    assert sorted(sides) == [
        -1.0,
        -1.0,
        -1.0,
        1.0,
    ]  # one at least
    assert_allclose(drive.found.modes.masses, [0.982, 0.018], atol=0.01)


def test_a_round_has_points_at_each_mode_however_small_it_was_asked_to_be():
    places = [[1.0, 0.3], [-0.4, 1.2], [2.0, -1.0], [-0.1, 1.0]]
    drive = Drive(TwoWells(higher=1.0), explorer(batch=4, evaluations=150), places).run()
    assert len(drive.found.modes) == 2
    assert max(drive.paid[drive.n_first + 1 :]) == 2 * JUDGES


# --- when it ends ---


@pytest.mark.parametrize(
    ("hides", "most"), [(True, 61), (False, 48)], ids=["gradients", "matrices too"]
)
def test_no_more_is_paid_than_allowed(hides, most):
    target = Without(Banana(), frozenset({GRADIENT})) if hides else Banana()
    drive = Drive(target, explorer(evaluations=most, acceptance=0.9999), starts(2)).run()
    assert drive.n_evaluated == most


def test_it_ends_with_the_warm_up():
    drive = Drive(Banana(), explorer(acceptance=0.9999), starts(2), warmup=2).run()
    assert len(drive.items) == 1 + 2
    assert np.isfinite(drive.found.chains.values).all()


@pytest.mark.filterwarnings("ignore:the target raised ArithmeticError")
def test_rounds_are_judged_though_points_that_would_fail_are_left_out():
    failed = []

    def fragile(q):
        if q[0] > 0.1 * q[1]:
            failed.append(q)
            raise ArithmeticError("no solution")
        return 0.5 * q @ q + 0.3 * np.sum(np.cos(q))

    target = sk.potential(fragile, lambda q: q - 0.3 * np.sin(q), dim=4)
    drive = Drive(target, explorer(), -np.abs(starts(4, seed=1)), seed=1)
    drive.run()
    assert len(failed) < 0.4 * drive.n_evaluated  # half of the posterior fails
    judged = [item.findings.acceptance for item in drive.items[drive.n_first + 1 :]]
    assert None not in judged
    assert len(set(judged)) == len(judged) >= CLEAR


def test_fits_that_fail_leave_it_to_look_about_the_best_points():
    made = explorer(evaluations=200)
    drive = Drive(Without(FLAT), made, starts(2), fit=lambda: None).run()
    assert drive.found.acceptance is None
    assert drive.found.tuning is None
    first, last = drive.rows[0].values, drive.rows[-1].values
    assert np.median(last) < 0.2 * np.median(first)


def test_a_surrogate_that_falls_without_end_is_drawn_from_near_the_points_seen():
    slope = Without(Slope(), frozenset({"gradient", "gradient-alone"}))
    made = explorer(evaluations=150, searches=1)
    drive = Drive(FLAT, made, starts(2), fit=lambda: slope).run()
    z = (np.concatenate([rows.positions for rows in drive.rows[2:]]) - FLAT.mean) / np.sqrt(
        np.diag(FLAT.covariance)
    )
    assert np.linalg.norm(z, axis=1).max() < 40.0


class Slope:
    dim = 2

    def value(self, q):
        return -1e3 * q.sum(axis=1)

    def value_and_gradient(self, q):
        return self.value(q), np.full_like(q, -1e3)

    def gradient(self, q):
        return np.full_like(q, -1e3)


# --- settings ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"acceptance": 1.0}, "acceptance must be a number between 0 and 1"),
        ({"evaluations": 0}, "evaluations must be a whole number"),
        ({"searches": 0}, "searches must be a whole number"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        explorer(**settings)


def test_a_warm_up_of_nothing_is_refused():
    with pytest.raises(ConfigurationError, match="needs a warm-up of at least 1 iteration"):
        Drive(FLAT, explorer(), starts(2), warmup=0).run()


def test_a_sampler_that_needs_more_than_the_surrogate_offers_is_refused():
    drive = Drive(FLAT, explorer(), starts(2), fit=lambda: Without(FLAT))
    with pytest.raises(CapabilityError, match="the sampler of explorer 'rounds' needs gradient"):
        drive.run()


def test_gradients_that_are_asked_for_are_needed():
    assert explorer(gradients=True).needs == {GRADIENT}
    assert not explorer().needs


@attrs.define
class Steep:
    """A narrow normal whose potential grows without measure a few standard deviations away."""

    dim: int = 2
    capabilities: frozenset[str] = frozenset({"gradient"})

    def value(self, q):
        return self.value_and_gradient(q)[0]

    def value_and_gradient(self, q):
        squares = np.sum(np.square(q / 0.01), axis=1)
        growth = np.minimum(squares / 30.0, 5e4) ** 60
        slopes = 1.0 + 120.0 * growth / squares
        return 0.5 * squares + growth, slopes[:, None] * q / 1e-4


@pytest.mark.filterwarnings("ignore:the target returned NaN")
def test_gradients_too_large_to_square_do_not_hide_the_scale_of_the_first_points():
    target, far = Steep(), np.array([[1.5, 1.0], [1.0, -1.5], [-1.0, 0.5], [0.03, 0.02]])
    assert np.abs(target.value_and_gradient(far)[1]).max() > 1e160
    drive = Drive(target, explorer(evaluations=80), far).run()
    first = drive.items[drive.n_first].findings
    assert (np.sqrt(np.diag(first.covariance)) < 0.1).all()


@pytest.mark.parametrize(("part", "free"), [(1.0, True), (0.2, False)])
def test_draws_that_would_leave_the_region_do_not_judge_a_surrogate(part, free):
    """Points in a fifth of the posterior's length: a round there says nothing of the rest."""
    rng, factor = np.random.default_rng(2), part * np.sqrt(FLAT.covariance)
    draws = surrogate_draws(
        FLAT,
        sk.make("sampler", "hmc"),
        sk.make("correction", "metropolis"),
        region=Region(whitening=Whitening(mean=np.array(FLAT.mean), factor=factor), radius=4.4),
        starts=FLAT.mean + rng.standard_normal((20, 2)) @ factor,
        n_transitions=60,
        rng=rng,
    )
    assert (draws.accepted >= FREE) == free


def without_hessian(target):
    return Without(target, frozenset({GRADIENT}))


def test_where_the_laplace_approximation_is_good_the_first_round_looks_about_the_mass():
    drive = Drive(without_hessian(FLAT), explorer(), starts(2)).run()
    assert drive.found.missed == 0
    assert drive.paid[drive.n_first + 1 :] == [OUTER * 20 + JUDGES] * CLEAR


def test_else_a_round_judges_first():
    drive = Drive(Banana(), explorer(), starts(2), seed=2).run()
    assert drive.paid[drive.n_first + 1 :] == [20, *[OUTER * 20 + JUDGES] * CLEAR]


@pytest.mark.parametrize(("factor", "learns"), [(1.0, False), (1.05, True)])
@pytest.mark.long
def test_differences_are_taken_where_they_win_more_than_they_cost(factor, learns):
    """A surrogate 1.05 times as wide is accepted with 0.92: more than the 0.9 that is enough, but
    gradients of 9 values at 17 points cost less than what draws would lose."""
    shown = sk.potential(lambda q: 0.5 * q @ q / factor**2, lambda q: q / factor**2, dim=4)
    target = sk.potential(lambda q: 0.5 * q @ q, "differences", dim=4)
    drive = Drive(target, explorer(), starts(4), fit=lambda: shown).run()
    assert {paid > 20 for paid in drive.paid[drive.n_first + 1 :]} == {learns}
