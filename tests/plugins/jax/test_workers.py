"""Targets in JAX and workers."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit_jax import forward_from_jax, from_jax, from_numpyro

SETTINGS = {"sampler": "hmc", "warmup": 20, "draws": 10, "seed": 1, "progress": False}


@pytest.fixture
def target(jax):
    third = jax.numpy.array([1.0 / 3.0, 1.0])  # a number that single precision cannot hold

    return from_jax(lambda a, b: -((a - third[0]) ** 2) - b, {"a": None, "b": (0.0, None)})


def test_rows_are_kept_together_unless_asked(target):
    with pytest.raises(ConfigurationError, match=r"one_by_one\(target\)"):
        sk.sample(target, compute=sk.Compute(executor="threads"), **SETTINGS)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_workers_draw_the_same(target, executor):
    single = sk.one_by_one(target)
    alone = sk.sample(single, **SETTINGS)
    spread = sk.sample(single, compute=sk.Compute(executor=executor, workers=2), **SETTINGS)
    assert_array_equal(spread.draws, alone.draws)


def test_a_forward_map_travels(jax):
    target = forward_from_jax(lambda q: q**2, dim=2, data=[1.0, 2.0], noise_sd=1.0)
    single = sk.one_by_one(target)
    spread = sk.sample(single, compute=sk.Compute(executor="processes", workers=1), **SETTINGS)
    assert_array_equal(spread.draws, sk.sample(single, **SETTINGS).draws)


def test_a_model_travels(schools):
    model, errors, effects = schools
    target = from_numpyro(model, errors, effects=effects)
    copy = pickle.loads(pickle.dumps(target))
    z = np.linspace(-1.0, 1.0, 20).reshape(2, 10)
    assert_array_equal(copy.value(z), target.value(z))
    assert_array_equal(copy.transform.to_bounded(z), target.transform.to_bounded(z))


def test_a_copy_elsewhere_is_in_double_precision(target, tmp_path):
    (tmp_path / "target").write_bytes(pickle.dumps(target))
    load = (
        "import pickle, numpy\n"
        f"target = pickle.load(open({str(tmp_path / 'target')!r}, 'rb'))\n"
        "print(repr(float(target.value(numpy.zeros((1, 2)))[0])))"
    )
    fresh = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=True)
    assert float(fresh.stdout) == target.value(np.zeros((1, 2)))[0]
    single = subprocess.run(
        [sys.executable, "-c", f"import jax\n{load}"], capture_output=True, text=True, check=False
    )
    assert "JAX computes in single precision" in single.stderr
