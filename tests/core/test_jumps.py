"""Jumps between modes: exact whatever they are fitted to, and modes come out by their masses."""

import warnings
from collections.abc import Callable

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.compose import make
from surrokit.interfaces import Kernel
from surrokit.kernel.jumps import Jumps, StudentT
from surrokit.modes import Modes
from surrokit.testing.samplers import TUNING, invariance
from surrokit.testing.statistics import CHECK_RATE
from surrokit.testing.targets import Mixture
from surrokit.types import FloatArray

HEAVY = 2 / 3


def two_normals(dim, apart):
    """Return 2/3 N(a, I) + 1/3 N(-a, I), so many standard deviations apart."""
    a = np.full(dim, 0.5 * apart / np.sqrt(dim))

    def both(q):
        logs = [
            np.log(share) - 0.5 * np.square(q - sign * a).sum(axis=1)
            for share, sign in ((HEAVY, 1.0), (1.0 - HEAVY, -1.0))
        ]
        total = np.logaddexp(*logs)
        first = np.exp(logs[0] - total)[:, None]
        return -total, q - (2.0 * first - 1.0) * a

    return sk.potential(value_and_gradient=both, dim=dim, batched=True)


def wrong(dim):
    """Return jumps that were fitted to something else."""
    places = (np.full(dim, -2.0), np.full(dim, 1.5))
    laws = tuple(
        StudentT(centre=at, factor=1.5 * np.eye(dim), degrees=d)
        for at, d in zip(places, (3.0, 30.0), strict=True)
    )
    shares = np.array([0.3, 0.7])
    shapes = (laws[0], attrs.evolve(laws[1], centre=np.zeros(dim)))
    return Jumps(laws=laws, shares=shares, shapes=(shapes,), masses=np.array([0.5, 0.5]))


@attrs.frozen
class Jumping(Kernel):
    """Jumps as a kernel, with the caches of another one."""

    inner: Kernel
    jumps: Jumps
    spoil: Callable[[FloatArray], FloatArray] = np.positive

    @property
    def potential(self):
        return self.inner.potential

    def cache(self, positions):
        return self.inner.cache(positions)

    def propose(self, state, rng):
        made = self.jumps.propose(self.inner, state, rng)
        return attrs.evolve(made, log_correction=self.spoil(made.log_correction))


def verdict(**spoil):
    target = Mixture()
    inner = make("sampler", "hmc", n_steps=2).bind(target, TUNING)
    decider = make("correction", "metropolis").bind(target)
    kernel = Jumping(inner, wrong(target.dim), **spoil)
    return invariance(kernel, decider, target, "", n_chains=6000, n_transitions=4)


@pytest.mark.statistical
def test_jumps_leave_their_target_as_it_is_whatever_they_are_fitted_to():
    verdict().require("a poor fit costs acceptance only")


@pytest.mark.statistical
@pytest.mark.parametrize(
    "spoil", [np.zeros_like, lambda c: np.where(np.isinf(c), 0.0, c)], ids=["none", "no way back"]
)
def test_jumps_with_other_corrections_are_seen(spoil):
    assert verdict(spoil=spoil).p_value < 1e-3 * CHECK_RATE


@pytest.mark.statistical
@pytest.mark.parametrize(("dim", "apart"), [(2, 8.5), (5, 20.0), (20, 20.0)])
def test_modes_come_out_by_their_masses(dim, apart):
    """Four standard errors: of three runs one is outside by chance in 5000."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sk.sample(two_normals(dim, apart), seed=1, progress=False)
    heavy = (run.draws.mean(axis=2) > 0.0).astype(float)
    error = np.sqrt(heavy.var() / sk.effective_sample_size(heavy[..., None])[0])
    assert abs(heavy.mean() - HEAVY) < 4.0 * error < 0.1
    assert run.rhat().max() < 1.02
    assert run.adaptation.jumps == 2
    (finding,) = run.verdict.named("jumps")
    assert "jumps between 2 modes" in finding.message
    assert not finding.warns


def test_one_mode_needs_none():
    run = sk.sample("gaussian", seed=1, progress=False, draws=50)
    assert run.adaptation.jumps == 0
    assert not run.verdict.named("jumps")


def test_masses_are_estimated_by_draws_or_else_by_laplace():
    rng, target = np.random.default_rng(1), two_normals(2, 12.0)
    places = np.array([[1.0, 1.0], [-1.0, -1.0]]) * 6.0 / np.sqrt(2.0)
    modes = Modes(
        positions=places,
        values=target.value(places),
        covariances=np.array([np.eye(2), 1.2 * np.eye(2)]),
        ended=np.array([3, 3]),
    )
    draws = rng.standard_normal((400, 2)) + places[0]
    by_few = Jumps.between(modes, draws, target.value(draws))
    # a t of 10 degrees is lower at its centre than a normal density, by 2 Gamma(6) / (10 Gamma(5))
    expected = HEAVY / (HEAVY + 1.2 * (1.0 - HEAVY))
    assert_allclose(by_few.shares[0], 0.8 * expected + 0.1, rtol=0.02)
    draws = np.vstack([draws, rng.standard_normal((400, 2)) + places[1]])
    by_draws = Jumps.between(modes, draws, target.value(draws))
    assert_allclose(by_draws.shares[0], 0.8 * HEAVY + 0.1, rtol=0.02)
    assert Jumps.between(modes.take(np.array([0])), draws, target.value(draws)) is None
    stood = np.vstack([draws[:400], np.tile(places[1] + 0.1, (400, 1))])
    assert Jumps.between(modes, stood, target.value(stood)).laws[1].centre == pytest.approx(
        places[1]
    )
    with np.errstate(all="ignore"):
        far = np.where(np.arange(800)[:, None] < 400, 1e200, draws)
        assert Jumps.between(modes, far, np.zeros(800)) is None


def test_a_run_that_goes_on_is_the_longer_run(tmp_path):
    target, path = two_normals(3, 12.0), tmp_path / "run"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = sk.sample(target, draws=60, seed=2, progress=False)
        sk.sample(target, draws=25, seed=2, path=path, progress=False)
        resumed = sk.resume(path, target, draws=60, progress=False)
    assert whole.adaptation.jumps == resumed.adaptation.jumps == 2
    assert_array_equal(resumed.draws, whole.draws)
