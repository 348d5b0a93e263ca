"""Log densities written in JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from surrokit.coordinates.parameters import Parameters, Plausible
from surrokit.coordinates.transforms import map_of
from surrokit.potentials import Potential
from surrokit_jax.constraints import check_maps, to_user
from surrokit_jax.declared import Declarations, declare
from surrokit_jax.library import load_jax
from surrokit_jax.potential import JaxPotential
from surrokit_jax.tracing import check_number, highest_order


def from_jax(
    log_density: Callable[..., Any],
    parameters: Declarations | None = None,
    *,
    dim: int | None = None,
    example: Any = None,
    plausible: Mapping[str, Any] | None = None,
    derivatives: int | None = None,
) -> Potential:
    """Make a target of a log density written in JAX.

    The density is compiled together with the map from the line to the parameters, once for each
    of few numbers of rows, and takes all chains in one call.

    Parameters
    ----------
    log_density
        Log density, up to a constant, of one position: a function of arrays by the parameters'
        names, or of one vector, or of a tree like ``example``. It must return one number.
    parameters
        Names to bounds or declarations, as for :func:`surrokit.potential`.
    dim
        Numbers in a position, at least 1; enough where they need no names and bounds.
    example
        In place of ``parameters``: a tree of arrays, such as nested dictionaries, of which names
        and shapes are taken. A path of keys is a name, such as ``layer.weights``.
    plausible
        As for :func:`surrokit.potential`.
    derivatives
        Highest order of derivatives to offer, 0 to 3; None for all that JAX can trace.

    Returns
    -------
    Potential
        On the line; it carries the parameters. With derivatives it offers gradients, Hessians and
        their products, and contractions of third derivatives, also of constrained parameters.

    Raises
    ------
    MissingDependencyError
        If JAX is not installed.
    ConfigurationError
        If JAX is in single precision, the function cannot be traced or differentiated, or the
        parameters cannot be read.
    ResultTypeError
        If the function returns anything but one number in double precision.
    """
    load_jax()
    function, declared = declare("log_density", log_density, parameters, dim, example)
    check_maps(declared)
    check_number("log_density", function, declared.dim)
    on_line = OnLine(function, declared)
    return JaxPotential(
        function=on_line,
        parameters=declared,
        transform=map_of(declared),
        derivatives=highest_order("log_density", on_line, declared.free, derivatives),
        plausible=Plausible.declare(plausible, declared),
    )


@attrs.frozen(eq=False)
class OnLine:
    """U of a position z on the line: minus log density, and minus log Jacobian.

    Parameters
    ----------
    function
        Log density of a user's position (n_user,).
    parameters
        Names, shapes, bounds and constraints.
    """

    function: Callable[[Any], Any]
    parameters: Parameters

    def __call__(self, z: Any) -> Any:
        """Return U at z of shape (dim,), in JAX."""
        q, log_jacobian = to_user(self.parameters, z)
        return -self.function(q) - log_jacobian
