"""Questions to a server and its answers: JSON over HTTP, with waits that end."""

from __future__ import annotations

import http.client
import json
import logging
import re
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import attrs

from surrokit.errors import ConfigurationError, ResultTypeError, ServerError

LARGEST = 2**26
"""Bytes of an answer at most: some three million numbers."""

CONNECT = 10.0
"""Seconds for which a connection may take to be made."""

LOSSES = 3
"""Times that the server may go away while it is at work on one question: it is then blamed."""

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between attempts to reach a server that is away, the first and the longest."""

# Seconds until an idle line is looked at, and between looks, and how many: names of two systems.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}

_LONGEST = 2000  # characters of what a server tells

_AWAY = (502, 503, 504)  # what stands in front of a server answers so while there is none
_BARE = re.compile(r"(?<![\w\"])(-?)(nan|inf)(?![\w\"])")  # as Python prints them

_LOG = logging.getLogger("surrokit_umbridge")


class Account:
    """What the waits for a server came to; a copy made by pickle begins at nothing.

    Attributes
    ----------
    sent_again
        Questions that were sent again since the server had gone.
    seconds_away
        Seconds for which they waited, added up.
    """

    def __init__(self) -> None:
        self.sent_again = 0
        self.seconds_away = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        """Count a question that was answered in the end."""
        with self._lock:
            self.sent_again += 1
            self.seconds_away += seconds

    def __reduce__(self) -> tuple[type[Account], tuple[()]]:
        """Return what stands for it elsewhere."""
        return Account, ()


class _LostError(Exception):
    """The server cannot be reached, or went away before it answered."""

    def __init__(self, why: str, *, at_work: bool) -> None:
        super().__init__(why)
        self.at_work = at_work


class _Line:
    """A connection that is closed when nobody has it any more, as at the end of a thread."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.connection = connection
        weakref.finalize(self, connection.close)


class Lines:
    """Connections to one server, one for each thread; copies elsewhere have their own.

    Parameters
    ----------
    url
        Where the server is.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._own = threading.local()

    def __reduce__(self) -> tuple[type[Lines], tuple[str]]:
        """Return what stands for it elsewhere."""
        return Lines, (self.url,)

    def send(self, path: str, body: bytes | None, timeout: float | None) -> tuple[int, str]:
        """Return status and text of the response.

        A connection that the server has closed since its last use is made anew. The timeout is for
        the whole of it, however slowly the server writes.

        Raises
        ------
        TimeoutError
            If that takes longer.
        ResultTypeError
            If the response has more than :data:`LARGEST` bytes.
        """
        line, is_used = self._line(timeout)
        deadline = _Deadline(line.sock, timeout)
        try:
            with deadline:
                found = self._exchange(line, path, body)
            if not deadline.passed:  # else it may be cut, and look whole
                return found
            raise TimeoutError
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            if deadline.passed:
                raise TimeoutError from error
            if isinstance(error, TimeoutError) and error.errno is None:
                raise  # the timeout that was asked for, and not that of a host that is gone
            if is_used:
                return self.send(path, body, timeout)
            raise _LostError(f"{type(error).__name__}: {error}", at_work=True) from error
        except BaseException:  # an answer that nobody reads must not meet the next question
            self._drop()
            raise

    def _exchange(
        self, line: http.client.HTTPConnection, path: str, body: bytes | None
    ) -> tuple[int, str]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        line.request("GET" if body is None else "POST", path, body=body, headers=headers)
        response = line.getresponse()
        if (response.length or 0) <= LARGEST and len(text := response.read(LARGEST + 1)) <= LARGEST:
            if response.length:
                raise http.client.IncompleteRead(text, response.length)
            return response.status, text.decode("utf-8", errors="replace")
        raise ResultTypeError(f"{self.url} answered with more than {LARGEST} bytes; it must not")

    def _line(self, timeout: float | None) -> tuple[http.client.HTTPConnection, bool]:
        """Return the connection of this thread, and whether it has been used before."""
        known: _Line | None = getattr(self._own, "line", None)
        if known is not None and known.connection.sock is not None:
            known.connection.sock.settimeout(timeout)
            return known.connection, True
        address = urlsplit(self.url)
        secure = address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        assert address.hostname is not None
        line = kind(address.hostname, address.port, timeout=CONNECT)
        try:
            line.connect()
        except OSError as error:
            line.close()
            raise _LostError(f"{type(error).__name__}: {error}", at_work=False) from error
        line.sock.settimeout(timeout)
        _keep_alive(line.sock)
        self._own.line = _Line(line)
        return line, False

    def _drop(self) -> None:
        line: _Line | None = getattr(self._own, "line", None)
        self._own.line = None
        if line is not None:
            line.connection.close()


class _Deadline:
    """Ends a connection after a time, unless the block ends before."""

    def __init__(self, line: socket.socket, timeout: float | None) -> None:
        self.passed = False
        self._line = line
        self._timer = None if timeout is None else threading.Timer(timeout, self._pass)

    def __enter__(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _pass(self) -> None:
        self.passed = True
        with suppress(OSError):  # it has just ended
            self._line.shutdown(socket.SHUT_RDWR)


def _keep_alive(line: socket.socket) -> None:
    """Have a dead host noticed within two minutes, though an answer may take days."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            line.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@attrs.frozen(kw_only=True)
class Transport:
    """Asks a server, and waits for it if it is away.

    Parameters
    ----------
    url
        Where the server is.
    timeout
        Seconds after which an answer is given up; None for never.
    wait
        Seconds for which a question waits for a server that is away.
    account
        Counts the waits.
    """

    url: str
    timeout: float | None = None
    wait: float = 60.0
    account: Account = attrs.field(factory=Account, repr=False, eq=False)
    lines: Lines = attrs.field(init=False, repr=False, eq=False)

    @lines.default
    def _lines(self) -> Lines:
        return Lines(self.url)

    def ask(
        self, what: str, question: Mapping[str, Any] | None = None, *, wait: float | None = None
    ) -> dict[str, Any]:
        """Return the answer to a question.

        Parameters
        ----------
        what
            Last part of the URL.
        question
            What is sent; None asks without.
        wait
            Seconds to wait in place of the usual ones.

        Raises
        ------
        ServerError
            If the server stays away for too long, goes away time and again at this question, or
            says that it failed.
        TimeoutError
            If the answer takes too long.
        ResultTypeError
            If the answer is not in JSON.
        """
        path = f"{urlsplit(self.url).path.rstrip('/')}/{what}"
        body = None if question is None else json.dumps(question).encode()
        status, text = self._insist(path, body, self.wait if wait is None else wait)
        answer = _read(text, status, f"{self.url}/{what}")
        if "error" in answer:
            told = answer["error"]
            named = isinstance(told, Mapping) and {"type", "message"} <= told.keys()
            said = f"{told['type']}: {told['message']}" if named else str(told)
            raise ServerError(f"the model behind {self.url} failed: {said:.{_LONGEST}}")
        return answer

    def _insist(self, path: str, body: bytes | None, wait: float) -> tuple[int, str]:
        """Send a question until it is answered, and count how long that took if it was lost."""
        first, pause, losses = None, FIRST_PAUSE, 0
        while True:
            try:
                status, text = self._send(path, body)
            except _LostError as lost:
                losses += lost.at_work
                now = time.monotonic()
                if first is None and wait > 0.0:
                    _LOG.warning("%s is away (%s); waiting for up to %g s", self.url, lost, wait)
                first = now if first is None else first
                if losses == LOSSES or now - first >= wait:
                    raise ServerError(self._complain(lost, losses, now - first)) from lost
                time.sleep(min(pause, max(first + wait - now, 0.0)))
                pause = min(2.0 * pause, LONGEST_PAUSE)
                continue
            if first is not None:
                self.account.add(time.monotonic() - first)
            return status, text

    def _send(self, path: str, body: bytes | None) -> tuple[int, str]:
        try:
            status, text = self.lines.send(path, body, self.timeout)
        except TimeoutError as error:
            raise TimeoutError(
                f"{self.url} took longer than timeout={self.timeout:g} seconds to answer"
            ) from error
        if status in _AWAY:
            raise _LostError(f"status {status}", at_work=False)
        return status, text

    def _complain(self, lost: _LostError, losses: int, seconds: float) -> str:
        if losses == LOSSES:
            return (
                f"{self.url} went away {LOSSES} times while it was at work on one position ({lost})"
            )
        return (
            f"{self.url} cannot be reached ({lost}), and was waited for {seconds:.0f} seconds; "
            "start the server again, or pass a longer wait"
        )


def check_url(url: object) -> str:
    """Return the address of a server.

    Raises
    ------
    ConfigurationError
        If it is none.
    """
    try:
        address = urlsplit(url) if isinstance(url, str) else None
        good = (
            address is not None
            and address.scheme in ("http", "https")
            and address.hostname
            and (address.port is None or address.port > 0)
        )
    except ValueError:
        good = False
    if not good:
        raise ConfigurationError(
            f"url must be the address of a server, such as 'http://localhost:4242', got {url!r}"
        )
    return str(url).rstrip("/")


def _read(text: str, status: int, where: str) -> dict[str, Any]:
    for spelling in (text, _BARE.sub(_spell, text)):  # servers in Python may print nan and inf
        try:
            answer = json.loads(spelling)
        except (ValueError, RecursionError):
            continue
        if isinstance(answer, dict):
            return answer
    shown = repr(text if len(text) <= 200 else f"{text[:200]} ...")
    if status >= 400:  # whatever the model raised, the server keeps to itself
        raise ServerError(
            f"{where} failed with status {status}, and told no more than {shown}; look at the "
            "server's own log"
        )
    raise ResultTypeError(f"{where} must answer with a JSON object, got {shown}")


def _spell(match: re.Match[str]) -> str:
    return match[1] + {"nan": "NaN", "inf": "Infinity"}[match[2]]
