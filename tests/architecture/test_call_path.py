"""From ``sample`` to the first transition the calls pass through few files."""

from __future__ import annotations

import runpy
import warnings

import pytest

import surrokit as sk
from surrokit.testing.targets import Gaussian

MOST_FILES = 6

RUNS = {
    "exact": {"sampler": "hmc"},
    "nuts": {"sampler": "nuts"},
    "picked": {},
    "exploring": {"surrogate": "additive"},
    "greville": {"surrogate": "additive", "schedule": "greville"},
    "ready": {"surrogate": Gaussian(mean=(0.1, 0.0))},
    "sub-chain": {"surrogate": Gaussian(), "sampler": "sub-chain"},
}


@pytest.fixture(scope="module")
def call_path(root):
    return runpy.run_path(str(root / "docs" / "_ext" / "call_path.py"))


@pytest.fixture
def trace(call_path):
    def traced(**options):
        sizes = {"chains": 2, "warmup": 12, "draws": 2, "seed": 1, "progress": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sk.errors.SamplingWarning)  # so short a warm-up
            return call_path["trace_path"](lambda: sk.sample(Gaussian(), **options, **sizes))

    return traced


@pytest.mark.parametrize("name", RUNS)
def test_few_files_lie_between_sample_and_the_first_transition(trace, name):
    path = trace(**RUNS[name])
    assert path[0] == ("surrokit/compose.py", ["sample"])
    assert path[-1][1][-1].endswith(".propose")
    assert len({file for file, _ in path}) <= MOST_FILES, path


def test_a_detour_is_seen(trace):
    """Negative control: the rounds' own draws on a surrogate lie deeper than any transition."""
    longer = trace(surrogate="additive", explorer="rounds")
    assert len({file for file, _ in longer}) > MOST_FILES


def test_the_picture_names_every_file_and_function(call_path, trace):
    path = trace(**RUNS["exact"])
    picture = call_path["draw"](path)
    assert all(name in picture for file, functions in path for name in (file, *functions))


def test_the_profile_function_is_left_as_it_was(trace):
    import sys

    before = sys.getprofile()
    trace(**RUNS["exact"])
    assert sys.getprofile() is before
