"""``sharpen``: what it asks for, and what it changes."""

from __future__ import annotations

import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.diagnostics import QUANTILES
from surrokit.errors import ConfigurationError, SamplingWarning
from surrokit.testing.targets import Gaussian

NEAR = Gaussian(mean=(0.05, 0.0), covariance=((1.1, 0.3), (0.3, 1.0)))
TARGET = Gaussian(mean=(0.0, 0.0), covariance=((1.0, 0.3), (0.3, 1.0)))


def draw(sampler="sub-chain", target=TARGET, surrogate=NEAR, **options):
    made = None if surrogate is None else sk.batch_surrogate(lambda evaluations, rng: surrogate)
    parts = {} if made is None else {"surrogate": made, "explorer": "rounds"}
    settings = {"draws": 150, "seed": 2, "progress": False, **parts, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return sk.sample(target, sampler=sampler, **settings)


@pytest.fixture(scope="module")
def run():
    return draw()


@pytest.fixture(scope="module")
def sharp(run):
    return sk.sharpen(run, seed=3)


def test_the_summary_is_sharper_and_has_an_error_for_each_figure(run, sharp):
    plain, summary = run.summary(), sharp.summary()
    assert (summary["mcse"] < 0.7 * plain["mcse"]).all()
    assert (summary["ess"] > 2.0 * plain["ess"]).all()
    assert {f"mcse_{name}" for name in ("sd", *QUANTILES)} <= set(summary.columns)
    assert (np.abs(summary["mean"]) < 4.0 * summary["mcse"]).all()
    assert (np.abs(summary["sd"] - 1.0) < 4.0 * summary["mcse_sd"]).all()
    assert_array_equal(summary["rhat"], plain["rhat"])


def test_expectations_are_those_of_the_summary(sharp):
    found = sharp.expectation(lambda q: q)
    assert_array_equal(found.value, sharp.summary()["mean"])
    assert_array_equal(found.error, sharp.summary()["mcse"])
    assert found.calls == sharp.total_calls


def test_draws_and_calls_stay_as_they_are(run, sharp):
    assert_array_equal(sharp.draws, run.draws)
    assert sharp.exact
    assert sharp.total_calls == run.total_calls
    assert run.sharpened is None


def test_more_moves_on_the_surrogate_are_had_for_the_asking(run, sharp):
    few, many = (sk.sharpen(run, seed=3, moves=n) for n in (2400, 12_000))
    assert few.sharpened.moves.shape[:3] == (4, *run.draws.shape[:2])
    assert many.sharpened.moves.shape[:3] == (20, *run.draws.shape[:2])
    assert (sharp.summary()["mcse"] < few.summary()["mcse"]).all()
    for moves in (0, 2.5, "many"):
        with pytest.raises(ConfigurationError, match="moves must be a whole number"):
            sk.sharpen(run, moves=moves)


def test_ends_are_where_draws_come_from(run):
    kept = run.kept
    moved = kept.accepted[..., None]
    assert_array_equal(np.where(moved, kept.ends, 0.0), np.where(moved, kept.draws, 0.0))
    assert (~kept.accepted).any()


def test_ends_are_in_the_users_coordinates():
    rate = {"rate": sk.Parameter(lower=0.0)}
    target = sk.potential(lambda q: 2.0 * q[0] - np.log(q[0]), parameters=rate)
    line = sk.potential(
        value_and_gradient=lambda q: (0.5 * np.square(q).sum(axis=1), q), dim=1, batched=True
    )
    explorer = ("sampler", {"sampler": "random-walk", "iterations": 30})
    kept = draw(target=target, surrogate=line, explorer=explorer, warmup=60, draws=40).kept
    assert (kept.ends > 0.0).all()
    assert (kept.positions < 0.0).any()


def test_moves_that_were_mixed_in_have_no_ends():
    ends = draw(schedule=sk.Safety(mix=0.4)).kept.ends
    assert 0.2 < np.isnan(ends).mean() < 0.6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "hmc"}, "use sampler='sub-chain' with a surrogate"),
        ({"sampler": "hmc", "surrogate": None}, "use sampler='sub-chain' with a surrogate"),
        ({"draws": 3}, "at least 4 draws"),
    ],
)
def test_other_draws_cannot_be_sharpened(options, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.sharpen(draw(**options))


def test_draws_of_a_kernel_that_changed_cannot_be_sharpened(run):
    adapting = attrs.evolve(run.adaptation, frozen_before_draws=False)
    with pytest.raises(ConfigurationError, match="use schedule='once'"):
        sk.sharpen(attrs.evolve(run, adaptation=adapting))


def test_weighted_answers_are_as_sharp_as_they_get(run):
    with pytest.raises(ConfigurationError, match="weighted, and as sharp as they get"):
        sk.sharpen(attrs.evolve(run, unchecked="max_calls ended the run"))


def test_poor_moves_sharpen_nothing(run):
    still = attrs.evolve(run.kept, accepted=np.zeros_like(run.kept.accepted))
    found = sk.sharpen(attrs.evolve(run, kept=still))
    assert found.sharpened is None
    (finding,) = found.verdict.named("sharpen")
    assert "the target accepted 0.00 of the moves only" in finding.message
