"""The plugin where BridgeStan is absent: it can be listed, and says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

import surrokit_stan
from surrokit.errors import MissingDependencyError

LISTED = """
import sys
import surrokit_stan.target
assert "bridgestan" not in sys.modules, "imported too early"
"""


def test_its_modules_import_no_library():
    assert subprocess.run([sys.executable, "-c", LISTED], check=False).returncode == 0


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bridgestan", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[stan\]'"):
        surrokit_stan.from_stan("model.stan")


def test_there_is_no_other_name():
    with pytest.raises(AttributeError, match="from_cmdstan"):
        _ = surrokit_stan.from_cmdstan
