"""Logarithms of normalising constants: errors of at most 0.05, intervals that hold."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from known_rounds import bias_in_errors, chains, fewest_hits, pay
from numpy.testing import assert_allclose
from scipy.special import gammaln

from surrokit.errors import ConfigurationError, NumericalError, ShapeError
from surrokit.kernel.jumps import StudentT
from surrokit.modes import Modes
from surrokit.potentials import Straight
from surrokit.weighted import normalizer
from surrokit.weighted.normalizer import (
    bridge,
    evidence_of_chains,
    evidence_of_rounds,
    evidence_of_surrogate,
)
from surrokit.weighted.rounds import LARGEST_K, pareto_k

PHI = 0.7


@attrs.frozen
class Normal:
    factor: np.ndarray

    def potential(self, z):
        return 0.5 * np.square(np.linalg.solve(self.factor, (z - 3.0).T)).sum(axis=0)

    def draws(self, rng, n=200):
        return 3.0 + chains(rng, 8, n, len(self.factor), PHI) @ self.factor.T

    @property
    def log_constant(self):
        return 0.5 * len(self.factor) * np.log(2 * np.pi) + np.log(np.diag(self.factor)).sum()


@attrs.frozen
class Process(Normal):
    """The mean of a process."""

    sd: float
    capabilities = frozenset({"covariance"})
    value = Normal.potential

    def variance(self, z):
        return np.full(len(z), self.sd**2)


class Student(Normal):
    degrees = 4.0

    def potential(self, z):
        power = 0.5 * (self.degrees + len(self.factor))
        return power * np.log1p(2.0 * super().potential(z) / self.degrees)

    def draws(self, rng, n=200):
        scales = np.sqrt(rng.chisquare(self.degrees, (8, n, 1)) / self.degrees)
        return 3.0 + (super().draws(rng, n) - 3.0) / scales

    @property
    def log_constant(self):
        power = 0.5 * (self.degrees + len(self.factor))
        tails = gammaln(self.degrees / 2) - gammaln(power)
        dim = len(self.factor)
        return super().log_constant + tails + 0.5 * dim * np.log(self.degrees / 2.0)


def correlated(rng, dim):
    return np.eye(dim) + 0.4 * np.tril(rng.standard_normal((dim, dim)), -1)


CASES = [(Normal, 1), (Normal, 2), (Normal, 10), (Student, 3)]


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "dim"), CASES)
def test_bridges_hold(rng, kind, dim):
    """Intervals fail a false alarm's 1e-4, biases one of 7e-6."""
    law = kind(correlated(rng, dim))
    found = [bridge(law.potential, law.draws(rng), rng) for _ in range(40)]
    errors = np.array([each.value - law.log_constant for each in found])
    told = np.array([each.error for each in found])
    assert told.max() < 0.05
    assert abs(bias_in_errors(errors)) < 4.5
    assert (np.abs(errors) < 1.96 * told).sum() >= fewest_hits(40)


@pytest.mark.statistical
def test_a_bridge_that_takes_draws_for_independent_is_told(rng):
    """The mutant's intervals hold too seldom where chains are slow; ours hold."""
    law = Normal(np.eye(2))
    hits, blind = 0, 0
    for _ in range(40):
        draws = chains(rng, 8, 250, 2, 0.97) + 3.0
        found = bridge(law.potential, draws, rng)
        shuffled = rng.permutation(draws.reshape(-1, 2)).reshape(draws.shape)
        error = abs(found.value - law.log_constant)
        hits += error < 1.96 * found.error
        blind += error < 1.96 * bridge(law.potential, shuffled, rng).error
    assert hits >= fewest_hits(40) > blind


def test_a_constant_added_to_the_potential_is_taken_off(rng):
    law, seeds = Normal(np.eye(2)), (np.random.default_rng(1), np.random.default_rng(1))
    draws = law.draws(rng)
    one, other = (
        bridge(lambda z, c=c: law.potential(z) + c, draws, seed)
        for c, seed in zip((0.0, 1e3), seeds, strict=True)
    )
    assert_allclose(one.value - other.value, 1e3, rtol=1e-9)
    assert_allclose(one.error, other.error, rtol=1e-6)
    assert_allclose(one.effective, 1.0 / one.error**2)


def test_support_that_ends_is_no_obstacle(rng):
    draws = rng.random((8, 200, 2))
    found = bridge(lambda z: np.where(((z >= 0) & (z <= 1)).all(axis=1), 0.0, np.inf), draws, rng)
    assert abs(found.value) < 5.0 * found.error < 0.3


def test_a_potential_that_overflows_far_away_is_no_obstacle(rng):
    def steep(q):
        return 0.5 * np.square(q).sum(axis=1) + np.where(np.abs(q[:, 0]) > 6.0, 1e130, 0.0)

    wide = StudentT(centre=np.zeros(2), factor=2.0 * np.eye(2), degrees=3.0)
    found = bridge(steep, rng.standard_normal((4, 500, 2)), rng, law=wide)
    assert abs(found.value - np.log(2.0 * np.pi)) < 4.0 * found.error


def test_a_bridge_by_one_draw_has_a_large_error(rng):
    """Of the draws on the other side the potential is finite at one alone."""
    draws, seeds = rng.standard_normal((4, 100, 2)), [np.random.default_rng(1) for _ in range(2)]
    law = StudentT(centre=np.zeros(2), factor=np.eye(2), degrees=5.0)
    only = law.draw(200, seeds[0])[7]

    def potential(z):
        return np.where((z == only).all(axis=1) | np.isin(z, draws).all(axis=1), 0.0, np.inf)

    assert bridge(potential, draws, seeds[1], law=law).error > 0.9


def test_draws_that_make_no_bridge_are_told(rng):
    law = Normal(np.eye(2))
    with pytest.raises(ShapeError, match="n at least 8"):
        bridge(law.potential, np.zeros((4, 7, 2)), rng)
    with pytest.raises(ConfigurationError, match="pass the potential that they are of"):
        bridge(lambda z: np.full(len(z), np.inf), law.draws(rng), rng)


class Near(Normal):
    """A surrogate of the normal law, wrong by a bounded part, a density_ratio and a constant."""

    dim, capabilities = 2, frozenset({"value"})

    def value(self, z):
        return self.potential(z) + 0.3 * np.sin(z[:, 0]) + 0.2 * (z[:, 1] - 3.0) + 7.0


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [Normal, Student])
@pytest.mark.parametrize("with_surrogate", [True, pytest.param(False, marks=pytest.mark.long)])
def test_evidences_of_exact_draws_hold(rng, kind, with_surrogate):
    """Intervals fail a false alarm's 1e-4, biases one of 7e-6; the surrogate's own is 7 off."""
    law = kind(correlated(rng, 2))
    near = Near(law.factor) if with_surrogate and kind is Normal else None
    errors, stated = [], []
    for _ in range(40):
        draws = law.draws(rng, 400)
        values = law.potential(draws.reshape(-1, 2)).reshape(draws.shape[:2])
        found = evidence_of_chains(draws, values, rng, near)
        errors.append(found.value - law.log_constant)
        stated.append(found.error)
    assert max(stated) < 0.06
    assert abs(bias_in_errors(np.array(errors))) < 4.5
    assert (np.abs(errors) < 1.96 * np.array(stated)).sum() >= fewest_hits(40)


@pytest.mark.statistical
def test_evidences_over_two_modes_hold_by_a_normal_for_each(rng):
    """Intervals fail a false alarm's 1e-4, biases one of 7e-6; without modes no density is near."""
    middles = np.array([[8.0, 0.0], [-8.0, 0.0]])
    modes = Modes(
        positions=middles, values=np.zeros(2), covariances=np.stack([np.eye(2)] * 2), ended=[2, 2]
    )
    errors, stated = [], []
    for _ in range(40):
        draws = chains(rng, 8, 400, 2, PHI) + middles[rng.choice(2, (8, 400), p=[0.7, 0.3])]
        values = -np.logaddexp.reduce(
            np.log([0.7, 0.3])[:, None, None]
            - 0.5 * np.square(draws - middles[:, None, None]).sum(axis=-1)
        )
        found = evidence_of_chains(draws, values, rng, modes=modes)
        errors.append(found.value - np.log(2.0 * np.pi))
        stated.append(found.error)
    assert max(stated) < 0.06
    assert abs(bias_in_errors(np.array(errors))) < 4.5
    assert (np.abs(errors) < 1.96 * np.array(stated)).sum() >= fewest_hits(40)
    with pytest.raises(NumericalError, match="no density at hand"):
        evidence_of_chains(draws, values, rng)


def test_a_surrogate_narrower_or_wider_than_the_target_is_not_relied_on(rng):
    """The narrow one wastes draws; weights to the wide one have no mean, and are refused."""
    law = Normal(np.eye(3))
    draws = law.draws(rng, 1000)
    values = law.potential(draws.reshape(-1, 3)).reshape(draws.shape[:2])
    narrow = bridge(lambda z: 2.0 * law.potential(z), draws, rng, exact=values)
    assert abs(narrow.value - law.log_constant) < 5.0 * narrow.error < 0.5
    with pytest.raises(NumericalError, match="too heavy a tail"):
        bridge(lambda z: 0.1 * law.potential(z), draws, rng, exact=values)


class Annulus:
    """The constant density between two circles, and a surrogate that is hardly off, heavily."""

    log_constant = np.log(np.pi * (1.0 - 0.6**2))

    def draws(self, rng):
        angles, radii = rng.uniform(0.0, 2.0 * np.pi, (4, 500)), rng.uniform(0.36, 1.0, (4, 500))
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=2)
        return np.sqrt(radii)[..., None] * circle

    def value(self, q):
        radii, parts = np.linalg.norm(q, axis=1), np.arctan2(q[:, 0], q[:, 1]) / (2.0 * np.pi) + 0.5
        inside = (radii > 0.6) & (radii < 1.0)
        return np.where(inside, -0.001 / np.maximum(parts, 1e-3) ** 0.9, np.inf)


def test_a_normal_where_the_draws_have_a_hole_is_told(rng, monkeypatch):
    """The negative control is an error without the difference of the two sides."""
    law, found = Annulus(), []
    draws = law.draws(rng)
    for most in (normalizer.MOST_ERRORS, np.inf):
        monkeypatch.setattr(normalizer, "MOST_ERRORS", most)
        found.append(evidence_of_chains(draws, np.zeros((4, 500)), np.random.default_rng(1)))
    errors = [abs(each.value - law.log_constant) / each.error for each in found]
    assert errors[0] < 3.0 < 5.0 < errors[1]


def test_mass_of_a_surrogate_where_there_are_no_draws_is_left_out(rng):
    """A third of it lies four standard deviations away: with it there is no estimate."""
    law = Normal(np.eye(2))

    class Bumpy:
        capabilities = frozenset()

        def value(self, z):
            bump = 2.0 * np.square(z - [3.0, 7.0]).sum(axis=1) - np.log(2.0)
            return -np.logaddexp(-law.potential(z), -bump)

    draws = law.draws(rng, 500)
    values = law.potential(draws.reshape(-1, 2)).reshape(draws.shape[:2])
    found = evidence_of_chains(draws, values, rng, Bumpy())
    assert abs(found.value - law.log_constant) < 3.0 * found.error < 0.1
    with pytest.raises(NumericalError, match="too heavy a tail"):
        bridge(Bumpy().value, draws, rng, exact=values)


def test_heavy_tails_of_weights_that_hardly_differ_are_no_obstacle(rng):
    law = Annulus()
    draws = law.draws(rng)
    assert pareto_k(-law.value(draws.reshape(-1, 2))) > LARGEST_K
    found = evidence_of_chains(draws, np.zeros((4, 500)), rng, law)
    assert abs(found.value - law.log_constant) < 3.0 * found.error < 0.3


def test_draws_that_no_density_at_hand_is_near_to_are_refused(rng):
    """The mass is in a thin curve."""
    x = rng.standard_normal((4, 500))
    y = x**2 + 0.01 * rng.standard_normal((4, 500))
    values = 0.5 * x**2 + 0.5 * ((y - x**2) / 0.01) ** 2
    with pytest.raises(NumericalError, match=r"Pass the target.*log_evidence\(target\)"):
        evidence_of_chains(np.stack([x, y], axis=2), values, rng)


def two_rounds(rng, law, density_ratio, repeats):
    """Return log normalisers of the normal law reweighted, half the ratio's square more."""
    for _ in range(repeats):
        draws = [law.draws(rng) for _ in range(2)]
        bridges = [bridge(law.potential, each, rng) for each in draws]
        rounds = [
            pay(rng, each, n, lambda z: density_ratio * (z[:, 0] - 3.0), learnt)
            for each, n, learnt in zip(draws, (30, 50), (100, 130), strict=True)
        ]
        yield evidence_of_rounds(rounds, bridges, 210.0)


@pytest.mark.statistical
@pytest.mark.parametrize("density_ratio", [pytest.param(0.05, marks=pytest.mark.long), 0.3])
def test_evidences_of_rounds_hold(rng, density_ratio):
    law = Normal(correlated(rng, 2))
    found = list(two_rounds(rng, law, density_ratio, 40))
    truth = law.log_constant + 0.5 * density_ratio**2
    errors = np.array([each.value - truth for each in found])
    assert max(each.error for each in found) < 0.05
    assert abs(bias_in_errors(errors)) < 4.5
    hits = sum(low <= truth <= high for low, high in (each.interval() for each in found))
    assert hits >= fewest_hits(40)
    assert found[0].calls == 210.0


def test_an_error_is_at_least_what_a_later_surrogate_predicts(rng):
    law = Normal(np.eye(1))
    draws = law.draws(rng)
    found = pay(rng, draws, 40, lambda z: 0.01 * z[:, 0])
    later = attrs.evolve(found, predictive_variance=np.full((8, 1), 0.4))
    known = bridge(law.potential, draws, rng)
    seen, predicted = (evidence_of_rounds([each], [known], 0.0) for each in (found, later))
    assert seen.value == predicted.value
    assert seen.error < 0.05
    assert_allclose(predicted.error, np.sqrt(0.01 + known.error**2))


def test_a_process_counts_as_much_as_values_unless_they_contradict_it(rng):
    law = Normal(np.eye(1))
    draws = law.draws(rng)
    found = pay(rng, draws, 40, lambda z: 0.3 * z[:, 0])
    known = bridge(law.potential, draws, rng)
    alone = evidence_of_rounds([found], [known], 0.0)
    level, error = alone.value - known.value, np.sqrt(alone.error**2 - known.error**2)
    for apart, part in ((0.0, 0.5), (1.0, 0.5), (-2.0, 0.25), (10.0, 0.01)):
        of_process = attrs.evolve(found, log_mass=float(level + apart * error))
        both = evidence_of_rounds([of_process], [known], 0.0)
        assert_allclose(both.value - alone.value, part * apart * error, atol=1e-12)
        assert_allclose(both.error**2, alone.error**2 + (part * apart * error) ** 2)


def test_the_evidence_of_values_with_noise_is_a_mean_over_what_they_leave_possible(rng):
    law = Normal(np.eye(1))
    draws = law.draws(rng)
    found = pay(rng, draws, 40, lambda z: 0.0 * z[:, 0])
    known = bridge(law.potential, draws, rng)
    levels = np.array([-0.4, 0.2])  # of two potentials, beside noise of variance 0.36
    moves = levels + 0.6 * rng.standard_normal((*draws.shape[:2], 2))
    noisy = evidence_of_rounds([attrs.evolve(found, realisations=moves)], [known], 0.0)
    assert_allclose(noisy.value - known.value, 0.1 + 0.18, atol=0.05)
    assert_allclose(noisy.error**2 - known.error**2, 0.09, atol=0.03)


def test_intervals_hold_wherever_a_process_is():
    """Beside normal estimates of variance one a process is off by 0 to 6.

    The negative control is an error without what estimates are moved by.
    """
    estimates = np.random.default_rng(1).standard_normal(100_000)
    held = []
    for process in np.arange(0.0, 6.5, 0.5):
        apart = process - estimates
        moved = np.minimum(0.5, 1.0 / apart**2) * apart
        ratios = np.abs(estimates + moved) / [np.sqrt(1.0 + moved**2), np.ones_like(moved)]
        held.append(np.mean(ratios < 1.96, axis=1))
    with_move, without = np.min(held, axis=0)
    assert with_move > 0.93
    assert without < 0.91


@pytest.mark.parametrize(("sd", "more"), [(0.0, 0.0), (0.6, 0.18), (100.0, 1.0)])
def test_exponentials_of_a_process_are_larger_than_that_of_its_mean(sd, more):
    process = Process(np.eye(2), sd)
    draws = process.draws(np.random.default_rng(1))
    found = evidence_of_surrogate(process, draws, np.random.default_rng(2))
    of_mean = bridge(process.value, draws, np.random.default_rng(2))
    assert_allclose(found.value, of_mean.value + more)
    assert found.error == of_mean.error


class Banana:
    """A normal density, whose second number has gained a square of the first."""

    capabilities = frozenset()

    def __init__(self):
        self.straight = Straight(Process(np.eye(2), 0.0), lambda q: self.move(q, -3.0))

    def move(self, q, by):
        return q + by * np.square(q[:, :1] - 3.0) * [0.0, 1.0]

    def value(self, q):
        return self.straight.potential.value(self.move(q, -3.0))


def test_the_evidence_of_a_curved_surrogate_is_that_in_straight_coordinates():
    banana = Banana()
    normal = banana.straight.potential
    draws = normal.draws(np.random.default_rng(1))
    curved = banana.move(draws.reshape(-1, 2), 3.0).reshape(draws.shape)
    found = evidence_of_surrogate(banana, curved, np.random.default_rng(2))
    assert abs(found.value - normal.log_constant) < 0.02
    assert found.error < 0.3 * bridge(banana.value, curved, np.random.default_rng(2)).error


@pytest.mark.statistical
def test_the_log_of_a_mean_without_the_jackknife_has_bias(rng):
    """Both biases are looked at in 3,000 rounds of twelve weights, at 4.5 standard errors."""
    law = Normal(np.eye(1))
    known = attrs.evolve(bridge(law.potential, law.draws(rng), rng), value=np.array(0.0))
    rounds = [pay(rng, rng.standard_normal((2, 40, 1)), 12, lambda z: z[:, 0]) for _ in range(3000)]
    right = [evidence_of_rounds([each], [known], 0.0).value - 0.5 for each in rounds]
    plain = [np.log(np.exp(each.log_weights).mean()) - 0.5 for each in rounds]
    assert abs(np.mean(right)) < 0.3 * abs(np.mean(plain))
    assert abs(bias_in_errors(plain)) > 4.5


@pytest.mark.parametrize("logs", [[-np.inf, -np.inf], [0.0], [1.0, -np.inf]])
def test_where_nothing_is_known_the_error_is_infinite(rng, logs):
    law = Normal(np.eye(1))
    draws = law.draws(rng)
    found = pay(rng, draws, len(logs), lambda z: np.array(logs))
    assert np.isinf(evidence_of_rounds([found], [bridge(law.potential, draws, rng)], 2.0).error)
