"""A server of one page, which this machine alone can ask for it."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from surrokit.errors import ConfigurationError
from surrokit.live.watched import Watched
from surrokit.settings import is_whole

LOOPBACK = "127.0.0.1"
"""Where it listens, and nowhere else."""

_LARGEST_PORT = 65535


class Server(ThreadingHTTPServer):
    """Serves the page about a run at ``/`` on the loopback.

    Parameters
    ----------
    watched
        The run.
    port
        Where to listen; 0 for a free one.

    Raises
    ------
    ConfigurationError
        If the port is none, or is in use.
    """

    daemon_threads = True

    def __init__(self, watched: Watched, port: int = 0) -> None:
        if not is_whole(port, 0) or port > _LARGEST_PORT:
            raise ConfigurationError(
                f"port must be a whole number from 0 to {_LARGEST_PORT}, got {port!r}"
            )
        self.watched = watched
        try:
            super().__init__((LOOPBACK, int(port)), _Handler)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on port {port} ({error.strerror or error}); give another one, or 0 "
                "for any that is free"
            ) from error

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        port = self.server.server_port
        # a page elsewhere may have its name point here, but not the name that a browser asks for
        if self.headers.get("Host") not in (f"{LOOPBACK}:{port}", f"localhost:{port}"):
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        if self.path.partition("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = self.server.watched.page().encode()
        self.send_response(HTTPStatus.OK)
        for name, value in (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("X-Frame-Options", "DENY"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing of each request."""
