"""Sums over rows of data, through the core's wrappers and records."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import TargetError
from surrokit.potentials import terms_of
from surrokit.testing.rows import Summed
from surrokit.testing.wrappers import Wrapped

ROWS, OWNERS = np.array([3, 3, 39]), np.array([0, 1, 1])
BEFORE, AFTER = np.array([[0.1, 0.2], [-1.0, 0.5]]), np.array([[1.0, 0.4], [0.3, 0.3]])


def counted(recording):
    return {kind: n for kind, n in recording.calls.items() if n}


def test_single_rows_are_counted_and_passes_over_all_of_them():
    recording = RecordingPotential(Summed(), keep=False)
    expansion = recording.expand(np.zeros(2))
    assert counted(recording) == {"hessian": 1}
    recording.row_bounds(np.eye(2))
    assert counted(recording) == {"hessian": 1, "rows": 40}
    expansion.remainders(BEFORE, ROWS, OWNERS)
    assert recording.calls["rows"] == 40 + 3
    expansion.value(BEFORE)
    recording.select(ROWS).value(BEFORE)
    assert counted(recording) == {"hessian": 1, "rows": 43 + 3}


def test_terms_that_bend_only_where_many_dimensions_reach_count_among_those_to_copy():
    # draws in 49 dimensions lie seven standard deviations from the mode
    target = sk.make("potential", "logistic", design=np.eye(49), response=np.zeros(49))
    flat, bent = np.full(49, -8.0), np.zeros(49)
    bounds = [terms_of(target).row_bounds(np.eye(49), about).sum() for about in (flat, bent)]
    assert bounds[0] > 0.5 * bounds[1]


def test_recorded_expansions_say_what_the_targets_do():
    plain, recorded = Summed(), RecordingPotential(Summed(), keep=True)
    a, b = plain.expand(np.ones(2)), recorded.expand(np.ones(2))
    for name in ("centre", "gradient", "hessian"):
        assert_array_equal(getattr(a, name), getattr(b, name))
    assert_array_equal(a.value(BEFORE), b.value(BEFORE))
    assert_array_equal(a.remainders(AFTER, ROWS, OWNERS), b.remainders(AFTER, ROWS, OWNERS))
    assert recorded.n_rows == 40


class Failing(Wrapped):
    """Cannot evaluate row 3."""

    def expand(self, centre):
        return FailingExpansion(self.inner.expand(centre))


@attrs.frozen
class FailingExpansion:
    inner: object

    def remainders(self, positions, rows, owners):
        if 3 in rows:
            raise ZeroDivisionError("row 3")
        return self.inner.remainders(positions, rows, owners)


def test_rows_that_fail_are_nan_and_counted():
    recording = RecordingPotential(Failing(Summed()), keep=False)
    found = recording.expand(np.zeros(2)).remainders(BEFORE, ROWS, OWNERS)
    assert_array_equal(np.isnan(found), [True, True, False])
    assert recording.failures == 2
    stopping = RecordingPotential(Failing(Summed()), keep=False, on_error="raise")
    with pytest.raises(TargetError, match="row 3"):
        stopping.expand(np.zeros(2)).remainders(BEFORE, ROWS, OWNERS)


@pytest.fixture(scope="module")
def subsampled_run():
    return sk.sample(
        Summed(),
        sampler=("random-walk", {"step_size": 1.0}),
        correction="subsampled",
        chains=2,
        warmup=50,
        draws=60,
        seed=1,
        progress=False,
    )


def test_a_run_pays_by_the_row(subsampled_run):
    calls = subsampled_run.calls
    assert calls["rows"] > 0
    # the start, the search of the mode, and proposals so far out that all 40 rows cost less
    assert calls["value"] < 220 / 2
    assert 0.1 < subsampled_run.acceptance.mean() < 1.0


def test_what_is_not_known_of_the_draws_is_left_out(subsampled_run):
    assert np.isnan(subsampled_run.kept.values).any()
    pytest.importorskip("arviz")
    statistics = subsampled_run.to_arviz()["sample_stats"]
    assert "lp" not in statistics
    assert "acceptance_rate" in statistics
