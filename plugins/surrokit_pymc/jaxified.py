"""The log density of a model of PyMC as a function of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import surrokit as sk
from surrokit.potentials import Potential
from surrokit.registry.components import load_library
from surrokit_pymc.library import load_pymc
from surrokit_pymc.line import Line


class Jaxified:
    """The log density of a model at a position (dim,) on the line, in JAX.

    A copy made by pickle is written anew where it goes.

    Parameters
    ----------
    model
        The model.
    line
        The line.
    """

    def __init__(self, model: Any, line: Line) -> None:
        from pymc.sampling.jax import get_jaxified_graph

        self.model = model
        self.line = line
        # here and not at a call: while JAX traces, the model's constants would be traced too
        self._function: Callable[..., Any] = get_jaxified_graph(
            inputs=line.variables(model), outputs=[model.logp()]
        )

    @classmethod
    def potential(cls, model: Any, line: Line, *, gradient: bool) -> Potential:
        """Return U on the line, compiled by JAX.

        Raises
        ------
        MissingDependencyError
            If JAX is not installed.
        ConfigurationError
            If JAX is in single precision, or cannot trace the model.
        """
        load_library("jax", "jax")
        made: Potential = sk.make(
            "potential",
            "jax",
            log_density=cls(model, line),
            dim=line.own.dim,
            derivatives=None if gradient else 0,
        )
        return made

    def __call__(self, position: Any) -> Any:
        """Return the log density, in JAX."""
        return self._function(*self.line.own.split(position).values())[0]

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        """Return what stands for it elsewhere."""
        import cloudpickle  # late: importing stays fast

        return _rebuild, (cloudpickle.dumps((self.model, self.line)),)


def _rebuild(packed: bytes) -> Jaxified:
    import cloudpickle  # late: importing stays fast

    load_pymc()
    return Jaxified(*cloudpickle.loads(packed))
