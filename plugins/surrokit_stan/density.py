"""The log density of a model in Stan as a potential."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.coordinates.rowwise import EachRow, one_after_another
from surrokit.shapes import check_positions, check_vectors
from surrokit.types import Capabilities, FloatArray
from surrokit_stan.model import Turns

_SECOND = {
    can.HESSIAN: "log_density_hessian",
    can.HESSIAN_PRODUCT: "log_density_hessian_vector_product",
}


@attrs.frozen(eq=False)
class StanPotential:
    """U on Stan's unconstrained space, one position at a time.

    Parameters
    ----------
    model
        The model.
    dim
        Numbers in a position.
    propto
        Whether terms without parameters are left out.
    each_row
        Evaluates rows one by one.
    """

    model: Turns
    dim: int
    propto: bool
    each_row: EachRow = attrs.field(default=one_after_another, repr=False)
    capabilities: Capabilities = attrs.field(init=False)
    """Gradients, and second derivatives that the model has."""

    @capabilities.default
    def _capabilities(self) -> Capabilities:
        own = self.model.model
        second = {each for each, name in _SECOND.items() if callable(getattr(own, name, None))}
        return frozenset({can.GRADIENT, *second})

    def split_by(self, each_row: EachRow) -> StanPotential:
        """Return a copy whose rows are evaluated by another function."""
        return attrs.evolve(self, each_row=each_row)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim).

        Raises
        ------
        EvaluationError
            If Stan raised at some of them.
        """
        return self._evaluate("value", positions, np.empty(0))[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim); raises as ``value`` does."""
        none = np.empty(0), np.empty((0, self.dim))
        values, gradients = self._evaluate("gradient", positions, *none)
        return values, gradients

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives, shape (n, dim, dim); raises as ``value`` does."""
        return self._evaluate("hessian", positions, np.empty((0, self.dim, self.dim)))[0]

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the Hessian, shape (n, dim); raises as ``value`` does."""
        rows = check_positions(positions, self.dim)
        both = np.hstack([rows, check_vectors(vectors, rows)])
        if not len(rows):
            return np.empty((0, self.dim))
        return self.each_row(self, "hessian_product", both)[0]

    def at(self, what: str, row: FloatArray) -> tuple[FloatArray, ...]:
        """Return what a method gives at one position, with its vector behind it, if any."""
        call, settings = self.model.call, {"propto": self.propto, "jacobian": True}
        if what == "value":
            return (np.array(-call("log_density", row, **settings)),)
        if what == "gradient":
            value, gradient = call("log_density_gradient", row, **settings)
            return np.array(-value), -np.asarray(gradient)
        if what == "hessian":
            return (-np.asarray(call("log_density_hessian", row, **settings)[2]),)
        parts = row[: self.dim], row[self.dim :].copy()
        name = "log_density_hessian_vector_product"
        return (-np.asarray(call(name, *parts, **settings)[1]),)

    def _evaluate(
        self, what: str, positions: FloatArray, *of_no_rows: FloatArray
    ) -> tuple[FloatArray, ...]:
        rows = check_positions(positions, self.dim)
        return self.each_row(self, what, rows) if len(rows) else of_no_rows
