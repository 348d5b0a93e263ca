"""Probabilities of classes by several predictors, and by one with cutpoints."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from surrokit.types import FloatArray

MULTINOMIAL = "multinomial"
ORDINAL = "ordinal"


@attrs.frozen
class MultinomialClasses:
    """Classes 0, ..., m with probabilities in proportion to 1, exp(e_1), ..., exp(e_m).

    Positions hold the coefficients of e_1, then those of e_2, and so on.
    """

    name: ClassVar[str] = MULTINOMIAL

    def count(self, dim: int, n_columns: int) -> int:
        """Return how many classes there are, for positions of ``dim`` numbers."""
        return dim // n_columns + 1

    def probabilities(
        self, positions: FloatArray, design: FloatArray, offset: FloatArray
    ) -> FloatArray:
        """Return the probability of each class, shape (n, n_rows, m + 1).

        They are for positions (n, dim) and a design (n_rows, n_columns); the family has no offset.
        """
        from scipy.special import softmax  # late: importing the package stays fast

        del offset
        coefficients = positions.reshape(len(positions), -1, design.shape[1])
        predictors = np.einsum("rd,nkd->nrk", design, coefficients, optimize=True)
        return np.asarray(softmax(np.pad(predictors, ((0, 0), (0, 0), (1, 0))), axis=2))


@attrs.frozen
class OrdinalClasses:
    """Classes 0, ..., m with P(class <= k) = 1 / (1 + exp(e - c_k)).

    Positions hold the coefficients of e, then the cutpoints c_0 < ... < c_(m-1).
    """

    name: ClassVar[str] = ORDINAL

    def count(self, dim: int, n_columns: int) -> int:
        """Return how many classes there are, for positions of ``dim`` numbers."""
        return dim - n_columns + 1

    def probabilities(
        self, positions: FloatArray, design: FloatArray, offset: FloatArray
    ) -> FloatArray:
        """Return the probability of each class, shape (n, n_rows, m + 1).

        They are for positions (n, dim), a dense or sparse design (n_rows, n_columns), and known
        parts (n_rows,) of the predictors.
        """
        from scipy.special import expit  # late: importing the package stays fast

        n_columns = design.shape[1]
        predictors = np.asarray(design @ positions[:, :n_columns].T).T + offset
        upper = positions[:, None, n_columns:] - predictors[..., None]
        below = np.pad(expit(upper), ((0, 0), (0, 0), (1, 1)), constant_values=(0.0, 1.0))
        above = np.pad(expit(-upper), ((0, 0), (0, 0), (1, 1)), constant_values=(1.0, 0.0))
        # from the nearer end, or small probabilities lose their digits
        return np.where(below[..., 1:] < 0.5, np.diff(below, axis=2), -np.diff(above, axis=2))
