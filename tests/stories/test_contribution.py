"""A first contribution: which tests are near the file that was changed."""

from __future__ import annotations


def test_the_tests_near_a_changed_file(terminal, root):
    assert "python tests/near.py" in (root / "CONTRIBUTING.md").read_text()
    printed = terminal(root / "tests/near.py", "surrokit/scaffold/distribution.py", "--co", "-q")
    assert "tests/scaffold/test_new_plugin.py" in printed
