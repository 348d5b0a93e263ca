"""Monomials of the inputs."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from sklearn.preprocessing import PolynomialFeatures

from surrokit.types import FloatArray, IntArray
from surrokit_sklearn.gradients.registry import Pullback, pullback_of


@pullback_of(PolynomialFeatures)
def monomial_pullback(transformer: Any) -> Pullback:
    """Return the pullback of monomials."""
    return MonomialPullback.of(np.asarray(transformer.powers_, dtype=np.int64))


@attrs.frozen(kw_only=True, eq=False)
class MonomialPullback:
    """Derivatives of monomials by the product rule: one term for each factor of each.

    A monomial of degree p is a product of p inputs, repeats included; the term of one factor is
    the product of the others, and goes to that factor's input.

    Parameters
    ----------
    dim
        Numbers in an input.
    features : ndarray of shape (k,)
        The monomial that each term is from.
    others : ndarray of shape (k, p - 1)
        Inputs in each term, ``dim`` standing for a factor 1; p is the greatest degree.
    inputs : ndarray of shape (m,)
        Inputs that occur in any monomial, in order.
    starts : ndarray of shape (m,)
        Where the terms of each of these begin.
    """

    dim: int
    features: IntArray
    others: IntArray
    inputs: IntArray
    starts: IntArray

    @classmethod
    def of(cls, powers: IntArray) -> MonomialPullback:
        """Return the terms for the powers, shape (n_out, dim), of some monomials."""
        n_out, dim = powers.shape
        degrees = powers.sum(axis=1)
        greatest = int(degrees.max(initial=1))
        # Factors of each monomial in order, filled up with the input that is always 1.
        filled = np.column_stack([powers, greatest - degrees])
        repeated = np.repeat(np.tile(np.arange(dim + 1), n_out), filled.ravel())
        factors = repeated.reshape(n_out, greatest)
        features, places = np.nonzero(factors < dim)
        targets = factors[features, places]
        rest = ~np.eye(greatest, dtype=bool)[places]
        others = factors[features][rest].reshape(len(features), greatest - 1)
        order = np.argsort(targets, kind="stable")
        inputs, starts = np.unique(targets[order], return_index=True)
        return cls(
            dim=dim, features=features[order], others=others[order], inputs=inputs, starts=starts
        )

    def __call__(self, inputs: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return derivatives by the inputs, shape (n, dim), from those by the monomials."""
        result = np.zeros((len(inputs), self.dim))
        if not len(self.features):
            return result
        with_one = np.column_stack([inputs, np.ones(len(inputs))])
        terms = slopes[:, self.features]
        for factor in self.others.T:
            terms = terms * with_one[:, factor]
        result[:, self.inputs] = np.add.reduceat(terms, self.starts, axis=1)
        return result
