"""Other modes by few values: found from a few values far away, and not taken for heavy tails."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def two_normals(q):
    return np.logaddexp(
        np.log(2.0) - 0.5 * np.square(q - 3.0).sum(), -0.5 * np.square(q + 3.0).sum()
    )


def student(q):
    return -3.5 * np.log1p(q @ q / 5.0)


def sample(log_density, seed, dim=2, calls=100):
    target = sk.potential(log_density=log_density, dim=dim)
    return sk.sample(target, max_calls=calls, seed=seed, progress=False)


@pytest.mark.long
def test_two_normals_in_a_hundred_values_are_weighed_rightly():
    """The mean is 1; draws of one mode alone have 3. False alarms: below one in a thousand."""
    run = sample(two_normals, 0)
    assert run.total_calls <= 100
    assert len(run.modes) == 2
    mean = run.expectation(lambda q: q)
    apart = np.abs(mean.value - 1.0) / mean.error
    assert (apart < 4.0).all()
    assert (mean.error < 0.3).all()
    assert run.modes.masses[0] == pytest.approx(2.0 / 3.0, abs=0.1)


@pytest.mark.long
def test_values_far_away_are_spread_over_widening_scales():
    """Starts lie within 2 of zero where nothing is declared, and nothing says where modes are."""
    evaluated = []

    def log_density(q):
        evaluated.append(np.abs(q).max())
        return -0.5 * q @ q

    sample(log_density, 1, dim=5, calls=200)
    assert 8.0 < max(evaluated) <= 16.0


@pytest.mark.long
def test_heavy_tails_are_no_other_mode():
    run = sample(student, 1)
    assert len(run.modes) == 1
    assert run.modes.ended[0] >= 3
    assert not run.verdict.named("unseen_modes")
    (finding,) = run.verdict.named("searches")
    assert not finding.warns
    assert "searches for modes ended at one place" in finding.message


def test_too_few_values_make_no_look_elsewhere():
    run = sample(lambda q: -0.5 * q @ q, 1, calls=20)
    assert run.total_calls <= 20


@pytest.mark.long
def test_a_target_that_is_zero_far_away_is_searched_as_any_other():
    def log_density(q):
        if np.abs(q).max() > 3.5:
            return -np.inf
        return -0.5 * q @ q

    run = sample(log_density, 0)
    assert len(run.modes) == 1
    assert run.answer is not None
