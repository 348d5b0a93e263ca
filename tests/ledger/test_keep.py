"""Draws in a file: the same to the bit, and no longer in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from ledgers import KINDS, SIZES, Counted

import surrokit as sk
from surrokit.errors import ConfigurationError

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


LONG = pytest.param("weights", marks=pytest.mark.long)


@pytest.mark.parametrize("kind", ["hmc", "while-learning", LONG])
def test_draws_are_the_same_wherever_they_are(kind, whole, tmp_path):
    run, _ = whole(kind)
    target, settings = KINDS[kind]
    kept = sk.sample(
        target(Counted()), path=tmp_path / "a", compute=sk.Compute(keep="file"), **settings, **SIZES
    )
    assert np.array_equal(kept.draws, run.draws)
    assert str(kept.summary()) == str(run.summary())
    assert np.array_equal(sk.open_run(tmp_path / "a").draws, run.draws)
    again = sk.resume(tmp_path / "a", target(Counted()), check=False)
    assert np.array_equal(again.draws, run.draws)


def test_a_run_that_keeps_draws_in_a_file_is_extended(whole, tmp_path):
    target, settings = KINDS["hmc"]
    short = sk.sample(
        target(Counted()), path=tmp_path / "a", compute=sk.Compute(keep="file"), **settings, **SIZES
    )
    longer = short.extend(300)
    assert np.array_equal(longer.draws[:, : len(short.kept)], short.draws)
    whole_one = sk.sample(target(Counted()), **{**settings, "draws": len(longer.kept)}, **SIZES)
    assert np.array_equal(longer.draws, whole_one.draws)


@pytest.mark.long
def test_memory_does_not_grow_with_draws(tmp_path):
    """A mapped file is not counted; of arrays in memory a draw would take 800 bytes and more."""
    dim = 100
    target = sk.potential(
        value_and_gradient=lambda q: (0.5 * np.square(q).sum(axis=1), q.copy()),
        dim=dim,
        batched=True,
    )
    settings = {"sampler": ("hmc", {"step_size": 0.3, "n_steps": 1}), "warmup": 5, "chains": 1}
    grown = {}

    class Looks:
        def __init__(self, keep):
            self.keep, self.sizes = keep, {}

        def surrokit_transition_done(self, info, **_):
            if info.iteration in (1000, 5000):
                self.sizes[info.iteration] = tracemalloc.get_traced_memory()[0]
                grown[self.keep] = self.sizes[info.iteration] - self.sizes[1000]

    tracemalloc.start()
    try:
        for keep in ("memory", "file"):
            sk.sample(
                target,
                path=tmp_path / keep,
                seed=1,
                draws=5000,
                progress=False,
                observers=[Looks(keep)],
                compute=sk.Compute(keep=keep),
                **settings,
            )
    finally:
        tracemalloc.stop()
    assert grown["memory"] > 4000 * 8 * dim
    assert grown["file"] < 0.2 * grown["memory"]


def test_draws_are_kept_in_memory_or_in_a_file():
    with pytest.raises(ConfigurationError, match="keep must be 'memory' or 'file', got 'disk'"):
        sk.Compute(keep="disk")


def test_a_file_of_draws_needs_a_file_beside_which_it_lies():
    with pytest.raises(ConfigurationError, match="but no path is given; pass path="):
        sk.sample("banana", compute=sk.Compute(keep="file"))
