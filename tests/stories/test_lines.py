"""Two spectral lines, whose labels may be exchanged."""

from __future__ import annotations

import numpy as np
import pytest

import simulators
import surrokit as sk
from surrokit.errors import SamplingWarning

WAVES = np.linspace(0.0, 10.0, 60)
TRUTH = (4.0, 6.0, (1.0, 0.7), 0.5)
NOISE = 0.05
DATA = simulators.spectrum(WAVES, *TRUTH) + NOISE * np.random.default_rng(4).standard_normal(60)


def log_density(places, heights, width):
    misfit = (DATA - simulators.spectrum(WAVES, *places, heights, width)) / NOISE
    return -0.5 * misfit @ misfit


def lines(places):
    return sk.potential(
        log_density=log_density,
        parameters={
            "places": places,
            "heights": sk.interval(0.0, 3.0, shape=2),
            "width": sk.interval(0.1, 2.0),
        },
    )


@pytest.mark.long
def test_lines_whose_labels_exchange_are_both_found_or_warned_of(account):
    target = lines(sk.interval(0.0, 10.0, shape=2))
    with pytest.warns(SamplingWarning) as warned:
        run = account(sk.sample(target, max_calls=3000, seed=1))
    first = run["places"][..., 0] < run["places"][..., 1]
    assert 0.3 < first.mean() < 0.7 or any("mode" in str(each.message) for each in warned)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:searches for modes:surrokit.errors.SamplingWarning")
def test_lines_in_order(account):
    target = lines(sk.ordered(2))
    initial = {"places": [3.5, 6.5], "heights": [1.0, 1.0], "width": 0.5}
    run = account(sk.sample(target, initial=initial, max_calls=3000, seed=1))
    means = run.draws.mean(axis=(0, 1))
    assert np.allclose(means, [4.0, 6.0, 1.0, 0.7, 0.5], atol=0.06)
