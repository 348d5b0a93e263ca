"""``surrokit new``: a distribution with one part and its tests, written to a new folder."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

import click

from surrokit.errors import ConfigurationError
from surrokit.output.console import say

SUMMARIES = {
    "surrogate": "A surrogate of my own",
    "sampler": "A sampler of my own",
    "potential": "A target of my own",
}
"""Kinds of part that there are templates for, and what each is called at first."""

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "tests/conftest.py": "conftest.py",
    "tests/test_conformance.py": "test_conformance.py",
}


def write_plugin(name: str, kind: str, folder: Path) -> Path:
    """Write a distribution with one part to a new folder within ``folder``, and return that.

    A ConfigurationError says why the name is none, there is no template for the kind, or the folder
    is there already or cannot be written.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigurationError(
            "the name of a plugin must be made of small letters and digits, with single "
            f"hyphens between words, such as 'nearest-rows'; got {name!r}"
        )
    if kind not in SUMMARIES:
        raise ConfigurationError(
            f"there is no template for a part of kind {kind!r}; there are some for "
            f"{', '.join(SUMMARIES)}"
        )
    title = f"surrokit-{name}"
    module = title.replace("-", "_")
    words = {"distribution": title, "module": module, "name": name, "kind": kind}
    words["summary"] = SUMMARIES[kind]
    new, templates = folder / title, files("surrokit.scaffold").joinpath("templates")
    try:
        new.mkdir()
        for path, template in {**_FILES, f"{module}.py": f"{kind}.py"}.items():
            text = Template(templates.joinpath(f"{template}.txt").read_text(encoding="utf-8"))
            (new / path).parent.mkdir(exist_ok=True)
            (new / path).write_text(text.substitute(words), encoding="utf-8")
    except FileExistsError:
        raise ConfigurationError(
            f"there is a folder {new} already; give another name, or --folder"
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {new}: {error.strerror or error}; give a folder that you may write to"
        ) from error
    return new


@click.group()
def new() -> None:
    """Write files to begin from."""


@new.command()
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(list(SUMMARIES)),
    default="surrogate",
    show_default=True,
    help="Make its part of this kind.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="Put the folder of the plugin here.  [default: the current one]",
)
def plugin(name: str, kind: str, folder: Path) -> None:
    """Write a distribution surrokit-NAME with a part NAME, and tests that it passes."""
    written = write_plugin(name, kind, folder)
    say(f"{written} has a {kind} that works; install it, and put yours in its place:")
    say(f"    python -m pip install --editable '{written}[testing]'")
    say(f"    surrokit plugins {kind} {name}")
    say(f"    python -m pytest {written}")
