"""Jumps between the modes of a surrogate leave the target as it is; broken ones are seen.

Exact draws of two normals, seven tenths of them at one, are moved by sub-chains on a surrogate of
these modes that is wrong in place, width and height. Whether the part of the draws at each mode
stays is tested: the sound kernel raises a false alarm with a probability of 6e-7.
"""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from scipy.special import ndtr

import surrokit as sk
from surrokit.compose import make
from surrokit.interfaces import Tuning
from surrokit.kernel.jumps import Jumps, StudentT
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.surrogate.by_modes import ByModes
from surrokit.testing.targets import Gaussian
from surrokit.testing.wrappers import Wrapped

DIM, CHAINS, TRANSITIONS, HEIGHT = 2, 20_000, 4, 1.0
CENTRES, MASSES = np.array([[3.0] * DIM, [-3.0] * DIM]), np.array([0.7, 0.3])

pytestmark = pytest.mark.statistical


def two_normals():
    def both(q):
        away = q[:, None] - CENTRES
        logs = np.log(MASSES) - 0.5 * np.square(away).sum(axis=2)
        top = np.logaddexp.reduce(logs, axis=1)
        return -top, np.einsum("nk,nkd->nd", np.exp(logs - top[:, None]), away)

    return sk.potential(value_and_gradient=both, dim=DIM, batched=True)


class Higher(Wrapped):
    """A potential that is higher by a constant."""

    def value(self, positions):
        return self.inner.value(positions) + HEIGHT

    def value_and_gradient(self, positions):
        values, gradients = self.inner.value_and_gradient(positions)
        return values + HEIGHT, gradients


def surrogate() -> Potential:
    scales = (1.6, 1.0)
    moved = Gaussian(mean=tuple(CENTRES[0] + 1.0), covariance=scales[0] * np.eye(DIM))
    other = Higher(Gaussian(mean=tuple(CENTRES[1]), covariance=scales[1] * np.eye(DIM)))
    modes = Modes(
        positions=CENTRES,
        values=np.array([0.0, HEIGHT]),
        covariances=np.stack([scale * np.eye(DIM) for scale in scales]),
        ended=np.array([2, 2]),
    )
    return ByModes(parts=(moved, other), modes=modes)


def jumps():
    """Return jumps that are fitted badly."""
    first = StudentT(centre=np.full(DIM, 1.5), factor=1.2 * np.eye(DIM), degrees=5.0)
    second = StudentT(centre=np.full(DIM, -3.0), factor=np.eye(DIM), degrees=10.0)
    shares = np.array([0.5, 0.5])
    return Jumps(laws=(first, second), shares=shares, shapes=((first, second),), masses=MASSES)


class WithoutDensity:
    """Jumps that are accepted as if from a symmetric proposal."""

    def __init__(self, inner):
        self.inner = inner

    def propose(self, kernel, state, rng):
        made = self.inner.propose(kernel, state, rng)
        return attrs.evolve(made, log_correction=np.zeros(len(state.positions)))


class NotAfter:
    """Jumps before the one transition of a sub-chain, and none after it: no palindrome."""

    def __init__(self, inner):
        self.inner, self.is_after = inner, False

    def propose(self, kernel, state, rng):
        made = self.inner.propose(kernel, state, rng)
        after, self.is_after = self.is_after, not self.is_after
        return attrs.evolve(made, log_correction=made.log_correction - (np.inf if after else 0.0))


@attrs.frozen
class FreeConstants:
    """A sub-chain that is decided as if the other mode's part of V were lower by a constant."""

    inner: object

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def propose(self, state, rng):
        made, modes = self.inner.propose(state, rng), self.inner.potential.modes
        change = modes.nearest(made.positions) - modes.nearest(state.positions)
        return attrs.evolve(made, log_correction=made.log_correction + change)


def departure(spoil):
    """Return by how many standard errors the part of the draws at the second mode departs."""
    rng, exact = np.random.default_rng(1), two_normals()
    of = (rng.random(CHAINS) > MASSES[0]).astype(int)
    positions = CENTRES[of] + rng.standard_normal((CHAINS, DIM))
    settings = {"kernel": ("hmc", {"n_steps": 2, "step_size": 1.0}), "length": 1}
    kernel = make("sampler", "sub-chain", **settings).bind(
        surrogate(), Tuning(step_size=1.0, covariance=np.eye(DIM))
    )
    kernel = spoil(attrs.evolve(kernel, jumps=jumps()))
    decider = make("correction", "metropolis").bind(exact)
    state = decider.start(positions, kernel.cache(positions), kernel.potential)
    for _ in range(TRANSITIONS):
        state, info = decider.decide(state, kernel.propose(state, rng), rng)
    assert info.accepted.mean() > 0.3
    part = float(MASSES @ ndtr(-CENTRES[:, 0]))
    departed = np.mean(state.positions[:, 0] < 0.0) - part
    return float(departed / np.sqrt(part * (1.0 - part) / CHAINS))


def test_sub_chains_with_jumps_keep_the_masses_of_modes():
    assert abs(departure(lambda kernel: kernel)) < 5.0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda kernel: attrs.evolve(kernel, jumps=WithoutDensity(kernel.jumps)),
        lambda kernel: attrs.evolve(kernel, jumps=NotAfter(attrs.evolve(kernel.jumps, shapes=()))),
        FreeConstants,
    ],
    ids=["no density of the proposal", "no palindrome", "a free constant"],
)
def test_what_is_broken_is_seen(spoil):
    assert abs(departure(spoil)) > 8.0
