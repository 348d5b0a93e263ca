"""The plugin where its libraries are absent: it can be listed, and says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

import surrokit_jax
from surrokit.errors import MissingDependencyError

LISTED = """
import sys
import surrokit_jax.density, surrokit_jax.forward, surrokit_jax.numpyro_model
assert not {"jax", "numpyro"} & set(sys.modules), "imported too early"
"""


def test_its_modules_import_no_library():
    assert subprocess.run([sys.executable, "-c", LISTED], check=False).returncode == 0


@pytest.mark.parametrize("name", ["from_jax", "forward_from_jax", "from_numpyro"])
def test_it_says_what_to_install(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[jax\]'"):
        getattr(surrokit_jax, name)(lambda q: q @ q)


def test_it_says_what_to_install_for_numpyro(monkeypatch, jax):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[numpyro\]'"):
        surrokit_jax.from_numpyro(lambda: None)


def test_there_is_no_other_name():
    with pytest.raises(AttributeError, match="from_torch"):
        _ = surrokit_jax.from_torch
