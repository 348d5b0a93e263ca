from __future__ import annotations

import os
import sysconfig

import pytest


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """What httpstan builds with writes the platform there."""
    monkeypatch.setenv("PLAT", os.environ.get("PLAT", sysconfig.get_platform()))
