"""Functions over rows, some of which may fail."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surrokit.errors import EvaluationError, ShapeError
from surrokit.model.source import row_by_row

Q = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def both(q):
    return np.asarray(q.sum()), q


def test_results_are_stacked():
    total, rows = row_by_row(both, Q).unwrap()
    assert_array_equal(total, [3, 7, 11])
    assert_array_equal(rows, Q)


def test_a_function_may_keep_and_change_its_row():
    kept = []

    def spoiling(q):
        kept.append(q)
        q[:] = 0
        return (np.asarray(1.0),)

    before = Q.copy()
    row_by_row(spoiling, Q)
    assert_array_equal(Q, before)
    assert all(row.flags.writeable for row in kept)


def odd_only(q):
    if q[0] == 3:
        raise OSError("three")
    return both(q)


def test_a_failure_leaves_the_others():
    with pytest.raises(EvaluationError) as caught:
        row_by_row(odd_only, Q).unwrap()
    total, rows = caught.value.results
    assert_array_equal(total, [3, np.nan, 11])
    assert_array_equal(rows, [[1, 2], [np.nan, np.nan], [5, 6]])
    assert isinstance(caught.value.causes[1], OSError)
    assert (
        str(caught.value)
        == "1 of 3 positions could not be evaluated; the first raised OSError: three"
    )


def test_a_shape_error_is_wrong_everywhere():
    def refuses(q):
        raise ShapeError("always")

    with pytest.raises(ShapeError, match="always"):
        row_by_row(refuses, Q).unwrap()


def test_shapes_may_not_change_between_rows():
    with pytest.raises(ShapeError, match=r"shape \(1,\) at one position and \(3,\) at another"):
        row_by_row(lambda q: (np.zeros(int(q[0])),), Q)
