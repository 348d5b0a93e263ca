"""A simulator that takes seconds a call, 300 calls, and priors that say where."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import simulators
import surrokit as sk


def moments():
    """Mean and standard deviation of M and Om, on a grid."""
    M, Om = np.linspace(42.9, 43.5, 241), np.linspace(0.051, 0.899, 241)
    shape = np.array([simulators.moduli(0.0, each) for each in Om])
    misfit = (simulators.SUPERNOVAE - M[:, None, None] - shape) / 0.1
    log = stats.norm(43, 1).logpdf(M)[:, None] - 0.5 * np.square(misfit).sum(axis=-1)
    mass = np.exp(log - log.max())
    places = np.stack(np.meshgrid(M, Om, indexing="ij"))
    mean = (places * mass).sum(axis=(1, 2)) / mass.sum()
    square = (places**2 * mass).sum(axis=(1, 2)) / mass.sum()
    return mean, np.sqrt(square - mean**2)


@pytest.mark.long
def test_a_simulator_of_some_seconds(account, tmp_path):
    target = sk.potential(
        log_density=simulators.supernovae,
        parameters={"M": sk.real(prior=stats.norm(43, 1)), "Om": sk.interval(0.05, 0.9)},
    )
    file = tmp_path / "run.surrokit"
    run = account(
        sk.sample(target, max_calls=300, seed=1, path=file, compute=sk.Compute(workers=2))
    )
    mean, sd = moments()
    assert np.all(np.abs(run.summary()["mean"] - mean) < 0.1 * sd)
    assert np.all(np.abs(run.summary()["sd"] / sd - 1) < 0.1)
    assert run.total_calls <= 300
    assert sk.open_run(file).verdict.findings == run.verdict.findings
