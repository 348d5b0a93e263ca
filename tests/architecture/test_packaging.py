"""What pyproject.toml must say about what lies in the folders."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import surrokit

FORBIDDEN = {"utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py", "base.py"}


def test_the_wheel_has_the_core_and_each_plugin_and_nothing_else(project, plugin_names):
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(packages) == sorted(["surrokit", *(f"plugins/{name}" for name in plugin_names)])


def test_each_plugin_has_exactly_one_entry_point(plugin_names, project):
    entries = project["project"]["entry-points"]["surrokit"]
    assert sorted(entries.values()) == sorted(plugin_names)


@pytest.mark.parametrize("name", ["py.typed", "__init__.py"])
def test_each_plugin_is_a_typed_package(plugin_packages, name):
    assert [package.name for package in plugin_packages if not (package / name).is_file()] == []


def test_tests_are_no_package(root):
    assert not list((root / "tests").rglob("__init__.py"))


def test_no_file_has_a_name_that_says_nothing(source_trees):
    assert [path for path in source_trees if Path(path).name in FORBIDDEN] == []


def test_every_third_party_import_is_declared(project, source_trees):
    names = {"arviz-stats": "arviz_stats", "ipykernel": "IPython", "scikit-learn": "sklearn"}
    extras = project["project"]["optional-dependencies"]
    declared = {
        names.get(name, name)
        for requirement in [
            *project["project"]["dependencies"],
            *extras["arviz"],
            *extras["browser"],
            *extras["dask"],
            *extras["jax"],
            *extras["numpyro"],
            *extras["pandas"],
            *extras["parquet"],
            *extras["pymc"],
            *extras["testing"],
        ]
        for name in [requirement.partition(">=")[0].partition("[")[0]]
    } | {"arviz_base", "pytensor"}
    found = set()
    for tree in source_trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module or "").partition(".")[0])
    third_parties = {
        n for n in found - set(sys.stdlib_module_names) if not n.startswith("surrokit")
    }
    assert third_parties <= declared


def test_pytest_is_strict(root):
    options = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    strict, *spared = options["filterwarnings"]
    assert strict == "error"
    assert all(each.endswith(":surrokit.errors.SamplingWarning") for each in spared)
    assert options["xfail_strict"]
    assert {"--strict-markers", "--strict-config"} <= set(options["addopts"])


def test_the_version_is_that_of_the_distribution():
    assert surrokit.__version__ == metadata.version("surrokit")


def test_changelog_and_citation_have_the_version_of_the_project(root, project):
    version = project["project"]["version"]
    newest = re.findall(r"^## ([\d.]+)", (root / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    cited = re.findall(r"^version: (.+)$", (root / "CITATION.cff").read_text(), re.MULTILINE)
    assert [newest, *cited] == [version, version]


def test_all_lists_only_what_exists():
    assert len(set(surrokit.__all__)) == len(surrokit.__all__)
    assert [name for name in surrokit.__all__ if not hasattr(surrokit, name)] == []
    assert set(dir(surrokit)) == {*surrokit.__all__, "__version__", "errors"}


@pytest.mark.skipif("TOX_ENV_NAME" not in os.environ, reason="not run by tox")
def test_tox_tests_the_installed_package():
    assert "site-packages" in Path(surrokit.__file__).parts


# --- what an import loads ---

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
        "import sys, surrokit.public, surrokit.plugin\n"
        "assert not [m for m in sys.modules if m.startswith('surrokit_')]\n"
        "from surrokit.registry.catalogue import default_catalogue\n"
        "from surrokit.registry.discovery import default_plugins\n"
        "assert not default_plugins.cache_info().currsize\n"
        "assert not default_catalogue.cache_info().currsize" + LOADED
    )
    assert json.loads(printed) == []


def test_the_help_of_the_command_line_loads_nothing_heavy_and_no_public_name(python):
    code = "import sys, surrokit.cli.main as main\nmain.cli(['--help'], standalone_mode=False)"
    assert json.loads(python(code + LOADED).splitlines()[-1]) == []
    assert python(f"{code}\nprint('surrokit.public' in sys.modules)").endswith("False\n")


def test_a_run_of_the_command_line_loads_no_statistics_but_its_own(python, tmp_path):
    """Modules that a run as it comes does without, each of which takes a tenth of a second."""
    without = (
        "scipy.stats",
        "scipy.signal",
        "scipy.interpolate",
        *HEAVY[-4:],
        "arviz_stats",
        "sklearn",
    )
    words = ["sample", "gaussian", "--draws", "20", "--json", str(tmp_path / "run.json")]
    code = f"import sys, surrokit.cli.main as main\nmain.cli({words!r}, standalone_mode=False)"
    loaded = f"\nprint([name for name in {without!r} if name in sys.modules])"
    assert python(code + loaded).splitlines()[-1] == "[]"


def test_public_names_hide_rooms_of_the_same_name_whoever_comes_first(python):
    code = "import surrokit.model.calls, surrokit as sk\nprint(sk.model.__name__, sk.errors)"
    assert python(code).startswith("model <module 'surrokit.errors'")
    with pytest.raises(AttributeError, match="module 'surrokit' has no attribute 'nothing'"):
        surrokit.nothing  # noqa: B018
