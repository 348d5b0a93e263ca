"""A model behind a server: its four operations, and the target that they make."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import is_number
from surrokit.errors import ConfigurationError, ResultTypeError, ServerError, ShapeError
from surrokit.potentials import Energy, Potential
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, Scale
from surrokit.types import FloatArray
from surrokit_umbridge.connection import Connection

PROTOCOL = 1.0
"""Version of the protocol."""

MOST = 10**7
"""Numbers of a position, or of the outputs, at most."""

OPERATIONS = ("Evaluate", "Gradient", "ApplyJacobian", "ApplyHessian")
"""What a model may support."""


@attrs.frozen(kw_only=True)
class Model:
    """A model whose inputs, one after another, are a position, and whose outputs are a vector.

    Its methods raise :class:`~surrokit.errors.ServerError` where the model fails or the
    server stays away, TimeoutError where it takes too long, and
    :class:`~surrokit.errors.ResultTypeError` where it answers with something else.

    Parameters
    ----------
    connection
        The way to the server; counts how often, and for how long, that one was waited for.
    config
        Configuration, sent with each question.
    input_sizes, output_sizes
        Numbers in each input and output.
    supported
        Some of :data:`OPERATIONS`.
    """

    connection: Connection
    name: str
    config: Mapping[str, Any]
    input_sizes: tuple[int, ...]
    output_sizes: tuple[int, ...]
    supported: frozenset[str]

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return sum(self.input_sizes)

    @property
    def n_outputs(self) -> int:
        """Numbers in all outputs."""
        return sum(self.output_sizes)

    def evaluate(self, position: FloatArray) -> FloatArray:
        """Return the outputs, shape (m,), at a position of shape (dim,)."""
        output = self._ask("Evaluate", position)
        if not isinstance(output, list) or len(output) != len(self.output_sizes):
            raise ResultTypeError(
                f"{self._who} must answer with {len(self.output_sizes)} outputs, got {output!r:.80}"
            )
        parts = zip(output, self.output_sizes, strict=True)
        return np.concatenate([self._vector("Evaluate", one, size) for one, size in parts])

    def gradient(self, position: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the gradient (dim,) of the outputs' weighted sum, for weights of shape (m,)."""
        terms = [
            (i, {"outWrt": j, "inWrt": i, "sens": sens})
            for i in range(len(self.input_sizes))
            for j, sens in enumerate(_split(weights, self.output_sizes))
        ]
        return self._add("Gradient", position, self.input_sizes, terms)

    def apply_jacobian(self, position: FloatArray, vector: FloatArray) -> FloatArray:
        """Return J u, shape (m,), for a vector u of shape (dim,)."""
        terms = [
            (j, {"outWrt": j, "inWrt": i, "vec": vec})
            for j in range(len(self.output_sizes))
            for i, vec in enumerate(_split(vector, self.input_sizes))
            if any(vec)
        ]
        return self._add("ApplyJacobian", position, self.output_sizes, terms)

    def apply_hessian(
        self, position: FloatArray, weights: FloatArray, vector: FloatArray
    ) -> FloatArray:
        """Return H u, shape (dim,), H the second derivatives of the outputs' weighted sum."""
        terms = [
            (i, {"outWrt": j, "inWrt1": i, "inWrt2": k, "sens": sens, "vec": vec})
            for i in range(len(self.input_sizes))
            for k, vec in enumerate(_split(vector, self.input_sizes))
            for j, sens in enumerate(_split(weights, self.output_sizes))
            if any(vec) and any(sens)
        ]
        return self._add("ApplyHessian", position, self.input_sizes, terms)

    def jacobian(self, position: FloatArray) -> FloatArray:
        """Return J, shape (m, dim): by columns, or by rows where there are fewer of them."""
        by_rows = "ApplyJacobian" not in self.supported or (
            "Gradient" in self.supported and self.n_outputs < self.dim
        )
        if by_rows:
            return np.array([self.gradient(position, row) for row in np.eye(self.n_outputs)])
        return np.array([self.apply_jacobian(position, one) for one in np.eye(self.dim)]).T

    def hessian(self, position: FloatArray) -> FloatArray:
        """Return the second derivatives of each output, shape (m, dim, dim)."""
        rows, columns = np.eye(self.n_outputs), np.eye(self.dim)
        return np.array([[self.apply_hessian(position, w, u) for u in columns] for w in rows])

    @property
    def _who(self) -> str:
        return f"model {self.name!r} behind {self.connection.url}"

    def _add(
        self, what: str, position: FloatArray, sizes: tuple[int, ...], terms: list[tuple[int, Any]]
    ) -> FloatArray:
        """Return sums of answers, each for one part of a vector, whose parts have these sizes."""
        found = [np.zeros(size) for size in sizes]
        for at, wanted in terms:
            found[at] += self._vector(what, self._ask(what, position, **wanted), sizes[at])
        return np.concatenate(found)

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
    for what, value, least in (("timeout", timeout, "above 0"), ("wait", wait, "of at least 0")):
        good = is_number(value) and 0.0 <= value < math.inf  # type: ignore[operator]
        if value is not None and (not good or (what == "timeout" and value == 0.0)):
            raise ConfigurationError(f"{what} must be a number of seconds {least}, got {value!r}")
    connection = Connection(_address(url), timeout, wait)
    try:
        return _introduce(connection, name, dict(config or {}))
    except (ServerError, ResultTypeError, TimeoutError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{connection.url} is no server of the UM-Bridge protocol that can be used: "
            f"{type(error).__name__}: {error}; start it, or correct the url"
        ) from error


def _address(url: object) -> str:
    if isinstance(url, str):
        with suppress(ValueError):
            address = urlsplit(url)
            if address.scheme in ("http", "https") and address.hostname and address.port != 0:
                return url.rstrip("/")
    raise ConfigurationError(
        f"url must be the address of a server, such as 'http://localhost:4242', got {url!r}"
    )


def _introduce(connection: Connection, name: str | None, config: dict[str, Any]) -> Model:
    info = connection.ask("Info", wait=0.0)
    if not isinstance(info["models"], list):
        raise ResultTypeError(f"models must be a list of names, got {info['models']!r:.80}")
    if info["protocolVersion"] != PROTOCOL:
        raise ConfigurationError(
            f"{connection.url} speaks version {info['protocolVersion']} of the UM-Bridge protocol, "
            f"which must be {PROTOCOL}"
        )
    names = [str(each) for each in info["models"]]
    chosen = names[0] if name is None and len(names) == 1 else name
    if chosen is None or chosen not in names:
        raise ConfigurationError(
            f"{connection.url} has the models {', '.join(map(repr, names)) or 'none'}; name one of "
            f"them, got {name!r}"
        )
    support = connection.ask("ModelInfo", {"name": chosen}, wait=0.0)["support"]
    if not isinstance(support, Mapping):
        raise ResultTypeError(f"support must be an object, got {support!r:.80}")

    def sizes(what: str) -> tuple[int, ...]:
        asked = {"name": chosen, "config": config}
        given: Any = connection.ask(what, asked, wait=0.0)[what[0].lower() + what[1:]]
        good = isinstance(given, list) and all(is_number(size) and size >= 1 for size in given)
        if not good or not 1 <= sum(given) <= MOST or any(size % 1 for size in given):
            raise ResultTypeError(
                f"{what} must be a list of whole numbers from 1 to {MOST}, got {given!r:.80}"
            )
        return tuple(map(int, given))

    return Model(
        connection=connection,
        name=chosen,
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
    hessian: bool = False,
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

    Its inputs, one after another, are the position, and its outputs are one vector. The model is a
    forward map if there are ``data`` or an ``energy``; else its one output is the log density.
    The server's Gradient is the gradient of a log density, and the adjoint of a map.

    Parameters
    ----------
    url
        Where the server is, or a :class:`Model` from :func:`connect`.
    name, config, timeout, wait
        As for :func:`connect`, where seconds are positive; they are left out where a model is
        given.
    jacobian
        Whether a map gives its Jacobian: as many requests as inputs, or as outputs where these are
        fewer. None for only where there is ApplyJacobian and no Gradient.
    hessian
        Whether a map gives its second derivatives, by ApplyHessian: as many requests as inputs
        times outputs. It needs the Jacobian.
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
    if not isinstance(url, Model):
        model = connect(url, name, config=config, timeout=timeout, wait=wait)
    elif (name, config, timeout, wait) != (None, None, None, 60.0):
        raise ConfigurationError(
            "name, config, timeout and wait belong to a model, and one is given; pass them to "
            "surrokit_umbridge.connect(url, ...), or give the url here"
        )
    else:
        model = url
    _require(model, "Evaluate", "a target is evaluated")
    has_gradient = "Gradient" in model.supported
    shared: dict[str, Any] = {"parameters": parameters, "plausible": plausible, "dim": model.dim}
    if all(given is None for given in (data, noise_sd, prior, energy)):
        if model.n_outputs != 1:
            raise ConfigurationError(
                f"model {model.name!r} behind {model.connection.url} has {model.n_outputs} "
                "outputs, so it is no log density; pass data and noise_sd, or an energy, for a "
                "forward map"
            )
        if jacobian or hessian:
            raise ConfigurationError(
                "jacobian and hessian are of forward maps, and without data or an energy the model "
                "is a log density; leave them out, or pass data and noise_sd"
            )
        slope = functools.partial(model.gradient, weights=np.ones(1)) if has_gradient else None
        density = functools.partial(_log_density, model)
        return sk.potential(log_density=density, gradient=slope, **shared)
    if jacobian is None:
        jacobian = "ApplyJacobian" in model.supported and not has_gradient
    if jacobian and not has_gradient:
        _require(model, "ApplyJacobian", "jacobian=True is given")
    if hessian:
        _require(model, "ApplyHessian", "hessian=True is given")
    return sk.forward_potential(
        model.evaluate,
        model.jacobian if jacobian else None,
        model.hessian if hessian else None,
        vjp=model.gradient if has_gradient else None,
        data=data,
        noise_sd=noise_sd,
        prior=prior,
        energy=energy,
        **shared,
    )


def _log_density(model: Model, position: FloatArray) -> FloatArray:
    return model.evaluate(position).reshape(())


def _require(model: Model, what: str, why: str) -> None:
    if what not in model.supported:
        raise ConfigurationError(
            f"{why}, but model {model.name!r} behind {model.connection.url} does not support "
            f"{what}; it supports {', '.join(sorted(model.supported)) or 'nothing'}"
        )
