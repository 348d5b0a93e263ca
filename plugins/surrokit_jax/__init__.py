"""Targets written in JAX, and models written down with NumPyro, where they are.

Modules are imported when they are first asked for, and JAX when the first target is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit_jax.density import from_jax
    from surrokit_jax.forward import forward_from_jax
    from surrokit_jax.numpyro_model import from_numpyro

__all__ = ["from_jax", "forward_from_jax", "from_numpyro"]

_MODULES = {"from_jax": "density", "forward_from_jax": "forward", "from_numpyro": "numpyro_model"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"surrokit_jax.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
