"""A differential equation whose errors are of unknown size."""

from __future__ import annotations

import numpy as np
import pytest

import simulators
import surrokit as sk


@pytest.mark.long
def test_an_equation_with_unknown_noise(account):
    truth, noise = (2.0, 0.3), 0.05
    angles = simulators.swing(*truth) + noise * np.random.default_rng(3).standard_normal(40)
    target = sk.forward_potential(
        lambda q: simulators.swing(*q),
        data=angles,
        noise_sd="estimate",
        parameters={"frequency": (0.5, 5), "damping": sk.positive()},
        plausible={"frequency": (1, 3), "damping": (0.05, 1)},
    )
    run = account(sk.sample(target, max_calls=200, seed=1))
    summary = run.summary()
    assert summary.labels == ["frequency", "damping", "noise_sd"]
    apart = (summary["mean"] - np.array([*truth, noise])) / summary["sd"]
    assert np.all(np.abs(apart) < 3)
    assert 0.04 < summary["mean"][2] < 0.065
    assert run.total_calls <= 200
