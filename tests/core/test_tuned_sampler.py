"""Runs with the tuned sampler of an earlier run."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import SamplingWarning, ShapeError
from surrokit.testing.targets import Gaussian

SIZES = {"chains": 2, "seed": 1, "progress": False}


def earlier(sampler):
    surrogate = None if sampler == "random-walk" else "additive"
    return sk.sample(
        Gaussian(), sampler=sampler, surrogate=surrogate, warmup=120, draws=10, **SIZES
    )


def again(run, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return sk.sample(
            Gaussian(),
            sampler=run.sampler,
            surrogate=run.surrogate,
            warmup=0,
            draws=12,
            initial=run.draws[:, -1],
            **{**SIZES, **options},
        )


@pytest.mark.parametrize("name", ["hmc", "nuts", "sub-chain", "random-walk"])
def test_without_a_warm_up_it_is_used_as_it_was_tuned(name):
    run = earlier(name)
    later = again(run)
    assert later.sampler.tuning is run.sampler.tuning
    assert (later.kept.step_size == run.kernel.step).all()
    assert getattr(later.kernel, "n_transitions", 1) == getattr(run.kernel, "n_transitions", 1)


def test_exact_transitions_beside_it_use_it_too():
    run = earlier("hmc")
    later = again(run, schedule=sk.Safety(mix=0.5))
    assert (later.kept.step_size == run.kernel.step).all()


def test_one_that_was_never_tuned_still_warns():
    with pytest.warns(SamplingWarning, match="no warm-up to tune the step size in"):
        sk.sample(Gaussian(), sampler=sk.make("sampler", "hmc"), warmup=0, draws=5, **SIZES)


def test_one_of_another_target_is_refused():
    run = earlier("hmc")
    other = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=3)
    with pytest.raises(
        ShapeError, match="was tuned on a target with dim 2, but this one has dim 3"
    ):
        sk.sample(other, sampler=run.sampler, warmup=0, draws=5, **SIZES)


def test_with_a_warm_up_it_is_tuned_again():
    run = earlier("hmc")
    later = sk.sample(Gaussian(), sampler=run.sampler, warmup=120, draws=5, **SIZES)
    assert later.sampler.tuning is not run.sampler.tuning
    assert np.ptp(later.warmup.step_size) > 0
