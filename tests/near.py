"""Run the tests near changed files, for a minute at most: ``python tests/near.py [FILE ...]``.

Without files, those are meant that Git says have changed. Tests that name a changed module come
first, those most often that do; then those of the folder that is called as the module's room or
plugin. From the first hyphen on, arguments are pytest's.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 50.0
"""After which no more tests begin."""


def changed() -> list[str]:
    """Return files that differ from the last commit, new ones included."""
    command = ["git", "status", "--porcelain", "--untracked-files=all", "--no-renames"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line[3:] for line in done.stdout.splitlines()]


def tests_near(file: str) -> list[str]:
    """Return the test files near a file, the nearest first."""
    path = Path(file).resolve() if Path(file).exists() else ROOT / file
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "tests":
        own = parts[-1].startswith("test_")
        return [str(path)] if own else _in_folder(path.parent, {path.stem})
    if parts[0] == "benchmarks":
        return _in_folder(ROOT / "tests" / "bench", set(parts))
    if parts[0] not in ("surrokit", "plugins") or path.suffix not in (".py", ".txt"):
        return []
    module = ".".join(parts[1:] if parts[0] == "plugins" else parts)
    folders = {each.removeprefix("surrokit_") for each in parts[:-1]} - {"surrokit", "plugins"}
    naming = [_naming(module), _naming(module.rpartition(".")[0])]
    found = [(naming[0](text), naming[1](text), test) for test, text in _texts().items()]
    near = [test for exact, _, test in sorted(found, key=lambda each: -each[0]) if exact]
    rooms = [folder for each in sorted(folders) for folder in (ROOT / "tests").rglob(each)]
    near += [test for folder in rooms for test in _in_folder(folder, set(parts))]
    if not near:
        near = [test for _, room, test in sorted(found, key=lambda each: -each[1]) if room]
    return list(dict.fromkeys(near))


def _naming(module: str):
    room, _, stem = module.rpartition(".")
    imported = rf"{re.escape(module)}\b|from {re.escape(room)} import [^\n]*\b{stem}\b"
    return lambda text: len(re.findall(imported, text)) if stem else 0


def _texts() -> dict[str, str]:
    return {str(p): p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py")}


def _in_folder(folder: Path, words: set[str]) -> list[str]:
    """Return the test files of a folder, those called by one of these words first."""
    files = sorted(str(each) for each in folder.rglob("test_*.py"))
    return sorted(files, key=lambda each: not any(word in Path(each).stem for word in words))


class InTime:
    """Ends the session when its time is up."""

    def __init__(self) -> None:
        self.end = time.monotonic() + SECONDS

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        """Note whether there is time for another test."""
        if time.monotonic() > self.end:
            self.session.shouldstop = f"{SECONDS:.0f} s are over; the nearest tests came first"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session."""
        self.session = session


def main(arguments: list[str]) -> int:
    """Run the tests near these files, or those that have changed."""
    at = next((i for i, each in enumerate(arguments) if each.startswith("-")), len(arguments))
    files, options = arguments[:at] or changed(), arguments[at:]
    near = list(dict.fromkeys(test for file in files for test in tests_near(file)))
    if not near:
        print("no tests are near; python -m pytest tests/core runs those of the core")
        return 0
    print("\n".join(str(Path(each).relative_to(ROOT)) for each in near))
    return int(pytest.main(["-q", "--rootdir", str(ROOT), *options, *near], plugins=[InTime()]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
