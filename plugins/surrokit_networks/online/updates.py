"""Updates of a learner after its first fit, by the cheaper of two ways."""

from __future__ import annotations

from typing import Literal, TypeAlias

Updates: TypeAlias = Literal["auto", "refit", "greville", "moments"]
"""``refit``: everything is kept and fitted anew; ``greville``: row by row (Proposition 1);
``moments``: sums over rows, solved at deployment; ``auto``: the cheapest."""

_ROW = 0.12e-9
"""Seconds for each square of the number of columns that a row takes, in a block of rows."""

_SINGLE = 0.4e-9
"""The same for a row that comes alone: memory is then slower than arithmetic."""

_PRODUCT = 0.07e-9
"""Seconds for each square that the products of a position take, and again those of a gradient."""

_SOLUTION = 0.033e-9
"""Seconds for each cube that a solution from sums takes."""


def cheaper(
    n_columns: int, dim: int, gradients: bool, rate: float
) -> Literal["greville", "moments"]:
    """Return which engine takes less time for each evaluation.

    With k columns and ``rate`` deployments for each evaluation,

    - ``greville`` takes a k^2 for a value that comes alone, or (1 + dim) b k^2 for a value with
      its gradient, 1 + dim rows in a block; its solution is there at any time;
    - ``moments`` takes p k^2 for a value, 2 p k^2 with its gradient, and rate q k^3.

    a, b, p and q are measured on one core (``tests/benchmarks/greville.py``); other machines shift
    the boundary, and near it either will do. So with values alone and k = 1000 Greville's updates
    pay from about one deployment in a hundred evaluations on; with gradients in many dimensions
    hardly ever.

    Parameters
    ----------
    n_columns
        k: nodes, trend and level.
    dim
        Numbers in a position.
    gradients
        Whether gradients are learnt from.
    rate
        Expected deployments for each evaluation.
    """
    square = float(n_columns) ** 2
    by_rows = square * ((1 + dim) * _ROW if gradients else _SINGLE)
    by_sums = square * (_PRODUCT * (1 + gradients) + rate * _SOLUTION * n_columns)
    return "greville" if by_rows < by_sums else "moments"
