"""The growth of a cost with a size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def growth_power(sizes: npt.ArrayLike, costs: npt.ArrayLike) -> float | None:
    """Return p where cost grows as size^p: the slope of a line through both logarithms.

    Parameters
    ----------
    sizes, costs : array_like of shape (n,)
        Positive numbers; pairs with a cost that is zero or NaN are left out.

    Returns
    -------
    float or None
        None with fewer than two different sizes.
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    known = (y > 0) & np.isfinite(y)
    x, y = np.log(x[known]), np.log(y[known])
    if np.unique(x).size < 2:
        return None
    x = x - x.mean()
    return float(x @ y / (x @ x))
