"""How a command is read: words, paths and the places for files."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.programs.call import Command


def test_a_command_is_split_as_a_shell_would_and_given_to_none(tmp_path):
    command = Command.read("sh -c 'echo $HOME; ls *' {input}", tmp_path)
    assert command.words == ("sh", "-c", "echo $HOME; ls *", "{input}")
    assert command.text == "sh -c 'echo $HOME; ls *' '{input}'"


def test_files_of_the_folder_get_their_full_path_and_others_stay(tmp_path):
    (tmp_path / "mesh.dat").touch()
    (tmp_path / "data").mkdir()
    command = Command.read("sh mesh.dat data other.dat --mesh={here}/mesh.dat", tmp_path)
    path = str(tmp_path / "mesh.dat")
    assert command.words == ("sh", path, "data", "other.dat", f"--mesh={path}")


def test_a_program_beside_is_found_by_its_path_alone(tmp_path):
    shutil.copy(shutil.which("sh"), tmp_path / "ls")
    assert Command.read("./ls", tmp_path).words == (str(tmp_path / "ls"),)
    assert Command.read("ls", tmp_path).words == ("ls",)


def test_a_word_too_long_for_a_file_stays(tmp_path):
    assert Command.read(["sh", "x" * 5000], tmp_path).words == ("sh", "x" * 5000)


def test_places_are_filled_wherever_they_stand(tmp_path):
    command = Command.read("sh --in={input} --out={output} {input} {other}", tmp_path)
    assert command.reads_a_file
    assert command.writes_a_file
    words = command.name_files(Path("/a"), Path("/b"))
    assert words == ["sh", "--in=/a", "--out=/b", "/a", "{other}"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "the command is empty; give a program"),
        ([], "the command is empty"),
        ("sh 'one", "cannot be split into words: No closing quotation"),
        (3, "a command must be text or a list of words, .* got 3"),
        (["sh", 3], "a command must be text or a list of words"),
        ("./nothing", r"there is no program './nothing' in .*; name an executable file"),
        ("surrokit-nothing", r"no program 'surrokit-nothing' among the installed ones \(PATH\)"),
        ("./plain", r"plain may not be executed; allow it \(chmod \+x\), or name what runs it"),
        ("plain", r"no installed program 'plain', but there is a file .*; name it ./plain, or"),
    ],
)
def test_what_is_no_command_is_told(tmp_path, command, message):
    (tmp_path / "plain").touch(mode=0o644)
    with pytest.raises(ConfigurationError, match=message):
        Command.read(command, tmp_path)


@pytest.mark.parametrize("timeout", [0, -1.0, "5", True, float("inf"), float("nan")])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(ConfigurationError, match="timeout must be a number of seconds above 0"):
        sk.command_potential([sys.executable], dim=1, timeout=timeout)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gradient": "yes"}, "gradient must be True or False, got 'yes'"),
        ({"jacobian": 1}, "jacobian must be True or False, got 1"),
        ({"vjp": "no"}, "vjp must be True or False, got 'no'"),
        ({"jacobian": True}, "jacobian is given without data or an energy"),
        ({"vjp": True}, "vjp is given without data or an energy"),
        ({"gradient": True, "data": [1.0], "noise_sd": 1.0}, "gradient is given together with"),
        ({"data": [1.0]}, "a forward potential needs data and noise_sd"),
    ],
)
def test_settings_that_contradict_one_another_are_told(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.command_potential([sys.executable], dim=1, **settings)
