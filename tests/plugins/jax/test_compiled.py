"""Functions of one position are compiled for few numbers of rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surrokit.errors import ResultTypeError
from surrokit_jax.compiled import MOST_AT_ONCE, Functions, padded


def compiled_of(function):
    functions = Functions("it", lambda f: {"f": f}, function)
    return lambda *rows: functions("f", *rows)


def test_few_numbers_of_rows_are_compiled_not_much_too_large(jax, rng):
    sizes = sorted({padded(n) for n in range(1, 65)})
    assert sizes == [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    assert all(n <= padded(n) <= 1.5 * n for n in range(1, 1000))
    traced = []

    def function(q):
        traced.append(q.shape)
        return q.sum()

    compiled = compiled_of(function)
    for n in (3, 4, 3, 4, 3):
        compiled(rng.normal(size=(n, 2)))
    assert len(traced) == 1


@pytest.mark.parametrize("n", [0, 7, 2 * MOST_AT_ONCE + 5])
def test_rows_are_those_of_calls_one_by_one_and_belong_to_the_caller(jax, rng, n):
    q, u = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    found = compiled_of(lambda q, u: q * (u[0] + u[1]))(q, u)
    assert_array_equal(found, q * (u[:, :1] + u[:, 1:]))
    found += 1.0


def test_single_precision_is_refused_also_later(jax):
    compiled = compiled_of(lambda q: q)
    compiled(np.ones((2, 3)))
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ResultTypeError, match=r"it must return numbers in double precision"):
        compiled(np.ones((2, 3)))
