from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def differences():
    """Central differences of a function of rows, along the last axis of the result."""

    def differentiate(function: Callable, positions: np.ndarray, step: float = 1e-5) -> np.ndarray:
        columns = []
        for k in range(positions.shape[1]):
            steps = np.zeros_like(positions)
            steps[:, k] = step * np.maximum(np.abs(positions[:, k]), 1e-2)
            ahead, behind = function(positions + steps), function(positions - steps)
            width = 2 * steps[:, k]
            columns.append((ahead - behind) / width.reshape(-1, *[1] * (ahead.ndim - 1)))
        return np.stack(columns, axis=-1)

    return differentiate


@pytest.fixture
def data_folder() -> Path:
    beside_the_repository = Path(__file__).parents[4] / "shared" / "data"
    folder = Path(os.environ.get("SURROKIT_DATA", beside_the_repository))
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}; set SURROKIT_DATA to a folder that holds them")
    return folder
