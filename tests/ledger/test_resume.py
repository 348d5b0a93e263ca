"""A run that is taken up again goes on as if nothing had ended it."""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
import warnings
import zlib

import numpy as np
import pytest
from ledgers import KINDS, SIZES, Counted, cut, forward, plain, query

import surrokit as sk
from surrokit.errors import ConfigurationError, LedgerError, TargetError

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def same(one, other):
    """Whether two runs have the same draws to the bit, and the same costs."""
    return (
        np.array_equal(one.draws, other.draws)
        and np.array_equal(one.warmup.draws, other.warmup.draws)
        and np.array_equal(one.kept.values, other.kept.values, equal_nan=True)
        and one.calls == other.calls
        and one.adaptation == other.adaptation
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_done_again_without_a_call(kind, whole, tmp_path):
    run, path = whole(kind)
    paid = Counted()
    again = sk.resume(cut(path, tmp_path / "a", 10**9), KINDS[kind][0](paid), check=False)
    assert same(again, run)
    assert paid.n == 0
    assert np.array_equal(again.kept.seconds, run.kept.seconds)
    assert again.choice == run.choice
    assert again.stopped == run.stopped


# the clock decides early what is picked for values, and how long its warm-up is
PARTS = {"weights": [0.6], "sub-chain": [0.1, 0.5, 0.9], "values": [0.8]}
USUAL = [0.0, 0.02, 0.1, 0.3, 0.5, 0.8, 0.97]


@pytest.mark.parametrize(
    ("kind", "part"), [(kind, part) for kind in KINDS for part in PARTS.get(kind, USUAL)]
)
def test_a_run_goes_on_from_wherever_it_was_cut(kind, part, whole, tmp_path):
    run, path = whole(kind)
    (events,) = query(path, "SELECT max(id) FROM events")[0]
    held = cut(path, tmp_path / "a", int(part * events))
    again = sk.resume(held, KINDS[kind][0](Counted()), check=False, progress=False)
    if part > 0.1 or kind != "automatic":  # the clock decides what is picked
        assert same(again, run)
        assert query(path, POSITIONS) == query(held, POSITIONS)
        assert query(path, "SELECT count(*) FROM events WHERE outcome != 'done'") == [(0,)]


POSITIONS = "SELECT kind, positions FROM events WHERE kind != 'mark' ORDER BY id"


def total(run):
    return sum(run.calls.values())


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("stop_at", [0, 1, 7, 150, 400])
def test_no_call_is_paid_for_twice(error, stop_at, whole, tmp_path):
    run, _ = whole("hmc")
    paid = Counted()
    paid.stop_at, paid.error = stop_at, error
    settings = {
        **KINDS["hmc"][1],
        **SIZES,
        "path": tmp_path / "a",
        "compute": sk.Compute(on_error="raise"),
    }
    if error is KeyboardInterrupt:
        assert sk.sample(plain(paid), **settings).stopped == "interrupted"
    else:
        with pytest.raises(TargetError):
            sk.sample(plain(paid), **settings)
    paid.stop_at = None
    again = sk.resume(tmp_path / "a", plain(paid), check=False)
    assert same(again, run)
    assert total(run) <= paid.n <= total(run) + 1  # of the batch in flight one was paid for


def test_a_finished_run_is_extended(tmp_path):
    settings = {**KINDS["hmc"][1], **SIZES}
    run = sk.sample(plain(Counted()), path=tmp_path / "a", **settings)
    longer = run.extend(25, progress=False)
    at_once = sk.sample(plain(Counted()), **{**settings, "draws": 65})
    assert same(longer, at_once)
    assert np.array_equal(longer.extend(5).draws[:, :65], at_once.draws)
    third = sk.resume(tmp_path / "a", plain(Counted()), draws=80)
    assert np.array_equal(third.draws[:, :65], at_once.draws)
    assert third.draws.shape[1] == 80


def test_a_run_that_has_a_file_can_be_pickled(tmp_path):
    run = sk.sample(
        sk.make("potential", "banana"),
        sampler="hmc",
        path=tmp_path / "run",
        chains=2,
        warmup=5,
        draws=5,
        seed=1,
        progress=False,
    )
    assert np.array_equal(pickle.loads(pickle.dumps(run)).draws, run.draws)


@pytest.mark.parametrize(("wanted", "made"), [(25, 25), (5, 10)])
def test_fewer_draws_end_a_run_sooner(wanted, made, whole, tmp_path):
    """Those that there are stay."""
    run, path = whole("hmc")
    at = "SELECT max(id) FROM events WHERE stage = 'sampling' AND iteration <= 70"
    part = cut(path, tmp_path / "a", query(path, at)[0][0])
    shorter = sk.resume(part, plain(Counted()), draws=wanted)
    assert abs(shorter.draws.shape[1] - made) <= 1
    assert np.array_equal(shorter.draws, run.draws[:, : shorter.draws.shape[1]])
    again = sk.resume(part, plain(Counted()))
    assert np.array_equal(again.draws, shorter.draws)


@pytest.mark.parametrize("kind", ["sub-chain", "automatic", "values", "while-learning"])
def test_draws_of_the_shorter_run_come_first(kind, whole, tmp_path):
    run, path = whole(kind)
    held = cut(path, tmp_path / "a", 10**9)
    longer = sk.resume(held, KINDS[kind][0](Counted()), draws=len(run.kept) + 20, max_calls=None)
    assert np.array_equal(longer.draws[:, : len(run.kept)], run.draws)
    assert np.array_equal(longer.warmup.draws, run.warmup.draws)
    assert len(longer.kept) == len(run.kept) + 20


def test_a_limit_is_raised_and_then_removed(whole, tmp_path):
    run, path = whole("limited")
    assert run.stopped == "max_calls"
    held, paid = cut(path, tmp_path / "a", 10**9), Counted()
    more = sk.resume(held, plain(paid), max_calls=1500, check=False)
    assert more.stopped == "max_calls"
    assert 1300 < total(more) <= 1500
    assert paid.n == total(more) - total(run)
    rest = sk.resume(held, plain(paid), max_calls=None, check=False)
    assert (rest.stopped, rest.draws.shape[1]) == ("draws", 400)
    assert np.array_equal(rest.draws[:, : len(more.kept)], more.draws)
    assert paid.n == total(rest) - total(run)


def test_the_sessions_of_a_run_are_done_again_by_their_own_limits(whole, tmp_path):
    _, path = whole("limited")
    held = cut(path, tmp_path / "a", 10**9)
    second = sk.resume(held, plain(Counted()), max_calls=1500)
    paid = Counted()
    assert same(sk.resume(held, plain(paid), check=False), second)
    assert paid.n == 0
    (events,) = query(held, "SELECT max(id) FROM events")[0]
    for n in (events - 5, events // 2, 30):
        again = sk.resume(cut(held, tmp_path / f"b{n}", n), plain(Counted()), check=False)
        assert np.array_equal(again.warmup.draws, second.warmup.draws)


def test_goals_may_be_changed(whole, tmp_path):
    _, path = whole("hmc")
    held = cut(path, tmp_path / "a", 10**9)
    run = sk.resume(held, plain(Counted()), draws=1000, target_ess=200)
    assert run.stopped == "target_ess"
    assert 40 < len(run.kept) < 1000


def test_weighted_answers_go_on_with_more_calls(whole, tmp_path):
    run, path = whole("weights")
    assert not run.exact
    held = cut(path, tmp_path / "a", 10**9)
    more = sk.resume(held, forward(Counted()), max_calls=180, target_mcse=1e-4)
    assert total(run) < total(more) <= 180
    assert not more.exact


def test_an_object_is_given_again(tmp_path):
    surrogate = sk.make("surrogate", "additive", n_nodes=20)
    settings = {**KINDS["while-learning"][1], **SIZES, "surrogate": surrogate}
    run = sk.sample(plain(Counted()), path=tmp_path / "a", **settings)
    with pytest.raises(ConfigurationError, match="Pass them again, as surrogate="):
        sk.resume(tmp_path / "a", plain(Counted()))
    again = sk.resume(tmp_path / "a", plain(Counted()), surrogate=surrogate)
    assert same(again, run)
    assert len(run.extend(5).kept) == len(run.kept) + 5
    with pytest.raises(ConfigurationError, match="holds the run's sampler, which cannot be"):
        sk.resume(tmp_path / "a", plain(Counted()), sampler="nuts", surrogate=surrogate)


def test_given_starts_evaluations_and_settings_are_kept(tmp_path):
    rng = np.random.default_rng(2)
    points = rng.normal(size=(30, 3))
    settings = {
        **KINDS["while-learning"][1],
        **SIZES,
        "sampler": ("hmc", {"step_size": np.float64(0.3)}),
        "initial": [0.1, 0.2, 0.3],
        "seed": np.random.default_rng(9),
        "warm_start": (points, (points**2).sum(axis=1), 2 * points),
        "schedule": sk.Safety(mix=0.1),
    }
    run = sk.sample(plain(Counted()), path=tmp_path / "a", **settings)
    paid = Counted()
    assert same(sk.resume(tmp_path / "a", plain(paid), check=False), run)
    assert paid.n == 0


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_generator_of_numpy_is_kept(bits, tmp_path):
    rng = np.random.Generator(getattr(np.random, bits)(5))
    rng.spawn(2)
    rng.random(3)
    settings = {**KINDS["hmc"][1], **SIZES, "warmup": 10, "draws": 5, "seed": rng}
    run = sk.sample(plain(Counted()), path=tmp_path / "a", **settings)
    assert same(sk.resume(tmp_path / "a", plain(Counted())), run)


def test_a_generator_that_cannot_be_kept_is_refused(tmp_path):
    class Seeds(np.random.SeedSequence):
        pass

    rng = np.random.Generator(np.random.PCG64(Seeds(1)))
    with pytest.raises(ConfigurationError, match="a generator of numpy's own"):
        sk.sample(plain(Counted()), path=tmp_path / "a", **{**SIZES, "seed": rng})
    assert not (tmp_path / "a").exists()


def test_failures_are_told_again(tmp_path):
    def target():
        def log_density(q):
            if q[0] > 0.5:
                raise ArithmeticError("no solution")
            return -0.5 * q @ q

        return sk.potential(log_density=log_density, dim=2)

    settings = {"sampler": "random-walk", "warmup": 30, "draws": 20, **SIZES}
    with pytest.warns(sk.errors.EvaluationWarning, match="no solution"):
        run = sk.sample(target(), path=tmp_path / "a", **settings)
    assert run.failures > 0
    with pytest.warns(sk.errors.EvaluationWarning, match="no solution"):
        again = sk.resume(tmp_path / "a", target())
    assert same(again, run)
    assert again.failures == run.failures


# --- what does not repeat itself ---

POINTS = "SELECT kind, positions, outcome, width FROM events WHERE kind != 'mark' ORDER BY id"


def evaluated(path):
    """Return what was evaluated in a file, position by position: those done, and those left."""
    found = {"done": [], "left": []}
    for kind, positions, outcome, width in query(path, POINTS):
        rows = np.frombuffer(positions).reshape(-1, width)
        found.setdefault(outcome, []).extend((kind, row.tobytes()) for row in rows)
    return found


def perturb(path, number, *, is_over=False):
    """Change the last bits of what one event holds, as another BLAS might."""
    connection = sqlite3.connect(path)
    positions, results, readings = connection.execute(
        "SELECT positions, results, readings FROM events WHERE id = ?", (number,)
    ).fetchone()
    results = np.nextafter(np.frombuffer(results), np.inf).tobytes()
    connection.execute(
        "UPDATE events SET results = ?, crc = ? WHERE id = ?",
        (results, zlib.crc32(readings, zlib.crc32(results, zlib.crc32(positions))), number),
    )
    if not is_over:  # as if it had been killed
        connection.execute("DELETE FROM facts WHERE name = 'account'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("kind", ["hmc", "sub-chain", "automatic", "weights"])
def test_a_run_that_departs_by_a_last_bit_goes_on(kind, whole, tmp_path):
    held = cut(whole(kind)[1], tmp_path / "a", 10**9)
    perturb(held, 8)
    before, paid = evaluated(held)["done"], Counted()
    with pytest.warns(sk.errors.SamplingWarning, match="cannot be repeated to the bit"):
        again = sk.resume(held, KINDS[kind][0](paid), check=False, progress=False)
    after = evaluated(held)
    # nothing of the former path is lost, and none of it is evaluated again
    n_repeated = len(before) - len(after["left"])
    assert sorted(after["left"] + after["done"][:n_repeated]) == sorted(before)
    new = [each for each in after["done"][n_repeated:] if each not in set(before)]
    functions = {"forward_and_jacobian": 2}  # and one for any other kind
    assert paid.n == sum(functions.get(each[0], 1) for each in new) > 0
    noted = [each.message for each in again.verdict.findings if "new path" in each.message]
    assert noted
    assert f"{len(after['left'])} evaluations" in noted[0]
    # once gone on, the run repeats itself to the bit
    paid.n = 0
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*cannot be repeated")
        third = sk.resume(held, KINDS[kind][0](paid), check=False, progress=False)
    assert same(third, again)
    assert paid.n == 0


def test_the_file_as_it_was_stays_with_its_draws(whole, tmp_path):
    run, path = whole("hmc")
    held = shutil.copy(path, tmp_path / "a")
    perturb(held, 8, is_over=True)
    sk.resume(held, plain(Counted()), draws=60, check=False, progress=False)
    kept = tmp_path / "a.before"
    assert kept.stat().st_mode & 0o077 == 0
    assert np.array_equal(sk.open_run(kept).draws, run.draws)


def test_a_run_that_is_over_is_not_made_again(whole, tmp_path):
    held = shutil.copy(whole("hmc")[1], tmp_path / "a")
    perturb(held, 8, is_over=True)
    tables = ("SELECT * FROM events", "SELECT * FROM draws")
    before, paid = [query(held, each) for each in tables], Counted()
    with pytest.raises(LedgerError, match=r"has come to its end.*open_run"):
        sk.resume(held, plain(paid), check=False, progress=False)
    assert paid.n == 0
    assert [query(held, each) for each in tables] == before
    assert not (tmp_path / "a.before").exists()


def test_calls_on_the_path_that_is_left_count(whole, tmp_path):
    run, path = whole("hmc")
    held = cut(path, tmp_path / "a", 10**9)
    perturb(held, 40)
    again = sk.resume(held, plain(Counted()), check=False, progress=False)
    assert sum(again.calls.values()) > 1.3 * sum(run.calls.values())


GENERATOR = "SELECT value FROM facts WHERE name = 'generator'"


def test_another_generator_is_a_new_path_from_the_start(whole, tmp_path):
    path = cut(whole("hmc")[1], tmp_path / "a", 10**9)
    connection = sqlite3.connect(path)
    state = json.loads(connection.execute(GENERATOR).fetchone()[0])
    state["state"]["state"]["state"] += 2
    connection.execute("UPDATE facts SET value = ? WHERE name = 'generator'", [json.dumps(state)])
    connection.execute("DELETE FROM facts WHERE name = 'account'")  # as if it had been killed
    connection.commit()
    connection.close()
    with pytest.warns(sk.errors.SamplingWarning, match=r"(at another position|reads its clock)"):
        sk.resume(path, plain(Counted()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "UPDATE events SET kind = 'value' WHERE id > 100 AND kind != 'mark'",
            "goes on with value",
        ),
        ("DELETE FROM events WHERE id = 20", "another position|goes on with|reads its clock"),
    ],
)
def test_another_course_is_a_new_path(change, message, whole, tmp_path):
    path = cut(whole("hmc")[1], tmp_path / "a", 10**9)
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.execute("DELETE FROM facts WHERE name = 'account'")  # as if it had been killed
    connection.commit()
    connection.close()
    with pytest.warns(sk.errors.SamplingWarning, match=message):
        sk.resume(path, plain(Counted()), check=False)


def test_chains_elsewhere_at_a_mark_are_a_new_path(tmp_path):
    """On data rows, whose calls are not kept, only marks tell."""
    settings = {**KINDS["hmc"][1], **SIZES}
    sk.sample(plain(Counted()), path=tmp_path / "a", **settings)
    connection = sqlite3.connect(tmp_path / "a")
    number, positions = connection.execute(
        "SELECT id, positions FROM events WHERE kind = 'mark' ORDER BY id DESC LIMIT 1"
    ).fetchone()
    moved = (np.frombuffer(positions) + 1.0).tobytes()
    results, readings = connection.execute(
        "SELECT results, readings FROM events WHERE id = ?", (number,)
    ).fetchone()
    connection.execute(
        "UPDATE events SET positions = ?, crc = ? WHERE id = ?",
        (moved, zlib.crc32(readings, zlib.crc32(results, zlib.crc32(moved))), number),
    )
    connection.execute("DELETE FROM facts WHERE name = 'account'")  # as if it had been killed
    connection.commit()
    connection.close()
    with pytest.warns(sk.errors.SamplingWarning, match="the chains are not where they were"):
        sk.resume(tmp_path / "a", plain(Counted()))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*cannot be repeated")
        sk.resume(tmp_path / "a", plain(Counted()))
