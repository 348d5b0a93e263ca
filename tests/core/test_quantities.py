"""Quantities that a user's function returns beside its results, for kept draws without a call."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

import surrokit as sk
from models import DATA, Decay
from surrokit.errors import (
    EvaluationError,
    LedgerError,
    ResultTypeError,
    ShapeError,
)
from surrokit.model.quantities import Recent
from surrokit.result.summary import expectation_of_draws

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

PARAMETERS = {"rate": (0.1, 4.0), "start": (0.5, 6.0)}
HMC = {"sampler": "hmc", "warmup": 25, "draws": 20, "chains": 2, "seed": 1, "progress": False}
WALK = {**HMC, "sampler": "random-walk"}
WEIGHTS = {"max_calls": 100, "seed": 1, "progress": False}


def gradient(rate, start):
    ends, of = np.array([1e-5, -1e-5]), Decay(beside=False).log_density
    by_rate = [of(rate + step, start) for step in ends] @ (0.5 / ends)
    return {"rate": by_rate, "start": [of(rate, start + step) for step in ends] @ (0.5 / ends)}


def both(of):
    def joint(rate, start):
        value, *beside = found if isinstance(found := of(rate, start), tuple) else (found,)
        return (-value, {n: -x for n, x in gradient(rate, start).items()}, *beside)

    return joint


DOORS = {
    "density": (lambda m: sk.potential(log_density=m.log_density, parameters=PARAMETERS), WALK),
    "differences": (
        lambda m: sk.potential(
            log_density=m.log_density, gradient="differences", parameters=PARAMETERS
        ),
        HMC,
    ),
    "gradient": (
        lambda m: sk.potential(log_density=m.log_density, gradient=gradient, parameters=PARAMETERS),
        HMC,
    ),
    "joint": (
        lambda m: sk.potential(value_and_gradient=both(m.log_density), parameters=PARAMETERS),
        HMC,
    ),
    "map": (
        lambda m: sk.forward_potential(m.outputs, data=DATA, noise_sd=0.2, parameters=PARAMETERS),
        WALK,
    ),
    "noise": (
        lambda m: sk.forward_potential(
            m.outputs, data=DATA, noise_sd="estimate", parameters=PARAMETERS
        ),
        WALK,
    ),
}


def check(run):
    """Quantities are those of the draws, to the bit where they are made of a draw's digits."""
    np.testing.assert_array_equal(run["half"], np.log(2.0) / run["rate"])
    np.testing.assert_array_equal(run["series"][..., 0], run["start"])
    np.testing.assert_array_equal(run["series"][..., -1], run["end"])
    assert run["series"].shape == (*run.draws.shape[:2], 6)


@pytest.mark.parametrize("door", DOORS)
def test_every_kept_draw_has_them_and_no_call_is_added(door):
    make, settings = DOORS[door]
    model, plain = Decay(), Decay(beside=False)
    run, same = (sk.sample(make(each), **settings) for each in (model, plain))
    check(run)
    np.testing.assert_array_equal(run.draws, same.draws)
    assert run.calls == same.calls
    assert model.calls == plain.calls


def test_killed_and_resumed_and_opened_runs_have_them(tmp_path):
    """An exception ends the run in mid-air, of which the file holds what was evaluated."""
    make, settings = DOORS["density"]
    whole = sk.sample(make(Decay()), **settings)
    model = Decay()

    class Killed(BaseException):
        pass

    def fatal(rate, start):
        if model.calls == 40:
            raise Killed
        return model.log_density(rate, start)

    path = tmp_path / "run"
    target = sk.potential(log_density=fatal, parameters=PARAMETERS)
    with pytest.raises(Killed):
        sk.sample(target, path=path, **settings)
    fresh = Decay()
    run = sk.resume(path, make(fresh), progress=False)
    check(run)
    np.testing.assert_array_equal(run["series"], whole["series"])
    assert fresh.calls == whole.calls["value"] - 40 + 1  # one position is compared
    check(sk.open_run(path))
    check(sk.resume(path, make(Decay()), check=False, progress=False))
    table = sk.Ledger(path).to_arrays()
    known = ~table["failed"]
    np.testing.assert_array_equal(table["half"][known], np.log(2.0) / table["positions"][known, 0])
    with pytest.raises(LedgerError, match="another target"):
        sk.resume(path, make(Decay(beside=False)), draws=30, progress=False)


def test_another_run_finds_them_in_files_and_memory(tmp_path):
    make, settings = DOORS["density"]
    sk.sample(make(Decay()), path=tmp_path / "run", **settings)
    fresh = Decay()
    run = sk.sample(make(fresh), warm_start=tmp_path / "run", **settings)
    check(run)
    assert fresh.calls == 1  # to compare
    for beside in (False, True):  # what was evaluated without quantities is evaluated again
        model = Decay(beside=beside)
        shared = sk.model(model.outputs, parameters=PARAMETERS, path=tmp_path / f"model{beside}")
        posterior = shared.posterior(data=DATA, noise_sd=0.2)
        sk.sample(posterior, **WALK)
        again = sk.sample(shared.posterior(data=DATA, noise_sd=0.2), **WALK)
        assert again.total_calls == 0
        if beside:
            check(again)
    for name in ("modelTrue", "modelFalse"):
        model = Decay()
        again = sk.model(model.outputs, parameters=PARAMETERS, path=tmp_path / name)
        check(sk.sample(again.posterior(data=DATA, noise_sd=0.2), **WALK))
        assert (model.calls > 1) == (name == "modelFalse")


def test_a_value_that_is_known_with_its_gradient_has_them():
    model = sk.model(log_likelihood=Decay().log_density, gradient=gradient, parameters=PARAMETERS)
    first = sk.sample(model.posterior(), **HMC)
    starts = first.draws[:, -1]
    run = sk.sample(model.posterior(), **{**WALK, "initial": starts, "warmup": 0, "draws": 12})
    assert (run.draws[:, 0] == starts).any()
    check(run)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_workers_return_them(executor):
    make, settings = DOORS["map"]
    alone = sk.sample(make(Decay()), **settings)
    run = sk.sample(make(Decay()), compute=sk.Compute(workers=2, executor=executor), **settings)
    check(run)
    np.testing.assert_array_equal(run.draws, alone.draws)


PROGRAM = """
import json, sys
q = json.load(sys.stdin)["position"]
beside = {"mass": 2 * q[0], "pair": [q[0], 1.0]}
json.dump({"log_density": -q[0] ** 2, "quantities": beside}, sys.stdout)
"""


def test_a_program_answers_them(tmp_path):
    (tmp_path / "model.py").write_text(PROGRAM)
    target = sk.command_potential([sys.executable, "model.py"], dim=1, folder=tmp_path)
    run = sk.sample(target, **{**WALK, "warmup": 5, "draws": 5})
    np.testing.assert_array_equal(run["mass"], 2.0 * run.draws[..., 0])
    np.testing.assert_array_equal(run["pair"][..., 0], run.draws[..., 0])


def test_batches_return_rows_of_them():
    def log_density(q):
        return -np.square(q).sum(axis=1), {"sum": q.sum(axis=1), "both": q[:, ::-1]}

    run = sk.sample(sk.potential(log_density=log_density, dim=2, batched=True), **WALK)
    np.testing.assert_array_equal(run["both"], run.draws[..., ::-1])


def test_they_are_shown_where_parameters_are(tmp_path):
    run = sk.sample(DOORS["density"][0](Decay()), **{**WALK, "draws": 60})
    one, series = run.expectation("half"), run.expectation("series")
    assert one.value == pytest.approx(run["half"].mean())
    same = run.expectation(lambda q: np.log(2.0) / q[0])
    assert (one.error, one.effective) == pytest.approx((same.error, same.effective))
    assert series.value.shape == series.error.shape == (6,)
    assert run.expectation("rate").value == pytest.approx(run["rate"].mean())
    run.save(tmp_path / "draws.csv")
    with open(tmp_path / "draws.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_array_equal([float(row["half"]) for row in rows], run["half"].ravel())
    assert "series[5]" in rows[0]
    page = run.report(tmp_path / "run.html").read_text()
    assert "series[5]" in page
    posterior = run.to_arviz()["posterior"]
    np.testing.assert_array_equal(posterior["series"].values, run["series"])
    with pytest.raises(KeyError, match="rate, start, half, end, series"):
        run["third"]


@pytest.mark.long
def test_the_mean_under_weights_is_that_of_evaluated_draws_and_of_lines_along_all():
    run = sk.sample(DOORS["density"][0](Decay()), **WEIGHTS)
    assert run.answer is not None
    check(run)
    found, sharp = run.expectation("half"), run.expectation(lambda q: np.log(2.0) / q[0])
    plain = run["half"], run.log_weights, 0.0, 0.0
    assert abs(found.value - sharp.value) < 4.0 * np.hypot(found.error, sharp.error)
    assert sharp.error <= found.error < 0.3 * expectation_of_draws(*plain).error
    resampled = run.to_arviz()["posterior"]
    np.testing.assert_array_equal(resampled["half"], np.log(2.0) / resampled["rate"])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"mass": "heavy"}, ShapeError, "'mass' must be numbers"),
        ({"mass": None}, ShapeError, "'mass' must be numbers"),
        ({"mass": np.nan}, ResultTypeError, "'mass' is NaN"),
        ({"a b": 1.0}, ResultTypeError, "no identifier"),
        ({"q": 1.0}, ResultTypeError, "is a parameter"),
        ({"mass": np.zeros(5000)}, ResultTypeError, "at most; return fewer"),
        ({f"m{i}": 1.0 for i in range(65)}, ResultTypeError, "at most; return fewer"),
    ],
)
def test_what_is_no_quantity_is_an_error(given, error, words):
    target = sk.potential(log_density=lambda q: (0.0, given), parameters={"q": None})
    with pytest.raises(error, match=words):
        target.value(np.zeros((1, 1)))


@pytest.mark.filterwarnings("ignore::surrokit.errors.EvaluationWarning")
@pytest.mark.parametrize(
    "other",
    [{"mass": 1.0}, {"mass": np.ones(3)}, {"weight": np.ones(2)}, {}, {"mass": [np.nan, 1.0]}],
)
def test_other_names_shapes_and_nan_are_counted_failures_in_a_run(other):
    """A tenth of positions return something else; chains never get there."""

    def log_density(q):
        return -0.5 * q[0] ** 2, {"mass": [q[0], 1.0]} if q[0] < 1.0 else other

    target = sk.potential(log_density=log_density, dim=1)
    settings = {**WALK, "initial": np.array([[-0.5], [0.2]])}
    run = sk.sample(target, **settings)
    assert run.draws.max() < 1.0
    assert run.failures
    np.testing.assert_array_equal(run["mass"][..., 0], run.draws[..., 0])
    with pytest.raises((EvaluationError, ShapeError, ResultTypeError)):
        target.value(np.array([[2.0]]))


def test_a_potential_within_anothers_methods_loses_them_quietly():
    """Failed rows of the inner one are told by an error that carries the other rows."""

    def log_density(q):
        if q[0] > 1.0:
            raise ArithmeticError
        return -0.5 * q[0] ** 2, {"mass": q[0]}

    inner = sk.potential(log_density=log_density, dim=1)

    class Own:
        dim, capabilities = 1, frozenset()

        def value(self, positions):
            return inner.value(positions)

    settings = {**WALK, "initial": np.zeros((2, 1))}
    with pytest.warns(sk.errors.EvaluationWarning):
        run = sk.sample(Own(), **settings)
    assert run.failures
    assert not run.kept.quantities


def test_they_may_be_missing_where_the_density_is_zero():
    def log_density(q):
        return (-0.5 * q[0] ** 2, {"mass": q[0]}) if abs(q[0]) < 1.0 else -np.inf

    target = sk.potential(log_density=log_density, dim=1)
    run = sk.sample(target, **{**WALK, "initial": np.zeros((2, 1))})
    assert not run.failures
    np.testing.assert_array_equal(run["mass"], run.draws[..., 0])


def test_a_study_is_told_them(tmp_path):
    settings = {"sampler": "random-walk", "warmup": 4, "draws": 4, "chains": 2, "seed": 1}
    study = sk.study(tmp_path / "study", dim=1, **settings)
    while not study.done:
        at = study.ask()
        told = {"mass": at[:, 0], "pair": np.hstack([at, -at])}
        study.tell(at, -0.5 * at[:, 0] ** 2, quantities=told)
        study = sk.study(tmp_path / "study")
        if not study.done:
            with pytest.raises(
                ShapeError, match="quantities none at one position, and mass of shape"
            ):
                study.tell(study.ask(), np.zeros(len(study.ask())))
    np.testing.assert_array_equal(study.run["pair"][..., 1], -study.run.draws[..., 0])
    np.testing.assert_array_equal(study.run["mass"], study.run.draws[..., 0])


def test_only_the_latest_are_remembered_and_those_in_use(monkeypatch):
    monkeypatch.setattr(Recent, "MOST", 10 * 65)
    recent, used = Recent(), np.array([[-1.0]])
    recent.add(used, {"a": np.array([7.0])})
    for i in range(30):
        recent.add(np.array([[float(i)]]), {"a": np.array([float(i)])})
        assert recent.at(used)["a"] == 7.0
    assert recent.at(np.array([[0.0]])) == {}
    np.testing.assert_array_equal(recent.at(np.array([[29.0], [29.0]]))["a"], [29.0, 29.0])
    np.testing.assert_array_equal(recent.at(np.array([[0.0], [29.0]]))["a"], [np.nan, 29.0])
