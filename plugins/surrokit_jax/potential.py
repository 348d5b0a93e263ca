"""Potentials compiled by JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.coordinates.parameters import Parameters, Plausible
from surrokit.coordinates.transforms import CoordinateMap
from surrokit.shown.target import ShownTarget
from surrokit.types import Capabilities, FloatArray
from surrokit_jax.compiled import Compiled
from surrokit_jax.derivatives import DERIVATIVES
from surrokit_jax.library import load_jax, load_jax_elsewhere

_OFFERED: tuple[Capabilities, ...] = (
    frozenset({can.GRADIENT}),
    frozenset({can.HESSIAN, can.HESSIAN_PRODUCT}),
    frozenset({can.HESSIAN_DERIVATIVE, can.HESSIAN_DIAGONAL}),
)


@attrs.frozen(kw_only=True, eq=False)
class JaxPotential(ShownTarget):
    """A potential on the line, of which every method is compiled at its first call.

    A copy made by pickle is compiled anew where it goes.

    Parameters
    ----------
    function
        U of one position (dim,) on the line, in JAX.
    parameters
        The user's.
    transform
        The map from the line to them.
    derivatives
        Highest order of derivatives that it offers, 0 to 3.
    plausible
        Where positions start; None for no such place.
    dim
        Numbers in a position on the line; by default those of the parameters.
    observed_data
        What was observed, by the names of a model that tells.
    missing
        Why it lacks capabilities, by their names.
    unnormalized
        What may lack its normalising constant.
    """

    function: Callable[[Any], Any]
    parameters: Parameters
    transform: CoordinateMap
    derivatives: int
    plausible: Plausible | None = None
    dim: int = attrs.field()
    observed_data: Mapping[str, Any] = attrs.field(factory=dict)
    missing: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    unnormalized: tuple[str, ...] = ("log_density",)
    _compiled: dict[str, Compiled] = attrs.field(init=False, factory=dict, repr=False)

    @dim.default
    def _on_line(self) -> int:
        return self.parameters.free  # once: adding up takes as long as a small gradient

    @property
    def capabilities(self) -> Capabilities:
        """Derivatives up to the highest order, and ``initial`` with a plausible place."""
        own = frozenset() if self.plausible is None else frozenset({can.INITIAL})
        return own.union(*_OFFERED[: self.derivatives])

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self._call("value", positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        both = self._call("value_and_gradient", positions)
        return both[:, 0].copy(), both[:, 1:].copy()

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives, shape (n, dim, dim)."""
        return self._call("hessian", positions)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian, shape (n, dim)."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        return self._call("hessian_product", positions, u)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        return self._call("hessian_diagonal", positions)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim)."""
        a = check_matrices(matrices, check_positions(positions, self.dim))
        return self._call("hessian_trace_gradient", positions, a)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim)."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        return self._call("hessian_form_gradient", positions, u)

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj for each k, shape (n, dim)."""
        c = check_vectors(weights, check_positions(positions, self.dim))
        return self._call("hessian_diagonal_gradient", positions, c)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions in the plausible place, shape (n, dim)."""
        assert self.plausible is not None
        return self.transform.to_unbounded(self.plausible.draw(rng, n))

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        """Return what stands for it elsewhere; programs are left out, since none can travel."""
        import cloudpickle  # late: importing stays fast

        settings = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(type(self))
            if field.init
        }
        return _rebuild, (cloudpickle.dumps(settings),)

    def _call(self, name: str, positions: FloatArray, *factors: FloatArray) -> FloatArray:
        compiled = self._compiled.get(name)
        if compiled is None:
            function = DERIVATIVES[name](load_jax(), self.function)
            compiled = self._compiled[name] = Compiled("the log density", function)
        return compiled(check_positions(positions, self.dim), *factors)


def _rebuild(packed: bytes) -> JaxPotential:
    import cloudpickle  # late: importing stays fast

    load_jax_elsewhere()  # first: arrays would be unpacked in single precision
    return JaxPotential(**cloudpickle.loads(packed))
