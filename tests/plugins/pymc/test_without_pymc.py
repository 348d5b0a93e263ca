"""The plugin where its libraries are absent: it can be listed, and says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

import surrokit_pymc
from surrokit.errors import ConfigurationError, MissingDependencyError

LISTED = """
import sys
import surrokit_pymc.target, surrokit_pymc.bambi_model, surrokit_pymc.plugin
assert not {"pymc", "pytensor", "bambi", "jax"} & set(sys.modules), "imported too early"
"""


def test_its_modules_import_no_library():
    assert subprocess.run([sys.executable, "-c", LISTED], check=False).returncode == 0


@pytest.mark.parametrize(("door", "extra"), [("from_pymc", "pymc"), ("from_bambi", "bambi")])
def test_it_says_what_to_install(monkeypatch, door, extra):
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'surrokit\[{extra}\]'"):
        getattr(surrokit_pymc, door)(object())


def test_it_says_what_to_install_for_jax(monkeypatch, schools):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[jax\]'"):
        surrokit_pymc.from_pymc(schools, backend="jax")


def test_a_model_of_bambi_goes_to_its_own_door(bambi):
    with pytest.raises(ConfigurationError, match=r"must be a bambi\.Model, got object"):
        surrokit_pymc.from_bambi(object())


def test_there_is_no_other_name():
    with pytest.raises(AttributeError, match="from_edward"):
        _ = surrokit_pymc.from_edward
