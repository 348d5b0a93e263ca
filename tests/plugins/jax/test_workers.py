"""Targets in JAX in workers and copies, and the plugin where its libraries are absent."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit_jax
from surrokit.errors import MissingDependencyError
from surrokit_jax import from_jax, from_numpyro


@pytest.fixture
def target(jax):
    third = jax.numpy.array([1.0 / 3.0, 1.0])  # a number that single precision cannot hold

    return from_jax(lambda a, b: -((a - third[0]) ** 2) - b, {"a": None, "b": (0.0, None)})


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


# --- where the libraries are absent ---


def test_it_says_what_to_install(monkeypatch, jax):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[numpyro\]'"):
        surrokit_jax.from_numpyro(lambda: None)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[jax\]'"):
        surrokit_jax.from_jax(lambda q: q @ q)
    with pytest.raises(AttributeError, match="from_torch"):
        _ = surrokit_jax.from_torch
