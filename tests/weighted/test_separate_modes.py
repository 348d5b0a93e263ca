"""Draws of chains that stay at modes, weighed by the modes' evidences."""

from __future__ import annotations

import functools
import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import BudgetSpent, ConfigurationError, NumericalError
from surrokit.kernel.jumps import Jumps
from surrokit.modes import Modes
from surrokit.weighted import normalizer
from surrokit.weighted.round import Estimate
from surrokit.weighted.separate_modes import ModeVisits, SeparateModes, weigh_modes

SDS, MASSES, DIM = np.array([1.0, 0.5]), np.array([0.7, 0.3]), 3
CENTRES = np.array([np.full(DIM, 3.0), np.full(DIM, -3.0)])


def potential(q):
    """Return U of two normals, with log Z = 5."""
    squares = np.square((q[:, None] - CENTRES) / SDS[:, None]).sum(axis=2)
    logs = np.log(MASSES) - DIM * np.log(SDS) - 0.5 * DIM * np.log(2.0 * np.pi) - 0.5 * squares
    return -np.logaddexp.reduce(logs, axis=1) - 5.0


def modes(**changed):
    found = Modes(
        positions=CENTRES,
        values=potential(CENTRES),
        covariances=np.square(SDS)[:, None, None] * np.eye(DIM),
        ended=np.array([3, 2]),
    )
    return attrs.evolve(found, **changed)


def chains(seed, at=(0, 0, 0, 1), n=500):
    """Return independent draws of chains, each at one of the modes."""
    rng = np.random.default_rng(seed)
    return np.stack([CENTRES[k] + SDS[k] * rng.standard_normal((n, DIM)) for k in at])


def values_at(positions):
    return potential(positions.reshape(-1, DIM)).reshape(positions.shape[:2])


@functools.cache
def weighed(seed):
    positions = chains(seed)
    return weigh_modes(modes(), positions, values_at(positions), np.random.default_rng(seed))


@pytest.mark.statistical
@pytest.mark.long
def test_masses_are_right_within_their_errors_whatever_the_draws_shares():
    """Of 40 estimates the mean square of z is below 1.7 but for a probability of 0.002."""
    found = [weighed(seed) for seed in range(40)]
    assert all(each.separate and each.doubt is None for each in found)
    z = np.array([(each.masses[0] - 0.7) / each.mass_errors[0] for each in found])
    assert 0.4 < np.mean(np.square(z)) < 1.7
    of_log = np.array([(each.logs - 5.0 - np.log(MASSES)) / each.errors for each in found])
    assert 0.4 < np.mean(np.square(of_log)) < 1.7


def test_masses_are_precise_without_a_call():
    assert weighed(1).mass_errors.max() < 0.03


def test_where_u_is_not_known_it_is_evaluated_within_the_mode():
    positions, asked = chains(2), []

    def exact(q):
        asked.append(q)
        return potential(q)

    unknown = np.full(positions.shape[:2], np.nan)
    found = weigh_modes(modes(), positions, unknown, np.random.default_rng(0), exact=exact)
    assert found.separate
    assert abs(found.masses[0] - 0.7) < 4.0 * found.mass_errors[0] < 0.2
    assert sum(map(len, asked)) <= 400
    without = weigh_modes(modes(), positions, unknown, np.random.default_rng(0))
    assert not without.separate
    assert without.doubt == "the evidence of one is not known from its draws"


def test_a_budget_that_is_spent_is_a_doubt():
    def spent(q):
        raise BudgetSpent("max_calls")

    positions = chains(2)
    unknown = np.full(positions.shape[:2], np.nan)
    found = weigh_modes(modes(), positions, unknown, np.random.default_rng(0), exact=spent)
    assert found.doubt is not None
    assert np.isnan(found.errors).all()


def test_a_mode_without_chains_leaves_draws_as_they_are():
    positions = chains(1, at=(0, 0, 0, 0))
    found = weigh_modes(modes(), positions, values_at(positions), np.random.default_rng(0))
    assert not found.separate
    assert found.doubt == "one without chains may have 0.3 of the mass"
    assert np.isnan(found.mass_errors[1])


def test_modes_that_overlap_leave_draws_as_they_are():
    rng, near = np.random.default_rng(3), np.array([[0.7] * DIM, [-0.7] * DIM])
    positions = near[[0, 0, 1, 1]][:, None] + rng.standard_normal((4, 500, DIM))
    # chains that never cross the middle
    positions *= np.sign(positions.mean(axis=2) * np.array([[1], [1], [-1], [-1]]))[..., None]
    found = modes(positions=near, values=np.zeros(2), covariances=np.stack([np.eye(DIM)] * 2))
    values = -np.logaddexp(
        -0.5 * np.square(positions - near[0]).sum(axis=2),
        -0.5 * np.square(positions - near[1]).sum(axis=2),
    )
    assert weigh_modes(found, positions, values, rng).doubt == "modes overlap"


def test_where_chains_go_between_modes_shares_are_masses():
    rng = np.random.default_rng(4)
    at = (rng.random((4, 1000)) > 0.7).astype(int)
    positions = CENTRES[at] + SDS[at][..., None] * rng.standard_normal((4, 1000, DIM))
    found = weigh_modes(modes(), positions, values_at(positions), rng)
    assert not found.separate
    assert found.doubt is None
    assert_allclose(found.masses, [np.mean(at == 0), np.mean(at == 1)])
    assert_allclose(found.mass_errors, np.sqrt(0.21 / 4000), rtol=0.2)
    assert (np.abs(found.logs - 5.0 - np.log(MASSES)) < 4.0 * found.errors).all()


def test_few_draws_that_go_between_modes_have_masses_and_no_evidences():
    at = np.arange(20) % 2 * np.ones((4, 1), dtype=int)
    rng = np.random.default_rng(5)
    positions = CENTRES[at] + SDS[at][..., None] * rng.standard_normal((4, 20, DIM))
    found = weigh_modes(modes(), positions, values_at(positions), rng)
    assert_allclose(found.masses, 0.5)
    assert np.isnan(found.logs).all()


def test_ends_of_searches_in_one_valley_are_one_mode():
    """Chains go between the first two, and the lowest has the mass of both."""
    split = CENTRES[0] + np.array([[0.5, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    positions = np.concatenate([split, CENTRES[1:]])
    found = modes(
        positions=positions,
        values=potential(positions),
        covariances=np.concatenate([np.stack([np.eye(DIM)] * 2), 0.25 * np.eye(DIM)[None]]),
        ended=np.array([2, 2, 2]),
        converged=np.ones(3, dtype=bool),
        places=positions,
    )
    draws = chains(5)
    visits = ModeVisits.of(found, draws)
    assert list(visits.groups) == [0, 0, 1]
    assert not visits.joined
    known = weigh_modes(found, draws, values_at(draws), np.random.default_rng(0))
    assert known.separate
    assert known.masses[1] == 0.0
    assert abs(known.masses[0] - 0.7) < 4.0 * known.mass_errors[0]


# --- answers ---


def answers(seed):
    found, draws = weighed(seed), chains(seed)
    visits = ModeVisits.of(modes(), draws)
    return SeparateModes(
        draws=draws, visited=visits.at, logs=found.logs, errors=found.errors, calls=10.0
    )


@pytest.mark.statistical
@pytest.mark.long
def test_errors_of_means_have_those_of_masses():
    """Of 40 runs the mean square of z is within these bounds but for a probability of 0.002."""
    truth = float(MASSES @ CENTRES[:, 0])
    found = [answers(seed).mean() for seed in range(40)]
    z = np.array([(each.value[0] - truth) / each.error[0] for each in found])
    assert 0.4 < np.mean(np.square(z)) < 1.7


def test_draws_count_by_the_masses_of_their_modes():
    found = answers(1)
    assert found.weights.mean() == pytest.approx(1.0)
    assert found.weights[3].sum() / 2000 == pytest.approx(found.masses[1])
    assert found.quantile(0.15).value == pytest.approx(np.full(DIM, -3.0), abs=0.05)
    assert isinstance(found.log_evidence, Estimate)
    assert abs(found.log_evidence.value - 5.0) < 4.0 * found.log_evidence.error
    quantity = found.mean_of(np.ones((4, 500, 2, 2)))
    assert_allclose(quantity.value, np.ones((2, 2)))
    assert found.rhat.max() < 1.05


# --- runs ---


def two_normals():
    def both(q):
        squares = np.square((q[:, None] - CENTRES) / SDS[:, None]).sum(axis=2)
        logs = np.log(MASSES) - DIM * np.log(SDS) - 0.5 * squares
        top = np.logaddexp.reduce(logs, axis=1)
        each = np.exp(logs - top[:, None]) / np.square(SDS)
        return -top, np.einsum("nk,nkd->nd", each, q[:, None] - CENTRES)

    return sk.potential(value_and_gradient=both, dim=DIM, batched=True)


@pytest.fixture
def without_jumps(monkeypatch):
    monkeypatch.setattr(Jumps, "between", classmethod(lambda cls, *_: None))


STARTS = np.concatenate([CENTRES, CENTRES]) + 0.05


def sampled(**options):
    options = {"sampler": "hmc", "initial": STARTS, "seed": 1, "progress": False} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sk.sample(two_normals(), **options)


def test_a_run_says_that_its_draws_are_weighted_and_weighs_them(without_jumps, tmp_path):
    run = sampled(path=tmp_path / "run")
    assert run.by_mode is not None
    assert not run.exact
    assert run.by_chains
    (finding,) = run.verdict.named("mode_weights")
    assert "weighted by mode" in finding.message
    assert not any("went from one to another" in each for each in run.verdict.messages)
    share = run.expectation(lambda q: float(q[0] > 0.0))
    assert abs(share.value - 0.7) < 4.0 * share.error < 0.1
    mean = run.summary()["mean"][0]
    assert mean == pytest.approx(6.0 * share.value - 3.0, abs=0.1)
    assert "; q[0] = 3, q[1] = 3, q[2] = 3: mass 0.6" in str(run.summary())
    assert run.log_weights.shape == run.draws.shape[:2]
    assert np.mean(run.resampled(4000, rng=1)[:, 0] > 0.0) == pytest.approx(0.7, abs=0.05)
    assert abs(run.log_evidence().value - 1.5 * np.log(2.0 * np.pi)) < 0.1
    assert "log_weight" in run.to_pandas()
    assert np.isfinite(run.to_dict()["modes"]["masses"]).all()
    with pytest.raises(ConfigurationError, match="the answers of this run are weighted"):
        sk.sharpen(run)
    opened = sk.open_run(tmp_path / "run")
    assert_allclose(opened.log_weights, run.log_weights)
    assert str(opened.verdict) == str(run.verdict)
    pytest.importorskip("arviz", reason="the rest exports to ArviZ")
    assert run.to_arviz().posterior.attrs.get("exact", 0) == 0


def test_draws_are_left_as_found_where_that_is_asked_for(without_jumps):
    run = sampled(modes="as found", draws=200)
    assert run.exact
    assert run.log_weights is None
    assert any("modes='as found' was given" in each for each in run.verdict.messages)
    assert run.asked["modes"] == "as found"
    with pytest.raises(ConfigurationError, match="modes must be 'weighted' or 'as found'"):
        sampled(modes="no")


def test_a_run_that_goes_on_weighs_all_its_draws(without_jumps, tmp_path):
    whole = sampled(draws=300)
    sampled(draws=100, path=tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        resumed = sk.resume(tmp_path / "run", two_normals(), draws=300, progress=False)
    assert_allclose(resumed.draws, whole.draws)
    assert_allclose(resumed.log_weights, whole.log_weights)


def test_the_heaviest_mode_has_an_evidence_where_all_draws_together_have_none(monkeypatch):
    run = sampled(draws=400)

    def fail(*given, **options):
        raise NumericalError("too heavy a tail")

    expected = run.log_evidence()
    monkeypatch.setattr(normalizer, "evidence_of_chains", fail)
    found = run.log_evidence()
    assert found.calls == run.total_calls
    assert abs(found.value - 1.5 * np.log(2.0 * np.pi)) < 4.0 * found.error < 0.4
    assert abs(found.value - expected.value) < 4.0 * found.error
