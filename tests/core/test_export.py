"""Runs in ArviZ's form, and on disk."""

from __future__ import annotations

import sys
import types
import warnings
from types import MappingProxyType

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.errors import CapabilityError, ConfigurationError, MissingDependencyError
from surrokit.potentials import observed_data_of
from surrokit.testing.targets import Gaussian

arviz = pytest.importorskip("arviz")


@pytest.fixture
def hidden(monkeypatch):
    """Make modules look as if they were not installed."""

    def hide(*names):
        for name in names:
            monkeypatch.setitem(sys.modules, name, None)

    return hide


def test_draws_are_the_posterior(bounded_run):
    posterior = bounded_run.to_arviz()["posterior"]
    assert set(posterior.data_vars) == {"rate", "slope", "w"}
    for name in ("rate", "slope", "w"):
        assert_array_equal(posterior[name].values, bounded_run[name])
    assert posterior["w"].dims[:2] == ("chain", "draw")


@pytest.mark.parametrize(
    ("group", "part"), [("sample_stats", "kept"), ("warmup_sample_stats", "warmup")]
)
def test_statistics_have_arviz_names(bounded_run, group, part):
    trace = getattr(bounded_run, part)
    statistics = bounded_run.to_arviz()[group]
    assert_array_equal(statistics["lp"].values, -trace.values)
    assert_array_equal(statistics["acceptance_rate"].values, trace.acceptance)
    assert_array_equal(statistics["diverging"].values, trace.divergent)
    assert_array_equal(statistics["n_steps"].values, trace.n_steps)
    assert_array_equal(statistics["step_size"].values, np.tile(trace.step_size, (3, 1)))


def test_attributes_have_versions_and_costs(bounded_run):
    attributes = bounded_run.to_arviz().attrs
    assert attributes["inference_library"] == "surrokit"
    assert attributes["calls_value"] == bounded_run.calls["value"]
    assert attributes["sampling_time"] == bounded_run.seconds["sampling"]
    assert attributes["inference_library_version"] == sk.__version__
    assert attributes["numpy_version"] == np.__version__
    assert attributes["calls"] == bounded_run.total_calls
    assert attributes["part_sampler"] == bounded_run.parts["sampler"]
    assert attributes["tuning_steps"] == 60
    assert attributes["verdict"] == str(bounded_run.verdict)


def test_the_warm_up_is_a_group_by_itself(bounded_run):
    warmup = bounded_run.to_arviz()["warmup_posterior"]
    assert warmup["w"].shape == (3, 60, 2)
    assert_array_equal(warmup["rate"].values, bounded_run.warmup.draws[:, :, 0])


def test_outputs_of_a_forward_map_are_predictions(forward_run, bounded_run):
    run, _ = forward_run
    tree = run.to_arviz()
    assert_array_equal(tree["posterior_predictive"]["outputs"].values, run.outputs)
    assert "energy" in tree["sample_stats"]
    assert "posterior_predictive" not in bounded_run.to_arviz()


def test_data_are_exported_beside_the_outputs(forward_run):
    run, _ = forward_run
    observed = run.to_arviz()["observed_data"]["outputs"]
    assert_array_equal(observed.values, [1.0, 1.0, 3.0])
    assert run.outputs.shape[2:] == observed.shape


def test_without_data_there_is_no_such_group(bounded_run):
    assert bounded_run.observed_data == {}
    assert not hasattr(bounded_run.to_arviz(), "observed_data")


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
        (sk.potential(lambda q: 0.0, dim=1), {}),
    ],
)
def test_targets_tell_what_was_observed(target, expected):
    found = observed_data_of(target)
    assert {name: array.tolist() for name, array in found.items()} == expected


@pytest.mark.parametrize(("name", "count"), [("lynx-hare", 42), ("elliptic-pde", 121)])
def test_built_in_targets_tell_their_data(name, count):
    target = sk.make("potential", name)
    (array,) = observed_data_of(target).values()
    assert array.shape == (count,)


@pytest.mark.parametrize(
    "array", [np.array(["a", "b"]), np.array([1, "b"], dtype=object), np.zeros(2**22 + 1, bool)]
)
def test_text_and_large_data_are_not_exported(bounded_run, array):
    run = attrs.evolve(bounded_run, observed_data={"x": array, "y": np.zeros(2)})
    assert list(run.to_arviz()["observed_data"].data_vars) == ["y"]


def test_a_target_s_own_data_have_their_names(tmp_path):
    class Own(Gaussian):
        observed_data = MappingProxyType({"a/b": np.arange(5.0)})

    run = sk.sample(Own(), sampler="hmc", warmup=20, draws=20, seed=1, progress=False)
    pytest.importorskip("h5netcdf", reason="netCDF files are written by it")
    run.save(tmp_path / "run.nc")
    back = arviz.from_netcdf(tmp_path / "run.nc")
    assert_array_equal(back["observed_data"]["a÷b"].values, np.arange(5.0))


def test_paths_that_are_doubled_have_depths():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=3)
    run = sk.sample(target, sampler="nuts", warmup=100, draws=50, seed=1, progress=False)
    statistics = run.to_arviz()["sample_stats"]
    depth = statistics["tree_depth"].values
    assert ((2 ** (depth - 1) <= run.kept.n_steps) & (run.kept.n_steps < 2**depth)).all()
    hmc = sk.sample(target, sampler="hmc", warmup=20, draws=20, seed=1, progress=False)
    assert "tree_depth" not in hmc.to_arviz()["sample_stats"]


def regression(n):
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(n), rng.normal(size=n)])
    response = (rng.random(n) < 0.5).astype(float)
    return sk.rows_potential("logistic", design, response, prior=2.0), design, response


def test_log_likelihoods_by_row_are_those_of_the_rows():
    target, design, response = regression(30)
    run = sk.sample(target, sampler="hmc", warmup=60, draws=40, seed=1, progress=False)
    calls = dict(run.calls)
    by_row = run.to_arviz(log_likelihood=target)["log_likelihood"]["row"].values
    signs = 2.0 * response - 1.0
    expected = -np.log1p(np.exp(-signs * (run.draws @ design.T)))
    np.testing.assert_allclose(by_row, expected)
    assert run.calls == calls


def test_log_likelihoods_need_rows(bounded_run):
    target = sk.potential(lambda q: 0.5 * q @ q, dim=4)
    with pytest.raises(CapabilityError, match="need a target that is a sum over rows"):
        bounded_run.to_arviz(log_likelihood=target)


def test_log_likelihoods_of_another_target_are_refused(bounded_run, monkeypatch):
    with pytest.raises(ConfigurationError, match="positions have 4 numbers, got one with 2"):
        bounded_run.to_arviz(log_likelihood=regression(5)[0])


def test_too_many_log_likelihoods_are_refused(monkeypatch):
    from surrokit.output import arviz as export

    target, _, _ = regression(30)
    run = sk.sample(target, sampler="hmc", warmup=20, draws=20, seed=1, progress=False)
    monkeypatch.setattr(export, "MOST_NUMBERS", 30 * 80 - 1)
    with pytest.raises(ConfigurationError, match="of 30 rows at 80 draws are too many to export"):
        run.to_arviz(log_likelihood=target)


def test_arviz_finds_the_same_effective_sample_size(bounded_run):
    ess = arviz.ess(bounded_run.to_arviz())
    expected = [float(ess["rate"]), float(ess["slope"]), *ess["w"].values]
    np.testing.assert_allclose(expected, bounded_run.ess("bulk"), rtol=1e-6)


def test_a_saved_run_can_be_read_back(bounded_run, tmp_path):
    import xarray

    path = tmp_path / "run.nc"
    bounded_run.save(str(path))
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert_array_equal(tree["posterior"]["w"].values, bounded_run["w"])
        assert_array_equal(tree["sample_stats"]["lp"].values, -bounded_run.kept.values)
        assert tree.attrs["calls_value"] == bounded_run.calls["value"]


def test_without_arviz_the_message_says_what_to_install(bounded_run, hidden):
    hidden("arviz", "arviz_base")
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[arviz\]'"):
        bounded_run.to_arviz()
    with pytest.raises(ImportError, match=r"(?i)arviz is needed"):
        bounded_run.save("never.nc")


def test_a_folder_that_does_not_exist_is_not_blamed_on_a_library(bounded_run, tmp_path):
    with pytest.raises(Exception, match="nowhere") as caught:
        bounded_run.save(tmp_path / "nowhere" / "run.nc")
    assert not isinstance(caught.value, MissingDependencyError)


def test_an_older_arviz_gets_its_own_call(bounded_run, hidden, monkeypatch):
    hidden("arviz_base")
    given = {}
    older = types.ModuleType("arviz")
    data = types.SimpleNamespace(attrs={})
    older.from_dict = lambda **groups: given.update(groups) or data
    monkeypatch.setitem(sys.modules, "arviz", older)
    assert bounded_run.to_arviz() is data
    assert data.attrs["inference_library"] == "surrokit"
    groups = {"posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"}
    assert set(given) == {*groups, "save_warmup"}
    assert_array_equal(given["posterior"]["rate"], bounded_run["rate"])


@pytest.mark.parametrize("draws", [1, 3])
def test_fewer_draws_than_chains_are_no_warning(draws):
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=1)
    run = sk.sample(target, chains=4, warmup=20, draws=draws, seed=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = run.to_arviz()
    assert tree["posterior"]["q"].shape == (4, draws, 1)
