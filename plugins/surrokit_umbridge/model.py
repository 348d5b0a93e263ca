"""A model behind a server: what it takes and gives, and its four operations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import is_number
from surrokit.errors import ConfigurationError, ResultTypeError, ServerError, ShapeError
from surrokit.types import FloatArray
from surrokit_umbridge.transport import Account, Transport, check_url

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
    transport
        The way to the server.
    name
        Name of the model there.
    config
        Configuration, sent with each question.
    input_sizes, output_sizes
        Numbers in each input and output.
    supported
        Some of :data:`OPERATIONS`.
    """

    transport: Transport
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

    @property
    def account(self) -> Account:
        """What the waits for the server came to in this process."""
        return self.transport.account

    def evaluate(self, position: FloatArray) -> FloatArray:
        """Return the outputs, shape (m,), at a position of shape (dim,)."""
        output = self._ask("Evaluate", position)
        if not isinstance(output, list) or len(output) != len(self.output_sizes):
            raise ResultTypeError(
                f"{self._who} must answer with {len(self.output_sizes)} outputs, got {output!r:.80}"
            )
        parts = [
            self._vector("Evaluate", one, size)
            for one, size in zip(output, self.output_sizes, strict=True)
        ]
        return np.concatenate(parts)

    def gradient(self, position: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the gradient (dim,) of the outputs' weighted sum, for weights of shape (m,)."""
        found = [np.zeros(size) for size in self.input_sizes]
        for i, size in enumerate(self.input_sizes):
            for j, sens in enumerate(_split(weights, self.output_sizes)):
                wanted = {"outWrt": j, "inWrt": i, "sens": sens}
                found[i] += self._vector("Gradient", self._ask("Gradient", position, wanted), size)
        return np.concatenate(found)

    def apply_jacobian(self, position: FloatArray, vector: FloatArray) -> FloatArray:
        """Return J u, shape (m,), for a vector u of shape (dim,)."""
        found = [np.zeros(size) for size in self.output_sizes]
        what = "ApplyJacobian"
        for j, size in enumerate(self.output_sizes):
            for i, part in enumerate(_split(vector, self.input_sizes)):
                if any(part):
                    wanted = {"outWrt": j, "inWrt": i, "vec": part}
                    found[j] += self._vector(what, self._ask(what, position, wanted), size)
        return np.concatenate(found)

    def apply_hessian(
        self, position: FloatArray, weights: FloatArray, vector: FloatArray
    ) -> FloatArray:
        """Return H u, shape (dim,), H the second derivatives of the outputs' weighted sum."""
        found = [np.zeros(size) for size in self.input_sizes]
        what = "ApplyHessian"
        for i, size in enumerate(self.input_sizes):
            for k, part in enumerate(_split(vector, self.input_sizes)):
                for j, sens in enumerate(_split(weights, self.output_sizes)):
                    if any(part) and any(sens):
                        wanted = {"outWrt": j, "inWrt1": i, "inWrt2": k, "sens": sens, "vec": part}
                        found[i] += self._vector(what, self._ask(what, position, wanted), size)
        return np.concatenate(found)

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
        return np.array(
            [
                [self.apply_hessian(position, row, one) for one in np.eye(self.dim)]
                for row in np.eye(self.n_outputs)
            ]
        )

    @property
    def _who(self) -> str:
        return f"model {self.name!r} behind {self.transport.url}"

    def _ask(
        self, what: str, position: FloatArray, wanted: Mapping[str, Any] | None = None
    ) -> object:
        question = {
            "name": self.name,
            "input": _split(position, self.input_sizes),
            "config": dict(self.config),
            **(wanted or {}),
        }
        answer = self.transport.ask(what, question)
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
    transport = Transport(url=check_url(url), timeout=timeout, wait=wait)
    try:
        return _introduce(transport, name, dict(config or {}))
    except (ServerError, ResultTypeError, TimeoutError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{transport.url} is no server of the UM-Bridge protocol that can be used: "
            f"{type(error).__name__}: {error}; start it, or correct the url"
        ) from error


def _introduce(transport: Transport, name: str | None, config: dict[str, Any]) -> Model:
    info = transport.ask("Info", wait=0.0)
    if not isinstance(info["models"], list):
        raise ResultTypeError(f"models must be a list of names, got {info['models']!r:.80}")
    if info["protocolVersion"] != PROTOCOL:
        raise ConfigurationError(
            f"{transport.url} speaks version {info['protocolVersion']} of the UM-Bridge protocol, "
            f"which must be {PROTOCOL}"
        )
    names = [str(each) for each in info["models"]]
    chosen = names[0] if name is None and len(names) == 1 else name
    if chosen is None or chosen not in names:
        raise ConfigurationError(
            f"{transport.url} has the models {', '.join(map(repr, names)) or 'none'}; name one of "
            f"them, got {name!r}"
        )
    support = transport.ask("ModelInfo", {"name": chosen}, wait=0.0)["support"]
    if not isinstance(support, Mapping):
        raise ResultTypeError(f"support must be an object, got {support!r:.80}")
    sized = {"name": chosen, "config": config}
    inputs = transport.ask("InputSizes", sized, wait=0.0)["inputSizes"]
    outputs = transport.ask("OutputSizes", sized, wait=0.0)["outputSizes"]
    return Model(
        transport=transport,
        name=chosen,
        config=config,
        input_sizes=_sizes("inputSizes", inputs),
        output_sizes=_sizes("outputSizes", outputs),
        supported=frozenset(what for what in OPERATIONS if support.get(what, False)),
    )


def _sizes(what: str, given: object) -> tuple[int, ...]:
    """Return numbers of numbers, as a server gives them."""
    good = isinstance(given, list) and given and all(is_number(size) for size in given)
    sizes = [int(size) for size in given if math.isfinite(size)] if good else []  # type: ignore
    if not sizes or sizes != given or min(sizes) < 1 or sum(sizes) > MOST:
        raise ResultTypeError(
            f"{what} must be a list of whole numbers from 1 to {MOST}, got {given!r:.80}"
        )
    return tuple(sizes)


def _split(numbers: FloatArray, sizes: tuple[int, ...]) -> list[list[float]]:
    return [part.tolist() for part in np.split(numbers, np.cumsum(sizes)[:-1])]
