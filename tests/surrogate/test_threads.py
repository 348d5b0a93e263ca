"""Small fits run in one thread, whatever the machine offers."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import surrokit as sk
from surrokit.surrogate.threads import FEW, threads_for


def threads():
    return max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")


@pytest.fixture(autouse=True)
def two():
    with threadpool_limits(limits=2, user_api="blas"):
        if threads() < 2:
            pytest.skip("linear algebra has a single thread here")
        yield


@pytest.mark.parametrize(("numbers", "expected"), [(FEW - 1, 1), (FEW, 2)])
def test_only_small_fits_have_one_thread(numbers, expected):
    with threads_for(numbers):
        assert threads() == expected
    assert threads() == 2


def test_a_run_fits_few_evaluations_in_one_thread():
    seen = []

    @sk.batch_surrogate
    def flat(rows, rng):
        seen.append((threads(), len(rows)))
        return sk.potential(
            value_and_gradient=lambda q: (np.zeros(len(q)), np.zeros_like(q)), dim=2, batched=True
        )

    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)
    sizes = {"chains": 2, "warmup": 40, "draws": 200, "seed": 1, "progress": False}
    with pytest.warns(sk.errors.SamplingWarning):
        sk.sample(target, sampler="hmc", surrogate=flat, **sizes)
    assert seen
    assert {found for found, _ in seen} == {1}
