"""A model behind a server: requests with waits that end, its operations, and their target."""

from __future__ import annotations

import http.client
import itertools
import json
import logging
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import check_seconds, is_number
from surrokit.errors import ConfigurationError, ResultTypeError, ServerError, ShapeError
from surrokit.limits import ended_after
from surrokit.potentials import Energy, Potential
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, Observed, Scale
from surrokit.types import FloatArray

PROTOCOL = 1.0
"""Version of the protocol."""

MOST = 10**7
"""Numbers of a position, or of the outputs, at most."""

OPERATIONS = ("Evaluate", "Gradient", "ApplyJacobian")
"""What is asked of a model that supports it; of the protocol's ApplyHessian no use is made."""

LARGEST = 2**26
"""Bytes of a request or an answer at most: some three million numbers."""

# Seconds until an idle connection is probed, and between probes, and how many: Linux and macOS.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}

_LOG = logging.getLogger("surrokit_umbridge")


class _LostError(Exception):
    """The server cannot be reached, or went away before it answered."""


@attrs.frozen
class Connection:
    """Sends requests to a server, each on a line of its own, and waits for it if it is away.

    Parameters
    ----------
    timeout
        Seconds after which an answer is given up; None for never.
    wait
        Seconds for which a request waits for a server that is away.
    """

    url: str
    timeout: float | None = None
    wait: float = 60.0

    def ask(
        self, what: str, question: Mapping[str, Any] | None = None, *, wait: float | None = None
    ) -> dict[str, Any]:
        """Return the answer to a request, whose URL ends with ``what``.

        ``wait`` is in place of the usual seconds.

        Raises
        ------
        ServerError
            If the server stays away for too long, or reports that it failed.
        TimeoutError
            If the answer takes too long.
        ResultTypeError
            If the answer is not in JSON, or has more than :data:`LARGEST` bytes.
        """
        body = None if question is None else json.dumps(question).encode()
        status, text = self._insist(what, body, self.wait if wait is None else wait)
        answer = _read(text, status, f"{self.url}/{what}")
        if "error" in answer:
            error = answer["error"]
            if isinstance(error, Mapping) and {"type", "message"} <= error.keys():
                error = f"{error['type']}: {error['message']}"
            raise ServerError(f"the model behind {self.url} failed: {error!s:.2000}")
        return answer

    def _insist(self, what: str, body: bytes | None, wait: float) -> tuple[int, str]:
        """Send a request until it is answered."""
        first, pause = None, 0.05
        while True:
            try:
                return self._send(what, body)
            except _LostError as lost:
                now = time.monotonic()
                if first is None and wait > 0.0:
                    _LOG.warning("%s is away (%s); waiting for up to %g s", self.url, lost, wait)
                first = now if first is None else first
                if now - first >= wait:
                    raise ServerError(
                        f"{self.url} cannot be reached ({lost}), and was waited for "
                        f"{now - first:.0f} seconds; start the server again, or pass a longer wait"
                    ) from lost
            time.sleep(min(pause, max(first + wait - now, 0.0)))
            pause = min(2.0 * pause, 2.0)

    def _send(self, what: str, body: bytes | None) -> tuple[int, str]:
        """Return status and text; the timeout is for all of it, however slowly it comes."""
        address = urlsplit(self.url)
        secure = address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        line = kind(str(address.hostname), address.port, timeout=10.0)
        passed = None
        try:
            line.connect()
            sock = line.sock
            _keep_alive(sock)
            with ended_after(self.timeout, partial(_shut_down, sock)) as passed:
                status, text = self._exchange(line, f"{address.path.rstrip('/')}/{what}", body)
        except (OSError, http.client.HTTPException) as error:
            if passed is None or not passed.is_set():
                raise _LostError(f"{type(error).__name__}: {error}") from error
        finally:
            line.close()
        if passed.is_set():  # what came may be cut, and look whole
            raise TimeoutError(
                f"{self.url} took longer than timeout={self.timeout:g} seconds to answer"
            )
        if status in (502, 503, 504):  # what stands in front of it answers so
            raise _LostError(f"status {status}")
        return status, text

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


def _keep_alive(sock: socket.socket) -> None:
    """Have a dead host noticed within two minutes, though an answer may take days."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in _KEEP_ALIVE.keys() & vars(socket).keys():
        sock.setsockopt(socket.IPPROTO_TCP, vars(socket)[name], _KEEP_ALIVE[name])
    sock.settimeout(None)


def _shut_down(sock: socket.socket) -> None:
    with suppress(OSError):  # it has just ended
        sock.shutdown(socket.SHUT_RDWR)


def _read(text: str, status: int, where: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        answer = json.loads(text)
        if isinstance(answer, dict):
            return answer
    if status >= 400:  # whatever the model raised, the server keeps to itself
        raise ServerError(
            f"{where} failed with status {status} and answered {text[:200]!r}; read "
            "the server's log"
        )
    raise ResultTypeError(f"{where} must answer with a JSON object, got {text[:200]!r}")


# --- the model ---


@attrs.frozen(kw_only=True)
class Model:
    """A model whose inputs, one after another, are a position, and whose outputs are a vector.

    Its methods raise :class:`~surrokit.errors.ServerError` where the model fails or the
    server stays away, TimeoutError where it takes too long, and
    :class:`~surrokit.errors.ResultTypeError` where it answers with something else.

    Parameters
    ----------
    connection
        The way to the server.
    config
        Configuration, sent with each question.
    input_sizes, output_sizes, beside
        Numbers in each input and output, and in further outputs, which are quantities.
    supported
        Some of :data:`OPERATIONS`.
    """

    connection: Connection
    name: str
    config: Mapping[str, Any]
    input_sizes: tuple[int, ...]
    output_sizes: tuple[int, ...]
    supported: frozenset[str]
    beside: tuple[int, ...] = ()

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return sum(self.input_sizes)

    @property
    def n_outputs(self) -> int:
        """Numbers in all outputs."""
        return sum(self.output_sizes)

    def first(self, n: int) -> Model:
        """Return the model of the first outputs that hold n numbers together; others are beside."""
        ends = [0, *itertools.accumulate(self.output_sizes)]
        sizes = self.output_sizes[: ends.index(n)] if n in ends[1:] else self.output_sizes
        return attrs.evolve(self, output_sizes=sizes, beside=self.output_sizes[len(sizes) :])

    def evaluate(self, position: FloatArray) -> Any:
        """Return the outputs, shape (m,), at a position of shape (dim,).

        Outputs beside these are in a dictionary behind them, as ``output_1`` and so on, by place.
        """
        output = self._ask("Evaluate", position)
        sizes, n = self.output_sizes + self.beside, len(self.output_sizes)
        if not isinstance(output, list) or len(output) != len(sizes):
            raise ResultTypeError(
                f"{self._who} must answer with {len(sizes)} outputs, got {output!r:.80}"
            )
        parts = zip(output, sizes, strict=True)
        found = [self._vector("Evaluate", one, size) for one, size in parts]
        outputs = np.concatenate(found[:n])
        if not self.beside:
            return outputs
        # one number is no array
        named = {
            f"output_{n + i}": each if len(each) > 1 else each[0]
            for i, each in enumerate(found[n:])
        }
        return outputs, named

    def gradient(self, position: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the gradient (dim,) of the outputs' weighted sum, for weights of shape (m,)."""
        found = [np.zeros(size) for size in self.input_sizes]
        for i, part in enumerate(found):
            for j, sens in enumerate(_split(weights, self.output_sizes)):
                answer = self._ask("Gradient", position, outWrt=j, inWrt=i, sens=sens)
                part += self._vector("Gradient", answer, len(part))
        return np.concatenate(found)

    def apply_jacobian(self, position: FloatArray, vector: FloatArray) -> FloatArray:
        """Return J u, shape (m,), for a vector u of shape (dim,)."""
        found = [np.zeros(size) for size in self.output_sizes]
        for j, part in enumerate(found):
            for i, vec in enumerate(_split(vector, self.input_sizes)):
                if any(vec):
                    answer = self._ask("ApplyJacobian", position, outWrt=j, inWrt=i, vec=vec)
                    part += self._vector("ApplyJacobian", answer, len(part))
        return np.concatenate(found)

    def jacobian(self, position: FloatArray) -> FloatArray:
        """Return J, shape (m, dim): by columns, or by rows where there are fewer of them."""
        by_rows = "ApplyJacobian" not in self.supported or (
            "Gradient" in self.supported and self.n_outputs < self.dim
        )
        if by_rows:
            return np.array([self.gradient(position, row) for row in np.eye(self.n_outputs)])
        return np.array([self.apply_jacobian(position, one) for one in np.eye(self.dim)]).T

    @property
    def _who(self) -> str:
        return f"model {self.name!r} behind {self.connection.url}"

    def _ask(self, what: str, position: FloatArray, **wanted: Any) -> object:
        at = {"input": _split(position, self.input_sizes), "config": dict(self.config)}
        answer = self.connection.ask(what, {"name": self.name, **at, **wanted})
        if "output" not in answer:
            raise ResultTypeError(
                f"{self._who} must answer {what} with 'output', got {answer!r:.80}"
            )
        return answer["output"]

    def _vector(self, what: str, given: object, size: int) -> FloatArray:
        try:
            found = np.array(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ResultTypeError(
                f"{self._who} must answer {what} with numbers, got {given!r:.80}"
            ) from error
        if found.shape != (size,):
            raise ShapeError(
                f"{self._who} must answer {what} with {size} numbers, got shape {found.shape}"
            )
        return found


def _split(numbers: FloatArray, sizes: tuple[int, ...]) -> list[list[float]]:
    return [part.tolist() for part in np.split(numbers, np.cumsum(sizes)[:-1])]


def connect(
    url: str,
    name: str | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    wait: float = 60.0,
) -> Model:
    """Return a model behind a server.

    Parameters
    ----------
    url
        Where the server is, such as ``http://localhost:4242``.
    name
        Name of the model; not needed where there is but one.
    config
        Configuration of the model, sent with each question.
    timeout
        Seconds after which an answer is given up; None for never. A host that is gone is noticed
        in any case.
    wait
        Seconds for which a question waits for a server that has gone, and is sent to it again.

    Raises
    ------
    ConfigurationError
        If there is no such server or model, or a setting is not of its kind.
    """
    check_seconds("timeout", timeout)
    if not (is_number(wait) and wait >= 0.0):
        raise ConfigurationError(f"wait must be a number of seconds of at least 0, got {wait!r}")
    if not str(url).startswith(("http://", "https://")):
        raise ConfigurationError(
            f"url must be the address of a server, such as 'http://localhost:4242', got {url!r}"
        )
    connection = Connection(url.rstrip("/"), timeout, wait)
    broken = (ServerError, ResultTypeError, TimeoutError, LookupError, TypeError, AttributeError)
    try:
        return _introduce(connection, name, dict(config or {}))
    except (*broken, UnicodeError) as error:
        raise ConfigurationError(
            f"{connection.url} is no server of the UM-Bridge protocol that can be used: "
            f"{type(error).__name__}: {error}; start it, or correct the url"
        ) from error


def _introduce(connection: Connection, name: str | None, config: dict[str, Any]) -> Model:
    info = connection.ask("Info", wait=0.0)
    if info["protocolVersion"] != PROTOCOL:
        raise ConfigurationError(
            f"{connection.url} speaks version {info['protocolVersion']} of the UM-Bridge protocol, "
            f"which must be {PROTOCOL}"
        )
    names = list(info["models"])
    chosen = names[0] if name is None and len(names) == 1 else name
    if chosen not in names:
        raise ConfigurationError(
            f"{connection.url} has the models {', '.join(map(repr, names)) or 'none'}; name one of "
            f"them, got {name!r}"
        )
    support = connection.ask("ModelInfo", {"name": chosen}, wait=0.0)["support"]

    def sizes(what: str) -> tuple[int, ...]:
        asked = {"name": chosen, "config": config}
        given = connection.ask(what, asked, wait=0.0)[what[0].lower() + what[1:]]
        good = all(is_number(size) and size >= 1 and size % 1 == 0 for size in given)
        if not (good and 1 <= sum(given) <= MOST):
            raise ResultTypeError(
                f"{what} must be a list of whole numbers from 1 to {MOST}, got {given!r:.80}"
            )
        return tuple(map(int, given))

    return Model(
        connection=connection,
        name=str(chosen),
        config=config,
        input_sizes=sizes("InputSizes"),
        output_sizes=sizes("OutputSizes"),
        supported=frozenset(what for what in OPERATIONS if support.get(what, False)),
    )


def potential(
    url: str | Model,
    name: str | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    jacobian: bool | None = None,
    data: Data | None = None,
    noise_sd: Scale | None = None,
    prior: Prior | None = None,
    energy: Energy | None = None,
    parameters: Mapping[str, sk.Parameter | tuple[float | None, float | None] | None] | None = None,
    plausible: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    wait: float = 60.0,
) -> Potential:
    """Make a target of a model behind a server that speaks UM-Bridge.

    Its inputs, one after another, are the position. The model is a forward map if there are
    ``data`` or an ``energy``: its outputs, one after another, are one vector, and those after the
    first ones that hold as many numbers as the data are quantities, ``output_1`` and so on by
    their place. Else its first output is the log density, and further ones are quantities.
    The server's Gradient is the gradient of a log density, and the adjoint of a map.

    Parameters
    ----------
    url
        Where the server is, or a :class:`Model` from :func:`connect`.
    name, config, timeout, wait
        As for :func:`connect`, where seconds are positive; they are of no effect where a model is
        given.
    jacobian
        Whether a map gives its Jacobian: as many requests as inputs, or as outputs where these are
        fewer. None for only where there is ApplyJacobian and no Gradient.
    data, noise_sd, prior, energy
        As for :func:`surrokit.forward_potential`.
    parameters, plausible
        As for :func:`surrokit.potential`.

    Returns
    -------
    Potential
        As :func:`surrokit.potential` or :func:`surrokit.forward_potential` return.

    Raises
    ------
    ConfigurationError
        If there is no such server or model, it does not support what is asked of it, or settings
        contradict one another.
    """
    given = {"config": config, "timeout": timeout, "wait": wait}
    model = url if isinstance(url, Model) else connect(url, name, **given)  # type: ignore[arg-type]
    is_map = any(each is not None for each in (data, noise_sd, prior, energy))
    has_gradient, has_products = (each in model.supported for each in OPERATIONS[1:])
    who = f"model {model.name!r} behind {model.connection.url}"
    if "Evaluate" not in model.supported or (jacobian and not has_gradient and not has_products):
        raise ConfigurationError(
            f"{who} does not support what the potential needs; it supports "
            f"{', '.join(sorted(model.supported)) or 'nothing'}"
        )
    shared: dict[str, Any] = {"parameters": parameters, "plausible": plausible, "dim": model.dim}
    if is_map:
        model = model.first(_count(data))
        if jacobian is None:
            jacobian = has_products and not has_gradient
        return sk.forward_potential(
            model.evaluate,
            model.jacobian if jacobian else None,
            vjp=model.gradient if has_gradient else None,
            data=data,
            noise_sd=noise_sd,
            prior=prior,
            energy=energy,
            **shared,
        )
    model = model.first(1)
    if model.n_outputs != 1 or jacobian:
        raise ConfigurationError(
            f"{who} has {model.n_outputs} outputs, and without data or an energy it must be a log "
            "density, which has one and no Jacobian; pass data and noise_sd for a forward map"
        )
    slope = partial(model.gradient, weights=np.ones(1)) if has_gradient else None
    return sk.potential(log_density=model.evaluate, gradient=slope, **shared)


def _count(data: Data | None) -> int:
    """Return how many numbers data hold; 0 where that is not known, as with an energy."""
    sets: list[Any] = [*data.values()] if isinstance(data, Mapping) else [data]
    known = (each.data if isinstance(each, Observed) else each for each in sets)
    return sum(int(np.size(each)) for each in known if each is not None)
