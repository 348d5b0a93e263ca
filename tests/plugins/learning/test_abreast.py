"""Searches in step: what they share, and how they end."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surrokit.errors import EvaluationError
from surrokit.testing.targets import Gaussian
from surrokit_learning.abreast import run_abreast


class Noted:
    """A normal density that notes its batches."""

    dim, height = 2, 3.0
    capabilities = frozenset({"gradient"})

    def __init__(self):
        self.batches = []
        self._normal = Gaussian(mean=(0.0, 0.0), covariance=((1.0, 0.0), (0.0, 4.0)))

    def value(self, q):
        self.batches.append(("value", len(q)))
        return self._normal.value(q)

    def value_and_gradient(self, q):
        self.batches.append(("value_and_gradient", len(q)))
        if (q[:, 0] == 7.0).any():
            failed = np.flatnonzero(q[:, 0] == 7.0)
            values, gradients = self._normal.value_and_gradient(q)
            known = (values, gradients) if len(q) > 1 else ()
            raise EvaluationError({int(i): ValueError("seven") for i in failed}, known, n=len(q))
        return self._normal.value_and_gradient(q)


def walk(first, n):
    """A search that evaluates n positions, one after another."""

    def search(potential):
        seen = []
        for i in range(n):
            values, gradients = potential.value_and_gradient(np.array([[first + i, 1.0]]))
            assert values.shape == (1,)
            assert gradients.shape == (1, 2)
            seen.append(values[0])
        return seen

    return search


def test_what_all_want_next_is_one_batch():
    target = Noted()
    results = run_abreast(target, [walk(0.0, 3), walk(10.0, 1), walk(20.0, 2)])
    assert target.batches == [("value_and_gradient", n) for n in (3, 2, 1)]
    alone = [run_abreast(Noted(), [walk(first, n)])[0] for first, n in [(0, 3), (10, 1), (20, 2)]]
    assert results == alone


def test_methods_and_batches_of_several_rows_are_kept_apart():
    target = Noted()

    def by_value(potential):
        return potential.value(np.array([[1.0, 0.0], [2.0, 0.0]])), potential.value(np.ones((1, 2)))

    assert run_abreast(target, [walk(0.0, 1)] * 2 + [by_value] * 2)[0] == [0.125]
    assert target.batches == [("value_and_gradient", 2), ("value", 4), ("value", 2)]
    pairs = run_abreast(target, [by_value, by_value])
    for first, second in pairs:
        assert_array_equal(first, [0.5, 2.0])
        assert_array_equal(second, [0.625])


def test_a_position_that_fails_is_its_own_searchs_matter_and_an_error_all_of_theirs():
    def search(potential):
        assert (potential.dim, potential.capabilities, potential.height) == (2, {"gradient"}, 3.0)
        try:
            potential.value_and_gradient(np.array([[7.0, 0.0]]))
        except EvaluationError:
            return "failed"

    def stumble(potential):
        potential.value(np.zeros((1, 2)))
        raise ValueError("one")

    assert run_abreast(Noted(), [search, walk(0.0, 1), search]) == ["failed", [0.125], "failed"]
    with pytest.raises(ValueError, match="one"):
        run_abreast(Noted(), [walk(0.0, 4), stumble, search])


def test_an_evaluation_that_ends_the_run_ends_all_searches():
    class Spent(Noted):
        def value_and_gradient(self, q):
            if len(self.batches) == 2:
                raise KeyboardInterrupt
            return super().value_and_gradient(q)

    ended = []

    def search(potential):
        try:
            return walk(0.0, 5)(potential)
        finally:
            ended.append(potential)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_abreast(Spent(), [search] * 3)
    assert len(ended) == 3
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(1.0)
    assert threading.active_count() <= before


def test_filters_of_warnings_are_as_before():
    def search(potential):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for _ in range(int(potential.value(np.zeros((1, 2)))[0]) + 1):
                warnings.warn("rough", RuntimeWarning, stacklevel=1)
                potential.value(np.ones((1, 2)))
        warnings.warn("rough", RuntimeWarning, stacklevel=1)

    before = list(warnings.filters)
    run_abreast(Noted(), [search] * 3)
    assert warnings.filters == before
