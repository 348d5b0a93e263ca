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
from surrokit_jax.compiled import Compiled, Travelling, load_jax, orders, trace, why_not
from surrokit_jax.density import Declarations, declare


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
    mapped, offered = _offered(function, declared.dim, shape, derivatives)
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
class JaxMap(Travelling):
    """A forward map and its derivatives at rows of positions (n, dim), each compiled when called.

    ``function`` is the map of one position (dim,), in JAX. Jacobians are made by reverse mode if
    ``by_rows``.
    """

    function: Callable[[Any], Any]
    is_number: bool
    by_rows: bool
    _compiled: dict[str, Compiled] = attrs.field(init=False, factory=dict, repr=False)

    def __call__(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""
        return self._call("outputs", positions)

    def jacobian(self, positions: FloatArray) -> FloatArray:
        """Return the Jacobians, shape (n, m, dim)."""
        return self._call("jacobian", positions)

    def vjp(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return J^T w, shape (n, dim), for weights (n, m)."""
        return self._call("vjp", positions, weights)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives of all outputs, shape (n, m, dim, dim)."""
        return self._call("hessian", positions)

    def _call(self, name: str, *rows: FloatArray) -> FloatArray:
        if name not in self._compiled:
            self._compiled[name] = Compiled("forward", self.of_one()[name])
        return self._compiled[name](*rows)

    def of_one(self) -> dict[str, Callable[..., Any]]:
        """Return the map and its derivatives by name, as functions of one position (dim,)."""
        jax = load_jax()

        def outputs(q: Any) -> Any:
            found = self.function(q)
            return found[None] if self.is_number else found

        jacobian = (jax.jacrev if self.by_rows else jax.jacfwd)(outputs)
        return {
            "outputs": outputs,
            "jacobian": jacobian,
            "vjp": lambda q, weights: jax.vjp(outputs, q)[1](weights)[0],
            "hessian": jax.jacfwd(jacobian),
        }


def _offered(
    function: Callable[[Any], Any], dim: int, shape: tuple[int, ...], wanted: int | None
) -> tuple[JaxMap, dict[str, Any]]:
    """Return the map, and derivatives to offer by the names of ``surrokit.forward_potential``."""
    m = shape[0] if shape else 1
    ways = [JaxMap(function, shape == (), by_rows) for by_rows in (dim > m, dim <= m)]
    mapped = ways[0]
    if wanted != 0 and why_not(mapped.of_one()["jacobian"], dim) is not None:
        mapped = ways[1]
    made = mapped.of_one()
    order = orders("forward", [(made["jacobian"], 1), (made["hessian"], 1)], dim, wanted)
    found: dict[str, Any] = {"jacobian": mapped.jacobian} if order > 0 else {}
    if order > 0 and why_not(made["vjp"], dim, m) is None:
        found["vjp"] = mapped.vjp
    return mapped, {**found, "hessian": mapped.hessian} if order == 2 else found
