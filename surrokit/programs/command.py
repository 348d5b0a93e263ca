"""A command: the words that start a program, with places for the names of files."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import attrs

from surrokit.errors import ConfigurationError

INPUT = "{input}"
OUTPUT = "{output}"
HERE = "{here}"
"""Places in a command: for the file to read, the file to write, and the folder of the model."""


@attrs.frozen
class Command:
    """Words that start a program, without a shell.

    Parameters
    ----------
    words
        The program and its arguments, with full paths.
    text
        The command as it was given, for messages.
    """

    words: tuple[str, ...]
    text: str

    @classmethod
    def read(cls, given: object, folder: Path) -> Command:
        """Return the command that a user gave, as one text or as words.

        The program is called in folders of its own, so a word that names a file of ``folder`` is
        replaced by the file's full path, and ``{here}`` by that of ``folder``.

        Parameters
        ----------
        given
            Text, split as a shell would, or a sequence of words, taken as they are.
        folder
            Where the files lie that the command names.

        Raises
        ------
        ConfigurationError
            If it is no command, or there is no such program.
        """
        words = _split(given)
        first, *others = [word.replace(HERE, str(folder)) for word in words]
        found = (_find(first, folder), *(_full_path(word, folder) for word in others))
        return cls(words=found, text=shlex.join(words))

    @property
    def reads_a_file(self) -> bool:
        """Whether the program is given the name of its input, and not the input itself."""
        return any(INPUT in word for word in self.words)

    @property
    def writes_a_file(self) -> bool:
        """Whether the program is given the name of its output, and does not print it."""
        return any(OUTPUT in word for word in self.words)

    def name_files(self, given: Path, made: Path) -> list[str]:
        """Return the words for one call, with the names of its input and its output."""
        return [word.replace(INPUT, str(given)).replace(OUTPUT, str(made)) for word in self.words]


def _split(given: object) -> list[str]:
    if isinstance(given, str):
        try:
            words = shlex.split(given)
        except ValueError as error:
            raise ConfigurationError(
                f"the command {given!r} cannot be split into words: {error}; close its quotation "
                "marks, or give a list of words"
            ) from error
    elif isinstance(given, Sequence) and all(isinstance(word, str) for word in given):
        words = list(given)
    else:
        raise ConfigurationError(
            "a command must be text or a list of words, such as './model {input} {output}', got "
            f"{given!r}"
        )
    if not words or not words[0]:
        raise ConfigurationError(
            "the command is empty; give a program and its arguments, such as "
            "'./model {input} {output}'"
        )
    return words


def _find(word: str, folder: Path) -> str:
    """Return how to start a program: by its full path, or by a name that is looked up in PATH."""
    is_path = Path(word).name != word
    named = str(folder / word) if is_path else word
    if shutil.which(named) is None:
        raise ConfigurationError(_not_there(word, folder, is_path=is_path))
    return named


def _not_there(word: str, folder: Path, *, is_path: bool) -> str:
    file = folder / word
    if not file.is_file():
        where = f"in {folder}" if is_path else "among the installed ones (PATH)"
        return (
            f"there is no program {word!r} {where}; name an executable file, or an installed "
            "program"
        )
    if is_path:
        return (
            f"{file} may not be executed; allow it (chmod +x), or name what runs it, as in "
            f"'python {word}'"
        )
    return (
        f"there is no installed program {word!r}, but there is a file {file}; name it ./{word}, or "
        f"name what runs it, as in 'python {word}'"
    )


def _full_path(word: str, folder: Path) -> str:
    try:
        named = folder / word
        return str(named) if word and named.is_file() else word
    except OSError:  # too long for a name
        return word
