"""Coordinates that make heavy tails normal: by default where draws ask for them, else not."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.result.verdict import judge


def student(freedom, dim=3):
    return sk.potential(
        lambda q: 0.5 * (freedom + 1.0) * np.log1p(q * q / freedom).sum(),
        lambda q: (freedom + 1.0) * q / (freedom + q * q),
        dim=dim,
    )


def normal(dim=8):
    sds = np.logspace(-1, 1, dim)
    return sk.potential(lambda q: 0.5 * np.square(q / sds).sum(), lambda q: q / sds**2, dim=dim)


def banana():
    """A curved ridge: one parameter has a long tail on one side."""
    return sk.potential(
        lambda q: 0.5 * q[0] ** 2 + 2.0 * (q[1] - q[0] ** 2) ** 2,
        lambda q: np.array([q[0] - 8.0 * q[0] * (q[1] - q[0] ** 2), 4.0 * (q[1] - q[0] ** 2)]),
        dim=2,
    )


def drawn(target, sampler="hmc", warmup=300, draws=300, seed=2, **parts):
    parts = {"sampler": sampler, "warmup": warmup, "draws": draws, "seed": seed, **parts}
    return sk.sample(target, progress=False, **parts)


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.long
def test_cauchy_parameters_are_drawn_well_by_default():
    """Three of them; a warp that is turned off shows what it is worth."""
    run, plain = (
        drawn(student(1.0), sampler, warmup=600, draws=1200, seed=1)
        for sampler in ("hmc", ("hmc", {"warp": False}))
    )
    per_call = [each.ess().min() / each.total_calls for each in (run, plain)]
    assert per_call[0] > 2.5 * per_call[1]
    assert run.ess().min() > 200
    quartiles = np.quantile(run.draws.reshape(-1, 3), [0.25, 0.5, 0.75], axis=0)
    assert np.abs(quartiles - [[-1.0], [0.0], [1.0]]).max() < 0.3
    assert run.adaptation.frozen_before_draws


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize("target", [banana()])
def test_runs_without_heavy_tails_on_both_sides_are_as_without_a_warp(target):
    by_default, without = (
        drawn(target, sampler, draws=60) for sampler in ("hmc", ("hmc", {"warp": False}))
    )
    assert_array_equal(by_default.draws, without.draws)
    assert by_default.calls == without.calls


def test_slow_chains_in_heavy_tails_are_advised_of_what_learns_them():
    with pytest.warns(
        SamplingWarning, match="heavy tails on both sides.*Use sampler='hmc' and leave"
    ):
        run = drawn(student(1.0), ("hmc", {"warp": False}), warmup=150, draws=100, seed=6)
    (finding,) = run.verdict.named("heavy_tails")
    assert "'q[0]', 'q[1]', 'q[2]'" in finding.message


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_a_surrogate_in_heavy_tails_is_advised_against(rng):
    run = drawn(normal(3), "sub-chain", surrogate="additive", warmup=150, draws=100)
    assert not run.verdict.named("heavy_tails")
    slow = np.repeat(rng.standard_cauchy((4, 20, 3)), 5, axis=1)
    heavy = attrs.evolve(run.kept, draws=slow)
    (finding,) = judge(attrs.evolve(run, kept=heavy)).named("heavy_tails")
    assert "sampler='hmc' without a surrogate" in finding.message
