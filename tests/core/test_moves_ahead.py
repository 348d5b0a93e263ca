"""Independent proposals, decided in batches: transitions have the law of single ones."""

import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.compose import make
from surrokit.interfaces import ChainState, Decider
from surrokit.kernel.hamiltonian import carry_out
from surrokit.kernel.kernel import AHEAD, move_ahead
from surrokit.testing.rows import Summed
from surrokit.testing.samplers import TUNING, WIDE, invariance

KERNEL = make("sampler", "gaussian", step_size=1.0).bind(WIDE, TUNING)


class ByPlace(Decider):
    """Accepts by where chains are and where they might go alone."""

    def decide(self, state, proposal, rng):
        del rng
        assert_array_equal(proposal.log_correction, proposal.cache["value"] - state.cache["value"])
        mixed = (state.positions * [[917.0, 411.0]] + proposal.positions * [[313.0, 771.0]]).sum(1)
        chance = mixed - np.floor(mixed)
        unknown = np.full(len(chance), np.nan)
        return carry_out(state, proposal, unknown, chance < 0.6, chance)


@attrs.frozen
class Block:
    """Makes one transition of several that are decided at once."""

    inner: object
    n: int = 6

    def start(self, positions, cache, source):
        return self.inner.start(positions, cache, source)

    def decide(self, state, proposal, rng):
        del proposal
        *_, last = move_ahead(KERNEL, self.inner, state, self.n, rng)
        return last


def test_where_places_decide_transitions_are_those_of_a_loop():
    positions = np.random.default_rng(1).standard_normal((5, 2))
    cache = KERNEL.cache(positions)
    state = ChainState(positions=positions, values=np.full(5, np.nan), cache=cache)
    found = list(move_ahead(KERNEL, ByPlace(), state, 40, np.random.default_rng(2)))
    rng, moved = np.random.default_rng(2), 0
    for there, told in found:
        state, info = ByPlace().decide(state, KERNEL.propose(state, rng), rng)
        assert_array_equal(there.positions, state.positions)
        assert_array_equal(there.cache["value"], state.cache["value"])
        for name in ("accepted", "acceptance", "divergent", "status", "n_steps"):
            assert_array_equal(getattr(told, name), getattr(info, name))
        moved += info.accepted.sum()
    assert 80 < moved < 160  # of 200: rejections follow one another


@pytest.mark.statistical
def test_transitions_leave_the_target_as_it_is():
    target = Summed()
    decider = make("correction", "subsampled").bind(target).prepare(np.array([0.4, -0.2]))
    verdict = invariance(KERNEL, Block(decider), target, "", n_chains=6000, n_transitions=2)
    verdict.require("rows decide on many proposals at once as on one")


def test_a_run_that_goes_on_is_the_longer_run(tmp_path):
    target, path = make("potential", "simulated-logistic", n_rows=2000, dim=3), tmp_path / "run"
    parts = {"sampler": ("gaussian", {"step_size": 1.0}), "correction": "subsampled"}
    parts |= {"surrogate": "quadratic", "seed": 1, "progress": False}
    few, many = AHEAD // 2, 2 * AHEAD + 7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = sk.sample(target, draws=many, **parts)
        sk.sample(target, draws=few, path=path, **parts)
        resumed = sk.resume(path, target, draws=many, progress=False)
    assert_array_equal(resumed.draws, whole.draws)
    assert resumed.calls == whole.calls
