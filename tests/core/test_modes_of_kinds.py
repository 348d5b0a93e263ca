"""Parameters of every kind that have several modes: verdicts name places in the user's numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import surrokit as sk
from surrokit.kernel.jumps import Jumps

MATRIX = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.6], [0.4, 0.6, 1.0]])

KINDS = {
    "interval": (sk.interval(0.0, 1.0), [0.2], [0.8]),
    "two circular": (sk.circular(2), [0.0, 1.0], [2.0, 1.0]),
    "simplex": (sk.simplex(3), [0.7, 0.2, 0.1], [0.1, 0.3, 0.6]),
    "unit vector": (sk.unit_vector(3), [1.0, 0.0, 0.0], [0.0, 0.8, 0.6]),
    "correlation": (sk.correlation(2), [1.0, -0.7, -0.7, 1.0], [1.0, 0.7, 0.7, 1.0]),
    "three correlations": (sk.correlation(3), MATRIX.ravel(), np.eye(3).ravel()),
}
"""Each kind, and the middles of its two modes in the user's numbers."""


def two_modes(middles, sd):
    """Return a mixture of two normal densities of the user's numbers, and its gradient."""
    middles = np.asarray(middles, dtype=float)

    def value(q):
        return np.logaddexp.reduce(-0.5 * np.square((q - middles) / sd).sum(axis=1))

    def gradient(q):
        logs = -0.5 * np.square((q - middles) / sd).sum(axis=1)
        parts = np.exp(logs - np.logaddexp.reduce(logs))
        return parts @ (middles - q) / sd**2

    return value, gradient


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_modes_of_parameters_of_every_kind_are_named_in_the_users_numbers(kind, monkeypatch):
    monkeypatch.setattr(Jumps, "between", lambda *_: None)  # or chains would go to and fro
    parameter, *middles = KINDS[kind]
    log_density, gradient = two_modes(middles, sd=0.06)
    target = sk.potential(log_density=log_density, gradient=gradient, parameters={"it": parameter})
    starts = [middles[i % 2] for i in range(4)]
    run = sk.sample(
        target,
        sampler="hmc",
        initial=starts,
        warmup=100,
        draws=50,
        modes="as found",
        seed=1,
        progress=False,
    )
    (told,) = [each for each in run.verdict.messages if "the target has 2 modes" in each]
    named = dict(zip(run.labels, np.transpose(middles), strict=True))
    shown = re.findall(r"(it\S*) = ([-+.e0-9]+)", told)
    assert len(shown) == 2 * min(len(named), 4)
    first, second = shown[: len(shown) // 2], shown[len(shown) // 2 :]
    for (label, one), (_, other) in zip(first, second, strict=True):
        assert sorted([float(one), float(other)]) == pytest.approx(sorted(named[label]), abs=0.05)
    apart = {label for label, (one, other) in named.items() if one != other}
    assert len(apart & {label for label, _ in first}) == min(len(apart), 4)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_an_angle_with_two_modes_has_draws_at_both_and_the_places_are_named():
    """By the parts chosen for values alone, from starts anywhere."""
    target = sk.potential(
        log_density=lambda t: np.logaddexp(60.0 * np.cos(t), 60.0 * np.cos(t - 2.0)),
        parameters={"t": sk.circular()},
    )
    run = sk.sample(target, max_calls=500, seed=1, progress=False)
    found = run.modes.places[run.modes.matters]  # a search may have been cut off elsewhere
    assert np.sort(found.ravel()) == pytest.approx([0.0, 2.0], abs=0.02)
    near = np.abs(run["t"].ravel() - 2.0) < 1.0
    assert 0.1 < near.mean() < 0.9
    assert run.total_calls <= 500  # searches end: vectors of angles do not run into the origin


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_directions_that_are_well_known_are_drawn_with_hardly_any_divergences():
    """Vectors stay away from the origin, where directions change at once."""
    middle = np.array([0.6, 0.8, 0.0])
    target = sk.potential(
        log_density=lambda q: 300.0 * middle @ q,
        gradient=lambda _: 300.0 * middle,
        parameters={"it": sk.unit_vector(3)},
    )
    run = sk.sample(target, sampler="hmc", warmup=300, draws=300, seed=2, progress=False)
    assert run.divergences.sum() <= 4  # of 1,200
    # of a von Mises-Fisher density: coth(k) - 1 / k
    assert (run.draws @ middle).mean() == pytest.approx(1.0 - 1.0 / 300.0, abs=6e-4)
