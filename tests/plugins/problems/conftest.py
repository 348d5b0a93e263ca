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
    """The folder with bank-additional-full.csv.gz and a9a.gz that SURROKIT_DATA names."""
    name = os.environ.get("SURROKIT_DATA")
    if name is None:
        pytest.skip("no data; set SURROKIT_DATA to a folder that holds them")
    return Path(name)
