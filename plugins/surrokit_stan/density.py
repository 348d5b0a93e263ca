"""The log density of a model in Stan as a potential."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions, check_vectors
from surrokit.model.model import Model, ModelPotential
from surrokit.types import Capabilities, FloatArray
from surrokit_stan.model import Turns

_SECOND = {
    can.HESSIAN: "log_density_hessian",
    can.HESSIAN_PRODUCT: "log_density_hessian_vector_product",
}


@attrs.frozen(eq=False)
class StanFunctions:
    """The functions of a model in Stan, which takes one position at a time.

    Parameters
    ----------
    model
        The model.
    dim
        Numbers in a position.
    propto
        Whether terms without parameters are left out.
    """

    model: Turns
    dim: int
    propto: bool

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return what a method gives at one position, with its vector behind it, if any."""
        call, settings = self.model.call, {"propto": self.propto, "jacobian": True}
        if what == "value":
            return (np.array(-call("log_density", row, **settings)),)
        if what == "value_and_gradient":
            value, gradient = call("log_density_gradient", row, **settings)
            return np.array(-value), -np.asarray(gradient)
        if what == "hessian":
            return (-np.asarray(call("log_density_hessian", row, **settings)[2]),)
        parts = row[: self.dim], row[self.dim :].copy()
        name = "log_density_hessian_vector_product"
        return (-np.asarray(call(name, *parts, **settings)[1]),)


@attrs.frozen(eq=False)
class StanPotential(ModelPotential):
    """U on Stan's unconstrained space.

    Parameters
    ----------
    dim
        Numbers in a position.
    capabilities
        Gradients, and second derivatives that the model has.
    model
        The model's functions.
    """

    dim: int
    capabilities: Capabilities
    model: Model

    @classmethod
    def of(cls, stan: Turns, dim: int, *, propto: bool) -> StanPotential:
        """Return the potential of a model in Stan."""
        second = {
            each for each, name in _SECOND.items() if callable(getattr(stan.model, name, None))
        }
        functions = StanFunctions(stan, dim, propto)
        return cls(dim, frozenset({can.GRADIENT, *second}), Model(functions, dim))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.model.evaluate("value", check_positions(positions, self.dim))[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        values, gradients = self.model.evaluate("value_and_gradient", q)
        return values, gradients

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives, shape (n, dim, dim)."""
        return self.model.evaluate("hessian", check_positions(positions, self.dim))[0]

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian, shape (n, dim)."""
        rows = check_positions(positions, self.dim)
        both = np.hstack([rows, check_vectors(vectors, rows)])
        return self.model.evaluate("hessian_product", both)[0]
