"""Sub-chains: many transitions on V, one proposal."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState, Proposal, Sampler, Status, Tuning
from surrokit.kernel.hamiltonian import carry_out, metropolis
from surrokit.kernel.jumps import Jumps, StudentT
from surrokit.kernel.tuning import FIRST_LENGTH
from surrokit.testing.targets import Banana, Gaussian
from surrokit.testing.wrappers import CountingPotential

BANANA = Banana()
TUNING = Tuning(step_size=1.0)


def settings_of(kernel="random-walk", length=3, **settings):
    return sk.make("sampler", "sub-chain", kernel=(kernel, settings), length=length)


def sub_chain(kernel="random-walk", length=3, potential=BANANA, tuning=TUNING, **settings):
    return settings_of(kernel, length, **settings).bind(potential, tuning)


def hmc(length=3, **settings):
    return sub_chain("hmc", length, **{"step_size": 0.4, "n_steps": 3, **settings})


def started(sampler, n=6, seed=0, target=BANANA):
    q = target.sample(np.random.default_rng(seed), n)
    return ChainState(positions=q, values=np.full(n, np.nan), cache=sampler.cache(q))


def followed(kernel, state, length, rng):
    """The same by hand, for a kernel that gives V in its cache."""
    for _ in range(length):
        proposal = kernel.propose(state, rng)
        values = proposal.cache["value"]
        ratio = state.cache["value"] - values + proposal.log_correction
        decided = metropolis(np.where(proposal.status == Status.OK, ratio, -np.inf), rng)
        state, _ = carry_out(state, proposal, values, *decided)
    return state


# --- what a sub-chain is ---


def test_it_is_so_many_transitions_of_its_kernel_each_accepted_on_its_own_potential():
    sampler = hmc(randomize=False)
    state = started(sampler)
    proposal = sampler.propose(state, np.random.default_rng(3))
    kernel = sk.make("sampler", "hmc", step_size=0.4, n_steps=3, randomize=False)
    end = followed(kernel.bind(BANANA, TUNING), state, 3, np.random.default_rng(3))
    assert_array_equal(proposal.positions, end.positions)
    assert_array_equal(proposal.cache["value"], end.cache["value"])
    assert_allclose(
        proposal.log_correction, BANANA.value(end.positions) - BANANA.value(state.positions)
    )


def test_a_kernel_that_knows_no_potential_is_accepted_on_the_sub_chains():
    counting = CountingPotential(BANANA)
    sampler = sub_chain(length=5, potential=counting, step_size=1.0)
    state = started(sampler)
    counting.positions.clear()
    proposal = sampler.propose(state, np.random.default_rng(3))
    assert counting.positions == {"value": 5 * 6}
    assert sampler.potential is proposal.source is counting
    assert_allclose(proposal.cache["value"], BANANA.value(proposal.positions))
    assert (proposal.log_path_ratio < 0).all()


def test_where_nothing_was_accepted_nothing_moved():
    sampler = sub_chain(length=2, step_size=60.0)
    state = started(sampler)
    proposal = sampler.propose(state, np.random.default_rng(4))
    still = ~proposal.moved
    assert still.any()
    assert_array_equal(proposal.positions[still], state.positions[still])
    assert_array_equal(proposal.log_correction[still], 0.0)
    assert_array_equal(proposal.status, Status.OK)


def test_chains_that_did_not_move_cost_no_exact_call():
    target, surrogate = CountingPotential(Gaussian()), Gaussian(mean=(0.0, 0.0))
    sampler = sub_chain(length=1, potential=surrogate, step_size=3.0)
    state = started(sampler, n=40)
    correction = sk.make("correction", "metropolis").bind(target)
    state = correction.start(state.positions, state.cache, surrogate)
    target.positions.clear()
    proposal = sampler.propose(state, np.random.default_rng(5))
    correction.decide(state, proposal, np.random.default_rng(6))
    assert 0 < target.positions["value"] == proposal.moved.sum() < 40


@attrs.frozen
class Failing(Sampler):
    """A kernel of which every other chain's path fails, wherever it would have gone."""

    potential: object = None
    tunes: frozenset = frozenset()
    needs: frozenset = frozenset()
    target_acceptance: float = 0.8
    step: float = 1.0

    def bind(self, potential, tuning):
        return attrs.evolve(self, potential=potential)

    def cache(self, positions):
        return {"value": self.potential.value(positions)}

    def propose(self, state, rng):
        n = len(state.positions)
        odd = np.arange(n) % 2 == 1
        positions = state.positions + 0.1 * rng.standard_normal(state.positions.shape)
        positions[odd] = np.nan
        value = np.full(n, np.nan)
        value[~odd] = self.potential.value(positions[~odd])
        return Proposal(
            positions=positions,
            log_correction=np.zeros(n),
            moved=~odd,
            status=np.where(odd, Status.NOT_CONVERGED, Status.OK),
            cache={"value": value},
            source=self.potential,
            log_path_ratio=state.cache["value"] - value,
            n_steps=np.ones(n, dtype=np.int64),
        )


def test_a_path_that_fails_inside_is_a_rejection_inside():
    sampler = sk.make("sampler", "sub-chain", kernel=Failing(), length=3).bind(BANANA, TUNING)
    state = started(sampler)
    proposal = sampler.propose(state, np.random.default_rng(7))
    assert_array_equal(proposal.status, Status.OK)
    assert_array_equal(proposal.moved, [True, False] * 3)
    assert_array_equal(proposal.divergent, [False, True] * 3)
    assert np.isfinite(proposal.positions).all()
    assert np.isfinite(proposal.log_path_ratio).all()


@pytest.mark.parametrize("length", [1, 2, 5, 6])
def test_what_chains_share_is_the_same_from_either_end(length):
    sampler = hmc(length=length, n_steps=50)
    kernels = sampler._kernels(length, np.random.default_rng(8))
    steps = [kernel.max_steps for kernel in kernels]
    assert len(steps) == length
    assert steps == steps[::-1]
    assert len(set(steps)) > (length > 2)
    assert not any(kernel.randomize for kernel in kernels)


@attrs.define
class AtOneEnd:
    """Jumps of which the last in a sub-chain is left out."""

    jumps: Jumps
    every: int
    made: int = 0

    def propose(self, kernel, state, rng):
        self.made += 1
        if self.made % self.every:
            return self.jumps.propose(kernel, state, rng)
        return Proposal(positions=state.positions, cache=state.cache)


def flow(kernel, n):
    """Return by how many standard deviations more of n chains came from afar than went there.

    Far moves come between where jumps lead and where they lead only by way of a transition.
    """
    rng = np.random.default_rng(12)
    q = kernel.potential.sample(rng, n)
    cache = kernel.cache(q)
    state = ChainState(positions=q, values=cache["value"], cache=cache)
    moves = [q[:, 0], kernel.propose(state, rng).positions[:, 0]]
    came, left = (((a < -0.5) & (b > 1.0)).sum() for a, b in (moves, moves[::-1]))
    return (came - left) / np.sqrt(came + left)


@pytest.mark.statistical
def test_jumps_at_both_ends_leave_a_sub_chain_reversible():
    """From draws of exp(-V) as many go from here to there as back, and not with jumps at one end.

    A sound one raises a false alarm with a probability of 6e-5.
    """
    target = Gaussian(mean=(0.0, 0.0), covariance=np.eye(2))
    law = StudentT(centre=np.array([1.0, 0.0]), factor=np.diag([0.5, 1.0]), degrees=100.0)
    jumps = Jumps(laws=(law,), shares=np.ones(1))
    alone = sub_chain("random-walk", 1, potential=target, step_size=0.7)
    sound = attrs.evolve(alone, jumps=jumps)
    assert abs(flow(sound, 40_000)) < 4.0
    assert flow(attrs.evolve(sound, jumps=AtOneEnd(jumps, 2)), 40_000) < -8.0


# --- parts inside ---


@pytest.mark.parametrize(
    ("settings", "length", "free"),
    [
        ({}, None, {"step_size", "n_steps", "metric", "length", "heavy_warp"}),
        ({"step_size": 0.1, "n_steps": 3}, None, {"metric", "length"}),
        ({"step_size": 0.1, "n_steps": 3, "metric": "identity"}, 4, set()),
    ],
)
def test_what_is_not_given_is_tuned(settings, length, free):
    assert settings_of("hmc", length, **settings).tunes == free


def test_what_is_tuned_is_used_and_reaches_the_kernel():
    tuning = Tuning(step_size=0.3, covariance=np.diag([4.0, 1.0]), length=7)
    sampler = sub_chain("hmc", None, tuning=tuning)
    assert (sampler.n_transitions, sampler.step, sampler.kernel.step) == (7, 0.3, 0.3)
    assert sub_chain("hmc", 2, tuning=tuning).n_transitions == 2
    assert sub_chain("hmc", None).n_transitions == FIRST_LENGTH
    settings = settings_of("hmc", None)
    assert settings.target_acceptance == settings.kernel.target_acceptance


def test_excursions_are_in_units_of_the_covariance():
    tuning = Tuning(step_size=0.3, covariance=np.array([[4.0, 1.0], [1.0, 2.0]]), length=6)
    sampler = sub_chain("hmc", None, tuning=tuning)
    state = started(sampler)
    excursion = sampler.propose(state, np.random.default_rng(11)).excursion
    assert excursion.jumps.shape == (6, 3)  # after 1, 2 and 4 transitions
    assert excursion.values.shape == (6, 4)
    assert_array_equal(excursion.values[:, 0], state.cache["value"])
    one = sub_chain("hmc", None, tuning=attrs.evolve(tuning, length=1))
    proposal = one.propose(state, np.random.default_rng(11))
    away = proposal.positions - state.positions
    assert hmc().propose(state, np.random.default_rng(11)).excursion is None
    expected = np.einsum("ni,ij,nj->n", away, np.linalg.inv(tuning.covariance), away) / 4
    assert_allclose(proposal.excursion.jumps[:, 0], expected)


def test_a_length_out_of_range_is_refused():
    with pytest.raises(ConfigurationError, match="length must be a whole number of at least 1"):
        sub_chain(length=0)


# --- in a run ---


def normal(dim, scale=1.0):
    covariance = np.diag(np.linspace(1.0, 4.0, dim)) * scale
    return sk.make("potential", "gaussian", mean=np.zeros(dim), covariance=covariance)


@pytest.fixture(scope="module")
def run():
    return sk.sample(
        normal(10), sampler="sub-chain", surrogate=normal(10, scale=1.1), warmup=300, draws=250,
        seed=3, progress=False,
    )  # fmt: skip


def test_draws_are_nearly_independent(run):
    assert 4 <= run.kernel.n_transitions <= 32
    for draws in (run.draws, np.square(run.draws)):
        away = draws - draws.mean(axis=(0, 1))
        lag_one = (away[:, 1:] * away[:, :-1]).mean(axis=(0, 1)) / np.square(away).mean(axis=(0, 1))
        assert np.abs(lag_one.mean()) < 0.25
    assert run.acceptance.mean() > 0.7
    assert run.calls["value"] <= 4 * 551  # one for a draw
    assert run.calls["gradient"] == 0
    assert len(np.unique(run.kept.step_size)) == 1
