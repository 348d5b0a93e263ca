"""Models of PyMC in workers, and by JAX."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit_pymc import from_pymc
from surrokit_pymc.compiled import Compiled

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")

QUICK = {"sampler": "hmc", "warmup": 20, "draws": 10, "chains": 4, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def target(schools):
    return from_pymc(schools)


@pytest.fixture
def z():
    return np.linspace(-1.0, 1.0, 40).reshape(4, 10)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_workers_draw_the_same(target, executor):
    alone = sk.sample(target, **QUICK)
    spread = sk.sample(target, compute=sk.Compute(executor=executor, workers=2), **QUICK)
    assert_array_equal(spread.draws, alone.draws)


def test_threads_do_not_mix_their_positions_up(target):
    z = np.random.default_rng(1).normal(size=(400, 10))
    expected = target.value_and_gradient(z)[1]
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda row: target.value_and_gradient(row[None])[1][0], z))
    assert_array_equal(rows, expected)


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
    assert_array_equal(
        copy.transform.to_unbounded(reported), target.transform.to_unbounded(reported)
    )


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


def test_jax_gives_the_same_with_further_derivatives(jax, schools, target, z):
    by_jax = from_pymc(schools, backend="jax")
    for ours, theirs in zip(
        by_jax.value_and_gradient(z), target.value_and_gradient(z), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-10)
    assert {"hessian", "hessian-derivative", "initial"} < by_jax.capabilities
    run = sk.sample(by_jax, **QUICK)
    assert run["theta"].shape == (4, 10, 8)
    copy = pickle.loads(cloudpickle.dumps(by_jax))
    assert_array_equal(copy.value(z), by_jax.value(z))


def test_jax_gives_the_same_for_many_kinds(jax, varied):
    target, by_jax = from_pymc(varied), from_pymc(varied, backend="jax")
    z = 0.3 * np.random.default_rng(2).normal(size=(3, target.dim))
    for ours, theirs in zip(
        by_jax.value_and_gradient(z), target.value_and_gradient(z), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_jax_in_single_precision_is_refused(jax, schools):
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(ConfigurationError, match="JAX computes in single precision"):
        from_pymc(schools, backend="jax")
