"""Log densities written in JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.coordinates.models import called
from surrokit.coordinates.parameters import Declared, Parameter, Parameters, Plausible
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Potential
from surrokit.targets.bounds import with_bounds
from surrokit.targets.functions import declare_parameters
from surrokit.types import Capabilities, FloatArray
from surrokit_jax.compiled import Functions, load_jax, orders, trace

Function: TypeAlias = Callable[..., Any]

_OFFERED: tuple[Capabilities, ...] = (
    frozenset({can.GRADIENT}),
    frozenset({can.HESSIAN, can.HESSIAN_PRODUCT}),
    frozenset({can.HESSIAN_DERIVATIVE}),
)


def from_jax(
    log_density: Callable[..., Any],
    parameters: Declared | None = None,
    *,
    dim: int | None = None,
    example: Any = None,
    plausible: Mapping[str, Any] | None = None,
) -> Potential:
    """Make a target of a log density written in JAX.

    The density is compiled once for each of few numbers of rows, and takes all chains in one call.

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
        In place of ``parameters``: a tree of arrays, such as nested dictionaries, whose names
        and shapes are taken. A path of keys is a name, such as ``layer.weights``.
    plausible
        As for :func:`surrokit.potential`.

    Returns
    -------
    Potential
        On the line, as :func:`surrokit.potential` returns. It offers gradients, and unless
        constraints tie numbers Hessians, their products and contractions of third derivatives as
        far as JAX can trace them.

    Raises
    ------
    MissingDependencyError
        If JAX is not installed.
    ConfigurationError
        If JAX is in single precision, the function cannot be traced or differentiated, or the
        parameters cannot be read.
    ResultTypeError, ShapeError
        If the function returns anything but one number in double precision.
    """
    load_jax()
    function, declared = declare("log_density", log_density, parameters, dim, example)
    for name, spec in declared.specs.items():
        if spec.prior is not None:
            raise ConfigurationError(
                f"the prior of {name!r} is a distribution of scipy.stats, which JAX cannot "
                "differentiate; leave it out, and add its log density to yours, by "
                "jax.scipy.stats, say"
            )
    check_number("log_density", function, declared.dim)

    def value(q: Any) -> Any:
        return -function(q)

    inner = JaxPotential(
        functions=Functions("the log density", derivatives_of, value),
        parameters=declared,
        order=highest_order("log_density", value, declared.dim),
        plausible=Plausible.declare(plausible, declared),
    )
    return with_bounds(inner, declared)


def declare(
    what: str, function: Function, parameters: Declared | None, dim: int | None, example: Any
) -> tuple[Callable[[Any], Any], Parameters]:
    """Return a user's function as one of a position vector, and its parameters."""
    if not callable(function):
        raise ConfigurationError(f"{what} must be a function, got {function!r}")
    if example is None:
        declared = declare_parameters(dim, parameters)
        return called(what, function, declared), declared
    if parameters is not None or dim is not None:
        raise ConfigurationError(
            "example declares names and shapes by itself; leave parameters and dim out, or "
            "declare bounds by parameters and leave example out"
        )
    jax = load_jax()
    pairs, structure = jax.tree_util.tree_flatten_with_path(example)
    try:
        named = {
            jax.tree_util.keystr(path, simple=True, separator=".") or "q": Parameter(
                jax.numpy.asarray(leaf).shape
            )
            for path, leaf in pairs
        }
    except TypeError as error:
        raise ConfigurationError(f"the example must hold arrays or numbers: {error}") from error
    declared = Parameters.declare(named)

    def of_position(position: Any) -> Any:
        leaves = declared.split(position).values()
        return function(load_jax().tree_util.tree_unflatten(structure, leaves))

    return of_position, declared


def check_number(what: str, function: Callable[[Any], Any], dim: int) -> None:
    """Raise ShapeError if a function returns an array, or as :func:`trace` does."""
    shape = trace(what, function, dim)
    if shape != ():
        raise ShapeError(
            f"{what} must return one number for one position, got an array of shape {shape}; add "
            "its terms up"
        )


def highest_order(what: str, function: Callable[[Any], Any], dim: int) -> int:
    """Return the highest order of derivatives that U of a position (dim,) offers, 1 to 3."""
    made = derivatives_of(function)
    names = {"value_and_gradient": 1, "hessian_product": 2, "hessian_form_gradient": 2}
    return orders(what, [(made[name], n) for name, n in names.items()], dim)


def derivatives_of(potential: Function) -> dict[str, Function]:
    """Return U and its derivatives by the methods' names, as functions of a position (dim,).

    Vectors and matrices come second. Second derivatives are forward over reverse, and third ones a
    gradient of those, so that none costs more than dim gradients and the tensor is never made.
    """
    jax = load_jax()
    both = jax.value_and_grad(potential)
    matrix = jax.jacfwd(jax.grad(potential))

    def value_and_gradient(z: Any) -> Any:
        u, gradient = both(z)
        return jax.numpy.concatenate([u[None], gradient])  # one array is fetched sooner

    def form(z: Any, u: Any) -> Any:  # u^T G u
        slope = lambda at: jax.jvp(potential, (at,), (u,))[1]  # noqa: E731
        return jax.jvp(slope, (z,), (u,))[1]

    return {
        "value": potential,
        "value_and_gradient": value_and_gradient,
        "hessian": matrix,
        "hessian_product": lambda z, u: jax.jvp(jax.grad(potential), (z,), (u,))[1],
        "hessian_trace_gradient": jax.grad(lambda z, a: jax.numpy.sum(a * matrix(z))),
        "hessian_form_gradient": jax.grad(form),
    }


@attrs.frozen(kw_only=True, eq=False)
class JaxPotential:
    """A potential whose methods are compiled each at its first call.

    ``functions`` are U and its derivatives, offered up to an ``order``.
    """

    functions: Functions
    parameters: Parameters
    order: int
    plausible: Plausible | None = None
    dim: int = attrs.field(init=False)  # once: adding up takes as long as a small gradient
    unnormalized: ClassVar[tuple[str, ...]] = ("log_density",)

    @dim.default
    def _dim(self) -> int:
        return self.parameters.dim

    @property
    def capabilities(self) -> Capabilities:
        """Derivatives up to the highest order, and ``initial`` with a plausible place."""
        own = frozenset() if self.plausible is None else frozenset({can.INITIAL})
        return own.union(*_OFFERED[: self.order])

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.functions("value", check_positions(positions, self.dim))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        both = self.functions("value_and_gradient", check_positions(positions, self.dim))
        return both[:, 0].copy(), both[:, 1:].copy()

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives, shape (n, dim, dim)."""
        return self.functions("hessian", check_positions(positions, self.dim))

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        return self.functions("hessian_product", q, check_vectors(vectors, q))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        return self.functions("hessian_trace_gradient", q, check_matrices(matrices, q))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        return self.functions("hessian_form_gradient", q, check_vectors(vectors, q))

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions in the plausible place, shape (n, dim)."""
        assert self.plausible is not None
        return self.plausible.draw(rng, n)
