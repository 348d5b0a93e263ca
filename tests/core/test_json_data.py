"""Plain data for JSON, and files of it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from surrokit.errors import ConfigurationError
from surrokit.output.files import plain, write_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        ("text", "text"),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan], [np.inf, 2.0]]), [[1.0, None], [None, 2.0]]),
        (float("-inf"), None),
        ((1, (2, 3)), [1, [2, 3]]),
        ({1: {"a": np.array([1])}}, {"1": {"a": [1]}}),
        (Path("a/b"), str(Path("a/b"))),
    ],
)
def test_values_become_what_json_holds(value, expected):
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, b"x"])
def test_other_values_are_refused_and_where_is_said(value):
    with pytest.raises(ConfigurationError, match=r"result\['a'\]\[1\] is of type .*cannot hold"):
        plain({"a": [0, value]}, "result")


def test_a_file_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(ConfigurationError, match=r"cannot write .*; give a file in a folder that"):
        write_json(tmp_path / "absent" / "x.json", {})
