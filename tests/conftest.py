"""Fixtures that every test may use."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--screenshots",
        type=Path,
        metavar="FOLDER",
        help="keep what the browser's tests photograph; the documentation has it in docs/pictures",
    )


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def run_example(root: Path) -> Callable:
    """Run a script of the documentation by its name, and return its names."""
    path = root / "docs" / "_ext" / "run_examples.py"
    spec = importlib.util.spec_from_file_location("run_examples", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_example


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread() -> Iterator[None]:
    # arrays here are small, and threads that wait for one another on a busy machine are slow
    with threadpool_limits(1):
        yield


def _environment() -> dict[str, str]:
    # pytest names the test there, and scikit-learn sets up OpenMP when it is first imported
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "KMP_"))}


@pytest.fixture(autouse=True)
def _environment_is_left_alone() -> Iterator[None]:
    before = _environment()
    yield
    assert _environment() == before, "a test changed os.environ; use monkeypatch"


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240917)


@pytest.fixture
def differences() -> Callable:
    """Central differences of a function of rows, along the last axis of the result."""

    def differentiate(function: Callable, positions: np.ndarray, step: float = 1e-5) -> np.ndarray:
        columns = []
        for k in range(positions.shape[1]):
            steps = np.zeros_like(positions)
            steps[:, k] = step * np.maximum(np.abs(positions[:, k]), 1.0)
            ahead, behind = function(positions + steps), function(positions - steps)
            columns.append(
                (ahead - behind) / (2 * steps[:, k]).reshape(-1, *[1] * (ahead.ndim - 1))
            )
        return np.stack(columns, axis=-1)

    return differentiate
