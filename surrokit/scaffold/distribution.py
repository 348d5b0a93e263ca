"""``surrokit new``: a distribution with one part and its tests, written to a new folder."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

import attrs
import click

from surrokit.errors import ConfigurationError
from surrokit.output.console import say

SUMMARIES = {
    "surrogate": "A surrogate of my own",
    "sampler": "A sampler of my own",
    "potential": "A target of my own",
    "explorer": "An explorer of my own",
    "schedule": "A schedule of my own",
    "metric": "A metric of my own",
    "integrator": "An integrator of my own",
    "correction": "A correction of my own",
    "policy": "A policy of my own",
}
"""Kinds of part that there are templates for, and what each is called at first."""

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "tests/conftest.py": "conftest.py",
    "tests/test_conformance.py": "test_conformance.py",
}


@attrs.frozen
class Distribution:
    """A plugin with one part.

    Parameters
    ----------
    name
        Of the part: small letters, digits and hyphens, the first one a letter.
    kind
        Of the part, one of :data:`SUMMARIES`.

    Raises
    ------
    ConfigurationError
        If the name has another form, or there is no template for the kind.
    """

    name: str
    kind: str = "surrogate"

    def __attrs_post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", self.name):
            raise ConfigurationError(
                "the name of a plugin must be made of small letters and digits, with single "
                f"hyphens between words, such as 'nearest-rows'; got {self.name!r}"
            )
        if self.kind not in SUMMARIES:
            raise ConfigurationError(
                f"there is no template for a part of kind {self.kind!r}; there are some for "
                f"{', '.join(SUMMARIES)}"
            )

    @property
    def title(self) -> str:
        """The name of the distribution and of its folder."""
        return f"surrokit-{self.name}"

    @property
    def module(self) -> str:
        """The name of its module."""
        return self.title.replace("-", "_")

    def texts(self) -> dict[str, str]:
        """Return the text of each file, by its path in the folder."""
        words = {
            "distribution": self.title,
            "module": self.module,
            "name": self.name,
            "kind": self.kind,
            "summary": SUMMARIES[self.kind],
        }
        templates = {**_FILES, f"{self.module}.py": f"{self.kind}.py"}
        return {path: _template(template).substitute(words) for path, template in templates.items()}

    def write(self, folder: Path) -> Path:
        """Write it to a new folder within ``folder``, and return that.

        Raises
        ------
        ConfigurationError
            If there is such a folder already, or it cannot be written.
        """
        new = folder / self.title
        try:
            for path, text in self.texts().items():
                (new / path).parent.mkdir(parents=True, exist_ok=path != "pyproject.toml")
                (new / path).write_text(text, encoding="utf-8")
        except FileExistsError:
            raise ConfigurationError(
                f"there is a folder {new} already; give another name, or --folder"
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"cannot write {new}: {error.strerror or error}; give a folder that you may "
                "write to"
            ) from error
        return new


def _template(name: str) -> Template:
    text = files("surrokit.scaffold").joinpath("templates", f"{name}.txt")
    return Template(text.read_text(encoding="utf-8"))


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
    written = Distribution(name, kind).write(folder)
    say(f"{written} has a {kind} that works; install it, and put yours in its place:")
    say(f"    python -m pip install --editable '{written}[testing]'")
    say(f"    surrokit plugins {kind} {name}")
    say(f"    python -m pytest {written}")
