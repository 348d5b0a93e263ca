"""What the doc tests call: run the scripts that pages include, and parse the commands they show."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
EXAMPLES = DOCS / "examples"


def run_example(name: str) -> dict[str, Any]:
    """Run a script of ``docs/examples`` in an empty folder, and return its names.

    A target that fails here and there is part of some examples, one has two modes, and most runs
    are short: warnings of these are allowed. Any other warning is an error.
    """
    from surrokit.errors import EvaluationWarning, SamplingWarning

    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EvaluationWarning)
        warnings.filterwarnings(
            "ignore", "R-hat is|the draws of|the target has 2 modes", SamplingWarning
        )
        sys.path.insert(0, str(EXAMPLES))
        os.chdir(folder)
        try:
            return runpy.run_path(str(EXAMPLES / name))
        finally:
            os.chdir(before)
            sys.path.remove(str(EXAMPLES))


def commands_parse() -> int:
    """Parse every ``$ surrokit ...`` line of the pages without running it; return how many."""
    from surrokit.cli.main import cli

    count = 0
    for page in sorted(DOCS.rglob("*.md")):
        for line in re.findall(r"^\$ surrokit (.*)$", page.read_text("utf-8"), re.MULTILINE):
            arguments = shlex.split(line.split(" > ")[0])
            if not {"--help", "--version"} & set(arguments):
                name, command, rest = cli.resolve_command(
                    cli.make_context("surrokit", arguments), arguments
                )
                command.make_context(name, rest)
                count += 1
    return count
