"""NUTS broken on purpose from the inside is caught, and unbroken it passes the same checks."""

import numpy as np
import pytest

from surrokit.compose import make
from surrokit.testing import CHECK_RATE
from surrokit.testing.parts import ReferenceCorrection
from surrokit.testing.samplers import invariance, ready
from surrokit.testing.statistics import Verdict
from surrokit.testing.targets import Banana, Gaussian
from surrokit_hmc import trajectories
from surrokit_hmc.adaptive import AdaptiveLeapfrog

MARGIN = 1e-3
"""A mutant's p-value is to be so many times below the threshold."""


def nuts(slowed):
    # with shorter steps energies are too even for a wrong choice of points to show
    settings = {"step_size": 1.2, "max_depth": 3, "metric": "identity", "slowed": slowed}
    return lambda: make("sampler", "nuts", **settings)


def check_kept(factory):
    """Exact draws of two targets stay exact draws."""
    verdicts = [
        invariance(
            ready(factory, target),
            ReferenceCorrection(potential=target),
            target,
            f"{type(target).__name__}: ",
            n_chains=8000,
        )
        for target in (Gaussian(), Banana())
    ]
    Verdict.join(verdicts).require("exact draws must stay exact draws")


class NewestPoint(trajectories.Half):
    """The last point of a path in place of one drawn by weight."""

    def _weigh(self, log_weight):
        super()._weigh(log_weight)
        self.sample = trajectories.take_rows(self.point, np.arange(len(log_weight)))


class EvenPoint(trajectories.Half):
    """Every point of a path as likely as any other, whatever its energy."""

    def _weigh(self, log_weight):
        accepted = self._accepted + np.exp(np.minimum(log_weight, 0.0))
        super()._weigh(np.zeros_like(log_weight))
        self._accepted = accepted


class SubtreesUnseen(trajectories.Half):
    """Only whole paths are asked whether they turn: from other points they would be shorter."""

    def turn_back(self, metric, slowed):
        del metric, slowed
        self.momentum_sum += self.point.momenta


class OneWay(trajectories.Trajectories):
    """Paths that only ever grow forwards, so that their start is always their first point."""

    def __init__(self, hamiltonian, integrator, start, step_size, rng, *, slowed):
        super().__init__(hamiltonian, integrator, start, step_size, Forwards(rng), slowed=slowed)


class Forwards:
    """A generator whose directions are all the same."""

    def __init__(self, rng):
        self._rng = rng

    def integers(self, low, high, size):
        return np.full(size, high - 1)

    def __getattr__(self, name):
        return getattr(self._rng, name)


BROKEN = {
    "the last point": ("surrokit_hmc.trajectories.Half", NewestPoint),
    "points regardless of their energy": ("surrokit_hmc.trajectories.Half", EvenPoint),
    "no test of subtrees": ("surrokit_hmc.trajectories.Half", SubtreesUnseen),
    "no random direction": ("surrokit_hmc.nuts.Trajectories", OneWay),
}


TURNED, SLOWED = 0.0, 0.45
"""Where paths end: where they turn back, and by default."""

CASES = [
    *((name, TURNED) for name in BROKEN),
    # paths of two points are as likely from either end: it takes longer ones to show directions
    *((name, SLOWED) for name in BROKEN if name != "no random direction"),
]


@pytest.mark.parametrize(("name", "slowed"), CASES)
def test_mutant_is_caught(name, slowed, monkeypatch, p_values):
    monkeypatch.setattr(*BROKEN[name])

    with pytest.raises(AssertionError):
        check_kept(nuts(slowed))

    assert p_values
    assert p_values[-1] < MARGIN * CHECK_RATE


@pytest.mark.parametrize("slowed", [TURNED, SLOWED])
def test_original_passes(slowed):
    check_kept(nuts(slowed))


def walnuts():
    integrator = ("adaptive-leapfrog", {"max_error": 0.2})  # so that about half of steps are cut
    settings = {"step_size": 1.2, "max_depth": 3, "metric": "identity"}
    return make("sampler", "walnuts", integrator=integrator, **settings)


def test_steps_that_are_halved_keep_exact_draws():
    check_kept(walnuts)


def test_steps_that_are_not_checked_from_their_end_are_caught(monkeypatch, p_values):
    monkeypatch.setattr(AdaptiveLeapfrog, "_leads_back", lambda *args: np.ones(len(args[3]), bool))

    with pytest.raises(AssertionError):
        check_kept(walnuts)

    assert p_values[-1] < MARGIN * CHECK_RATE
