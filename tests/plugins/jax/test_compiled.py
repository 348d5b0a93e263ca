"""Functions of one position are compiled for few numbers of rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surrokit.errors import ResultTypeError
from surrokit_jax.compiled import MOST_AT_ONCE, Compiled, padded


def test_few_numbers_of_rows_are_compiled():
    sizes = sorted({padded(n) for n in range(1, 65)})
    assert sizes == [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]


def test_a_size_is_enough_and_not_much_too_large():
    assert all(n <= padded(n) <= 1.5 * n for n in range(1, 1000))


def test_rows_are_those_of_calls_one_by_one(jax, rng):
    square = Compiled("it", lambda q, u: q * u.sum())
    q, u = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))
    assert_array_equal(square(q, u), q * u.sum(axis=1, keepdims=True))


def test_no_more_programs_than_sizes(jax, rng):
    traced = []

    def function(q):
        traced.append(q.shape)
        return q.sum()

    compiled = Compiled("it", function)
    for n in (3, 4, 3, 4, 3):
        compiled(rng.normal(size=(n, 2)))
    assert len(traced) == 1


def test_many_rows_come_in_parts(jax, rng):
    q = rng.normal(size=(2 * MOST_AT_ONCE + 5, 2))
    assert_array_equal(Compiled("it", lambda q: 2.0 * q)(q), 2.0 * q)


def test_no_rows_have_no_results(jax):
    assert Compiled("it", lambda q: q[None] * q[:, None])(np.empty((0, 3))).shape == (0, 3, 3)


def test_results_belong_to_the_caller(jax):
    result = Compiled("it", lambda q: q)(np.ones((2, 3)))
    result += 1.0


def test_single_precision_is_refused_also_later(jax):
    compiled = Compiled("it", lambda q: q)
    compiled(np.ones((2, 3)))
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ResultTypeError, match=r"it must return numbers in double precision"):
        compiled(np.ones((2, 3)))
