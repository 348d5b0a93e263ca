"""Derivatives of a potential of one position, by name; vectors and matrices come second.

Second derivatives are forward over reverse, and the third derivatives are a gradient of those, so
that none costs more than dim gradients and the tensor is never made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Function: TypeAlias = Callable[..., Any]


def value(jax: Any, potential: Function) -> Function:
    """Return U itself."""
    del jax
    return potential


def value_and_gradient(jax: Any, potential: Function) -> Function:
    """Return U and, behind it, its gradient, shape (1 + dim,): one array is fetched sooner."""
    both = jax.value_and_grad(potential)

    def packed(z: Any) -> Any:
        u, gradient = both(z)
        return jax.numpy.concatenate([u[None], gradient])

    return packed


def hessian(jax: Any, potential: Function) -> Function:
    """Return the Hessian G, shape (dim, dim)."""
    matrix: Function = jax.jacfwd(jax.grad(potential))
    return matrix


def hessian_product(jax: Any, potential: Function) -> Function:
    """Return G u, shape (dim,)."""

    def product(z: Any, u: Any) -> Any:
        return jax.jvp(jax.grad(potential), (z,), (u,))[1]

    return product


def hessian_diagonal(jax: Any, potential: Function) -> Function:
    """Return the diagonal of G, shape (dim,)."""
    matrix = hessian(jax, potential)
    return lambda z: jax.numpy.diagonal(matrix(z))


def hessian_trace_gradient(jax: Any, potential: Function) -> Function:
    """Return tr(A d_k G) for each k, shape (dim,)."""
    matrix = hessian(jax, potential)
    traces: Function = jax.grad(lambda z, a: jax.numpy.sum(a * matrix(z)))
    return traces


def hessian_form_gradient(jax: Any, potential: Function) -> Function:
    """Return u^T d_k G u for each k, shape (dim,)."""

    def form(z: Any, u: Any) -> Any:
        def slope(at: Any) -> Any:
            return jax.jvp(potential, (at,), (u,))[1]

        return jax.jvp(slope, (z,), (u,))[1]

    forms: Function = jax.grad(form)
    return forms


def hessian_diagonal_gradient(jax: Any, potential: Function) -> Function:
    """Return sum_j c_j d_k G_jj for each k, shape (dim,)."""
    diagonal = hessian_diagonal(jax, potential)
    gradients: Function = jax.grad(lambda z, c: jax.numpy.vdot(c, diagonal(z)))
    return gradients


DERIVATIVES: Mapping[str, Callable[[Any, Function], Function]] = {
    each.__name__: each
    for each in (
        value,
        value_and_gradient,
        hessian,
        hessian_product,
        hessian_diagonal,
        hessian_trace_gradient,
        hessian_form_gradient,
        hessian_diagonal_gradient,
    )
}
"""Name of a potential's method to the function that it is compiled from."""

BY_ORDER = ("value_and_gradient", "hessian_product", "hessian_form_gradient")
"""A function that shows whether JAX can differentiate once, twice, and three times."""
