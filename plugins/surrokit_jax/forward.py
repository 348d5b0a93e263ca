"""Forward maps written in JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs

import surrokit as sk
from surrokit.errors import ShapeError
from surrokit.potentials import Energy, Potential
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, Scale
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
    function, declared = declare("forward", forward, parameters, dim, example)
    shape = trace("forward", function, declared.dim)
    if len(shape) > 1:
        raise ShapeError(
            f"forward must return one vector of outputs, got an array of shape {shape}; ravel it"
        )
    n_outputs = shape[0] if shape else 1
    offered = _offered(function, declared.dim, n_outputs, derivatives)
    return sk.forward_potential(
        data=data,
        noise_sd=noise_sd,
        prior=prior,
        energy=energy,
        parameters=declared.specs,
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

    what = "forward"

    function: Callable[[Any], Any]
    by_rows: bool
    _compiled: dict[str, Compiled] = attrs.field(init=False, factory=dict, repr=False)

    def of_one(self) -> Mapping[str, Callable[..., Any]]:
        """Return the map and its derivatives as functions of one position (dim,)."""
        jax = load_jax()

        def outputs(q: Any) -> Any:
            return jax.numpy.atleast_1d(self.function(q))

        jacobian = (jax.jacrev if self.by_rows else jax.jacfwd)(outputs)
        return {
            "outputs": outputs,
            "jacobian": jacobian,
            "vjp": lambda q, weights: jax.vjp(outputs, q)[1](weights)[0],
            "hessian": jax.jacfwd(jacobian),
        }


def _offered(
    function: Callable[[Any], Any], dim: int, m: int, wanted: int | None
) -> dict[str, Any]:
    """Return the map and its derivatives by the names of ``surrokit.forward_potential``."""
    by_rows = dim > m
    mapped = JaxMap(function, by_rows)
    if wanted != 0 and why_not(mapped.of_one()["jacobian"], dim) is not None:
        mapped = JaxMap(function, not by_rows)
    made = mapped.of_one()
    order = orders("forward", [(made["jacobian"], 1), (made["hessian"], 1)], dim, wanted)
    names = ["jacobian", "hessian"][:order]
    if order > 0 and why_not(made["vjp"], dim, m) is None:
        names.append("vjp")
    found = {name: partial(mapped.call, name) for name in names}
    return {"forward": partial(mapped.call, "outputs"), **found}
