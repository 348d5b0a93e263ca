"""Targets of models written down in Stan, and what they report."""

from __future__ import annotations

import os
import re
import threading
import warnings
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions, check_vectors, is_whole, load_library
from surrokit.coordinates.models import Axis, ModelMap, reported_as
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, SamplingWarning
from surrokit.model.model import Model, ModelPotential
from surrokit.targets.forward import ModelledPotential
from surrokit.types import Capabilities, FloatArray, IntArray

REQUIRED = (
    *("param_unc_num", "param_unc_names", "param_names", "log_density", "log_density_gradient"),
    *("param_constrain", "param_unconstrain", "new_rng"),
)
"""Methods of BridgeStan's ``StanModel`` that a model must have.

``log_density_hessian`` and ``log_density_hessian_vector_product`` may be missing, and
``model_info`` too.
"""

_SECOND = {
    can.HESSIAN: "log_density_hessian",
    can.HESSIAN_PRODUCT: "log_density_hessian_vector_product",
}

# What is reported, and what is left of it where a block of the model fails.
_BLOCKS: tuple[dict[str, Any], ...] = (
    {"include_tp": True, "include_gq": True},
    {"include_tp": True},
    {},
)


def from_stan(
    model: Any,
    data: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
) -> ModelledPotential:
    """Make a target of a model written down in Stan.

    Chains move in Stan's unconstrained space. Draws come back by the model's names, with
    constrained values; transformed parameters and generated quantities are among them.

    Parameters
    ----------
    model
        A ``bridgestan.StanModel``, with its data; any object with the methods
        :data:`surrokit_stan.target.REQUIRED`; or the path of a file ``.stan``, or of a compiled
        model, for BridgeStan.
    data
        The data, where a path is given: a dictionary, a text in JSON, or a file of it.
    seed
        Of random numbers in generated quantities, at least 0.

    Returns
    -------
    ModelledPotential
        With gradients, and the second derivatives that the model offers.

    Raises
    ------
    MissingDependencyError
        If a path is given, and BridgeStan is not installed.
    ConfigurationError
        If it is no such model, it has no parameters, or it cannot be loaded.
    """
    if not is_whole(seed, 0) or seed >= 2**32:
        raise ConfigurationError(f"seed must be a whole number below {2**32}, got {seed!r}")
    if isinstance(model, str | os.PathLike):
        try:
            model = _load_bridgestan().StanModel(model, data)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConfigurationError(
                f"BridgeStan cannot load {os.fspath(model)}: {type(error).__name__}: {error}"
            ) from error
    elif lacking := [name for name in REQUIRED if not callable(getattr(model, name, None))]:
        raise ConfigurationError(
            "model must be a bridgestan.StanModel, or the path of one, got "
            f"{type(model).__name__}, which lacks {', '.join(lacking)}; write "
            "bridgestan.StanModel('model.stan', data)"
        )
    elif data is not None:
        raise ConfigurationError("the model has its data already; leave data out, or give a path")
    dim = int(model.param_unc_num())
    if dim == 0:
        raise ConfigurationError("the model has no parameter, so there is nothing to draw")
    turns = Turns(model)
    second = {each for each, name in _SECOND.items() if callable(getattr(model, name, None))}
    functions = Model(_Functions(turns, dim), dim)
    inner = StanPotential(dim, frozenset({can.GRADIENT, *second}), functions)
    return ModelledPotential(inner, _map(turns, dim, seed))


class Turns:
    """A model whose calls from several threads take turns, unless it was compiled for threads.

    A copy made by pickle loads the compiled model from its file, with the same data.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        info = getattr(model, "model_info", None)
        is_threaded = info is not None and "STAN_THREADS=true" in info()
        self._lock = nullcontext() if is_threaded else threading.Lock()

    def call(self, name: str, *given: Any, **settings: Any) -> Any:
        """Return what a method of the model returns."""
        with self._lock:
            return getattr(self.model, name)(*given, **settings)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        path = getattr(self.model, "lib_path", None)
        if path is None:
            return Turns, (self.model,)
        return _load, (path, getattr(self.model, "data", ""), getattr(self.model, "seed", 1234))


def _load_bridgestan() -> Any:
    return load_library("bridgestan", "stan", "to load a model in Stan")


def _load(path: str, data: str, seed: int) -> Turns:
    # one process may have several copies of a model
    return Turns(_load_bridgestan().StanModel(path, data, seed=seed, warn=False))


@attrs.frozen(eq=False)
class _Functions:
    """U of a model, and its derivatives, at one position at a time."""

    model: Turns
    dim: int

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return what a method gives at one position, with its vector behind it, if any."""
        call, settings = self.model.call, {"propto": False, "jacobian": True}
        if what == "value":
            return (np.array(-call("log_density", row, **settings)),)
        if what == "value_and_gradient":
            value, gradient = call("log_density_gradient", row, **settings)
            return np.array(-value), -np.asarray(gradient)
        if what == "hessian":
            return (-np.asarray(call(_SECOND[can.HESSIAN], row, **settings)[2]),)
        parts = row[: self.dim], row[self.dim :].copy()
        return (-np.asarray(call(_SECOND[can.HESSIAN_PRODUCT], *parts, **settings)[1]),)


@attrs.frozen(eq=False)
class StanPotential(ModelPotential):
    """U on Stan's unconstrained space, with gradients, and second derivatives that a model has."""

    dim: int
    capabilities: Capabilities
    model: Model

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.model.evaluate("value", check_positions(positions, self.dim))[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        values, gradients = self.model.evaluate("value_and_gradient", q)
        return values, gradients

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives, shape (n, dim, dim)."""
        return self.model.evaluate("hessian", check_positions(positions, self.dim))[0]

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian, shape (n, dim)."""
        rows = check_positions(positions, self.dim)
        both = np.hstack([rows, check_vectors(vectors, rows)])
        return self.model.evaluate("hessian_product", both)[0]


# --- what is reported ---


def _map(model: Turns, dim: int, seed: int) -> ModelMap:
    """Return the map to all that a model reports; labels count from 1, as Stan does."""
    layout = _Layout.of(model.call("param_names", include_tp=True, include_gq=True))
    constrained = _Constrained(model, layout, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # these positions are no draws
        reported = reported_as(
            layout.shapes,
            constrained,
            np.random.default_rng(0).uniform(-2.0, 2.0, size=(16, dim)),
            lambda name: tuple(Axis(labels=tuple(range(1, n + 1))) for n in layout.shapes[name]),
        )
    sizes = _Layout.of(model.call("param_unc_names")).sizes
    origin = np.asarray(model.call("param_constrain", np.zeros(dim)), dtype=np.float64)
    return ModelMap(
        reported=reported,
        own=Parameters({name: Parameter((size,)) for name, size in sizes.items()}),
        constrain=constrained,
        unconstrain=_Positions(model, _Layout.of(model.call("param_names")), origin),
    )


@attrs.frozen(eq=False)
class _Constrained:
    """Parameters, transformed parameters and generated quantities at rows of positions.

    Random numbers of generated quantities depend on the position and the seed alone, so that a
    draw has the same quantities whenever they are asked for. Where a block fails they are NaN.
    """

    model: Turns
    layout: _Layout
    seed: int

    def __call__(self, positions: FloatArray) -> FloatArray:
        found = np.full((len(positions), len(self.layout.places)), np.nan)
        errors: list[Exception] = []
        for row, position in zip(found, np.ascontiguousarray(positions), strict=True):
            numbers = self._numbers(position, errors)
            row[: len(numbers)] = numbers
        if errors:
            warnings.warn(
                f"generated quantities cannot be computed at {len(errors)} of {len(found)} draws "
                f"and are NaN there; the first time Stan said: {errors[0]}",
                SamplingWarning,
                stacklevel=2,
            )
        return found[:, self.layout.places]

    def _numbers(self, position: FloatArray, errors: list[Exception]) -> FloatArray:
        """Return as many numbers as there are, in Stan's order, and note an error if any."""
        failed: list[Exception] = []
        for blocks in _BLOCKS:
            seed = zlib.crc32(position.tobytes(), self.seed)
            random = {"rng": self.model.call("new_rng", seed)} if "include_gq" in blocks else {}
            try:
                numbers = self.model.call("param_constrain", position, **blocks, **random)
            except Exception as error:
                failed.append(error)
                continue
            errors += failed[:1]
            return np.asarray(numbers, dtype=np.float64)
        raise failed[-1]


@attrs.frozen(eq=False)
class _Positions:
    """Positions (n, dim) on the line of constrained parameters by name, (n, *shape) each.

    Those that cannot vary keep their origin.
    """

    model: Turns
    layout: _Layout
    origin: FloatArray

    def __call__(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        n = len(next(iter(arrays.values())))
        numbers = np.tile(self.origin, (n, 1))
        start = 0
        for name, size in self.layout.sizes.items():
            where = self.layout.places[start : start + size]
            start += size
            if name in arrays:
                numbers[:, where] = arrays[name].reshape(n, size)
        return np.array([self.model.call("param_unconstrain", row) for row in numbers])


@attrs.frozen(eq=False)
class _Layout:
    """Shapes of variables, and where Stan puts their numbers.

    Names of parts of tuples and complex numbers are Stan's own: ``pair:1``, ``z.real``. For each
    number of the variables one after another, arrays in C order, there is its place in Stan's
    vector, where the first index of an array moves fastest.
    """

    shapes: Mapping[str, tuple[int, ...]]
    places: IntArray

    @classmethod
    def of(cls, names: Sequence[str]) -> _Layout:
        """Return that of Stan's names of single numbers: ``a``, ``b.1``, ``c.1.2``."""
        variables: dict[str, dict[tuple[int, ...], int]] = {}
        for place, name in enumerate(names):
            match = re.match(r"^(.*?)((?:\.\d+)*)$", name, re.DOTALL)
            assert match is not None
            index = tuple(map(int, match[2].split(".")[1:]))
            variables.setdefault(match[1], {})[index] = place
        shapes = {
            name: tuple(np.max(list(where), axis=0).tolist()) for name, where in variables.items()
        }
        places = [where[index] for where in variables.values() for index in sorted(where)]
        return cls(shapes, np.array(places, dtype=np.int64))

    @property
    def sizes(self) -> dict[str, int]:
        return {name: int(np.prod(shape, dtype=int)) for name, shape in self.shapes.items()}
