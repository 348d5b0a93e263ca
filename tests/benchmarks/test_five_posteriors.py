"""Five posteriors of posteriordb with gradients by hand: right, or one of them wrong and warned.

Seeds are fixed, so nothing alarms by chance; a change that alters draws meets new ones. With 1000
effective draws the limit of 0.12 sd is 3.8 standard errors of a mean, and that of an sd is farther
off: of ten parameters one is beyond it in one run of 600. The negative control is a posterior
of half the data.
"""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import numpy as np
import pytest

METHODS = ("default", "hmc", "nuts", "sub-chain", "greville")
SET_BY_JAX = ("TF_CPP_MIN_LOG_LEVEL", "TPU_SKIP_MDS_QUERY")
"""Variables that importing JAX adds to the environment."""

pytestmark = pytest.mark.long


@pytest.fixture
def five():
    """The posteriors, from the folder ``posteriordb`` in the one that SURROKIT_DATA names."""
    from real_posteriors.cases import CASES
    from real_posteriors.targets import Posterior

    folder = Path(os.environ.get("SURROKIT_DATA", "")) / "posteriordb"
    if not folder.is_dir():
        pytest.skip("no data; set SURROKIT_DATA to a folder that holds posteriordb")
    names = [name for name, case in CASES.items() if case.by_hand is not None]
    return {name: Posterior.read(name, folder, jax=False) for name in names}


def verdict_of(posterior, method):
    from real_posteriors.judging import judge, verdict
    from real_posteriors.samplers.methods import METHODS
    from real_posteriors.worker import figures

    drawn = METHODS[method].load()(posterior, 1)
    found = judge(posterior.case.name_draws(drawn.draws), posterior.reference)
    row = {"status": "done", **figures(drawn, found)}
    return verdict(row), row["wrong"], row["warnings"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.statistical
def test_at_most_one_is_wrong_and_says_so(method, five):
    found = {name: verdict_of(posterior, method) for name, posterior in five.items()}
    wrong = {name: one for name, one in found.items() if one[0] != "right"}
    assert {name: one for name, one in wrong.items() if one[0] == "wrong, silent"} == {}
    assert len(wrong) <= 1, wrong


@pytest.mark.statistical
def test_the_posterior_of_half_the_data_is_wrong(five):
    posterior = five["kidiq-kidscore_interaction"]
    halves = {name: x[::2] if isinstance(x, list) else x for name, x in posterior.data.items()}
    other = attrs.evolve(posterior, data=halves)
    verdict, wrong, _ = verdict_of(other, "sub-chain")
    assert verdict.startswith("wrong")
    assert sum(text.startswith("sd of") for text in wrong) >= 3


def test_gradients_by_hand_are_those_of_jax(five, rng, monkeypatch):
    for name in SET_BY_JAX:
        monkeypatch.setenv(name, "1")
    pytest.importorskip("jax")
    for posterior in five.values():
        by_hand = posterior.functions_by_hand()
        by_jax = attrs.evolve(posterior, jax=True).compiled()
        centre, scale = posterior.typical_range()
        z = centre + scale * rng.standard_normal((4, posterior.case.dim))
        q = posterior.with_gradient().transform.to_bounded(z)
        assert by_hand[1](q) == pytest.approx(by_jax[1](q), rel=1e-9, abs=1e-9)
        values = [function(q) for function, _ in (by_hand, by_jax)]
        assert np.ptp(values[0] - values[1]) < 1e-9
