"""What is said of chains that do not move, and whom it blames."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.result.advice import advice
from surrokit.testing.targets import Gaussian

START = np.array([1.0, 1.0])
SIZES = {"chains": 4, "draws": 60, "seed": 1, "progress": False, "initial": START}


@attrs.frozen
class NoGradient(Gaussian):
    """A surrogate on which every path from the start fails, whatever the step size."""

    def value_and_gradient(self, positions):
        value, gradient = super().value_and_gradient(positions)
        return value, np.where(positions == START, gradient, np.nan)


def sub_chain(**kernel):
    return ("sub-chain", {"kernel": ("hmc", {"metric": "identity", **kernel}), "length": 4})


@pytest.fixture(scope="module")
def stuck():
    with pytest.warns(SamplingWarning, match="step size of 50 is too large; give the sampler a sm"):
        return sk.sample(
            Gaussian(), sampler=sub_chain(step_size=50.0), surrogate=Gaussian(), warmup=0, **SIZES
        )


def test_a_sub_chain_that_never_moves_has_accepted_nothing(stuck):
    assert (np.ptp(stuck.draws, axis=1) == 0).all()
    np.testing.assert_array_equal(stuck.acceptance, 0.0)
    assert not stuck.kept.accepted.any()
    assert np.isnan(stuck.kept.acceptance).all()  # nothing was ever decided
    assert stuck.kept.path_acceptance.max() < 1e-6
    assert stuck.to_dict()["acceptance"] == [0.0] * 4


def test_a_step_size_that_nobody_gave_is_not_blamed():
    """In warm-up the paths failed at every step size: the surrogate's gradient is NaN."""
    with pytest.warns(SamplingWarning, match="next to nothing was accepted") as caught:
        run = sk.sample(
            Gaussian(), sampler=sub_chain(), surrogate=NoGradient(), warmup=100, **SIZES
        )
    (complaint,) = advice(run)
    assert str(caught[0].message) == complaint
    failing = attrs.evolve(run.kept, path_acceptance=np.zeros((4, 60)))
    (about_paths,) = advice(attrs.evolve(run, kept=failing))
    assert "warm-up found no steps that work where the chains are" in about_paths
    assert "surrokit.check_gradient" in about_paths
    for said in (complaint, about_paths):
        assert "step size" not in said
        assert "step_size" not in said
        assert "initial=..." in said
        assert "another surrogate or sampler" in said


def test_where_no_warm_up_tuned_the_step_size_that_is_said():
    with pytest.warns(SamplingWarning):
        run = sk.sample(Gaussian(), sampler=sub_chain(), surrogate=NoGradient(), warmup=0, **SIZES)
    (complaint,) = advice(run)
    assert "no warm-up tuned the step size of 0.5; pass warmup=..., or give" in complaint


def test_where_all_chains_stand_together_that_is_said(stuck):
    """Paths neither fail nor work, and nothing was decided that a surrogate could be blamed for."""
    kept = attrs.evolve(stuck.kept, path_acceptance=np.full((4, 60), 0.1))
    run = attrs.evolve(stuck, kept=kept)
    (complaint,) = advice(run)
    assert complaint == (
        "next to nothing was accepted: chains moved in 0.000 of the kept iterations; start "
        "elsewhere with initial=..., warm up for longer, or use another surrogate or sampler"
    )
    (alone,) = advice(attrs.evolve(run, surrogate=None))
    assert alone.endswith("or use another sampler")
