"""Forward maps written in JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

import surrokit as sk
from surrokit.errors import ShapeError
from surrokit.potentials import Energy, Potential
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, Scale, names_of_scales
from surrokit.types import FloatArray
from surrokit_jax.compiled import Compiled
from surrokit_jax.declared import Declarations, declare
from surrokit_jax.library import load_jax, load_jax_elsewhere
from surrokit_jax.tracing import cannot_differentiate, check_order, trace, why_not


def forward_from_jax(
    forward: Callable[..., Any],
    parameters: Declarations | None = None,
    *,
    data: Data | None = None,
    noise_sd: Scale | None = None,
    prior: Prior | None = None,
    energy: Energy | None = None,
    dim: int | None = None,
    example: Any = None,
    plausible: Mapping[str, Any] | None = None,
    derivatives: int | None = None,
) -> Potential:
    """Make a target of a forward map written in JAX and a cheap misfit.

    Parameters
    ----------
    forward
        The map from one position to outputs (m,), which takes it as
        :func:`surrokit_jax.from_jax` says.
    data, noise_sd, prior, energy
        As for :func:`surrokit.forward_potential`; they are no JAX functions.
    parameters, dim, example, plausible
        As for :func:`surrokit_jax.from_jax`: ``dim`` is at least 1.
    derivatives
        Highest order of derivatives to offer, 0 to 2; None for all that JAX can trace.

    Returns
    -------
    Potential
        As :func:`surrokit.forward_potential` returns, with Jacobian, adjoint and second
        derivatives as far as JAX can trace them.

    Raises
    ------
    MissingDependencyError
        If JAX is not installed.
    ConfigurationError
        If JAX is in single precision, the function cannot be traced or differentiated, or
        settings contradict one another.
    ResultTypeError
        If the function returns anything but an array in double precision.
    """
    load_jax()
    check_order(derivatives, most=2)
    of_errors = names_of_scales(data, noise_sd)
    taken = parameters
    if isinstance(parameters, Mapping):
        taken = {name: spec for name, spec in parameters.items() if name not in of_errors}
    function, declared = declare("forward", forward, taken, dim, example)
    shape = trace("forward", function, declared.dim)
    if len(shape) > 1:
        raise ShapeError(
            f"forward must return one vector of outputs, got an array of shape {shape}; ravel it"
        )
    mapped = JaxMap(function, is_number=shape == ())
    offered = mapped.offered(declared.dim, shape[0] if shape else 1, derivatives)
    return sk.forward_potential(
        mapped,
        data=data,
        noise_sd=noise_sd,
        prior=prior,
        energy=energy,
        parameters={**(parameters or {}), **declared.specs},
        plausible=plausible,
        batched=True,
        **offered,
    )


@attrs.frozen(eq=False)
class JaxMap:
    """A forward map and its derivatives, compiled for rows of positions.

    A copy made by pickle is compiled anew where it goes.

    Parameters
    ----------
    function
        The map of one position (dim,), in JAX.
    is_number
        Whether it returns a number in place of a vector.
    """

    function: Callable[[Any], Any]
    is_number: bool
    _compiled: Compiled = attrs.field(init=False, repr=False)

    @_compiled.default
    def _at_rows(self) -> Compiled:
        return Compiled("forward", self.outputs)

    def outputs(self, q: Any) -> Any:
        """Return the outputs (m,) at one position (dim,), in JAX."""
        found = self.function(q)
        return found[None] if self.is_number else found

    def __call__(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m), at positions (n, dim)."""
        return self._compiled(positions)

    def offered(self, dim: int, n_outputs: int, wanted: int | None) -> dict[str, Any]:
        """Return the derivatives to offer, by the names of :func:`surrokit.forward_potential`.

        Parameters
        ----------
        dim, n_outputs
            Numbers in a position and in the outputs.
        wanted
            Highest order, 0 to 2; None for the highest, and at least 1.

        Raises
        ------
        ConfigurationError
            If JAX cannot differentiate the map so often.
        """
        if wanted == 0:
            return {}
        found: dict[str, Any] = {}
        ways = ("forward", "reverse") if dim <= n_outputs else ("reverse", "forward")
        errors = {way: why_not(MapDerivative(self, way, 1).at, dim) for way in ways}
        way = next((way for way in ways if errors[way] is None), None)
        if way is None:
            error = errors[ways[0]]
            assert error is not None
            raise cannot_differentiate("forward", 1, error) from error
        found["jacobian"] = MapDerivative(self, way, 1)
        if errors["reverse"] is None:
            found["vjp"] = MapDerivative(self, "adjoint", 1)
        if wanted == 1:
            return found
        error = why_not(MapDerivative(self, way, 2).at, dim)
        if error is None:
            return {**found, "hessian": MapDerivative(self, way, 2)}
        if wanted == 2:
            raise cannot_differentiate("forward", 2, error) from error
        return found

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        """Return what stands for it elsewhere; programs are left out, since none can travel."""
        import cloudpickle  # late: importing stays fast

        return _rebuild, (cloudpickle.dumps((self.function, self.is_number)),)


@attrs.frozen(eq=False)
class MapDerivative:
    """A derivative of a forward map, compiled for rows of positions.

    Parameters
    ----------
    map
        The map.
    way
        ``"forward"`` or ``"reverse"`` for all first derivatives, ``"adjoint"`` for their product
        with weights.
    order
        1 or 2; second derivatives are forward over the first ones.
    """

    map: JaxMap
    way: str
    order: int
    _compiled: Compiled = attrs.field(init=False, repr=False)

    @_compiled.default
    def _at_rows(self) -> Compiled:
        return Compiled("forward", self.at)

    def at(self, q: Any, *weights: Any) -> Any:
        """Return it at one position (dim,), in JAX."""
        jax = load_jax()
        if self.way == "adjoint":
            return jax.vjp(self.map.outputs, q)[1](*weights)[0]
        first = (jax.jacfwd if self.way == "forward" else jax.jacrev)(self.map.outputs)
        return (first if self.order == 1 else jax.jacfwd(first))(q)

    def __call__(self, positions: FloatArray, *weights: FloatArray) -> FloatArray:
        """Return it at positions (n, dim), perhaps with weights (n, m)."""
        return self._compiled(positions, *weights)

    def __reduce__(self) -> tuple[Any, tuple[JaxMap, str, int]]:
        """Return what stands for it elsewhere."""
        return type(self), (self.map, self.way, self.order)


def _rebuild(packed: bytes) -> JaxMap:
    import cloudpickle  # late: importing stays fast

    load_jax_elsewhere()  # first: arrays would be unpacked in single precision
    return JaxMap(*cloudpickle.loads(packed))
