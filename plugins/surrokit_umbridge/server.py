"""A server of targets, for whatever speaks UM-Bridge.

Pages in a browser are not answered, requests have an end, and what a request asks of the target is
checked before it is evaluated.
"""

from __future__ import annotations

import ipaddress
import json
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

import surrokit as sk
from surrokit import capabilities as can
from surrokit.arguments import is_whole
from surrokit.errors import ConfigurationError, EvaluationError
from surrokit.potentials import Potential, with_forward, with_gradient
from surrokit.types import FloatArray
from surrokit_umbridge.client import LARGEST, OPERATIONS, PROTOCOL

IDLE = 60.0
"""Seconds for which a connection may be silent."""


class Server:
    """Serves a target within a ``with`` block, or until :meth:`close`.

    Its log density is one model, and its forward map another, ``forward``, if it has one. Both take
    one input, a position in the user's coordinates. Derivatives are those of the target.

    Parameters
    ----------
    host
        Who may ask: programs on this machine by default, all that reach it with ``"0.0.0.0"``.
        Pages in a browser may not. There is no password, and who may ask can have the target
        evaluated at any position.
    port
        Where; 0 for one that is free.
    workers
        Evaluations at a time. A target may be no good for more than one.

    Raises
    ------
    ConfigurationError
        If the port is taken, or a setting is not of its kind.
    """

    def __init__(
        self,
        target: Potential,
        *,
        name: str = "posterior",
        host: str = "127.0.0.1",
        port: int = 4242,
        workers: int = 1,
    ) -> None:
        for what, value, least in (("workers", workers, 1), ("port", port, 0)):
            if not is_whole(value, least):
                raise ConfigurationError(
                    f"{what} must be a whole number of at least {least}, got {value!r}"
                )
        try:
            self._server = _Threads(host, port, _Answers(target, name, workers))
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"port {port} of {host} cannot be had: {error}; pass another one, or 0 for any"
            ) from error
        self._host = "127.0.0.1" if host in ("", "0.0.0.0") else host
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{self._host}:{self._server.server_port}"

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait(self) -> None:
        """Serve until an interrupt."""
        self._thread.join()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()


def serve(target: Potential, **settings: Any) -> None:
    """Serve a target until an interrupt, with settings as for :class:`Server`.

    Raises
    ------
    ConfigurationError
        As :class:`Server` does.
    """
    with Server(target, **settings) as server, suppress(KeyboardInterrupt):
        server.wait()


class _RejectedError(Exception):
    """A request that cannot be answered: what the protocol calls its kind, and why."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


class _Answers:
    """Answers requests for a target, with as many evaluations at a time as there are workers."""

    def __init__(self, target: Potential, name: str, workers: int) -> None:
        self.dim = dim = target.dim
        self._free = threading.BoundedSemaphore(workers)
        self._inner, self._ends = target, (np.full(dim, -np.inf), np.full(dim, np.inf))
        self._somewhere = np.zeros(dim)  # a position where outputs can be counted
        if isinstance(target, sk.BoundedPotential):
            self._inner, self._ends = target.inner, target.parameters.bounds()
            self._somewhere = target.transform.to_bounded(self._somewhere[None])[0]
        elif hasattr(target, "transform"):
            raise ConfigurationError(
                f"a {type(target).__name__} of bounded parameters cannot be served; serve the "
                "target that it wraps"
            )
        offered = self._inner.capabilities
        gradient = self._gradient if can.GRADIENT in offered else None
        self._models: dict[str, tuple[Callable[..., FloatArray], Any]] = {
            name: (self._log_density, gradient)
        }
        self._n_outputs = {name: 1}  # as far as they are known
        if can.FORWARD in offered:
            if name == "forward":
                raise ConfigurationError(
                    "the name 'forward' is that of the target's map; give its log density another"
                )
            jacobian = self._jacobian if can.JACOBIAN in offered else None
            self._models["forward"] = (self._outputs, jacobian)

    def answer(self, what: str, question: object) -> tuple[int, dict[str, Any]]:
        """Return status and answer; what the target raises is in the answer."""
        if what == "Info":
            return 200, {"protocolVersion": PROTOCOL, "models": list(self._models)}
        try:
            return 200, self._answer(what, question)
        except _RejectedError as error:
            return 400, _error(error.kind, str(error))
        except (Exception, SystemExit) as error:
            cause = error.causes[0] if isinstance(error, EvaluationError) else error
            return 500, _error(type(cause).__name__, str(cause))

    def _answer(self, what: str, question: object) -> dict[str, Any]:
        if not isinstance(question, Mapping) or str(question.get("name")) not in self._models:
            got = "nothing" if question is None else repr(question)[:200]
            raise _RejectedError(
                "ModelNotFound", f"name one of {', '.join(self._models)}, got {got}"
            )
        name = str(question["name"])
        evaluate, jacobian = self._models[name]
        supported = OPERATIONS[:1] if jacobian is None else OPERATIONS
        if what == "ModelInfo":
            every = (*OPERATIONS, "ApplyHessian")
            return {"support": {each: each in supported for each in every}}
        if what == "InputSizes":
            return {"inputSizes": [self.dim]}
        if what == "OutputSizes":
            return {"outputSizes": [self._count(name)]}
        if what not in supported:
            raise _RejectedError("UnsupportedFeature", f"{name} does not support {what}")
        given = question.get("input")
        if not isinstance(given, list) or len(given) != 1:
            raise _RejectedError(
                "InvalidInput", f"input must be a list of one list, got {given!r:.80}"
            )
        position = _numbers("input", given[0], self.dim)
        if what == "Evaluate":
            with self._free:
                return {"output": [evaluate(position).tolist()]}
        if question.get("inWrt", 0) != 0 or question.get("outWrt", 0) != 0:
            raise _RejectedError("InvalidInput", "there is one input and one output, number 0")
        by_rows = what == "Gradient"
        factor_name, size = ("sens", self._count(name)) if by_rows else ("vec", self.dim)
        factor = _numbers(factor_name, question.get(factor_name), size)
        with self._free:
            slopes = jacobian(position)
        return {"output": ((slopes.T if by_rows else slopes) @ factor).tolist()}

    def _count(self, name: str) -> int:
        with self._free:
            if name not in self._n_outputs:
                self._n_outputs[name] = len(self._models[name][0](self._somewhere))
            return self._n_outputs[name]

    def _log_density(self, position: FloatArray) -> FloatArray:
        lower, upper = self._ends
        if not ((position > lower) & (position < upper)).all():
            return np.array([-np.inf])
        return np.asarray(-self._inner.value(position[None]))

    def _gradient(self, position: FloatArray) -> FloatArray:
        return np.asarray(-with_gradient(self._inner).value_and_gradient(position[None])[1])

    def _outputs(self, position: FloatArray) -> FloatArray:
        return np.asarray(with_forward(self._inner).forward(position[None])[0])

    def _jacobian(self, position: FloatArray) -> FloatArray:
        return np.asarray(with_forward(self._inner).forward_and_jacobian(position[None])[1][0])


def _numbers(name: str, given: object, size: int) -> FloatArray:
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.array(np.nan)
    if found.shape != (size,):
        raise _RejectedError("InvalidInput", f"{name} must be {size} numbers, got {given!r:.80}")
    return found


def _error(kind: str, why: str) -> dict[str, Any]:
    return {"error": {"type": kind, "message": why}}


class _Threads(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True

    def __init__(self, host: str, port: int, answers: _Answers) -> None:
        self.host, self.answers = host, answers
        super().__init__((host, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client has hung up
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Reads a request, the only one of its connection."""

    server: _Threads
    timeout = IDLE
    wbufsize = -1  # head and body in one packet, since the second would wait for the first
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._handle(self._origin(), has_body=False)

    def do_POST(self) -> None:
        self._handle(self._origin() or self._body(), has_body=True)

    def _handle(self, rejected: tuple[int, str] | None, *, has_body: bool) -> None:
        if rejected is not None:  # a body, if there is one, is not read
            self._reply(rejected[0], _error("InvalidInput", rejected[1]))
            return
        question = None
        try:
            if has_body:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        except (ValueError, RecursionError) as error:
            self._reply(400, _error("InvalidInput", f"the question is no JSON: {error}"))
            return
        self._reply(*self.server.answers.answer(self.path.rsplit("/", 1)[-1], question))

    def _origin(self) -> tuple[int, str] | None:
        """Return status and reason if a request comes from a page in a browser.

        A browser names the page that a request comes from. Where only this machine is served, the
        name that was asked must be one of this machine too: a page may have its own name point
        here.
        """
        if "Origin" in self.headers:
            return HTTPStatus.FORBIDDEN, "pages in a browser are not answered"
        asked = self.headers.get("Host", "")
        name, colon, port = asked.rpartition(":")
        is_here = _is_local(name if colon and port.isdigit() else asked)
        if _is_local(self.server.host) and not is_here:
            why = f"{asked[:100]!r} is no name of this machine; ask 127.0.0.1 or localhost"
            return HTTPStatus.FORBIDDEN, why
        return None

    def _body(self) -> tuple[int, str] | None:
        """Return status and reason if a body is no JSON, too long, or of no length.

        A page can send other types than JSON without permission. The library for C++ sends
        text/plain, and no page can claim to be that.
        """
        kind = self.headers.get("Content-Type", "application/json").partition(";")[0]
        kind = kind.strip().lower()
        is_cpp = self.headers.get("User-Agent", "").startswith("cpp-httplib/")
        if kind != "application/json" and not (kind == "text/plain" and is_cpp):
            why = f"a question must have Content-Type application/json, got {kind[:100]!r}"
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, why
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            return HTTPStatus.LENGTH_REQUIRED, "a question must have its Content-Length"
        if len(length) > 12 or int(length) > LARGEST:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a question has at most {LARGEST} bytes"
        return None

    def _reply(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def _is_local(host: str) -> bool:
    name = host.strip("[]").lower()
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
