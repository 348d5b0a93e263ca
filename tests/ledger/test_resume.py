"""A run that is taken up again goes on as if nothing had ended it."""

from __future__ import annotations

import math
import pickle
import shutil
import warnings

import numpy as np
import pytest
from ledgers import (
    FORGET_ACCOUNT,
    KINDS,
    SIZES,
    SMALL,
    Counted,
    change,
    cut,
    events,
    fact,
    forward,
    plain,
    query,
    same,
    set_fact,
)

import surrokit as sk
from surrokit.errors import ConfigurationError, LedgerError, SamplingWarning, TargetError
from surrokit.ledger.store import pack, unpack

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

LAST = "SELECT max(id) FROM events"


def total(run):
    return sum(run.calls.values())


def evaluated(path):
    """Return what a file's last run evaluated, position by position."""
    return [(event.kind, row.tobytes()) for event in events(path) for row in event.positions]


# the clock decides early what is picked for values, and how long its warm-up is
PARTS = {"hmc": [0.0, 0.02, 0.3, 0.97, 1.0], "automatic": [0.3, 0.8, 1.0], "values": [0.8, 1.0]}


@pytest.mark.parametrize(
    ("kind", "part"), [(kind, part) for kind in KINDS for part in PARTS.get(kind, [0.5, 1.0])]
)
def test_a_run_goes_on_from_wherever_it_was_cut(kind, part, whole, tmp_path):
    run, path = whole(kind)
    held, paid = cut(path, tmp_path / "a", int(part * query(path, LAST)[0][0])), Counted()
    again = sk.resume(held, KINDS[kind][0](paid), check=False, progress=False)
    assert same(again, run)
    assert evaluated(path) == evaluated(held)
    assert query(path, "SELECT count(*) FROM events WHERE outcome != 'done'") == [(0,)]
    if part == 1.0:
        assert paid.n == 0
        assert np.array_equal(again.kept.seconds, run.kept.seconds)
        assert (again.choice, again.stopped) == (run.choice, run.stopped)


@pytest.mark.parametrize(("error", "stop_at"), [(KeyboardInterrupt, 0), (ValueError, 150)])
def test_no_call_is_paid_for_twice(error, stop_at, whole, tmp_path):
    run, paid = whole("hmc")[0], Counted()
    paid.stop_at, paid.error = stop_at, error
    settings = {**KINDS["hmc"][1], **SIZES, "compute": sk.Compute(on_error="raise")}
    if error is KeyboardInterrupt:
        assert sk.sample(plain(paid), path=tmp_path / "a", **settings).stopped == "interrupted"
    else:
        with pytest.raises(TargetError):
            sk.sample(plain(paid), path=tmp_path / "a", **settings)
    count = "SELECT count(*) FROM events WHERE outcome = 'raised'"
    assert query(tmp_path / "a", count) == [(1,)]
    paid.stop_at = None
    again = sk.resume(tmp_path / "a", plain(paid), check=False)
    assert same(again, run)
    assert total(run) <= paid.n <= total(run) + 1  # of the batch in flight one was paid for


def test_a_finished_run_is_extended(whole, tmp_path):
    settings = {**KINDS["hmc"][1], **SIZES}
    run = sk.sample(plain(Counted()), path=tmp_path / "a", **settings)
    longer = run.extend(25, progress=False)
    at_once = sk.sample(plain(Counted()), **{**settings, "draws": 65})
    assert same(longer, at_once)
    third = sk.resume(tmp_path / "a", plain(Counted()), draws=80)
    assert np.array_equal(third.draws[:, :65], at_once.draws)
    assert third.draws.shape[1] == 80
    with pytest.raises(ConfigurationError, match=r"pass path=\.\.\. to sample"):
        at_once.extend(10)


def test_a_run_that_has_a_file_can_be_pickled(tmp_path):
    run = sk.sample(sk.make("potential", "banana"), path=tmp_path / "a", **SMALL)
    assert same(pickle.loads(pickle.dumps(run)), run)


@pytest.mark.parametrize(("wanted", "made"), [(25, 25), (5, 10)])
def test_fewer_draws_end_a_run_sooner(wanted, made, whole, tmp_path):
    """Those that there are stay."""
    run, path = whole("hmc")
    at = "SELECT max(id) FROM events WHERE stage = 'sampling' AND iteration <= 70"
    part = cut(path, tmp_path / "a", query(path, at)[0][0])
    shorter = sk.resume(part, plain(Counted()), draws=wanted)
    assert abs(shorter.draws.shape[1] - made) <= 1
    assert np.array_equal(shorter.draws, run.draws[:, : shorter.draws.shape[1]])
    assert np.array_equal(sk.resume(part, plain(Counted())).draws, shorter.draws)


@pytest.mark.parametrize("kind", ["sub-chain", "while-learning"])
def test_draws_of_the_shorter_run_come_first(kind, whole, tmp_path):
    run, path = whole(kind)
    held = cut(path, tmp_path / "a")
    longer = sk.resume(held, KINDS[kind][0](Counted()), draws=len(run.kept) + 20, max_calls=None)
    assert np.array_equal(longer.draws[:, : len(run.kept)], run.draws)
    assert np.array_equal(longer.warmup.draws, run.warmup.draws)
    assert len(longer.kept) == len(run.kept) + 20


def test_limits_are_raised_removed_and_repeated(whole, tmp_path):
    run, path = whole("limited")
    assert run.stopped == "max_calls"
    held, paid = cut(path, tmp_path / "a"), Counted()
    more = sk.resume(held, plain(paid), max_calls=1500, check=False)
    assert more.stopped == "max_calls"
    assert 1300 < total(more) <= 1500
    assert paid.n == total(more) - total(run)
    again = sk.resume(held, plain(paid), check=False)  # each session goes by its own limits
    assert same(again, more)
    assert paid.n == total(more) - total(run)
    middle = cut(held, tmp_path / "b", query(held, LAST)[0][0] // 2)
    again = sk.resume(middle, plain(Counted()), check=False)
    assert np.array_equal(again.warmup.draws, more.warmup.draws)
    rest = sk.resume(held, plain(paid), max_calls=None, check=False)
    assert (rest.stopped, rest.draws.shape[1]) == ("draws", 400)
    assert np.array_equal(rest.draws[:, : len(more.kept)], more.draws)


def test_goals_may_be_changed(whole, tmp_path):
    held = cut(whole("hmc")[1], tmp_path / "a")
    run = sk.resume(held, plain(Counted()), draws=1000, target_ess=200)
    assert run.stopped == "target_ess"
    assert 40 < len(run.kept) < 1000
    run, path = whole("weights")
    held = cut(path, tmp_path / "b")
    more = sk.resume(held, forward(Counted()), max_calls=180, target_mcse=1e-4)
    assert total(run) < total(more) <= 180
    assert not more.exact


def test_given_starts_evaluations_and_settings_are_kept(tmp_path):
    points = np.random.default_rng(2).normal(size=(30, 3))
    settings = {
        **KINDS["while-learning"][1],
        **SIZES,
        "sampler": ("hmc", {"step_size": np.float64(0.3)}),
        "initial": [0.1, 0.2, 0.3],
        "seed": np.random.default_rng(9),
        "warm_start": (points, (points**2).sum(axis=1), 2 * points),
        "schedule": sk.Safety(mix=0.1),
    }
    run, paid = sk.sample(plain(Counted()), path=tmp_path / "a", **settings), Counted()
    assert same(sk.resume(tmp_path / "a", plain(paid), check=False), run)
    assert paid.n == 0


def test_settings_that_are_plain_data_are_in_the_file(tmp_path):
    settings = {
        "sampler": ("sub-chain", {"kernel": ("hmc", {"metric": ("diagonal", {})}), "length": 3}),
        "surrogate": ("gp", {"hyperparameters": None, "max_signal": 3.0, "mean": "linear"}),
        "schedule": ("greville", {"rate": "logarithmic", "freeze_after": 5}),
        "explorer": ("rounds", {"evaluations": 25}),
        "warmup": 30,
        "draws": 5,
    }
    run = sk.sample(plain(Counted()), path=tmp_path / "a", **settings, **SIZES)
    assert same(sk.resume(tmp_path / "a", plain(Counted()), progress=False), run)


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_generator_of_numpy_is_kept(bits, tmp_path):
    rng = np.random.Generator(getattr(np.random, bits)(5))
    rng.spawn(2)
    rng.random(3)
    run = sk.sample(plain(Counted()), path=tmp_path / "a", **{**SMALL, "seed": rng})
    assert same(sk.resume(tmp_path / "a", plain(Counted())), run)


def test_a_generator_that_cannot_be_kept_is_refused(tmp_path):
    class Seeds(np.random.SeedSequence):
        pass

    rng = np.random.Generator(np.random.PCG64(Seeds(1)))
    with pytest.raises(ConfigurationError, match="a generator of numpy's own"):
        sk.sample(plain(Counted()), path=tmp_path / "a", **{**SIZES, "seed": rng})
    assert not (tmp_path / "a").exists()


# --- what does not repeat itself ---


def perturb(path, number, *, move=False, is_over=False):
    """Change the last bits of what one event holds, as another BLAS might, or its positions."""
    question = f"SELECT arrays, data, crc FROM events WHERE id = {number}"
    arrays = unpack(query(path, question)[0], "an event")
    arrays["positions"] += float(move)
    for name in () if move else arrays.keys() - {"positions", "readings"}:
        arrays[name] = np.nextafter(arrays[name], np.inf)
    statement = "UPDATE events SET arrays = ?, data = ?, crc = ? WHERE id = ?"
    change(path, (statement, (*pack(arrays), number)))
    if not is_over:
        change(path, FORGET_ACCOUNT)


LONG = pytest.mark.long


@pytest.mark.parametrize("kind", ["hmc", pytest.param("automatic", marks=LONG), "weights"])
def test_a_run_that_departs_by_a_last_bit_begins_anew(kind, whole, tmp_path):
    run, path = whole(kind)
    held = cut(path, tmp_path / "a")
    perturb(held, 8)
    before, paid = set(evaluated(held)), Counted()
    more = {"max_calls": 250} if kind == "weights" else {}
    with pytest.warns(SamplingWarning, match="have changed.*begins anew"):
        again = sk.resume(held, KINDS[kind][0](paid), check=False, progress=False, **more)
    # nothing of the former path is lost, and none of it is evaluated again
    new = [each for each in evaluated(held) if each not in before]
    functions = {"forward_and_jacobian": 2}  # and one for any other kind
    assert paid.n == sum(functions.get(each[0], 1) for each in new)
    assert kind == "automatic" or paid.n > 0  # draws before may be enough
    limit = {**KINDS[kind][1], **more}.get("max_calls", math.inf)
    assert total(again) <= limit - total(run)
    noted = [each.message for each in again.verdict.findings if "began anew" in each.message]
    assert f"{total(run)} evaluations of the former run, in a.before" in noted[0]
    assert np.array_equal(sk.open_run(held).draws, again.draws)
    # once begun, the run repeats itself to the bit
    paid.n = 0
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*cannot be repeated")
        third = sk.resume(held, KINDS[kind][0](paid), check=False, progress=False)
    assert same(third, again)
    assert paid.n == 0


def test_a_run_that_is_over_is_not_made_again(whole, tmp_path):
    run, path = whole("hmc")
    held = shutil.copy(path, tmp_path / "a")
    perturb(held, 8, is_over=True)
    tables = ("SELECT * FROM events", "SELECT * FROM draws")
    before, paid = [query(held, each) for each in tables], Counted()
    with pytest.raises(LedgerError, match=r"finished run in .*open_run"):
        sk.resume(held, plain(paid), check=False, progress=False)
    assert paid.n == 0
    assert [query(held, each) for each in tables] == before
    # where more draws are wanted it begins anew beside the run as it was
    sk.resume(held, plain(Counted()), draws=60, check=False, progress=False)
    former = tmp_path / "a.before"
    assert np.array_equal(sk.open_run(former).draws, run.draws)
    assert former.stat().st_mode & 0o077 == 0


def other_generator(path):
    state = fact(path, "generator")
    state["dict"]["state"]["dict"]["state"]["dict"]["state"] += 2
    set_fact(path, "generator", state)


def other_kinds(path):
    change(path, "UPDATE events SET kind = 'gradient' WHERE id > 100 AND kind != 'mark'")


def chains_elsewhere(path):
    """On data rows, whose calls are not kept, only marks tell."""
    last = "SELECT id FROM events WHERE kind = 'mark' ORDER BY id DESC LIMIT 1"
    perturb(path, query(path, last)[0][0], move=True)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (other_generator, "at another position|reads its clock"),
        (other_kinds, "goes on with gradient"),
        (chains_elsewhere, "the chains are not where they were"),
        (
            lambda path: change(path, "DELETE FROM events WHERE id = 20"),
            "another position|goes on with|reads its clock",
        ),
    ],
)
def test_another_course_begins_anew(how, message, tmp_path, whole):
    path = cut(whole("hmc")[1], tmp_path / "a")
    how(path)
    change(path, FORGET_ACCOUNT)
    with pytest.warns(SamplingWarning, match=message):
        sk.resume(path, plain(Counted()), check=False)
