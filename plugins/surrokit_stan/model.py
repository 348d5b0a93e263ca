"""What a model in Stan must do, and its log density as a potential."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import Any, Protocol

import attrs
import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.arguments import check_positions, check_vectors, load_library
from surrokit.model.model import Model, ModelPotential
from surrokit.types import Capabilities, FloatArray


class StanModel(Protocol):
    """The part of BridgeStan's ``StanModel`` that targets use.

    Positions are in Stan's unconstrained space. ``log_density_hessian`` and
    ``log_density_hessian_vector_product`` may be missing, and ``model_info`` too.
    """

    def param_unc_num(self) -> int:
        """Return the numbers in a position."""
        ...

    def param_unc_names(self) -> list[str]:
        """Return their names, with indices behind points."""
        ...

    def param_names(self, *, include_tp: bool = ..., include_gq: bool = ...) -> list[str]:
        """Return names of constrained numbers, the first index fastest."""
        ...

    def log_density(self, theta_unc: Any, *, propto: bool = ..., jacobian: bool = ...) -> float:
        """Return the log density at a position."""
        ...

    def log_density_gradient(
        self, theta_unc: Any, *, propto: bool = ..., jacobian: bool = ...
    ) -> tuple[float, Any]:
        """Return the log density at a position, and its gradient."""
        ...

    def param_constrain(
        self, theta_unc: Any, *, include_tp: bool = ..., include_gq: bool = ..., rng: Any = ...
    ) -> npt.ArrayLike:
        """Return the constrained numbers at a position."""
        ...

    def param_unconstrain(self, theta: Any) -> npt.ArrayLike:
        """Return the position of constrained parameters."""
        ...

    def new_rng(self, seed: int) -> Any:
        """Return a generator of random numbers for generated quantities."""
        ...


REQUIRED = tuple(name for name in vars(StanModel) if not name.startswith("_"))
"""Methods that a model must have."""

_SECOND = {
    can.HESSIAN: "log_density_hessian",
    can.HESSIAN_PRODUCT: "log_density_hessian_vector_product",
}


class Turns:
    """A model whose calls from several threads take turns, unless it was compiled for threads.

    A copy made by pickle loads the compiled model from its file, with the same data.
    """

    def __init__(self, model: StanModel) -> None:
        self.model = model
        self._lock = nullcontext() if _is_threaded(model) else threading.Lock()

    def call(self, name: str, *given: Any, **settings: Any) -> Any:
        """Return what a method of the model returns."""
        with self._lock:
            return getattr(self.model, name)(*given, **settings)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        path = getattr(self.model, "lib_path", None)
        if path is None:
            return Turns, (self.model,)
        return _load, (path, getattr(self.model, "data", ""), getattr(self.model, "seed", 1234))


def load_bridgestan() -> Any:
    """Return BridgeStan; MissingDependencyError if it is not installed."""
    return load_library("bridgestan", "stan", "to load a model in Stan")


def _load(path: str, data: str, seed: int) -> Turns:
    # one process may have several copies of a model
    return Turns(load_bridgestan().StanModel(path, data, seed=seed, warn=False))


def _is_threaded(model: StanModel) -> bool:
    info = getattr(model, "model_info", None)
    return info is not None and "STAN_THREADS=true" in info()


@attrs.frozen(eq=False)
class _Functions:
    """The functions of a model, which takes one position at a time."""

    model: Turns
    dim: int
    propto: bool

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return what a method gives at one position, with its vector behind it, if any."""
        call, settings = self.model.call, {"propto": self.propto, "jacobian": True}
        if what == "value":
            return (np.array(-call("log_density", row, **settings)),)
        if what == "value_and_gradient":
            value, gradient = call("log_density_gradient", row, **settings)
            return np.array(-value), -np.asarray(gradient)
        if what == "hessian":
            return (-np.asarray(call("log_density_hessian", row, **settings)[2]),)
        parts = row[: self.dim], row[self.dim :].copy()
        name = "log_density_hessian_vector_product"
        return (-np.asarray(call(name, *parts, **settings)[1]),)


@attrs.frozen(eq=False)
class StanPotential(ModelPotential):
    """U on Stan's unconstrained space, with gradients, and second derivatives that a model has."""

    dim: int
    capabilities: Capabilities
    model: Model

    @classmethod
    def of(cls, stan: Turns, dim: int, *, propto: bool) -> StanPotential:
        """Return the potential of a model in Stan."""
        second = {
            each for each, name in _SECOND.items() if callable(getattr(stan.model, name, None))
        }
        functions = _Functions(stan, dim, propto)
        return cls(dim, frozenset({can.GRADIENT, *second}), Model(functions, dim))

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
