"""What ``import surrokit`` does, and what it leaves for later."""

from __future__ import annotations

import json

HEAVY = ("scipy", "sklearn", "rich", "arviz_stats", "arviz", "matplotlib", "pandas", "xarray")

LOADED = f"""
import json, sys
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))
"""


def test_importing_the_package_loads_nothing_heavy(python):
    assert json.loads(python("import surrokit" + LOADED)) == []


def test_importing_the_command_line_loads_nothing_heavy(python):
    assert json.loads(python("import surrokit.cli.main" + LOADED)) == []


def test_building_the_catalogue_loads_nothing_heavy(python):
    code = (
        "from surrokit.registry.catalogue import default_catalogue\n"
        "assert default_catalogue().entries"
    )
    assert json.loads(python(code + LOADED)) == []


def test_importing_the_package_discovers_nothing(python):
    printed = python(
        "import importlib.metadata as metadata\n"
        "def refuse(*args, **kwargs): raise AssertionError('entry points were read')\n"
        "metadata.distributions = metadata.entry_points = refuse\n"
        "import surrokit\n"
        "from surrokit.registry.catalogue import default_catalogue\n"
        "from surrokit.registry.discovery import default_plugins\n"
        "print(default_plugins.cache_info().currsize, default_catalogue.cache_info().currsize)"
    )
    assert printed.split() == ["0", "0"]


def test_importing_the_package_imports_no_plugin(python):
    printed = python(
        "import sys, surrokit\nprint([m for m in sys.modules if m.startswith('surrokit_')])"
    )
    assert printed.strip() == "[]"


ALONE = """
import importlib, os, sys
failed = []
for name in {names!r}:
    pid = os.fork()  # a fork of an empty interpreter is as good as a new one, and quick
    if pid == 0:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{{name}}: {{type(error).__name__}}: {{error}}", flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        failed.append(name)
sys.exit(bool(failed))
"""


def test_every_module_imports_alone(python, module_names):
    assert len(module_names) > 50
    # third parties first, so that only our own modules are imported again and again; and the core
    # package itself, since Python imports it before any module in it, and plugins import the core
    first = (
        "import attrs, click, numpy, pluggy, pytest, scipy.linalg, scipy.stats, scipy.integrate\n"
        "import sklearn.gaussian_process, sklearn.neural_network, sklearn.svm, sklearn.pipeline\n"
        "import surrokit\n"
    )
    python(first + ALONE.format(names=module_names), OPENBLAS_NUM_THREADS="1")
