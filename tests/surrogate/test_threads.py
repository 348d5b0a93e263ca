"""A run's own linear algebra takes one thread; what users wrote has as many as before."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  # loads its library of linear algebra
from threadpoolctl import ThreadpoolController, threadpool_limits

import surrokit as sk
from surrokit.limits import FEW, threads_for

LIBRARIES = ThreadpoolController().select(user_api="blas").lib_controllers


def threads():
    return max(each.num_threads for each in LIBRARIES)


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


def surrogate_that_notes(seen):
    """Return a surrogate, right for a standard normal, that notes threads where it is evaluated."""

    def value_and_gradient(q):
        seen.add(threads())
        return 0.5 * np.vecdot(q, q), q

    @sk.batch_surrogate
    def normal(rows, rng):
        return sk.potential(value_and_gradient=value_and_gradient, dim=2, batched=True)

    return normal


def target_that_notes(seen, fails_after=None):
    """Return a standard normal target that notes threads where it is evaluated."""
    calls = []

    def value_and_gradient(q):
        seen.add(threads())
        calls.append(len(q))
        if fails_after is not None and len(calls) > fails_after:
            raise KeyboardInterrupt if fails_after % 2 else ZeroDivisionError
        return 0.5 * np.vecdot(q, q), q

    return sk.potential(value_and_gradient=value_and_gradient, dim=2, batched=True)


SHORT = {"chains": 2, "warmup": 30, "draws": 10, "seed": 1, "progress": False}


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_chains_on_a_surrogate_take_one_thread_and_the_target_keeps_its_own():
    by_surrogate, by_target = set(), set()
    target, surrogate = target_that_notes(by_target), surrogate_that_notes(by_surrogate)
    sk.sample(target, sampler="sub-chain", surrogate=surrogate, **SHORT)
    assert by_surrogate == {1}
    assert by_target == {2}
    assert threads() == 2


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize("fails_after", [5, 6], ids=["interrupt", "error"])
def test_threads_are_given_back_where_a_run_breaks_off(fails_after):
    target = target_that_notes(set(), fails_after)
    if fails_after % 2:
        sk.sample(target, sampler="hmc", **SHORT)
    else:
        with pytest.raises(sk.errors.TargetError):
            sk.sample(target, sampler="hmc", compute=sk.Compute(on_error="raise"), **SHORT)
    assert threads() == 2


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_threads_are_given_back_once_the_last_of_several_runs_ends():
    runs = [
        threading.Thread(
            target=partial(
                sk.sample, target_that_notes(set()), sampler="hmc", **SHORT | {"seed": i}
            )
        )
        for i in range(3)
    ]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    assert threads() == 2


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_no_draw_depends_on_the_number_of_threads():
    target = sk.make("potential", "simulated-logistic", n_rows=3000, dim=20)
    many = sk.sample(target, sampler="hmc", **SHORT)
    with threadpool_limits(limits=1, user_api="blas"):
        one = sk.sample(target, sampler="hmc", **SHORT)
    assert np.array_equal(many.draws, one.draws)
