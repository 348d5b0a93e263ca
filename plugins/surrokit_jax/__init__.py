"""Targets written in JAX, and models written down with NumPyro, where they are.

Modules are imported when they are first asked for, and JAX when the first target is made.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surrokit import Component, hookimpl

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


_JAX = "https://docs.jax.dev"

_COMPONENTS = (
    Component(
        kind="potential",
        name="jax",
        factory="surrokit_jax.density:from_jax",
        summary="A log density written in JAX, with derivatives up to the third",
        references=(_JAX,),
        examples=(),  # JAX may be absent
    ),
    Component(
        kind="potential",
        name="jax-forward",
        factory="surrokit_jax.forward:forward_from_jax",
        summary="A forward map written in JAX, with Jacobian, adjoint and second derivatives",
        references=(_JAX,),
        examples=(),
    ),
    Component(
        kind="potential",
        name="numpyro",
        factory="surrokit_jax.numpyro_model:target_of",
        summary="A model written down with NumPyro, with draws by its names",
        references=("Phan, Pradhan and Jankowiak 2019, arXiv:1912.11554", "https://num.pyro.ai"),
        examples=(),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer targets written in JAX and with NumPyro."""
    return _COMPONENTS
