"""One call of a program: a folder of its own, a process of its own, and what came of it."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import attrs

from surrokit.errors import ProgramError, ResultTypeError
from surrokit.model.outcome import say_place
from surrokit.programs.command import Command

LARGEST = 2**26
"""Bytes of an answer at most: some three million numbers."""

TOLD = 600
"""Characters of standard error that a message holds, its last ones."""

_POSIX = os.name == "posix"


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
                end(process)
                process.wait()

    def end_all(self) -> None:
        """End them all."""
        for process in tuple(self._processes):
            end(process)

    def __reduce__(self) -> tuple[type[InFlight], tuple[()]]:
        """Return what stands for it elsewhere."""
        return InFlight, ()


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, with those that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None and _POSIX:
            os.killpg(process.pid, signal.SIGKILL)  # type: ignore[attr-defined, unused-ignore]
        else:
            process.kill()


@attrs.frozen(kw_only=True)
class Caller:
    """Calls a program, and reads what it writes.

    Parameters
    ----------
    command
        What starts it.
    timeout
        Seconds after which a call is given up; None for never.
    keep_failed
        Folder in which the files of failed calls are kept; None removes them.
    in_flight
        Processes at work.
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
            If the block does; the message then tells where the files are, if they are kept.
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
            raise _placeless(type(error)(f"{error}{kept}")) from None
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
        printed, told = folder / "stdout", folder / "stderr"
        stdin = os.devnull if self.command.reads_a_file else source
        with open(stdin, "rb") as read, printed.open("wb") as out, told.open("wb") as err:
            process = self._start(folder, (read, out, err))
            with self.in_flight.watch(process), _Deadline(process, self.timeout) as deadline:
                status = process.wait()
        if deadline.passed:
            raise TimeoutError(
                f"{self.command.text} took longer than timeout={self.timeout:g} seconds, and was "
                f"ended{_end_of(told)}"
            )
        if status != 0:
            raise ProgramError(f"{self.command.text} {_ending(status)}{_end_of(told)}")
        return self._read(made if self.command.writes_a_file else printed, told)

    def _start(self, folder: Path, streams: tuple[IO[bytes], ...]) -> subprocess.Popen[bytes]:
        read, out, err = streams
        words = self.command.name_files(folder / "input.json", folder / "output.json")
        settings: dict[str, Any] = {"cwd": folder, "stdin": read, "stdout": out, "stderr": err}
        try:  # in a session of its own, so that all that it starts can be ended with it
            return subprocess.Popen(words, start_new_session=_POSIX, **settings)
        except OSError as error:
            raise ProgramError(f"{self.command.text} could not be started: {error}") from error

    def _read(self, made: Path, told: Path) -> str:
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
                f"{why}; it must write JSON to {{output}}{_end_of(told)}"
            ) from error
        if not text.strip():
            what = "wrote nothing to {output}" if self.command.writes_a_file else "printed nothing"
            raise ResultTypeError(
                f"{self.command.text} ended well, but {what}; it must give JSON{_end_of(told)}"
            )
        return text


class _Deadline:
    """Ends a process after a time, unless the block ends before."""

    def __init__(self, process: subprocess.Popen[bytes], timeout: float | None) -> None:
        self.passed = False
        self._process = process
        self._timer = None if timeout is None else threading.Timer(timeout, self._pass)

    def __enter__(self) -> _Deadline:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _pass(self) -> None:
        if self._process.returncode is None:
            self.passed = True
            end(self._process)


def _ending(status: int) -> str:
    if status > 0:
        return f"ended with exit status {status}"
    with suppress(ValueError):
        return f"was ended by signal {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def _end_of(told: Path) -> str:
    """Return the end of standard error for a message; empty if there is none."""
    try:
        with _open_file(told) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 4 * TOLD, 0))
            text = file.read(4 * TOLD).decode("utf-8", errors="replace").strip()
    except OSError:  # the program has put something else in its place
        return ""
    if not text:
        return ""
    shown = text if len(text) <= TOLD else f"... {text[-TOLD:]}"
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


def _placeless(error: Exception) -> Exception:
    """Return an error that names no line: it would be one of ours."""
    say_place(error, None)
    return error
