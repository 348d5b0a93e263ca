"""Models of PyMC in workers, by JAX, in tutorials, and where the libraries are absent."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
import surrokit_pymc
from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit_pymc import from_pymc
from surrokit_pymc.compiled import Compiled

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")

QUICK = {"sampler": "hmc", "warmup": 20, "draws": 10, "chains": 4, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def target(schools):
    return from_pymc(schools)


def test_calls_from_several_threads_take_turns():
    inside, seen = [], []

    def function(position):
        inside.append(1)
        time.sleep(0.01)
        seen.append(len(inside))
        inside.pop()
        return position

    compiled = Compiled(None, lambda model: function)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(compiled, np.zeros((4, 1))))
    assert seen == [1, 1, 1, 1]


def test_a_model_travels(varied):
    target = from_pymc(varied)
    copy = pickle.loads(cloudpickle.dumps(target))
    z = 0.1 * np.arange(2 * target.dim, dtype=float).reshape(2, -1)
    assert_array_equal(copy.value_and_gradient(z)[1], target.value_and_gradient(z)[1])
    reported = target.transform.to_bounded(z)
    assert_array_equal(copy.transform.to_bounded(z), reported)
    back = (each.transform.to_unbounded(reported) for each in (copy, target))
    assert_array_equal(*back)


def test_a_copy_elsewhere_is_in_double_precision(target, tmp_path):
    (tmp_path / "target").write_bytes(cloudpickle.dumps(target))
    load = (
        "import pickle, numpy, sys\n"
        f"target = pickle.load(open({str(tmp_path / 'target')!r}, 'rb'))\n"
        "print(repr(float(target.value(numpy.zeros((1, 10)))[0])))"
    )
    fresh = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    assert float(fresh.stdout) == target.value(np.zeros((1, 10)))[0]
    single = f"import pytensor; pytensor.config.floatX = 'float32'\n{load}"
    refused = subprocess.run(
        [sys.executable, "-c", single], capture_output=True, text=True, check=False
    )
    assert "floatX is float32" in refused.stderr


def test_jax_gives_the_same_with_further_derivatives(jax, schools, target):
    by_jax = from_pymc(schools, backend="jax")
    z = 0.3 * np.random.default_rng(2).normal(size=(3, target.dim))
    pairs = zip(by_jax.value_and_gradient(z), target.value_and_gradient(z), strict=True)
    for ours, theirs in pairs:
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    assert {"hessian", "hessian-derivative", "initial"} < by_jax.capabilities
    assert sk.sample(by_jax, **QUICK)["theta"].shape == (4, 10, 8)
    copy = pickle.loads(cloudpickle.dumps(by_jax))
    assert_array_equal(copy.value(z), by_jax.value(z))


def test_jax_in_single_precision_is_refused(jax, schools):
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ConfigurationError, match="JAX computes in single precision"):
        from_pymc(schools, backend="jax")


# --- where the libraries are absent ---


def test_it_says_what_to_install(monkeypatch, schools):
    for door, extra in (("from_bambi", "bambi"), ("from_pymc", "pymc")):
        monkeypatch.setitem(sys.modules, extra, None)
        with pytest.raises(MissingDependencyError, match=rf"pip install 'surrokit\[{extra}\]'"):
            getattr(surrokit_pymc, door)(object())
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[jax\]'"):
        from_pymc(schools, backend="jax")
    with pytest.raises(AttributeError, match="from_edward"):
        _ = surrokit_pymc.from_edward


# --- tutorials ---


@pytest.fixture
def _quiet_blas():
    import pytensor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may lack a BLAS, and says so once
        _ = pytensor.config.blas__ldflags


@pytest.mark.long
@pytest.mark.usefixtures("pymc", "_quiet_blas")
def test_the_schools_of_the_tutorial_run(run_example):
    names = run_example("pymc_schools.py")
    assert names["choate"].shape == (4, 1000)
    assert 2.5 < names["run"]["tau"].mean() < 4.5


@pytest.mark.long
@pytest.mark.usefixtures("bambi", "_quiet_blas")
def test_the_pupils_of_the_tutorial_run(run_example):
    names = run_example("bambi_pupils.py")
    assert 0.7 < names["run"]["hours"].mean() < 1.0
    predicted = names["tree"]["posterior"]["mu"].mean(("chain", "draw"))
    truth = 5.0 + 0.8 * np.array([2.0, 8.0]) + names["level"][[0, -1]]
    assert np.abs(predicted.values - truth).max() < 1.0
