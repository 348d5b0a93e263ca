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


def read_command(given: object, folder: Path) -> tuple[tuple[str, ...], str]:
    """Return the words that start a program, without a shell, and how messages call it.

    The user gave text to be split as a shell would, or words. The program is called in folders of
    its own, so a word that names a file of ``folder`` is replaced by the file's full path, and
    ``{here}`` by that of ``folder``.

    Raises
    ------
    ConfigurationError
        If it is no command, or there is no such program.
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
        raise ConfigurationError(
            "a command must be text or a list of words, such as './model {input} {output}', got "
            f"{given!r}"
        )
    if not words or not words[0]:
        raise ConfigurationError(
            "the command is empty; give a program and its arguments, such as "
            "'./model {input} {output}'"
        )
    first, *others = [word.replace(HERE, str(folder)) for word in words]
    return (_find(first, folder), *(_full_path(word, folder) for word in others)), shlex.join(words)


def _find(word: str, folder: Path) -> str:
    """Return how to start a program: by its full path, or by a name that is looked up in PATH."""
    is_path = Path(word).name != word
    file = folder / word
    named = str(file) if is_path else word
    if shutil.which(named) is not None:
        return named
    if not file.is_file():
        where = f"in {folder}" if is_path else "among the installed ones (PATH)"
        raise ConfigurationError(
            f"there is no program {word!r} {where}; name an executable file, or an installed "
            "program"
        )
    if is_path:
        raise ConfigurationError(
            f"{file} may not be executed; allow it (chmod +x), or name what runs it, as in "
            f"'python {word}'"
        )
    raise ConfigurationError(
        f"there is no installed program {word!r}, but there is a file {file}; name it ./{word}, or "
        f"name what runs it, as in 'python {word}'"
    )


def _full_path(word: str, folder: Path) -> str:
    try:
        named = folder / word
        return str(named) if word and named.is_file() else word
    except OSError:  # too long for a name
        return word


@attrs.frozen(kw_only=True)
class Caller:
    """Calls a program, and reads what it writes.

    Calls are given up after ``timeout`` seconds, and files of those that failed are kept in the
    folder ``keep_failed``; None for neither. Copies elsewhere, made by pickle, have processes of
    their own.
    """

    words: tuple[str, ...]
    text: str  # what messages call it
    timeout: float | None = None
    keep_failed: Path | None = None
    _processes: set[subprocess.Popen[bytes]] = attrs.field(
        factory=set, init=False, repr=False, eq=False
    )

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return partial(
            Caller,
            words=self.words,
            text=self.text,
            timeout=self.timeout,
            keep_failed=self.keep_failed,
        ), ()

    def end_all(self) -> None:
        """End all calls in progress, since nobody waits for them any more."""
        for process in tuple(self._processes):
            _end(process)

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
        if passed.is_set():
            raise TimeoutError(
                f"{self.text} took longer than timeout={self.timeout:g} seconds, and was "
                f"ended{_end_of(errors)}"
            )
        if status != 0:
            raise ProgramError(f"{self.text} {_ending(status)}{_end_of(errors)}")
        writes_file = any(OUTPUT in word for word in self.words)
        text = self._read(made if writes_file else printed, errors)
        if not text.strip():
            what = "wrote nothing to {output}" if writes_file else "printed nothing"
            raise ResultTypeError(
                f"{self.text} ended well, but {what}; it must give JSON{_end_of(errors)}"
            )
        return text

    def _read(self, made: Path, errors: Path) -> str:
        try:
            with _open_file(made) as file:
                given = file.read(LARGEST + 1)
            if len(given) > LARGEST:
                raise OSError(f"it has more than {LARGEST} bytes")
            return given.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = "it is not there" if isinstance(error, FileNotFoundError) else str(error)
            raise ResultTypeError(
                f"{self.text} ended well, but its output {made.name} cannot be read: "
                f"{why}; it must write JSON to {{output}}{_end_of(errors)}"
            ) from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, with those that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None and _POSIX:
            os.killpg(process.pid, signal.SIGKILL)  # type: ignore[attr-defined, unused-ignore]
        else:
            process.kill()


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
