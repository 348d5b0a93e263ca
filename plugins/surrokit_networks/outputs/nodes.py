"""What the terms of a network with many outputs are: functions of whitened positions."""

from __future__ import annotations

from typing import Protocol

from surrokit.types import FloatArray


class LinearisedOutputs(Protocol):
    """m outputs at n positions, with their derivatives as linear maps.

    A gradient of a function of the outputs takes ``pulled_back`` alone: no derivative of each
    output is ever formed.
    """

    @property
    def outputs(self) -> FloatArray:
        """The outputs, shape (n, m)."""
        ...

    def pulled_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        ...

    def pushed(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""
        ...

    def slopes(self) -> FloatArray:
        """Return J^T, the derivatives of all outputs, shape (n, dim, m)."""
        ...

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k f_m, shape (n, dim), for W (n, m, dim)."""
        ...

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        ...


class OutputTerm(Protocol):
    """A function from positions (dim,) to m outputs, one of the terms of a sum.

    Every array returned is new, and no argument is changed. The shapes of arguments are not
    checked.
    """

    def value(self, whitened: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m), at whitened positions (n, dim)."""
        ...

    def linearised(self, whitened: FloatArray) -> LinearisedOutputs:
        """Return the outputs and their derivatives at whitened positions (n, dim)."""
        ...
