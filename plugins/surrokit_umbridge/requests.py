"""What a server takes: from whom, how much, and for how long it waits."""

from __future__ import annotations

import io
import ipaddress
import socket
import time
from email.message import Message
from http import HTTPStatus

import attrs

LARGEST = 2**26
"""Bytes of a question or an answer at most: some three million numbers."""

IDLE = 60.0
"""Seconds for which a connection may be silent between questions, or while an answer is sent."""

WHOLE = 120.0
"""Seconds within which all of a question must have come, from its first byte on."""

_CPP = "cpp-httplib/"  # the library for C++ sends text/plain; no page can say that it is this one


@attrs.frozen
class Refusal:
    """Says why a question is not read.

    Parameters
    ----------
    status
        Of the answer.
    why
        The reason.
    """

    status: HTTPStatus
    why: str


def refuse_origin(headers: Message, address: str) -> Refusal | None:
    """Return why a request is refused: pages in a browser are, from wherever they come.

    A browser says from which page a question comes. Where only this machine is served, the name
    that was asked must be one of this machine too: a page may have its own name point here.

    Parameters
    ----------
    headers
        Of the request.
    address
        Where the server listens.
    """
    if "Origin" in headers:
        return Refusal(HTTPStatus.FORBIDDEN, "pages in a browser are not answered")
    asked = headers.get("Host", "")
    if _is_local(address) and not _is_local(_without_port(asked)):
        return Refusal(
            HTTPStatus.FORBIDDEN,
            f"{asked[:100]!r} is no name of this machine; ask 127.0.0.1 or localhost",
        )
    return None


def refuse_body(headers: Message) -> Refusal | None:
    """Return why the body of a request is not read: it must be JSON, and not too long.

    Parameters
    ----------
    headers
        Of the request. They must say how long it is; a page can send other types than JSON
        without being asked whether it may.
    """
    kind = headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
    of_cpp = kind == "text/plain" and headers.get("User-Agent", "").startswith(_CPP)
    if kind != "application/json" and not of_cpp:
        return Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"a question must have Content-Type application/json, got {kind[:100]!r}",
        )
    length = headers.get("Content-Length", "")
    if "Transfer-Encoding" in headers or not (length.isascii() and length.isdigit()):
        return Refusal(HTTPStatus.LENGTH_REQUIRED, "a question must have its Content-Length")
    if len(length) > 12 or int(length) > LARGEST:
        return Refusal(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a question has at most {LARGEST} bytes"
        )
    return None


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _is_local(host: str) -> bool:
    """Return whether a name or number stands for this machine alone."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class TimedSocket(io.RawIOBase):
    """Reads a connection, and gives up one that is silent or slow.

    Parameters
    ----------
    connection
        The connection.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline: float | None = None

    def buffered(self) -> io.BufferedReader:
        """Return it as a file."""
        return io.BufferedReader(self)

    def begin(self) -> None:
        """Wait for a question, for a while."""
        self._deadline = None

    def end(self) -> None:
        """Let the answer take its time."""
        self._connection.settimeout(IDLE)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read what comes next.

        Raises
        ------
        TimeoutError
            If nothing comes, or the question takes too long.
        """
        left = IDLE if self._deadline is None else self._deadline - time.monotonic()
        if left <= 0.0:
            raise TimeoutError
        self._connection.settimeout(left)
        n = self._connection.recv_into(buffer)
        if self._deadline is None:
            self._deadline = time.monotonic() + WHOLE
        return n
