"""Runs in ArviZ's form, and as files: the ending decides, and nothing is left half written."""

from __future__ import annotations

import csv
import sys

import attrs
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.output import arviz as export
from surrokit.output import saving
from surrokit.potentials import observed_data_of

arviz = pytest.importorskip("arviz")

LABELS = ["rate", "slope", "w[0]", "w[1]"]
FEW = {"sampler": "hmc", "chains": 2, "warmup": 20, "draws": 3, "seed": 1, "progress": False}


def normal(**settings):
    return sk.potential(lambda q: 0.5 * q @ q, lambda q: q, **settings)


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, dtype=float)


# --- ArviZ ---


def test_draws_statistics_and_warm_up_are_groups(bounded_run):
    tree = bounded_run.to_arviz()
    posterior = tree["posterior"]
    assert set(posterior.data_vars) == {"rate", "slope", "w"}
    for name in ("rate", "slope", "w"):
        assert_array_equal(posterior[name].values, bounded_run[name])
    assert posterior["w"].dims[:2] == ("chain", "draw")
    assert_array_equal(tree["warmup_posterior"]["w"].values, bounded_run.warmup.draws[:, :, 2:])
    for group, part in (("sample_stats", "kept"), ("warmup_sample_stats", "warmup")):
        trace, statistics = getattr(bounded_run, part), tree[group]
        assert_array_equal(statistics["lp"].values, -trace.values)
        assert_array_equal(statistics["acceptance_rate"].values, trace.acceptance)
        assert_array_equal(statistics["diverging"].values, trace.divergent)
        assert_array_equal(statistics["n_steps"].values, trace.n_steps)
        assert_array_equal(statistics["step_size"].values, np.tile(trace.step_size, (3, 1)))
    ess = arviz.ess(tree)
    expected = [float(ess["rate"]), float(ess["slope"]), *ess["w"].values]
    assert_allclose(expected, bounded_run.ess("bulk"), rtol=1e-6)
    known = {
        "inference_library_version": sk.__version__,
        "calls_value": bounded_run.calls["value"],
        "sampling_time": bounded_run.seconds["sampling"],
        "part_sampler": bounded_run.parts["sampler"],
        "tuning_steps": 60,
        "verdict": str(bounded_run.verdict),
    }
    assert {name: tree.attrs[name] for name in known} == known


def test_outputs_and_data_of_a_forward_map_are_groups(forward_run, bounded_run):
    run, _ = forward_run
    tree, bare = run.to_arviz(), bounded_run.to_arviz()
    assert_array_equal(tree["posterior_predictive"]["outputs"].values, run.outputs)
    assert_array_equal(tree["observed_data"]["outputs"].values, [1.0, 1.0, 3.0])
    assert "energy" in tree["sample_stats"]
    assert not any(hasattr(bare, name) for name in ("posterior_predictive", "observed_data"))


SETS = {"a": sk.observed([1.0, 2.0], 0.1), "b": sk.observed([3.0], "estimate")}


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (
            sk.forward_potential(lambda q: q[0] + np.arange(3.0), data=SETS, dim=1),
            {"outputs": [1.0, 2.0, 3.0]},
        ),
        (sk.rows_potential("poisson", np.eye(2), [3, 4], prior=1.0), {"row": [3, 4]}),
        (sk.rows_potential("multinomial", np.eye(3), [0, 1, 2]), {"row": [0, 1, 2]}),
        (
            sk.rows_potential(lambda q, rows: -rows["x"], {"x": np.ones(2)}, dim=1),
            {"x": [1.0, 1.0]},
        ),
        (
            sk.rows_potential(lambda q, rows: -rows[1], (np.ones(2), np.zeros(2)), dim=1),
            {"data_0": [1.0, 1.0], "data_1": [0.0, 0.0]},
        ),
        (normal(dim=1), {}),
    ],
)
def test_targets_tell_what_was_observed(target, expected):
    found = observed_data_of(target)
    assert {name: array.tolist() for name, array in found.items()} == expected


@pytest.mark.parametrize(
    "array", [np.array(["a", "b"]), np.array([1, "b"], dtype=object), np.zeros(2**22 + 1, bool)]
)
def test_text_and_large_data_are_not_exported(bounded_run, array):
    run = attrs.evolve(bounded_run, observed_data={"x": array, "y": np.zeros(2)})
    assert list(run.to_arviz()["observed_data"].data_vars) == ["y"]


def test_log_likelihoods_and_priors_are_those_of_rows(bounded_run, monkeypatch):
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(30), rng.normal(size=30)])
    response = (rng.random(30) < 0.5).astype(float)
    target = sk.rows_potential("logistic", design, response, prior=2.0)
    run = sk.sample(target, **{**FEW, "warmup": 60, "draws": 40})
    calls = dict(run.calls)
    tree = run.to_arviz(log_likelihood=True)
    by_row = -np.log1p(np.exp((1.0 - 2.0 * response) * (run.draws @ design.T)))
    assert_allclose(tree["log_likelihood"]["row"].values, by_row)
    assert_allclose(
        tree["log_prior"]["prior"].values, scipy.stats.norm(0.0, 2.0).logpdf(run.draws).sum(axis=2)
    )
    assert run.calls == calls
    assert "log_likelihood" not in run.to_arviz()
    with pytest.raises(ConfigurationError, match="needs draws of a forward model"):
        bounded_run.to_arviz(log_likelihood=True)
    monkeypatch.setattr(export, "MOST_NUMBERS", 30 * 80 - 1)
    with pytest.raises(ConfigurationError, match="at most 2,399 observations times draws, got 2,4"):
        run.to_arviz(log_likelihood=True)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, by ArviZ
def test_forward_models_compare_and_show_sensitivity_without_a_call(tmp_path):
    """The manual's way with the installed ArviZ; data against which the prior pulls are found."""
    times, calls = np.arange(6.0), [0]

    def line(slope, level):
        calls[0] += 1
        return level + slope * times

    normal = scipy.stats.norm
    target = sk.forward_potential(
        line,
        data={
            "a": sk.observed(1.0 + times[:3], 0.5),
            "b": sk.observed(4.0 + times[:3], "estimate", family="student"),
        },
        parameters={"slope": sk.real(prior=normal(-1.0, 0.3)), "level": sk.positive()},
    )
    run = sk.sample(
        target, path=tmp_path / "run", **{**FEW, "sampler": "random-walk", "draws": 300}
    )
    made, tree = calls[0], run.to_arviz()
    assert calls[0] == made
    outputs, scale = run.outputs, run["scale_b"][..., None]
    known = normal(outputs[..., :3], 0.5).logpdf(1.0 + times[:3])
    student = scipy.stats.t(4.0, outputs[..., 3:], scale).logpdf(4.0 + times[:3])
    found = tree["log_likelihood"]["outputs"].values
    assert_allclose(found, np.concatenate([known, student], axis=2))
    jacobian = np.log(run["level"]) + np.log(run["scale_b"])
    total = found.sum(axis=2) + tree["log_prior"]["prior"].values
    assert_allclose(total + jacobian, -run.kept.values)
    opened = sk.open_run(tmp_path / "run").to_arviz()  # a file holds no prior
    assert_array_equal(opened["log_likelihood"]["outputs"].values, found)
    assert "log_prior" not in opened
    assert arviz.loo(tree).n_data_points == 6
    psens = getattr(arviz, "psens", None) or arviz.psense
    component = {"component": "prior"} if hasattr(arviz, "psens") else {"group": "prior"}
    assert float(psens(tree, **component)["slope"]) > 0.05
    assert len(arviz.compare({"one": tree, "same": opened})) == 2


def test_without_arviz_the_message_says_what_to_install(bounded_run, monkeypatch):
    for name in ("arviz", "arviz_base"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[arviz\]'"):
        bounded_run.to_arviz()
    with pytest.raises(ImportError, match=r"(?i)arviz is needed"):
        bounded_run.save("never.nc")


# --- names ---

ODD_NAMES = {
    "chain": None,
    "draw": sk.real(2),
    "chain_": None,
    "v": sk.real(2),
    "v_dim_0": None,
    **dict.fromkeys(("x=1", "a/b", "a÷b", "a/b÷c", "a÷b/c", " a ", "it's", '"q"', "line\nbreak")),
    **dict.fromkeys(
        ("x[0]", "μέση τιμή", "e\u0301", "posterior", ".", "..", "\\", "\x1b[31m", "lp")
    ),
}


def test_parameters_with_odd_names_are_all_in_the_file(tmp_path):
    """Slashes are division signs, where they part names of groups."""
    pytest.importorskip("h5netcdf", reason="netCDF files are written by it")
    target = normal(parameters=ODD_NAMES)
    own = {"a/b": np.arange(5.0)}
    run = attrs.evolve(sk.sample(target, **FEW), observed_data=own)
    run.save(tmp_path / "run.nc")
    for tree in (arviz.from_netcdf(tmp_path / "run.nc"), run.to_arviz()):
        found = {name: np.array(array) for name, array in tree["posterior"].data_vars.items()}
        assert len(found) == len(ODD_NAMES)
        for name, array in zip(ODD_NAMES, found.values(), strict=True):
            assert_array_equal(array, run[name])
    saved = arviz.from_netcdf(tmp_path / "run.nc")
    assert_array_equal(saved["posterior"]["a÷b_"].values, run["a/b"])
    assert_array_equal(saved["observed_data"]["a÷b"].values, np.arange(5.0))
    for name in ("a\x00b", "\udc80"):
        with pytest.raises(ConfigurationError, match="must be text that files can hold"):
            normal(parameters={name: None})


# --- files ---


def test_a_table_as_text_has_one_row_a_draw(bounded_run, tmp_path):
    path = tmp_path / "RUN.CSV"  # endings may be in capitals
    bounded_run.save(path)
    header, rows = rows_of(path)
    assert header == ["chain", "draw", *LABELS]
    chains, draws, dim = bounded_run.draws.shape
    assert_array_equal(rows[:, 0], np.repeat(np.arange(chains), draws))
    assert_array_equal(rows[:, 1], np.tile(np.arange(draws), chains))
    numbers = rows[:, 2:].reshape(chains, draws, dim)
    assert_array_equal(numbers, bounded_run.draws)  # to the last bit
    kept = attrs.evolve(bounded_run.kept, draws=bounded_run.draws[:, :0])
    attrs.evolve(bounded_run, kept=kept).save(path)
    header, rows = rows_of(path)
    assert (len(header), len(rows)) == (6, 0)


@pytest.mark.parametrize("name", ["run.txt", "run.csv.gz", ".csv"])
def test_another_ending_is_refused(bounded_run, tmp_path, name):
    said = r"does not say how to write draws; use one of .nc"
    with pytest.raises(ConfigurationError, match=said):
        bounded_run.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("library", ["h5netcdf", "h5py"])
def test_what_is_missing_for_netcdf_is_said(bounded_run, tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    said = rf"{library} is needed .* pip install 'surrokit\[arviz\]'"
    with pytest.raises(MissingDependencyError, match=said):
        bounded_run.save(tmp_path / "run.nc")


def test_an_old_file_stays_until_the_new_one_is_whole(bounded_run, tmp_path, monkeypatch):
    path = tmp_path / "run.csv"
    path.write_text("old")

    def fail(_, path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "write_csv", fail)
    said = r"cannot write .*run.csv: No space left on device"
    with pytest.raises(ConfigurationError, match=said):
        bounded_run.save(path)
    assert path.read_text() == "old"
    monkeypatch.undo()
    bounded_run.save(path)
    assert path.read_text().startswith("chain,draw,rate")
    assert [file.name for file in tmp_path.iterdir()] == ["run.csv"]
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ConfigurationError, match="it is a folder; give the name of a file"):
        bounded_run.save(tmp_path / "folder.csv")
    with pytest.raises(ConfigurationError, match=r"there is no folder .*nowhere; make it first"):
        bounded_run.save(tmp_path / "nowhere" / "run.nc")
