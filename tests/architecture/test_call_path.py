"""From ``sample`` to a user's function the calls pass through few frames."""

from __future__ import annotations

import runpy
import warnings

import pytest

import surrokit as sk
from surrokit.testing.targets import Gaussian

MOST_FRAMES = 24
"""Frames of ours between ``sample`` and a user's function, among the draws of a run."""

RUNS = {
    "exact": {"sampler": "hmc"},
    "nuts": {"sampler": "nuts"},
    "ready": {"surrogate": Gaussian(mean=(0.1, 0.0)), "sampler": "hmc"},
    "sub-chain": {"surrogate": Gaussian(), "sampler": "sub-chain"},
}


@pytest.fixture(scope="module")
def call_path(root):
    return runpy.run_path(str(root / "docs" / "_ext" / "call_path.py"))


@pytest.fixture
def trace(call_path):
    def traced(**options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sk.errors.SamplingWarning)  # so short a warm-up
            return call_path["trace_path"](**options)

    return traced


@pytest.mark.parametrize("name", RUNS)
def test_few_frames_lie_between_sample_and_the_users_function(trace, name):
    path = trace(**RUNS[name])
    assert path[0] == ("surrokit/compose.py", ["sample"])
    assert path[-1][0] in ("surrokit/targets/functions.py", "surrokit/coordinates/models.py")
    assert sum(len(functions) for _, functions in path) <= MOST_FRAMES, path


def test_the_picture_names_every_file_and_function(call_path, trace):
    path = trace(**RUNS["exact"])
    picture = call_path["draw"](path)
    assert all(name in picture for file, functions in path for name in (file, *functions))
