"""One call of a program: its command, a folder and a process of its own, and what it wrote."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

import attrs

from surrokit.errors import ConfigurationError, ProgramError, ResultTypeError
from surrokit.limits import ended_after
from surrokit.model.outcome import say_place

LARGEST = 2**26
"""Bytes of an answer at most: some three million numbers."""

SHOWN = 600
"""Characters of standard error that a message holds, its last ones."""

INPUT, OUTPUT, HERE = "{input}", "{output}", "{here}"
"""Places in a command: for the file to read, the file to write, and the folder of the model."""

_POSIX = os.name == "posix"


@attrs.frozen
class Command:
    """Words that start a program, without a shell."""

    words: tuple[str, ...]  # with full paths
    text: str  # as it was given, for messages

    @classmethod
    def read(cls, given: object, folder: Path) -> Command:
        """Return the command that a user gave, as text to be split as a shell would, or as words.

        The program is called in folders of its own, so a word that names a file of ``folder`` is
        replaced by the file's full path, and ``{here}`` by that of ``folder``.

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
    file = folder / word
    named = str(file) if is_path else word
    if shutil.which(named) is not None:
        return named
    if not file.is_file():
        where = f"in {folder}" if is_path else "among the installed ones (PATH)"
        why = (
            f"there is no program {word!r} {where}; name an executable file, or an installed "
            "program"
        )
    elif is_path:
        why = (
            f"{file} may not be executed; allow it (chmod +x), or name what runs it, as in "
            f"'python {word}'"
        )
    else:
        why = (
            f"there is no installed program {word!r}, but there is a file {file}; name it "
            f"./{word}, or name what runs it, as in 'python {word}'"
        )
    raise ConfigurationError(why)


def _full_path(word: str, folder: Path) -> str:
    try:
        named = folder / word
        return str(named) if word and named.is_file() else word
    except OSError:  # too long for a name
        return word


class InFlight:
    """Processes at work, so that they can be ended when nobody waits for them any more.

    Copies elsewhere, made by pickle, have processes of their own.
    """

    def __init__(self) -> None:
        self._processes: set[subprocess.Popen[bytes]] = set()

    @contextmanager
    def watch(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Keep a process among them within the block; what is left of it then is ended."""
        self._processes.add(process)
        try:
            yield
        finally:
            self._processes.discard(process)
            if process.returncode is None:
                _end(process)
                process.wait()

    def end_all(self) -> None:
        """End them all."""
        for process in tuple(self._processes):
            _end(process)

    def __reduce__(self) -> tuple[type[InFlight], tuple[()]]:
        return InFlight, ()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, with those that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None and _POSIX:
            os.killpg(process.pid, signal.SIGKILL)  # type: ignore[attr-defined, unused-ignore]
        else:
            process.kill()


@attrs.frozen(kw_only=True)
class Caller:
    """Calls a program, and reads what it writes.

    Calls are given up after ``timeout`` seconds, and files of those that failed are kept in the
    folder ``keep_failed``; None for neither.
    """

    command: Command
    timeout: float | None = None
    keep_failed: Path | None = None
    in_flight: InFlight = attrs.field(factory=InFlight, repr=False, eq=False)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Yield an empty folder for one call, removed afterwards unless the call fails.

        Raises
        ------
        ProgramError, TimeoutError, ResultTypeError
            If the block does; the message then says where the files are, if they are kept.
        """
        if self.keep_failed is not None:
            self.keep_failed.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="surrokit-", dir=self.keep_failed))
        keep = False
        try:
            yield folder
        except (ProgramError, TimeoutError, ResultTypeError) as error:
            keep = self.keep_failed is not None
            kept = f" (its files are in {folder})" if keep else ""
            again = type(error)(f"{error}{kept}")
            say_place(again, None)  # it would be a line of ours
            raise again from None
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)

    def call(self, folder: Path, given: str) -> str:
        """Return what the program writes, given a text, in a folder for this call alone.

        Raises
        ------
        ProgramError
            If it cannot be started, or ends with another status than 0.
        TimeoutError
            If it takes too long.
        ResultTypeError
            If it writes nothing that can be read.
        """
        source, made = folder / "input.json", folder / "output.json"
        source.write_text(given, encoding="utf-8")
        printed, errors = folder / "stdout", folder / "stderr"
        stdin = os.devnull if self.command.reads_a_file else source
        with open(stdin, "rb") as read, printed.open("wb") as out, errors.open("wb") as err:
            process = self._start(folder, (read, out, err))
            end = partial(_end, process)
            with self.in_flight.watch(process), ended_after(self.timeout, end) as passed:
                status = process.wait()
        if passed.is_set():
            raise TimeoutError(
                f"{self.command.text} took longer than timeout={self.timeout:g} seconds, and was "
                f"ended{_end_of(errors)}"
            )
        if status != 0:
            raise ProgramError(f"{self.command.text} {_ending(status)}{_end_of(errors)}")
        return self._read(made if self.command.writes_a_file else printed, errors)

    def _start(self, folder: Path, streams: tuple[IO[bytes], ...]) -> subprocess.Popen[bytes]:
        read, out, err = streams
        words = self.command.name_files(folder / "input.json", folder / "output.json")
        settings: dict[str, Any] = {"cwd": folder, "stdin": read, "stdout": out, "stderr": err}
        try:  # in a session of its own, so that all that it starts can be ended with it
            return subprocess.Popen(words, start_new_session=_POSIX, **settings)
        except OSError as error:
            raise ProgramError(f"{self.command.text} could not be started: {error}") from error

    def _read(self, made: Path, errors: Path) -> str:
        try:
            with _open_file(made) as file:
                given = file.read(LARGEST + 1)
            if len(given) > LARGEST:
                raise OSError(f"it has more than {LARGEST} bytes")
            text = given.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = "it is not there" if isinstance(error, FileNotFoundError) else str(error)
            raise ResultTypeError(
                f"{self.command.text} ended well, but its output {made.name} cannot be read: "
                f"{why}; it must write JSON to {{output}}{_end_of(errors)}"
            ) from error
        if not text.strip():
            what = "wrote nothing to {output}" if self.command.writes_a_file else "printed nothing"
            raise ResultTypeError(
                f"{self.command.text} ended well, but {what}; it must give JSON{_end_of(errors)}"
            )
        return text


def _ending(status: int) -> str:
    if status > 0:
        return f"ended with exit status {status}"
    with suppress(ValueError):
        return f"was ended by signal {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _end_of(errors: Path) -> str:
    """Return the end of standard error for a message; empty if there is none."""
    try:
        with _open_file(errors) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 4 * SHOWN, 0))
            text = file.read(4 * SHOWN).decode("utf-8", errors="replace").strip()
    except OSError:  # the program has put something else in its place
        return ""
    if not text:
        return ""
    shown = text if len(text) <= SHOWN else f"... {text[-SHOWN:]}"
    return f"; standard error: {shown}"


def _open_file(path: Path) -> IO[bytes]:
    """Open a file of a call, and nothing else that the program may have put in its place.

    A pipe would wait for a writer, a device may never end, and a link leads to a file that is not
    of this call.

    Raises
    ------
    OSError
        If it is none, or cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if path.is_symlink():
        raise OSError("it is a link")
    number = os.open(path, flags | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError("it is no plain file")
    return os.fdopen(number, "rb")
