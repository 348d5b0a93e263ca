"""A server of the page about a run: for this machine, or for those who know a token."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import socketserver
import sys
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any, cast
from urllib.parse import parse_qs

import attrs

from surrokit.arguments import is_whole
from surrokit.errors import ConfigurationError, SurrokitError
from surrokit.report.page import page_of, waiting_page
from surrokit.result.records import Verdict
from surrokit.result.run import Run
from surrokit.sessions import Watch, open_run

LOOPBACK = "127.0.0.1"  #: Where a server listens if nothing else is asked for.


class Watched:
    """A run that is watched; any number of readers share one page.

    Reading has no effect on the run, which another process may write, kill or resume meanwhile.
    Pages are ``every`` so many seconds apart at least, and more where they take longer to make than
    a tenth of that: however many readers there are, no more of the time is spent on pages.
    """

    def __init__(self, path: str | os.PathLike[str], every: float) -> None:
        self.path, self.every = Path(path).absolute(), every
        self._refresh = max(round(every), 1)
        self._lock = Lock()
        self._page, self._of = "", cast(Watch | None, None)
        self._next = 0.0

    def page(self) -> str:
        """Return the page about the run as it is, or was a moment ago."""
        with self._lock:
            begun = time.monotonic()
            if begun >= self._next:
                try:
                    watch = Watch.of(self.path)
                    if watch != self._of or not self._page:
                        self._page, self._of = self._write(watch), watch
                except SurrokitError as error:
                    self._page, self._of = waiting_page(str(error), self._refresh), None
                ended = time.monotonic()
                self._next = ended + max(self.every, 9.0 * (ended - begun))
            return self._page

    def _write(self, watch: Watch) -> str:
        if watch.state == "starting":
            return waiting_page(watch.note or "No iteration is written yet.", self._refresh)
        run, note = look_at(self.path, watch)
        if note is None:
            return page_of(run)
        again = f"This page is read again every {self._refresh} seconds."
        return page_of(run, refresh=self._refresh, note=f"{note} {again}")


def look_at(path: Path, watch: Watch) -> tuple[Run, str | None]:
    """Return a run as far as its file is written, and the note on a page about one that goes on."""
    run = open_run(path)
    if not watch.goes_on:
        return run, None
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(watch.written))
    doing = "" if watch.note is None else f" Its last note: {watch.note}."
    note = (
        f"The run goes on, or was killed: {watch.iteration} iterations are done, and its file "
        f"was last written at {when}.{doing}"
    )
    # that it was interrupted is not known
    findings = tuple(each for each in run.verdict if each.name != "stopped")
    return attrs.evolve(run, verdict=Verdict(findings)), note


def look_up(host: str) -> tuple[socket.AddressFamily, str]:
    """Return the number behind the name of an address, and its family.

    The number may change between two questions, so a server listens on the same one by which it
    was judged.
    """
    try:
        if not host:
            raise OSError("there is no name")
        family, *_, place = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ConfigurationError(
            f"there is no address for host {host!r} ({reason}); give a name or an address of "
            f"this machine, such as {LOOPBACK}, or 0.0.0.0 for all"
        ) from error
    return family, str(place[0])


class Server(ThreadingHTTPServer):
    """Serves the page about a run at ``/``.

    On the loopback it answers this machine alone. On any other address it answers requests that
    have its token, which is another one for each server.

    Parameters
    ----------
    port
        Where to listen; 0 for a free one.
    host
        Name or number of an address of this machine; ``0.0.0.0`` for all.

    Attributes
    ----------
    name
        What a browser asks for; of "all addresses", the name of this machine.
    token
        What a request must have in its address; None on the loopback.
    patience
        Seconds that a connection may be silent.
    """

    daemon_threads = True
    token: str | None
    patience = 30.0

    def __init__(self, watched: Watched, port: int = 0, host: str = LOOPBACK) -> None:
        if not is_whole(port, 0) or port > 65535:
            raise ConfigurationError(f"port must be a whole number from 0 to 65535, got {port!r}")
        self.watched = watched
        self.address_family, self.number = look_up(host)
        self.token = secrets.token_urlsafe(32)
        number, name = ipaddress.ip_address(self.number), host
        if number.is_unspecified:  # all addresses
            name = socket.gethostname()
        elif number.is_loopback:  # only this machine reaches it
            self.token, name = None, self.number
        self.name = f"[{name}]" if ":" in name else name
        try:
            super().__init__((self.number, int(port)), _Handler)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on port {port} of {host} ({error.strerror or error}); give another "
                "port, or 0 for any that is free, and an address of this machine"
            ) from error

    def server_bind(self) -> None:
        """Listen, without a question to name servers."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.name, self.server_address[1]

    @property
    def url(self) -> str:
        """Where the page is, with the token."""
        token = "" if self.token is None else f"?token={self.token}"
        return f"http://{self.name}:{self.server_port}/{token}"

    def admits(self, host: str | None, query: str) -> bool:
        """Return whether a request is answered, by its header Host and what follows ``?``."""
        if self.token is None:
            # a page elsewhere may have its name point here, but not the name that a browser asks,
            # which leaves out the port of the web
            port = self.server_port
            names = {f"{name}:{port}" for name in (self.name, "localhost")}
            return host in names | ({self.name, "localhost"} if port == 80 else set())
        # in the address alone: a cookie would go to all servers of this machine, whoever's they are
        given = parse_qs(query).get("token", [""])[-1]
        return secrets.compare_digest(given.encode(errors="replace"), self.token.encode())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write nothing about readers who went away."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "surrokit", ""

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.patience)

    def do_GET(self) -> None:
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
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.do_GET()

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
        """Write nothing about each request; an address may hold the token."""
