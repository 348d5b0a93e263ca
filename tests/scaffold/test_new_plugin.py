"""``surrokit new plugin``: what it writes works, and what it refuses."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from surrokit.cli.main import cli
from surrokit.errors import ConfigurationError
from surrokit.scaffold.distribution import SUMMARIES, write_plugin
from surrokit.testing import check_plugin


def in_python(folder, *arguments):
    """Run Python with a plugin as good as installed: its module and an entry point are found."""
    known = folder / f"{folder.name.replace('-', '_')}-0.1.0.dist-info"
    known.mkdir(exist_ok=True)
    (known / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {folder.name}\nVersion: 0.1.0\n")
    name, module = folder.name.removeprefix("surrokit-"), folder.name.replace("-", "_")
    (known / "entry_points.txt").write_text(f"[surrokit]\n{name} = {module}\n")
    paths = [str(folder), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_new_plugin_passes_its_own_tests(tmp_path):
    """In this process all kinds pass the checks of their kind, see below."""
    kind = "sampler"
    folder = write_plugin("good-idea", kind, tmp_path)
    done = in_python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = in_python(folder, "-m", "surrokit", "plugins", kind, "good-idea")
    assert f"{kind} good-idea, of surrokit-good-idea[good-idea]" in shown.stdout, shown.stderr


@pytest.mark.parametrize("kind", SUMMARIES)
def test_a_part_of_each_kind_passes_the_checks_of_its_kind(tmp_path, kind, monkeypatch):
    folder = write_plugin(f"idea-of-{kind}", kind, tmp_path)
    monkeypatch.syspath_prepend(folder)
    results = check_plugin(importlib.import_module(f"surrokit_idea_of_{kind}"))
    assert len(results) > 4
    assert [each for each in results if each.outcome != "passed"] == []


@pytest.mark.long
def test_its_tests_see_a_part_that_is_wrong(tmp_path):
    folder = write_plugin("bad-idea", "sampler", tmp_path)
    module = folder / "surrokit_bad_idea.py"
    text = module.read_text()
    assert "state.positions + moves" in text
    module.write_text(text.replace("state.positions + moves", "state.positions + abs(moves)"))
    done = in_python(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
    assert done.returncode == 1, done.stdout + done.stderr


def test_the_command_writes_it_and_says_what_to_do(tmp_path):
    said = CliRunner().invoke(cli, ["new", "plugin", "two-words", "--folder", str(tmp_path)])
    assert said.exit_code == 0, said.output
    folder = tmp_path / "surrokit-two-words"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*.*")} == {
        "pyproject.toml",
        "README.md",
        "surrokit_two_words.py",
        str(Path("tests") / "conftest.py"),
        str(Path("tests") / "test_conformance.py"),
    }
    assert f"python -m pip install --editable '{folder}[testing]'" in said.output
    assert "$" not in "".join(path.read_text() for path in folder.rglob("*.*"))


def test_what_cannot_be_written_is_refused(tmp_path):
    for name in ("", "Big", "1st", "with space", "a--b", "-a", "a_b", "../a"):
        with pytest.raises(ConfigurationError, match="made of small letters and digits"):
            write_plugin(name, "sampler", tmp_path)
    said = "there are some for surrogate, sampler, potential"
    with pytest.raises(ConfigurationError, match=said):
        write_plugin("a", "network", tmp_path)
    write_plugin("a", "surrogate", tmp_path)
    with pytest.raises(ConfigurationError, match=r"surrokit-a already; give another name"):
        write_plugin("a", "sampler", tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"cannot write .*; give a folder that you may"):
        write_plugin("a", "sampler", tmp_path / "file")
