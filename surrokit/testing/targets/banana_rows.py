"""The banana as a sum over two rows of data, for surrogates that copy rows."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.types import Capabilities, FloatArray, IntArray


@attrs.frozen(kw_only=True)
class BananaRows:
    """The terms of a banana: half the square of each output.

    See :class:`~surrokit.testing.targets.densities.Banana`.

    Row 0 is q1^2 / 2, and row 1 is (q2 - q1^2)^2 / (2 s^2). The banana itself is never evaluated
    here, so copies of rows may be evaluated where exact calls are refused.

    Parameters
    ----------
    sd
        s.
    """

    sd: float

    @property
    def n_rows(self) -> int:
        """Two."""
        return 2

    def select(self, rows: IntArray) -> SelectedBananaRows:
        """Return the sum of the terms of some rows, shape (m,)."""
        first, second = np.bincount(rows, minlength=2)
        return SelectedBananaRows(first=float(first), second=second / self.sd**2)

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return 0 and |L|^3, shape (2,): the first row is quadratic, and the second is not.

        The third derivative of the second row has no bound; these numbers only rank the rows.
        """
        return np.array([0.0, float(np.linalg.norm(factor)) ** 3])


@attrs.frozen(kw_only=True)
class SelectedBananaRows:
    """a q1^2 / 2 + b (q2 - q1^2)^2 / 2.

    Parameters
    ----------
    first, second
        a and b.
    """

    capabilities: ClassVar[Capabilities] = frozenset(
        {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN}
    )
    """Its abilities besides the value."""

    dim: ClassVar[int] = 2
    """Numbers in a position."""

    first: float
    second: float

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at positions of shape (n, 2)."""
        x, bent = self._bent(positions)
        return np.asarray(0.5 * (self.first * np.square(x) + self.second * np.square(bent)))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, 2)."""
        x, bent = self._bent(positions)
        pull = self.second * bent
        return np.column_stack([self.first * x - 2.0 * x * pull, pull])

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both, shapes (n,) and (n, 2)."""
        return self.value(positions), self.gradient(positions)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return its second derivatives, shape (n, 2, 2)."""
        x, bent = self._bent(positions)
        hessian = np.empty((len(x), 2, 2))
        hessian[:, 0, 0] = self.first + self.second * (4.0 * np.square(x) - 2.0 * bent)
        hessian[:, 0, 1] = hessian[:, 1, 0] = -2.0 * self.second * x
        hessian[:, 1, 1] = self.second
        return hessian

    def _bent(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        q = check_positions(positions, 2)
        return q[:, 0], q[:, 1] - np.square(q[:, 0])
