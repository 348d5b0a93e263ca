"""The surrogate of several modes: parts joined where they meet, and jumps by which all are met."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations
from surrokit.kernel.jumps import modes_of
from surrokit.modes import Modes
from surrokit.surrogate.by_modes import ByModes, fit_by_modes
from surrokit.testing.targets import Gaussian

MODES = Modes(
    positions=np.array([[0.0, 0.0], [4.0, 1.0]]),
    values=np.array([0.0, 0.5]),
    covariances=np.stack([np.eye(2), 0.3 * np.eye(2)]),
    ended=np.array([2, 2]),
)
POSITIONS = 2.0 * np.random.default_rng(0).normal(size=(40, 2))


def normal(mean, scale=1.0):
    return Gaussian(mean=mean, covariance=scale * np.eye(2))


def test_the_gradient_is_that_of_the_value(differences):
    joined = ByModes(
        parts=(normal((0.0, 0.0)), normal((4.0, 1.0), 0.3)),
        modes=MODES,
        lowest=np.array([-1.0, 0.2]),
        rises=np.array([0.9, 0.5]),
    )
    values, gradients = joined.value_and_gradient(POSITIONS)
    assert_allclose(values, joined.value(POSITIONS))
    made = differences(lambda q: joined.value(q)[:, None], POSITIONS)[:, 0]
    assert_allclose(gradients, made, atol=1e-6)


def test_where_parts_agree_nothing_counts_twice():
    part = normal((1.0, 0.0))
    joined = ByModes(parts=(part, part), modes=MODES)
    assert_allclose(joined.value(POSITIONS), part.value(POSITIONS), atol=1e-12)


@pytest.mark.parametrize("depth", [8.0, 1e4])
def test_a_part_far_from_its_mode_does_not_count_however_low_it_is(depth):
    """Mode 1 has a share of e^-27 at mode 0."""
    deep = normal((4.0, 1.0), 0.3)
    joined = ByModes(parts=(deep, deep), modes=MODES)
    low = ByModes(parts=(deep, Low(deep, depth)), modes=MODES)
    near = MODES.positions[:1]
    assert_allclose(low.value(near), joined.value(near), atol=1e-6)


class Low:
    """A potential that is some nats lower."""

    def __init__(self, inner, depth):
        self.inner, self.dim, self.capabilities = inner, inner.dim, frozenset()
        self.depth = depth

    def value(self, positions):
        return self.inner.value(positions) - self.depth


def test_each_part_is_fitted_to_the_rows_about_its_mode():
    rng, seen = np.random.default_rng(1), []
    positions = np.concatenate([at + 0.3 * rng.normal(size=(5, 2)) for at in MODES.positions])

    def fit(rows):
        seen.append(rows.positions)
        return normal((0.0, 0.0))

    fit_by_modes(fit, Evaluations(positions=positions, values=np.zeros(10)), MODES)
    assert_allclose(seen[0], positions[:5])
    assert_allclose(seen[1], positions[5:])


def test_a_mode_that_cannot_be_fitted_is_left_out():
    """And where none can be, there is no surrogate."""

    def fit(rows):
        if len(rows) < 3:
            raise SurrogateFitError("too few")
        return normal((0.0, 0.0))

    rows = Evaluations(positions=0.3 * POSITIONS[:5], values=np.zeros(5))
    found = fit_by_modes(fit, rows, MODES)
    assert len(found.parts) == len(found.modes) == 1
    assert_allclose(found.value(POSITIONS), normal((0.0, 0.0)).value(POSITIONS))
    with pytest.raises(SurrogateFitError, match="too few"):
        fit_by_modes(fit, rows.take(slice(2)), MODES)


def test_jumps_go_to_all_modes_by_their_masses():
    joined = ByModes(parts=(normal((0.0, 0.0)), normal((4.0, 1.0), 0.3)), modes=MODES)
    masses = joined.jumps.shares
    # densities that are one at their modes, so that masses are the roots of determinants
    assert_allclose((masses - 0.1) / 0.8, np.array([1.0, 0.3]) / 1.3, atol=0.1)


def test_a_part_rises_away_from_its_rows_and_is_what_it_is_about_them():
    """Where it is lower than half of the quadratic potential that the rows allow."""
    flat = normal((0.0, 0.0), 1e4)
    near = np.array([[0.5, 0.0], [0.0, 2.0]])
    rows = Evaluations(positions=near, values=np.array([0.1, 0.5]))
    joined = fit_by_modes(lambda _: flat, rows, MODES.take(np.array([0])))
    assert_allclose(joined.value(near), flat.value(near))
    far = np.array([[30.0, 0.0]])
    assert_allclose(joined.value(far), -2.0 + 0.25 * 900.0)
    banana = Evaluations(positions=np.array([[0.0, 10.0]]), values=np.array([3.0]))
    curved = fit_by_modes(lambda _: flat, banana, MODES.take(np.array([0])))
    assert_allclose(curved.value(far), -2.0 + 0.5 * 0.05 * 900.0)


def test_a_row_far_above_does_not_flatten_the_rise():
    """Such a row, on the way to another mode, gave nearly all of the mass to where no row is."""
    positions = np.random.default_rng(0).standard_normal((30, 2))
    positions = np.vstack([positions, [100.0, 0.0]])
    values = np.append(0.5 * np.square(positions[:-1]).sum(axis=1), 20.0)
    rows = Evaluations(positions=positions, values=values)
    found = fit_by_modes(lambda _: normal((0.0, 0.0), 1e4), rows, MODES.take(np.array([0])))
    assert found.value(np.array([[10.0, 0.0]]))[0] > 5.0


def test_moves_are_as_wide_as_modes_and_not_as_far_as_these_are_apart():
    joined = ByModes(parts=(normal((0.0, 0.0)), normal((4.0, 1.0), 0.3)), modes=MODES)
    masses, modes = MODES.masses, modes_of(joined)
    assert modes is MODES
    assert_allclose(modes.covariance_within, (masses[0] + 0.3 * masses[1]) * np.eye(2))
    away = 0.1 * POSITIONS[:2]
    assert_allclose(modes.away(MODES.positions + away), away)


class Curved:
    """Two modes in the shape of a banana each, of masses 0.7 and 0.3."""

    dim, capabilities = 2, frozenset()
    middles = np.array([-6.0, 6.0])

    def value(self, positions):
        x = positions[:, :1] - self.middles
        bent = positions[:, 1:] - 0.5 * (np.square(x) - 1.0)
        logs = np.log([0.7, 0.3]) - 0.5 * np.square(x / 1.5) - 2.0 * np.square(bent)
        return -np.logaddexp.reduce(logs, axis=1)


def test_jumps_follow_curved_modes():
    """Two thirds are accepted, where one t for each mode has two fifths."""
    curved = Curved()
    at = np.stack([curved.middles, np.full(2, -0.5)], axis=1)
    modes = Modes(
        positions=at,
        values=curved.value(at),
        covariances=np.stack([np.diag([0.5, 0.25])] * 2),
        ended=np.array([2, 2]),
    )
    jumps = ByModes(parts=(curved, curved), modes=modes).jumps
    assert len(jumps.laws) > 2
    draws = jumps.draw(4000, np.random.default_rng(1))
    logs = -curved.value(draws) - jumps.log_density(draws)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    # from draws of V by resampling: mean acceptance of independent proposals
    one, other = logs[np.random.default_rng(2).choice(4000, 4000, p=weights)], logs
    assert np.minimum(np.exp(other - one), 1.0).mean() > 0.6
    assert_allclose(weights @ (draws[:, 0] < 0.0), 0.7, atol=0.03)


def two_normals(dim):
    """Return 2/3 N(3, I) + 1/3 N(-3, I)."""

    def both(q):
        heavy, light = np.square(q - 3.0).sum(axis=1), np.square(q + 3.0).sum(axis=1)
        logs = np.log(2.0) - 0.5 * heavy, -0.5 * light
        total = np.logaddexp(*logs)
        return -total, q + 3.0 - 6.0 * np.exp(logs[0] - total)[:, None]

    return sk.potential(value_and_gradient=both, dim=dim, batched=True)


@pytest.mark.parametrize("dim", [2, pytest.param(10, marks=pytest.mark.long)])
def test_two_modes_are_weighed_rightly_for_few_calls(dim):
    """The share is right but for a probability of 6e-5."""
    run = sk.sample(
        two_normals(dim), sampler="sub-chain", surrogate="quadratic", explorer="rounds",
        draws=250, seed=2, progress=False,
    )  # fmt: skip
    heavy = (run.draws.mean(axis=2) > 0.0).astype(float)[:, :, None]
    error = 0.47 / np.sqrt(sk.effective_sample_size(heavy)[0])
    assert abs(heavy.mean() - 2 / 3) < 4.0 * error
    assert np.max(run.rhat()) < 1.01
    assert run.total_calls < 1300 < 2.6 * np.min(run.ess())
    assert not run.verdict.warnings
