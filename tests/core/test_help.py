"""Help shows all commands and options."""

from __future__ import annotations

import re
import subprocess
import sys
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import PluginLoadError
from surrokit.registry import discovery

CONTEXT = click.Context(cli)
COMMANDS = {name: cli.get_command(CONTEXT, name) for name in cli.list_commands(CONTEXT)}
"""Those of plugins too."""


def shown(*arguments):
    result = CliRunner().invoke(cli, arguments, prog_name="surrokit", terminal_width=80)
    assert result.exit_code == 0, result.output
    return result.output


def options_in(text):
    return set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("command", ["sample", "glm", "resume"])
def test_all_options_are_shown(command):
    declared = {
        option.opts[0] for option in COMMANDS[command].params if isinstance(option, click.Option)
    }
    assert options_in(shown(command, "--help")) == declared | {"--help"}
    assert "..." not in shown("-h").split("Commands:")[1]


def test_each_option_has_a_sentence():
    """It begins with a capital, has a verb in front, and ends with a stop."""
    for name, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option):
                said = re.sub(r"\s*\[default.*", "", option.help or "")
                assert re.fullmatch(r"[A-Z].*\.", said), (name, option.opts, said)
                assert not re.match(r"(A|Of|The|Number|Name|What|Where to)\b", said), said


def test_a_plugin_offers_commands_beside_those_of_the_program(monkeypatch):
    @click.command(short_help="Greet.")
    def greet():
        click.echo("hello")

    offering = ModuleType("offering")
    offering.surrokit_commands = sk.hookimpl(specname="surrokit_commands")(lambda: (greet,))
    monkeypatch.setattr(discovery, "default_plugins", lambda: discovery.make_plugins(offering))
    assert re.search(r"^  greet +Greet\.$", shown("--help"), re.MULTILINE)
    assert "reproduce" not in shown("--help")
    assert shown("greet") == "hello\n"
    assert CliRunner().invoke(cli, ["no-such"]).exit_code == 2


def test_a_broken_plugin_leaves_the_help_and_is_told_where_a_command_is_looked_for(monkeypatch):
    def broken():
        raise PluginLoadError("plugin them[x] could not be imported")

    monkeypatch.setattr(discovery, "default_plugins", broken)
    assert "sample" in shown("--help")
    assert shown("sample", "--help")
    assert "them[x]" in str(CliRunner().invoke(cli, ["no-such"]).exception)


def test_a_kind_before_names_leaves_out_other_kinds():
    assert shown("plugins", "sampler").startswith("explorer sampler")
    assert "explorer" not in shown("plugins", "sampler", "hmc")
    listed = {line.split()[0] for line in shown("plugins", "metric").splitlines()}
    assert listed == {"kind", "metric"}
    done = CliRunner().invoke(cli, ["plugins", "metric", "hmc"])
    assert "no metric is named 'hmc'; 'hmc' is the name of a sampler" in str(done.exception)


def test_python_runs_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "surrokit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("python -m surrokit, version ")
