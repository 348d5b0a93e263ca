"""A new run learns from ledgers, and pays for nothing that is in them."""

from __future__ import annotations

import numpy as np
import pytest
from ledgers import KINDS, SIZES, Counted, forward, plain, values

import surrokit as sk
from surrokit.errors import ConfigurationError, LedgerError

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


@pytest.mark.parametrize("kind", ["hmc", "values"])
def test_the_same_run_pays_for_nothing(kind, whole, tmp_path):
    run, path = whole(kind)
    target, settings = KINDS[kind]
    if kind == "values":
        settings = {**settings, "sampler": "random-walk", "warmup": 30}
        path = tmp_path / "first"
        run = sk.sample(target(Counted()), path=path, **settings, **SIZES)
    paid = Counted()
    again = sk.sample(target(paid), warm_start=path, **settings, **SIZES)
    assert np.array_equal(again.draws, run.draws)
    assert sum(again.calls.values()) == 0
    assert paid.n == 1  # the check that the target is the same


def test_a_surrogate_learns_from_ledgers(whole, tmp_path):
    _, path = whole("sub-chain")
    other = tmp_path / "other"
    target, settings = KINDS["sub-chain"]
    cold = sk.sample(target(Counted()), path=other, **settings, **{**SIZES, "seed": 5})
    warm = sk.sample(
        target(Counted()), warm_start=[path, other], **settings, **{**SIZES, "seed": 6}
    )
    assert warm.adaptation.training_rows > cold.adaptation.training_rows


@pytest.mark.parametrize("kind", ["while-learning", "automatic"])
def test_a_warm_run_is_resumed_without_the_ledgers_it_began_from(kind, whole, tmp_path):
    _, path = whole(kind)
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    target, settings = KINDS[kind]
    run = sk.sample(
        target(Counted()), warm_start=copy, path=tmp_path / "a", **settings, **{**SIZES, "seed": 4}
    )
    copy.unlink()
    paid = Counted()
    again = sk.resume(tmp_path / "a", target(paid), check=False)
    assert np.array_equal(again.draws, run.draws)
    assert again.calls == run.calls
    assert paid.n == 0


def test_of_a_batch_only_unknown_positions_are_paid_for(tmp_path):
    at = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    run = {"sampler": "hmc", "warmup": 5, "draws": 5, "step_size": 0.1, **SIZES}
    sk.sample(plain(Counted()), path=tmp_path / "a", initial=at, **run)
    cold, warm = Counted(), Counted()
    new = np.vstack([at[0], [1.0, 1.0, 1.0]])
    one = sk.sample(plain(cold), initial=new, **run)
    two = sk.sample(plain(warm), initial=new, warm_start=tmp_path / "a", **run)
    assert np.array_equal(one.draws, two.draws)
    assert sum(two.calls.values()) < sum(one.calls.values())


@pytest.mark.parametrize("other", [values, forward, lambda paid: plain(paid, scale=2.0)])
def test_the_ledger_of_another_target_teaches_nothing(other, whole):
    with pytest.raises(LedgerError, match="is the ledger of another target"):
        sk.sample(other(Counted()), warm_start=whole("hmc")[1], **SIZES)


@pytest.mark.parametrize("given", [[], 3, [3]])
def test_what_is_no_path_is_refused(given):
    with pytest.raises(ConfigurationError, match="warm_start must be the path of a ledger"):
        sk.sample(plain(Counted()), warm_start=given, **SIZES)


def test_another_energy_is_told_when_a_run_is_resumed(tmp_path):
    """The outputs are the same, so only where the chains go, and their U, tell."""

    def target(noise_sd):
        return sk.forward_potential(
            lambda q: q + 0.1 * q**2,
            data=[0.5, 0.2],
            noise_sd=noise_sd,
            dim=2,
            prior=sk.gaussian_prior(),
        )

    settings = {"sampler": "random-walk", "warmup": 30, "draws": 20, **SIZES}
    sk.sample(target(0.4), path=tmp_path / "a", **settings)
    with pytest.raises(LedgerError):
        sk.resume(tmp_path / "a", target(0.41))
