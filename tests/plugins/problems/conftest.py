from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def data_folder() -> Path:
    """The folder with bank-additional-full.csv.gz and a9a.gz that SURROKIT_DATA names."""
    name = os.environ.get("SURROKIT_DATA")
    if name is None:
        pytest.skip("no data; set SURROKIT_DATA to a folder that holds them")
    return Path(name)
