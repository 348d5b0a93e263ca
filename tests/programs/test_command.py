"""How a command is read: words, paths and the places for files."""

from __future__ import annotations

import shutil
import sys

import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.programs.call import read_command


def test_files_of_the_folder_get_their_full_path_and_others_stay(tmp_path):
    (tmp_path / "mesh.dat").touch()
    (tmp_path / "data").mkdir()
    words, text = read_command("sh -c 'echo *' mesh.dat data --mesh={here}/mesh.dat", tmp_path)
    path = str(tmp_path / "mesh.dat")
    assert words == ("sh", "-c", "echo *", path, "data", f"--mesh={path}")
    assert text == "sh -c 'echo *' mesh.dat data '--mesh={here}/mesh.dat'"
    shutil.copy(shutil.which("sh"), tmp_path / "ls")
    assert read_command("./ls", tmp_path)[0] == (str(tmp_path / "ls"),)
    assert read_command("ls", tmp_path)[0] == ("ls",)
    assert read_command(["sh", "x" * 5000], tmp_path)[0] == ("sh", "x" * 5000)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sh 'one", "cannot be split into words: No closing quotation"),
        *((odd, "a command must be text or a list of words, .* got") for odd in ("", 3, ["sh", 3])),
        ("./plain", r"no program './plain' can be started in .* \(PATH\); name an executable"),
        ("plain", r"no program 'plain' can be started .* as './plain', or .* 'python plain'"),
    ],
)
def test_what_is_no_command_is_told(tmp_path, command, message):
    (tmp_path / "plain").touch(mode=0o644)
    with pytest.raises(ConfigurationError, match=message):
        read_command(command, tmp_path)


@pytest.mark.parametrize("timeout", [0, "5", float("nan")])
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
