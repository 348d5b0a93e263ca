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
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="session")
def core_trees() -> dict[str, ast.Module]:
    """Path, as seen from the repository, to the syntax tree of every file of the core."""
    return {relative(path): ast.parse(path.read_text(encoding="utf-8")) for path in CORE}


@pytest.fixture(scope="session")
def plugin_trees() -> dict[str, ast.Module]:
    """The same of every file of the plugins."""
    return {relative(path): ast.parse(path.read_text(encoding="utf-8")) for path in PLUGIN_FILES}


@pytest.fixture(scope="session")
def source_trees(core_trees, plugin_trees) -> dict[str, ast.Module]:
    return core_trees | plugin_trees


@pytest.fixture(scope="session")
def plugin_packages() -> list[Path]:
    return PACKAGES


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
