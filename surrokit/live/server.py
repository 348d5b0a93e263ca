"""A server of one page: for this machine, or for those who know a token."""

from __future__ import annotations

import secrets
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from surrokit.arguments import is_whole
from surrokit.errors import ConfigurationError
from surrokit.live.address import LOOPBACK, look_up
from surrokit.live.watched import Watched

_LARGEST_PORT = 65535

_TOKEN_BYTES = 32

_PATIENCE = 30.0
"""Seconds that a connection may be silent."""


class Server(ThreadingHTTPServer):
    """Serves the page about a run at ``/``.

    On the loopback it answers this machine alone. On any other address it answers requests that
    have its token, which is another one for each server.

    Parameters
    ----------
    watched
        The run.
    port
        Where to listen; 0 for a free one.
    host
        Name or number of an address of this machine; ``0.0.0.0`` for all.

    Attributes
    ----------
    token
        What a request must have in its address; None on the loopback.

    Raises
    ------
    ConfigurationError
        If the port is none, or there is no such address, or they are in use.
    """

    daemon_threads = True

    def __init__(self, watched: Watched, port: int = 0, host: str = LOOPBACK) -> None:
        if not is_whole(port, 0) or port > _LARGEST_PORT:
            raise ConfigurationError(
                f"port must be a whole number from 0 to {_LARGEST_PORT}, got {port!r}"
            )
        self.watched, self.address = watched, look_up(host)
        self.token = None if self.address.is_loopback else secrets.token_urlsafe(_TOKEN_BYTES)
        self.address_family = self.address.family
        try:
            super().__init__((self.address.number, int(port)), _Handler)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on port {port} of {host} ({error.strerror or error}); give another "
                "port, or 0 for any that is free, and an address of this machine"
            ) from error

    def server_bind(self) -> None:
        """Listen, without a question to name servers."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.address.name, self.server_address[1]

    @property
    def url(self) -> str:
        """Where the page is, with the token."""
        token = "" if self.token is None else f"?token={self.token}"
        return f"http://{self.address.name}:{self.server_port}/{token}"

    def admits(self, host: str | None, query: str) -> bool:
        """Return whether a request is answered.

        Parameters
        ----------
        host
            The name that was asked.
        query
            What follows ``?`` in the address.
        """
        if self.token is None:
            # a page elsewhere may have its name point here, but not the name that a browser asks
            return host in self.address.hosts(self.server_port)
        # in the address alone: a cookie would go to all servers of this machine, whoever's they are
        given = parse_qs(query).get("token", [""])[-1]
        return secrets.compare_digest(given.encode(errors="replace"), self.token.encode())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of readers who went away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _PATIENCE
    server_version, sys_version = "surrokit", ""

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        path, _, query = self.path.partition("?")
        if not self.server.admits(self.headers.get("Host"), query):
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        if path != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = self.server.watched.page().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def end_headers(self) -> None:
        for name, value in (
            ("Cache-Control", "no-store"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("X-Frame-Options", "DENY"),
        ):
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing of each request; an address may hold the token."""
