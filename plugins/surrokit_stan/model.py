"""What a model in Stan must do, and copies of one in other processes."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy.typing as npt

from surrokit.registry.components import load_library


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


REQUIRED = (
    "param_unc_num",
    "param_unc_names",
    "param_names",
    "log_density",
    "log_density_gradient",
    "param_constrain",
    "param_unconstrain",
    "new_rng",
)
"""Methods that a model must have."""


class Turns:
    """A model whose calls from several threads take turns, unless it was compiled for threads.

    A copy made by pickle loads the compiled model from its file, with the same data.

    Parameters
    ----------
    model
        The model.
    """

    def __init__(self, model: StanModel) -> None:
        self.model = model
        self._lock = None if _is_threaded(model) else threading.Lock()

    def call(self, name: str, *given: Any, **settings: Any) -> Any:
        """Return what a method of the model returns."""
        method = getattr(self.model, name)
        if self._lock is None:
            return method(*given, **settings)
        with self._lock:
            return method(*given, **settings)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Return what stands for it elsewhere."""
        path = getattr(self.model, "lib_path", None)
        if path is None:
            return Turns, (self.model,)
        return _load, (path, getattr(self.model, "data", ""), getattr(self.model, "seed", 1234))


def load_bridgestan() -> Any:
    """Return BridgeStan.

    Raises
    ------
    MissingDependencyError
        If it is not installed.
    """
    return load_library("bridgestan", "stan", "to load a model in Stan")


def _load(path: str, data: str, seed: int) -> Turns:
    # one process may have several copies of a model
    return Turns(load_bridgestan().StanModel(path, data, seed=seed, warn=False))


def _is_threaded(model: StanModel) -> bool:
    told = getattr(model, "model_info", None)
    return told is not None and "STAN_THREADS=true" in told()
