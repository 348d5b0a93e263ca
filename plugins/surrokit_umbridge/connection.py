"""Requests to a server and its answers: JSON over HTTP, with waits that end."""

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

from surrokit.errors import ResultTypeError, ServerError
from surrokit.limits import ended_after

LARGEST = 2**26
"""Bytes of a request or an answer at most: some three million numbers."""

LOSSES = 3
"""Times that the server may go away while it is at work on one request: it is then blamed."""

# Seconds until an idle connection is probed, and between probes, and how many: Linux and macOS.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}

_LOG = logging.getLogger("surrokit_umbridge")


class _LostError(Exception):
    """The server cannot be reached, or went away before it answered."""

    def __init__(self, why: object, *, at_work: bool) -> None:
        super().__init__(f"{type(why).__name__}: {why}" if isinstance(why, Exception) else why)
        self.at_work = at_work


@attrs.define
class Connection:
    """Sends requests to a server, and waits for it if it is away; a copy elsewhere counts anew.

    Parameters
    ----------
    timeout
        Seconds after which an answer is given up; None for never.
    wait
        Seconds for which a request waits for a server that is away.

    Attributes
    ----------
    sent_again
        Requests of this process that were sent again since the server had gone.
    seconds_away
        Seconds for which they waited, added up.
    """

    url: str
    timeout: float | None = None
    wait: float = 60.0
    sent_again: int = attrs.field(default=0, init=False, eq=False)
    seconds_away: float = attrs.field(default=0.0, init=False, eq=False)
    _own: Any = attrs.field(factory=threading.local, init=False, repr=False, eq=False)
    _lock: Any = attrs.field(factory=threading.Lock, init=False, repr=False, eq=False)

    def __reduce__(self) -> tuple[type[Connection], tuple[Any, ...]]:
        return Connection, (self.url, self.timeout, self.wait)

    def ask(
        self, what: str, question: Mapping[str, Any] | None = None, *, wait: float | None = None
    ) -> dict[str, Any]:
        """Return the answer to a request, whose URL ends with ``what``.

        ``wait`` is in place of the usual seconds.

        Raises
        ------
        ServerError
            If the server stays away for too long, goes away time and again at this request, or
            reports that it failed.
        TimeoutError
            If the answer takes too long.
        ResultTypeError
            If the answer is not in JSON, or has more than :data:`LARGEST` bytes.
        """
        path = f"{urlsplit(self.url).path.rstrip('/')}/{what}"
        body = None if question is None else json.dumps(question).encode()
        status, text = self._insist(path, body, self.wait if wait is None else wait)
        answer = _read(text, status, f"{self.url}/{what}")
        if "error" in answer:
            error = answer["error"]
            if isinstance(error, Mapping) and {"type", "message"} <= error.keys():
                error = f"{error['type']}: {error['message']}"
            raise ServerError(f"the model behind {self.url} failed: {error!s:.2000}")
        return answer

    def _insist(self, path: str, body: bytes | None, wait: float) -> tuple[int, str]:
        """Send a request until it is answered, and count how long that took if it was lost."""
        first, pause, losses = None, 0.05, 0
        while True:
            try:
                found = self._send(path, body)
            except _LostError as lost:
                losses += lost.at_work
                now = time.monotonic()
                if first is None and wait > 0.0:
                    _LOG.warning("%s is away (%s); waiting for up to %g s", self.url, lost, wait)
                first = now if first is None else first
                if losses == LOSSES:
                    raise ServerError(
                        f"{self.url} went away {LOSSES} times while it was at work on one position "
                        f"({lost})"
                    ) from lost
                if now - first >= wait:
                    raise ServerError(
                        f"{self.url} cannot be reached ({lost}), and was waited for "
                        f"{now - first:.0f} seconds; start the server again, or pass a longer wait"
                    ) from lost
                time.sleep(min(pause, max(first + wait - now, 0.0)))
                pause = min(2.0 * pause, 2.0)
                continue
            if first is not None:
                with self._lock:
                    self.sent_again += 1
                    self.seconds_away += time.monotonic() - first
            return found

    def _send(self, path: str, body: bytes | None) -> tuple[int, str]:
        """Return status and text; the timeout is for all of it, however slowly it comes."""
        line, is_used = self._line()
        sock = line.sock

        def shut_down() -> None:
            with suppress(OSError):  # it has just ended
                sock.shutdown(socket.SHUT_RDWR)

        with ended_after(self.timeout, shut_down) as passed:
            try:
                status, text = self._exchange(line, path, body)
                if not passed.is_set():  # else it may be cut, and look whole
                    if status in (502, 503, 504):  # what stands in front of it answers so
                        raise _LostError(f"status {status}", at_work=False)
                    return status, text
            except (OSError, http.client.HTTPException) as error:
                lost = _LostError(error, at_work=True)
            except _LostError:
                raise
            except BaseException:  # an answer that nobody reads must not meet the next request
                self._drop(line)
                raise
        self._drop(line)
        if passed.is_set():
            raise TimeoutError(
                f"{self.url} took longer than timeout={self.timeout:g} seconds to answer"
            )
        if is_used:  # the server may have closed it since its last use
            return self._send(path, body)
        raise lost

    def _exchange(
        self, line: http.client.HTTPConnection, path: str, body: bytes | None
    ) -> tuple[int, str]:
        headers = {} if body is None else {"Content-Type": "application/json"}
        line.request("GET" if body is None else "POST", path, body=body, headers=headers)
        response = line.getresponse()
        if (response.length or 0) <= LARGEST and len(text := response.read(LARGEST + 1)) <= LARGEST:
            if response.length:
                raise http.client.IncompleteRead(text, response.length)
            return response.status, text.decode("utf-8", errors="replace")
        raise ResultTypeError(f"{self.url} answered with more than {LARGEST} bytes; it must not")

    def _line(self) -> tuple[http.client.HTTPConnection, bool]:
        """Return the connection of this thread, and whether it has been used before."""
        line: http.client.HTTPConnection | None = getattr(self._own, "line", None)
        if line is not None and line.sock is not None:
            return line, True
        address = urlsplit(self.url)
        secure = address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        line = kind(str(address.hostname), address.port, timeout=10.0)
        try:
            line.connect()
        except OSError as error:
            line.close()
            raise _LostError(error, at_work=False) from error
        # a dead host is noticed within two minutes, though an answer may take days
        line.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name in _KEEP_ALIVE.keys() & vars(socket).keys():
            line.sock.setsockopt(socket.IPPROTO_TCP, vars(socket)[name], _KEEP_ALIVE[name])
        line.sock.settimeout(None)
        weakref.finalize(line, line.sock.close)  # at the end of the thread
        self._own.line = line
        return line, False

    def _drop(self, line: http.client.HTTPConnection) -> None:
        self._own.line = None
        line.close()


def _read(text: str, status: int, where: str) -> dict[str, Any]:
    # servers in Python may print nan and inf
    python = re.sub(r"(?<![\w\"])nan(?![\w\"])", "NaN", text)
    python = re.sub(r"(?<![\w\"])inf(?![\w\"])", "Infinity", python)
    for spelling in (text, python):
        with suppress(ValueError, RecursionError):
            answer = json.loads(spelling)
            if isinstance(answer, dict):
                return answer
    shown = repr(text if len(text) <= 200 else f"{text[:200]} ...")
    if status >= 400:  # whatever the model raised, the server keeps to itself
        raise ServerError(
            f"{where} failed with status {status}, and told no more than {shown}; look at the "
            "server's own log"
        )
    raise ResultTypeError(f"{where} must answer with a JSON object, got {shown}")
