"""A network with many outputs on a trend, as a function of raw positions."""

from __future__ import annotations

from typing import TypeAlias

import attrs
import numpy as np

from surrokit.errors import ShapeError
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.nodes import Nodes
from surrokit_networks.outputs.additive import AdditiveOutputs, LinearisedAdditive
from surrokit_networks.outputs.mixing import OutputMixing
from surrokit_networks.outputs.rbf import LinearisedRbf, RbfOutputs
from surrokit_networks.outputs.trend import LinearisedTrend, OutputTrend

OutputTerm: TypeAlias = AdditiveOutputs | RbfOutputs | OutputTrend
"""A function from positions (dim,) to m outputs, one of the terms of a sum.

Every array returned is new, and no argument is changed. The shapes of arguments are not checked.
"""

LinearisedOutputs: TypeAlias = LinearisedAdditive | LinearisedRbf | LinearisedTrend
"""m outputs at n positions, with their derivatives as linear maps.

A gradient of a function of the outputs takes ``pull_back`` alone: no derivative of each output is
ever formed.
"""


@attrs.frozen(kw_only=True, eq=False)
class OutputNetwork:
    """sum_i V_im a_i(z) + c_m + l_m . z + z^T P_m z / 2, with z the whitened position.

    Every array returned is new. The shapes of positions are not checked.

    Parameters
    ----------
    whitening
        From q to z.
    terms
        Functions of z to add up, at least one.
    mixing : OutputMixing, optional
        Where the sums are combinations, what makes outputs of them.
    """

    whitening: Whitening
    terms: tuple[OutputTerm, ...]
    mixing: OutputMixing | None = None

    @classmethod
    def of(
        cls,
        *,
        nodes: Nodes | None,
        whitening: Whitening,
        weights: FloatArray,
        constant: FloatArray,
        linear: FloatArray,
        matrices: FloatArray | None,
        mixing: OutputMixing | None = None,
    ) -> OutputNetwork:
        """Return the network with these coefficients.

        Parameters
        ----------
        nodes
            The s nodes; None for a trend alone.
        whitening
            From q to z.
        weights : ndarray of shape (s, m)
            V; of shape (0, m) without nodes.
        constant : ndarray of shape (m,)
            c.
        linear : ndarray of shape (dim, m)
            l_m as columns.
        matrices : ndarray of shape (m, dim, dim) or None
            P_m, symmetric; None for a trend of degree one.
        mixing : OutputMixing, optional
            Makes outputs of what is then the network's m combinations.

        Raises
        ------
        ShapeError
            If the shapes do not go together.
        """
        dim, m = len(whitening.mean), len(constant)
        _check_shape("weights", weights, (0 if nodes is None else len(nodes), m))
        _check_shape("linear", linear, (dim, m))
        if matrices is not None:
            _check_shape("matrices", matrices, (m, dim, dim))
        trend = OutputTrend(constant=constant, linear=linear, matrices=matrices)
        if nodes is None:
            return cls(whitening=whitening, terms=(trend,), mixing=mixing)
        if isinstance(nodes, AdditiveNodes):
            additive = AdditiveOutputs.of(nodes, weights)
            trend = trend.plus(additive.constant(), additive.linear())
            return cls(whitening=whitening, terms=(additive, trend), mixing=mixing)
        radial = RbfOutputs.of(nodes, weights)
        return cls(whitening=whitening, terms=(radial, trend), mixing=mixing)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return len(self.whitening.mean)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m), at positions of shape (n, dim)."""
        whitened = self.whitening.apply(positions)
        first, *others = self.terms
        outputs = first.value(whitened)
        for term in others:
            outputs += term.value(whitened)
        return outputs if self.mixing is None else self.mixing.outputs(outputs)

    def linearise(self, positions: FloatArray) -> LinearisedNetwork:
        """Return the outputs and their derivatives at positions of shape (n, dim)."""
        whitened = self.whitening.apply(positions)
        terms = tuple(term.linearise(whitened) for term in self.terms)
        outputs = terms[0].outputs
        for term in terms[1:]:
            outputs = outputs + term.outputs
        mixing = self.mixing
        return LinearisedNetwork(
            outputs=outputs if mixing is None else mixing.outputs(outputs),
            terms=terms,
            inverse=self.whitening.inverse,
            mixing=None if mixing is None else mixing.matrix,
        )


@attrs.frozen(kw_only=True, eq=False)
class LinearisedNetwork:
    """A network with many outputs at some positions.

    Parameters
    ----------
    outputs : ndarray of shape (n, m)
        The outputs.
    terms
        Derivatives in whitened coordinates, to add up.
    inverse : ndarray of shape (dim, dim)
        dz/dq.
    mixing : ndarray of shape (r, m) or None
        What each combination adds to the outputs, where the terms are of combinations.
    """

    outputs: FloatArray
    terms: tuple[LinearisedOutputs, ...]
    inverse: FloatArray
    mixing: FloatArray | None = None

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        by_outputs = self._by_combinations(by_outputs)
        gradient = self.terms[0].pull_back(by_outputs)
        for term in self.terms[1:]:
            gradient += term.pull_back(by_outputs)
        return np.asarray(gradient @ self.inverse)

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""
        inside = vectors @ self.inverse.T
        pushed = self.terms[0].push(inside)
        for term in self.terms[1:]:
            pushed += term.push(inside)
        return pushed if self.mixing is None else np.asarray(pushed @ self.mixing)

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""
        slopes = self.terms[0].slopes()
        for term in self.terms[1:]:
            slopes += term.slopes()
        if self.mixing is not None:
            slopes = slopes @ self.mixing
        return np.asarray(slopes.transpose(0, 2, 1) @ self.inverse)

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k f_m, shape (n, dim), for W (n, m, dim)."""
        inside = weights @ self.inverse.T
        if self.mixing is not None:
            inside = self.mixing @ inside
        product = self.terms[0].hessian_product(inside)
        for term in self.terms[1:]:
            product += term.hessian_product(inside)
        return np.asarray(product @ self.inverse)

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        inside = vectors @ self.inverse.T
        by_outputs = self._by_combinations(by_outputs)
        form = self.terms[0].hessian_form(by_outputs, inside)
        for term in self.terms[1:]:
            form += term.hessian_form(by_outputs, inside)
        return np.asarray(form @ self.inverse)

    def _by_combinations(self, by_outputs: FloatArray) -> FloatArray:
        return by_outputs if self.mixing is None else by_outputs @ self.mixing.T


def _check_shape(name: str, array: FloatArray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ShapeError(f"{name} of a network must have shape {shape}, got {array.shape}")
