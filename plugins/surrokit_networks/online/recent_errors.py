"""The error of a network at rows that it has not yet learnt from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.surrogate.quality import FitQuality
from surrokit.types import FloatArray

_KEPT = 200
"""Rows that the estimate looks back on."""

_LEAST = 10
"""Rows below which it says nothing."""


@attrs.define(kw_only=True, eq=False)
class RecentErrors:
    """A running estimate by the prequential rule: each row is judged before it is learnt from.

    Dawid, A. P. (1984). Statistical theory: the prequential approach. J. R. Stat. Soc. A 147(2).
    The network changes from row to row, so the estimate lags behind it by some of the rows that it
    looks back on.

    Parameters
    ----------
    rows : ndarray of shape (n, 3)
        Of the last rows V - U, |L^T grad(V - U)|^2 and |L^T grad U|^2; NaN where no gradient is
        known.
    """

    rows: FloatArray = attrs.field(factory=lambda: np.empty((0, 3)))

    def add(self, errors: FloatArray, gradient_errors: FloatArray, gradients: FloatArray) -> None:
        """Take in what was found.

        Parameters
        ----------
        errors : ndarray of shape (n,)
            V - U, up to a constant.
        gradient_errors, gradients : ndarray of shape (n, dim)
            Errors of gradients and exact gradients in whitened coordinates; rows of NaN where no
            gradient is known.
        """
        lengths = [np.einsum("nd,nd->n", part, part) for part in (gradient_errors, gradients)]
        more = np.column_stack([errors, *lengths])
        self.rows = np.concatenate([self.rows, more])[-_KEPT:]

    @property
    def quality(self) -> FitQuality | None:
        """What they say; None as long as there are too few."""
        if len(self.rows) < _LEAST:
            return None
        known = self.rows[np.isfinite(self.rows[:, 1:]).all(axis=1), 1:].sum(axis=0)
        return FitQuality(
            variance=float(np.var(self.rows[:, 0])),
            gradient_error=float(np.sqrt(known[0] / known[1])) if known[1] > 0.0 else None,
            n_points=len(self.rows),
        )

    def state(self) -> dict[str, Any]:
        """Return the rows."""
        return {"rows": self.rows.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state`` returned."""
        self.rows = np.array(state["rows"], dtype=np.float64)
