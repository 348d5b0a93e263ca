"""Runs in ArviZ's form, and on disk."""

from __future__ import annotations

import sys
import types
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.errors import MissingDependencyError

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


def test_costs_are_attributes(bounded_run):
    attributes = bounded_run.to_arviz().attrs
    assert attributes["inference_library"] == "surrokit"
    assert attributes["calls_value"] == bounded_run.calls["value"]
    assert attributes["sampling_time"] == bounded_run.seconds["sampling"]


def test_arviz_finds_the_same_effective_sample_size(bounded_run):
    ess = arviz.ess(bounded_run.to_arviz())
    expected = [float(ess["rate"]), float(ess["slope"]), *ess["w"].values]
    np.testing.assert_allclose(expected, bounded_run.ess("bulk"), rtol=1e-6)


def test_a_saved_run_can_be_read_back(bounded_run, tmp_path):
    import xarray

    path = tmp_path / "run.nc"
    bounded_run.save(path)
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert_array_equal(tree["posterior"]["w"].values, bounded_run["w"])
        assert_array_equal(tree["sample_stats"]["lp"].values, -bounded_run.kept.values)
        assert tree.attrs["calls_value"] == bounded_run.calls["value"]


def test_a_run_is_saved_to_a_path_of_text(bounded_run, tmp_path):
    bounded_run.save(str(tmp_path / "run.nc"))
    assert (tmp_path / "run.nc").stat().st_size > 0


def test_without_arviz_the_message_says_what_to_install(bounded_run, hidden):
    hidden("arviz", "arviz_base")
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[arviz\]'"):
        bounded_run.to_arviz()
    with pytest.raises(ImportError, match=r"(?i)arviz is needed"):
        bounded_run.save("never.nc")


@pytest.mark.parametrize("name", ["h5netcdf", "h5py"])
def test_without_a_netcdf_library_the_message_says_what_to_install(
    bounded_run, hidden, tmp_path, name
):
    hidden(name)
    message = rf"{name} is needed to .*pip install 'surrokit\[arviz\]'"
    with pytest.raises(MissingDependencyError, match=message):
        bounded_run.save(tmp_path / "run.nc")


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
    assert set(given) == {"posterior", "sample_stats", "warmup_sample_stats", "save_warmup"}
    assert_array_equal(given["posterior"]["rate"], bounded_run["rate"])


@pytest.mark.parametrize("draws", [1, 3])
def test_fewer_draws_than_chains_are_no_warning(draws):
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=1)
    run = sk.sample(target, chains=4, warmup=20, draws=draws, seed=1, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree = run.to_arviz()
    assert tree["posterior"]["q"].shape == (4, draws, 1)
