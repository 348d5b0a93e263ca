"""A server of targets, for whatever speaks UM-Bridge."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import numpy as np

from surrokit.arguments import is_whole
from surrokit.errors import ConfigurationError
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit_umbridge.model import OPERATIONS, PROTOCOL
from surrokit_umbridge.requests import Refusal, TimedSocket, refuse_body, refuse_origin
from surrokit_umbridge.served import Served, serve_parts


class Server:
    """Serves a target within a ``with`` block, or until :meth:`close`.

    Its log density is one model, and its forward map another, ``forward``, if it has one. Both take
    one input, a position in the user's coordinates. Derivatives are those of the target.

    Parameters
    ----------
    target
        The target.
    name
        Name of its log density.
    host
        Who may ask: programs on this machine by default, all that reach it with ``"0.0.0.0"``.
        Pages in a browser may not. There is no password, and whoever may ask can have the target
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
        if not is_whole(workers, 1):
            raise ConfigurationError(
                f"workers must be a whole number of at least 1, got {workers!r}"
            )
        if not is_whole(port, 0):
            raise ConfigurationError(f"port must be a whole number of at least 0, got {port!r}")
        desk = Desk(serve_parts(target, name), workers)
        reader = type("Reader", (_Reader,), {"desk": desk, "host": host})
        try:
            self._server = _Threads((host, port), reader)
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"port {port} of {host} cannot be had: {error}; pass another one, or 0 for any"
            ) from error
        self._host = "127.0.0.1" if host in ("", "0.0.0.0") else host
        look = {"poll_interval": 0.05}  # seconds between looks whether it is to end
        serve_forever = self._server.serve_forever
        self._thread = threading.Thread(target=serve_forever, kwargs=look, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://{self._host}:{self._server.server_port}"

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def wait(self) -> None:
        """Serve until an interrupt."""
        self._thread.join()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._server.end_lines()


def serve(
    target: Potential,
    *,
    name: str = "posterior",
    host: str = "127.0.0.1",
    port: int = 4242,
    workers: int = 1,
) -> None:
    """Serve a target until an interrupt.

    Parameters
    ----------
    target, name, host, port, workers
        As for :class:`Server`.

    Raises
    ------
    ConfigurationError
        As :class:`Server` does.
    """
    with Server(target, name=name, host=host, port=port, workers=workers) as server:
        try:
            server.wait()
        except KeyboardInterrupt:
            return


class _RefusedError(Exception):
    """A question that cannot be answered: what the protocol calls its kind, and why."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


class Desk:
    """Answers questions, as many at a time as there are workers.

    Parameters
    ----------
    models
        What is served.
    workers
        Evaluations at a time.
    """

    def __init__(self, models: tuple[Served, ...], workers: int) -> None:
        self._models = {model.name: model for model in models}
        self._free = threading.BoundedSemaphore(workers)
        self._sizes: dict[str, int] = {}

    def answer(self, what: str, question: Mapping[str, Any] | None) -> tuple[int, dict[str, Any]]:
        """Return status and answer; what the target raises is told in the answer.

        Parameters
        ----------
        what
            Last part of the URL.
        question
            What was sent; None for nothing.
        """
        if what == "Info":
            return 200, {"protocolVersion": PROTOCOL, "models": list(self._models)}
        try:
            return 200, self._answer(what, question)
        except _RefusedError as error:
            return 400, _error(error.kind, str(error))
        except (Exception, SystemExit) as error:
            return 500, _error(type(error).__name__, str(error))

    def _answer(self, what: str, question: Mapping[str, Any] | None) -> dict[str, Any]:
        if not isinstance(question, Mapping) or str(question.get("name")) not in self._models:
            told = "nothing" if question is None else repr(question)[:200]
            raise _RefusedError(
                "ModelNotFound", f"name one of {', '.join(self._models)}, got {told}"
            )
        model = self._models[str(question["name"])]
        if what == "ModelInfo":
            return {"support": {each: each in model.supported for each in OPERATIONS}}
        if what == "InputSizes":
            return {"inputSizes": [model.dim]}
        if what == "OutputSizes":
            return {"outputSizes": [self._n_outputs(model)]}
        if what not in model.supported:
            raise _RefusedError("UnsupportedFeature", f"{model.name} does not support {what}")
        position = self._input(model, question)
        if what == "Evaluate":
            with self._free:
                return {"output": [model.evaluate(position).tolist()]}
        return {"output": self._derivative(what, model, position, question).tolist()}

    def _derivative(
        self, what: str, model: Served, position: FloatArray, question: Mapping[str, Any]
    ) -> FloatArray:
        if question.get("inWrt", 0) != 0 or question.get("outWrt", 0) != 0:
            raise _RefusedError("InvalidInput", "there is one input and one output, number 0")
        if what == "Gradient":
            weights = _numbers("sens", question, self._n_outputs(model))
            with self._free:
                return model.gradient(position, weights)
        vector = _numbers("vec", question, model.dim)
        with self._free:
            return model.apply_jacobian(position, vector)

    def _n_outputs(self, model: Served) -> int:
        with self._free:
            if model.name not in self._sizes:
                self._sizes[model.name] = model.n_outputs()
            return self._sizes[model.name]

    def _input(self, model: Served, question: Mapping[str, Any]) -> FloatArray:
        given = question.get("input")
        if not isinstance(given, list) or len(given) != 1:
            raise _RefusedError(
                "InvalidInput", f"input must be a list of one list, got {given!r:.80}"
            )
        return _numbers("input", {"input": given[0]}, model.dim)


def _numbers(name: str, question: Mapping[str, Any], size: int) -> FloatArray:
    try:
        found = np.array(question.get(name), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = np.array(np.nan)
    if found.shape != (size,):
        raise _RefusedError(
            "InvalidInput", f"{name} must be {size} numbers, got {question.get(name)!r:.80}"
        )
    return found


def _error(kind: str, why: str) -> dict[str, Any]:
    return {"error": {"type": kind, "message": why}}


class _Threads(ThreadingHTTPServer):
    """A server whose open connections can be ended."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._lines: set[Any] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread."""
        self._lines.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        self._lines.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell of an error, unless it is that a client has hung up."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def end_lines(self) -> None:
        """End all connections."""
        for request in tuple(self._lines):
            super().shutdown_request(request)


class _Reader(BaseHTTPRequestHandler):
    """Reads questions for a desk; of each server there is a class of its own."""

    desk: Desk
    host: str
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet, since the second would wait for the first
    disable_nagle_algorithm = True

    def setup(self) -> None:
        super().setup()
        self.source = TimedSocket(self.connection)
        self.rfile = self.source.buffered()

    def handle_one_request(self) -> None:
        self.source.begin()
        super().handle_one_request()

    def do_GET(self) -> None:
        if not self._refuses(refuse_origin(self.headers, self.host)):
            self._reply(*self.desk.answer(self.path.rsplit("/", 1)[-1], None))

    def do_POST(self) -> None:
        refused = refuse_origin(self.headers, self.host) or refuse_body(self.headers)
        if self._refuses(refused):
            return
        try:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        except (ValueError, RecursionError) as error:
            self._reply(400, _error("InvalidInput", f"the question is no JSON: {error}"))
            return
        self._reply(*self.desk.answer(self.path.rsplit("/", 1)[-1], question))

    def _refuses(self, refusal: Refusal | None) -> bool:
        if refusal is not None:
            self.close_connection = True  # a body, if there is one, is not read
            self._reply(refusal.status, _error("InvalidInput", refusal.why))
        return refusal is not None

    def _reply(self, status: int | HTTPStatus, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.source.end()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
