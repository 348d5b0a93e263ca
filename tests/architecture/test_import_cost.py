"""What ``import surrokit`` does, and what it leaves for later."""

from __future__ import annotations

import json

HEAVY = ("scipy", "sklearn", "rich", "arviz_stats", "arviz", "matplotlib", "pandas", "xarray")

LOADED = f"""
import json, sys
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""


def test_importing_the_package_loads_nothing_heavy_and_discovers_nothing(python):
    printed = python(
        "import importlib.metadata as metadata\n"
        "def refuse(*args, **kwargs): raise AssertionError('entry points were read')\n"
        "metadata.distributions = metadata.entry_points = refuse\n"
        "import sys, surrokit\n"
        "assert not [m for m in sys.modules if m.startswith('surrokit_')]\n"
        "from surrokit.registry.catalogue import default_catalogue\n"
        "from surrokit.registry.discovery import default_plugins\n"
        "assert not default_plugins.cache_info().currsize\n"
        "assert not default_catalogue.cache_info().currsize" + LOADED
    )
    assert json.loads(printed) == []


def test_importing_the_command_line_loads_nothing_heavy(python):
    assert json.loads(python("import surrokit.cli.main" + LOADED)) == []
