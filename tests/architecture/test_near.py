"""``python tests/near.py`` finds the tests near a file, and runs them."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest

NEAR = [
    ("surrokit/scaffold/distribution.py", "tests/scaffold/test_new_plugin.py"),
    ("surrokit/scaffold/templates/metric.py.txt", "tests/scaffold/test_new_plugin.py"),
    ("surrokit/ledger/facts.py", "tests/ledger/test_resume.py"),
    ("plugins/surrokit_gp/plugin.py", "tests/plugins/gp/test_surrogates.py"),
    ("tests/core/test_help.py", "tests/core/test_help.py"),
    ("benchmarks/trials.py", "tests/bench/test_judging.py"),
]


def near(root, *arguments):
    command = [sys.executable, str(root / "tests" / "near.py"), *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("file", "test"), NEAR)
def test_the_tests_near_a_file_are_found(root, file, test):
    found = runpy.run_path(str(root / "tests" / "near.py"))["tests_near"](str(root / file))
    assert str(root / test) in found


def test_a_file_without_tests_says_so(root):
    status, printed = near(root, "LICENSE")
    assert status == 0
    assert printed.startswith("no tests are near")
