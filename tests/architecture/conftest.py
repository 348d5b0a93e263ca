from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = sorted((ROOT / "surrokit").rglob("*.py"))
PACKAGES = sorted(p for p in (ROOT / "plugins").iterdir() if p.is_dir() and p.name[0] not in "._")
PLUGIN_FILES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give one test for each file or package to tests that ask for one."""
    for name, values in {
        "core_file": CORE,
        "plugin_file": PLUGIN_FILES,
        "source_file": CORE + PLUGIN_FILES,
        "plugin_package": PACKAGES,
    }.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values, ids=relative)


@pytest.fixture(scope="session")
def plugin_names() -> frozenset[str]:
    return frozenset(package.name for package in PACKAGES)


@pytest.fixture(scope="session")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def module_names() -> list[str]:
    """Every module of the core and the plugins, as it is imported."""
    found = []
    for path in CORE + PLUGIN_FILES:
        start = ROOT if path in CORE else ROOT / "plugins"
        parts = path.relative_to(start).with_suffix("").parts
        found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


@pytest.fixture(scope="session")
def tree_of() -> Callable[[Path], ast.Module]:
    def parse(path: Path) -> ast.Module:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))

    return parse


@pytest.fixture(scope="session")
def python() -> Callable[..., str]:
    """Run code in a fresh interpreter with warnings as errors, and return what it prints."""

    def run(code: str, **environment: str) -> str:
        import os

        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **environment},
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    return run
