"""The mark of statistical checks, for plugin authors.

Opt in by ``pytest_plugins = ["surrokit.testing.fixtures"]`` in the top ``conftest.py``.
"""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark ``statistical`` that parametrised checks carry."""
    statistical = "seeded checks of a distribution, with a stated false-alarm rate"
    config.addinivalue_line("markers", f"statistical: {statistical}")
