"""Help shows what people use first, in groups, and names how to see the rest."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from surrokit.cli.main import cli

CONTEXT = click.Context(cli)
COMMANDS = {name: cli.get_command(CONTEXT, name) for name in cli.list_commands(CONTEXT)}
"""Those of plugins too."""

HEADINGS = ["What is sampled, and by what:", "How long:", "Where:", "Output:"]


def shown(*arguments):
    result = CliRunner().invoke(cli, arguments, prog_name="surrokit", terminal_width=80)
    assert result.exit_code == 0, result.output
    return result.output


def options_in(text):
    return set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE))


def test_sample_shows_ten_options_and_names_how_to_show_all():
    text = shown("sample", "--help")
    assert len(options_in(text) - {"--help", "--help-all"}) == 10
    assert {"--max-calls", "--path", "--out", "--seed"} <= options_in(text)
    assert re.search(r"surrokit sample --help-all shows \d+ more options\.", text)
    assert len(text.splitlines()) < 50


@pytest.mark.parametrize("command", ["sample", "glm", "resume"])
def test_all_options_are_in_groups(command):
    text = shown(command, "--help-all")
    places = [text.index(heading) for heading in HEADINGS]
    assert places == sorted(places)
    declared = {
        option.opts[0] for option in COMMANDS[command].params if isinstance(option, click.Option)
    }
    assert options_in(text) == declared | {"--help"}
    assert "Other options" not in text
    assert "more options" not in text


def test_each_option_has_a_sentence():
    """It begins with a capital, has a verb in front, and ends with a stop."""
    for name, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option):
                said = re.sub(r"\s*\[default.*", "", option.help or "")
                assert re.fullmatch(r"[A-Z].*\.", said), (name, option.opts, said)
                assert not re.match(r"(A|Of|The|Number|Name|What|Where to)\b", said), said


def test_the_list_of_commands_has_whole_sentences():
    assert "..." not in shown("--help").split("Commands:")[1]
