"""One call of a program: its command, a folder and a process of its own, and what it wrote."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from surrokit.errors import ConfigurationError, ProgramError, ResultTypeError
from surrokit.limits import ended_after

LARGEST = 2**26
"""Bytes of an answer at most: some three million numbers."""

SHOWN = 600
"""Characters of standard error that a message holds, its last ones."""

INPUT, OUTPUT, HERE = "{input}", "{output}", "{here}"
"""Places in a command: for the file to read, the file to write, and the folder of the model."""

_POSIX = os.name == "posix"


def read_command(given: object, folder: Path) -> tuple[tuple[str, ...], str]:
    """Return the words that start a program, without a shell, and how messages call it.

    The user gave text to be split as a shell would, or words. The program is called in folders of
    its own, so a word that names a file of ``folder`` is replaced by the file's full path, and
    ``{here}`` by that of ``folder``. ConfigurationError is raised if it is no command, or there is
    no such program.
    """
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
        words = []
    if not words or not words[0]:
        raise ConfigurationError(
            "a command must be text or a list of words, a program and its arguments, such as "
            f"'./model {{input}} {{output}}', got {given!r}"
        )
    first, *others = [word.replace(HERE, str(folder)) for word in words]
    return (_find(first, folder), *(_full_path(word, folder) for word in others)), shlex.join(words)


def _find(word: str, folder: Path) -> str:
    """Return how to start a program: by its full path, or by a name that is looked up in PATH."""
    named = str(folder / word) if Path(word).name != word else word
    if shutil.which(named) is None:
        raise ConfigurationError(
            f"no program {word!r} can be started in {folder} or is installed (PATH); name an "
            f"executable file (chmod +x) as './{word}', or what runs it, as in 'python {word}'"
        )
    return named


def _full_path(word: str, folder: Path) -> str:
    try:
        return str(folder / word) if word and (folder / word).is_file() else word
    except OSError:  # too long for a name
        return word


@attrs.frozen(kw_only=True)
class Caller:
    """Calls a program, and reads what it writes; calls are given up after ``timeout`` seconds.

    Copies elsewhere, made by pickle, have processes of their own.
    """

    words: tuple[str, ...]
    text: str  # what messages call it
    timeout: float | None = None
    _processes: set[subprocess.Popen[bytes]] = attrs.field(
        factory=set, init=False, repr=False, eq=False
    )

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return partial(Caller, words=self.words, text=self.text, timeout=self.timeout), ()

    def end_all(self) -> None:
        """End all calls in progress, since nobody waits for them any more."""
        for process in tuple(self._processes):
            _end(process)

    def call(self, question: str) -> str:
        """Return what the program answers to a question.

        Raises
        ------
        ProgramError
            If it cannot be started, or ends with another status than 0.
        TimeoutError
            If it takes too long.
        ResultTypeError
            If it writes nothing that can be read.
        """
        folder = Path(tempfile.mkdtemp(prefix="surrokit-"))
        try:
            return self._answer(folder, question)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _answer(self, folder: Path, question: str) -> str:
        source, made = folder / "input.json", folder / "output.json"
        source.write_text(question, encoding="utf-8")
        printed, errors = folder / "stdout", folder / "stderr"
        words = [word.replace(INPUT, str(source)).replace(OUTPUT, str(made)) for word in self.words]
        stdin = os.devnull if any(INPUT in word for word in self.words) else source
        with open(stdin, "rb") as read, printed.open("wb") as out, errors.open("wb") as err:
            streams: dict[str, Any] = {"stdin": read, "stdout": out, "stderr": err}
            try:  # in a session of its own, so that all that it starts can be ended with it
                process = subprocess.Popen(words, cwd=folder, start_new_session=_POSIX, **streams)
            except OSError as error:
                raise ProgramError(f"{self.text} could not be started: {error}") from error
            self._processes.add(process)
            try:
                with ended_after(self.timeout, partial(_end, process)) as passed:
                    status = process.wait()
            finally:
                self._processes.discard(process)
                if process.returncode is None:
                    _end(process)
                    process.wait()
        reported = _end_of(errors)  # for messages
        if passed.is_set():
            raise TimeoutError(
                f"{self.text} took longer than timeout={self.timeout:g} seconds, and was "
                f"ended{reported}"
            )
        if status != 0:
            raise ProgramError(f"{self.text} ended with exit status {status}{reported}")
        writes_file = any(OUTPUT in word for word in self.words)
        try:
            text = _read(made if writes_file else printed)
        except (OSError, UnicodeDecodeError) as error:
            raise ResultTypeError(
                f"{self.text} ended well, but its output cannot be read: {error}; it must write "
                f"JSON{reported}"
            ) from error
        if not text.strip():
            what = "wrote nothing to {output}" if writes_file else "printed nothing"
            raise ResultTypeError(
                f"{self.text} ended well, but {what}; it must give JSON{reported}"
            )
        return text


def _read(file: Path) -> str:
    if not file.is_file():  # a pipe would wait for a writer
        raise OSError(f"{file.name} is no plain file, or not there")
    with file.open("rb") as opened:
        given = opened.read(LARGEST + 1)
    if len(given) > LARGEST:
        raise OSError(f"it has more than {LARGEST} bytes")
    return given.decode("utf-8")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it has started, if it has not ended."""
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None and _POSIX:
            os.killpg(process.pid, signal.SIGKILL)  # type: ignore[attr-defined, unused-ignore]
        else:
            process.kill()


def _end_of(errors: Path) -> str:
    """Return the end of standard error for a message; empty if there is none."""
    try:
        with errors.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 4 * SHOWN, 0))
            text = file.read(4 * SHOWN).decode("utf-8", errors="replace").strip()
    except OSError:  # the program has removed it
        return ""
    shown = text if len(text) <= SHOWN else f"... {text[-SHOWN:]}"
    return f"; standard error: {shown}" if text else ""
