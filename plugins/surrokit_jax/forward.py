"""Forward maps written in JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import surrokit as sk
from surrokit.coordinates.parameters import Declared
from surrokit.errors import ShapeError
from surrokit.potentials import Energy, Potential
from surrokit.targets.gaussian import Prior
from surrokit.targets.noise import Data, Scale
from surrokit_jax.compiled import Functions, load_jax, orders, trace, why_not
from surrokit_jax.density import declare


def forward_from_jax(
    forward: Callable[..., Any],
    parameters: Declared | None = None,
    *,
    data: Data | None = None,
    noise_sd: Scale | None = None,
    prior: Prior | None = None,
    energy: Energy | None = None,
    dim: int | None = None,
    example: Any = None,
    plausible: Mapping[str, Any] | None = None,
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

    Returns
    -------
    Potential
        As :func:`surrokit.forward_potential` returns, with Jacobian, and with adjoint and second
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
    return sk.forward_potential(
        data=data,
        noise_sd=noise_sd,
        prior=prior,
        energy=energy,
        parameters=declared.specs,
        plausible=plausible,
        batched=True,
        **_offered(function, declared.dim, shape[0] if shape else 1),
    )


def _derived(function: Callable[[Any], Any], *, by_rows: bool) -> dict[str, Callable[..., Any]]:
    """Return a map of a position (dim,) and its derivatives; by_rows takes reverse mode."""
    jax = load_jax()

    def outputs(q: Any) -> Any:
        return jax.numpy.atleast_1d(function(q))

    jacobian = (jax.jacrev if by_rows else jax.jacfwd)(outputs)
    return {
        "outputs": outputs,
        "jacobian": jacobian,
        "vjp": lambda q, weights: jax.vjp(outputs, q)[1](weights)[0],
        "hessian": jax.jacfwd(jacobian),
    }


def _offered(function: Callable[[Any], Any], dim: int, m: int) -> dict[str, Any]:
    """Return the map and its derivatives by the names of ``surrokit.forward_potential``."""
    derived = partial(_derived, by_rows=dim > m)
    if why_not(derived(function)["jacobian"], dim) is not None:
        derived = partial(_derived, by_rows=dim <= m)
    made = derived(function)
    order = orders("forward", [(made["jacobian"], 1), (made["hessian"], 1)], dim)
    names = ["jacobian", "hessian"][:order]
    if why_not(made["vjp"], dim, m) is None:
        names.append("vjp")
    functions = Functions("forward", derived, function)
    found = {name: partial(functions, name) for name in names}
    return {"forward": partial(functions, "outputs"), **found}
