"""Functions over rows, some of which may fail."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from surrokit.model.source import map_rows, row_by_row
from surrokit.errors import EvaluationError, ShapeError

Q = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def both(q):
    return np.asarray(q.sum()), q


def test_results_are_stacked():
    total, rows = row_by_row(both, Q)
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
        row_by_row(odd_only, Q)
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
        row_by_row(refuses, Q)


def test_shapes_may_not_change_between_rows():
    with pytest.raises(ShapeError, match=r"shape \(1,\) at one position and \(3,\) at another"):
        row_by_row(lambda q: (np.zeros(int(q[0])),), Q)


def test_a_function_of_results_is_returned():
    doubled = map_rows(lambda: row_by_row(both, Q), lambda total, rows: (2 * total, rows), 3)
    assert_array_equal(doubled[0], [6, 14, 22])


def test_a_function_of_partial_results_comes_with_the_failure():
    with pytest.raises(EvaluationError) as caught:
        map_rows(lambda: row_by_row(odd_only, Q), lambda total, rows: (2 * total,), 3)
    (total,) = caught.value.results
    assert_array_equal(total, [6, np.nan, 22])
    assert set(caught.value.causes) == {1}


def test_without_partial_results_there_is_nothing_to_map():
    def fails(q):
        raise OSError

    with pytest.raises(EvaluationError, match="3 of 3") as caught:
        map_rows(lambda: row_by_row(fails, Q), lambda *_: pytest.fail("nothing to map"), 3)
    assert caught.value.results == ()
