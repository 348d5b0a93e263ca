"""Sums over the rows of Dask collections, with threads of this process."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit import capabilities as can
from surrokit.errors import ConfigurationError, MissingDependencyError, NumericalError, ShapeError
from surrokit.potentials import Ball
from surrokit.testing import check_potential
from surrokit_corrections.subsampled import Subsampled

dask = pytest.importorskip("dask", reason="partitions are Dask's")
da = pytest.importorskip("dask.array", reason="partitions are Dask's")

RNG = np.random.default_rng(0)
N = 1000
X = 0.5 * RNG.standard_normal((N, 3))
ETA = X @ [0.5, -0.4, 0.8]
OFFSET = 0.2 * RNG.standard_normal(N)
WEIGHTS = RNG.integers(0, 3, N).astype(float)
EVENTS = (RNG.random(N) < 0.7).astype(float)
RESPONSES = {
    "gaussian": ETA + RNG.standard_normal(N),
    "student": ETA + RNG.standard_t(4, N),
    "logistic": EVENTS,
    "poisson": RNG.poisson(np.exp(ETA)).astype(float),
    "gamma": RNG.exponential(np.exp(ETA)),
    "weibull": RNG.exponential(np.exp(-ETA)),
}
EACH = pytest.mark.parametrize("name", RESPONSES)
POSITIONS = 0.4 * RNG.standard_normal((4, 3))
QUICK = {"chains": 4, "warmup": 60, "draws": 100, "seed": 1, "progress": False}
BY_ROWS = {
    "sampler": "gaussian",
    "surrogate": "quadratic",
    "explorer": "rounds",
    "correction": "subsampled",
}


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def in_partitions(array, size=170):
    return da.from_array(array, chunks=(size, *array.shape[1:]))


def pair(name, n=N, size=170, **more):
    """Return one regression on partitions, and the same on arrays."""
    extra = {"offset": OFFSET[:n], "weights": WEIGHTS[:n]}
    extra |= {"event": EVENTS[:n]} if name == "weibull" else {}
    given = {**extra, "response": RESPONSES[name][:n]}
    spread = {key: in_partitions(array, size) for key, array in given.items()}
    ours = sk.rows_potential(name, in_partitions(X[:n], size), prior=2.0, **spread, **more)
    return ours, sk.rows_potential(name, X[:n], prior=2.0, **given)


@pytest.mark.parametrize("name", ["poisson", "weibull"])
def test_it_keeps_to_the_contract(name):
    results = check_potential(lambda: pair(name, n=40, size=13)[0])
    assert [result for result in results if result.outcome == "failed"] == []
    assert "check_row_draws" in [result.name.partition("[")[0] for result in results]


@EACH
def test_sums_are_those_of_all_rows_together(name):
    ours, theirs = pair(name)
    assert ours.n_rows == N
    assert ours.capabilities - {can.ROWS_DRAWN} == theirs.capabilities & ours.capabilities
    for method in ("value", "gradient", "hessian"):
        found, expected = (getattr(one, method)(POSITIONS) for one in (ours, theirs))
        assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    for order in (2, 3) if can.ROWS_THIRD_ORDER in ours.capabilities else (2,):
        one, other = (each.expand(POSITIONS[0], order=order) for each in (ours, theirs))
        assert_allclose(one.value(POSITIONS), other.value(POSITIONS), rtol=1e-11)
        rows, owners = np.array([3, 999, 3, 170, 169]), np.array([0, 1, 2, 3, 3])
        pairs = (POSITIONS, rows, owners)
        assert_allclose(one.remainders(*pairs), other.remainders(*pairs), rtol=1e-11)
        ball = Ball(centre=POSITIONS[0], radius=2.0)
        local = {"ball": ball} if can.ROWS_IN_BALLS in ours.capabilities else {}
        bounds = [each.row_bounds(np.eye(3), order=order, **local) for each in (ours, theirs)]
        assert_allclose(*bounds, rtol=1e-12)


def test_decisions_by_rows_agree_with_those_in_memory():
    ours, theirs = pair("logistic")
    one, other = (sk.sample(each, **BY_ROWS, **QUICK) for each in (ours, theirs))
    ess = np.minimum(one.ess("bulk"), other.ess("bulk"))
    error = other.draws.std(axis=(0, 1)) * np.sqrt(2.0 / ess)
    assert (np.abs(one.draws.mean(axis=(0, 1)) - other.draws.mean(axis=(0, 1))) < 5 * error).all()
    assert one.acceptance.mean() == pytest.approx(other.acceptance.mean(), abs=0.05)


def test_a_seed_and_partitions_are_enough_for_the_same_draws(tmp_path):
    """In any number of threads, and where a run is resumed: rows drawn ahead are drawn again."""
    runs = [sk.sample(pair("poisson")[0], **BY_ROWS, **QUICK)]
    path, options = tmp_path / "run.surrokit", {**BY_ROWS, **QUICK, "draws": 40}
    sk.sample(pair("poisson")[0], path=path, **options)
    runs.append(sk.resume(path, pair("poisson")[0], draws=100, progress=False))
    with dask.config.set(scheduler="threads", num_workers=4):
        runs.append(sk.sample(pair("poisson")[0], **BY_ROWS, **QUICK))
    for run in runs[1:]:
        assert_array_equal(run.draws, runs[0].draws)


@pytest.mark.statistical
@pytest.mark.parametrize("ahead", [1, 4096])
def test_rows_are_drawn_with_their_probabilities(ahead, monkeypatch):
    """Shares of 40 rows in 30000 draws, each within 5 standard errors: false alarms 1 in 4e4."""
    monkeypatch.setattr("surrokit_dask.partitions.AHEAD", ahead)
    ours, theirs = pair("student", n=40, size=7)
    psi = theirs.row_bounds(np.eye(3))
    draws = ours.row_draws(np.eye(3))
    rng = np.random.default_rng(0)
    sizes = [1, 2, 5, 300] if ahead == 4096 else [300]
    found = []
    while sum(map(len, found)) < 30_000:
        rows, bounds = draws.draw(int(rng.choice(sizes)), rng)
        assert_allclose(bounds, psi[rows], rtol=1e-12)
        found.append(rows)
    rows = np.concatenate(found)
    p = psi / psi.sum()
    error = np.sqrt(p * (1 - p) * len(rows))
    assert (np.abs(np.bincount(rows, minlength=40) - p * len(rows)) <= 5 * error).all()
    assert (np.bincount(rows, minlength=40)[p == 0] == 0).all()
    # neighbours in time are independent: as often equal as chance has it
    equal, chance = (rows[1:] == rows[:-1]).mean(), np.square(p).sum()
    assert abs(equal - chance) < 5 * np.sqrt(chance * (1 - chance) / len(rows))


def test_one_pass_serves_many_decisions(monkeypatch):
    ours, _ = pair("poisson")
    correction = Subsampled(order=2).bind(ours).prepare(np.zeros(3))
    passes = []
    compute = dask.compute

    def counted(*tasks):
        passes.append(len(tasks))
        return compute(*tasks)

    monkeypatch.setattr(dask, "compute", counted)
    estimator, rng = correction.estimator, np.random.default_rng(0)
    steps = np.linalg.solve(estimator.whitening.T, rng.standard_normal((4, 3)).T).T
    for _ in range(400):
        estimator.values(estimator.expansion.centre + steps, rng)
    assert estimator.expected_rows * 1600 > 300
    assert len(passes) <= 2


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # in Dask, by pandas
def test_dataframes_are_read_by_their_columns(tmp_path):
    pd = pytest.importorskip("pandas", reason="dataframes are made of pandas'")
    dd = pytest.importorskip("dask.dataframe", reason="partitions are Dask's")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["count"], frame["log_exposure"] = RESPONSES["poisson"], OFFSET
    frame.to_csv(tmp_path / "rows.csv", index=False)
    expected = sk.rows_potential("poisson", X, RESPONSES["poisson"], offset=OFFSET)
    read = [dd.read_csv(tmp_path / "rows.csv", blocksize=20_000)]
    pytest.importorskip("pyarrow", reason="dask.dataframe reads Parquet by it")
    dd.from_pandas(frame, npartitions=4).to_parquet(tmp_path / "rows.parquet")
    read.append(dd.read_parquet(tmp_path / "rows.parquet"))
    for rows in read:
        assert rows.npartitions > 1
        ours = sk.rows_potential("poisson", rows, "count", offset="log_exposure")
        assert_allclose(ours.value(POSITIONS), expected.value(POSITIONS), rtol=1e-9)
        series = sk.rows_potential(
            "poisson", rows[["a", "b", "c"]], rows["count"], offset=rows["log_exposure"]
        )
        assert_allclose(series.value(POSITIONS), expected.value(POSITIONS), rtol=1e-9)


def test_partitions_without_rows_are_passed_over():
    keep = np.arange(N) >= 340  # the first two partitions are empty
    few = in_partitions(X)[in_partitions(keep)]
    response = in_partitions(RESPONSES["poisson"])[in_partitions(keep)]
    ours = sk.rows_potential("poisson", few, response, prior=1.0)
    theirs = sk.rows_potential("poisson", X[340:], RESPONSES["poisson"][340:], prior=1.0)
    assert ours.n_rows == N - 340
    value, gradient = ours.value_and_gradient(POSITIONS)
    assert_allclose(value, theirs.value(POSITIONS), rtol=1e-11)
    assert_allclose(gradient, theirs.gradient(POSITIONS), rtol=1e-11)
    rows = np.array([0, 659, 5])
    selected = ours.select(rows).value(POSITIONS)
    assert_allclose(selected, theirs.select(rows).value(POSITIONS), rtol=1e-11)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"response": RESPONSES["poisson"]}, ConfigurationError, "response must be a Dask array"),
        ({"response": "count"}, ConfigurationError, "no column count in the data; name columns"),
        (
            {"response": in_partitions(EVENTS, 500)},
            ShapeError,
            "must have the same partitions",
        ),
        ({"terms": "multinomial"}, ConfigurationError, "cannot be 'multinomial', as a partition"),
        ({"terms": "ordinal"}, ConfigurationError, "cannot be 'ordinal', as a partition"),
        (
            {"response": in_partitions(-EVENTS)},
            ConfigurationError,
            "response must be whole num",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given, error, message):
    usual = {"terms": "poisson", "data": in_partitions(X), "response": in_partitions(EVENTS)}
    with pytest.raises(error, match=message):
        sk.rows_potential(**{**usual, **given})


def test_partitions_of_other_lengths_are_refused():
    response = da.from_array(EVENTS, chunks=((160, 180, 170, 170, 170, 150),))
    with pytest.raises(ShapeError, match=r"got \(170, 3\) beside {'response': \(1\d0,\)}; part"):
        sk.rows_potential("poisson", in_partitions(X), response)


def test_data_without_rows_are_refused():
    nothing = in_partitions(X)[in_partitions(np.zeros(N, dtype=bool))]
    response = in_partitions(EVENTS)[in_partitions(np.zeros(N, dtype=bool))]
    with pytest.raises(ShapeError, match="data must have at least one row, got partitions without"):
        sk.rows_potential("poisson", nothing, response)


def test_bounds_without_a_sum_are_refused():
    ours, _ = pair("poisson")
    with (
        np.errstate(over="ignore"),
        pytest.raises(NumericalError, match=r"a finite sum, got (inf|nan)"),
    ):
        ours.row_draws(np.eye(3), ball=Ball(centre=np.zeros(3), radius=1e4))


def test_without_dask_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[dask\]'"):
        sk.rows_potential("poisson", in_partitions(X), in_partitions(EVENTS))
