"""Marginal transformations of heavy tails, fitted to draws."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray


def heavy_tails(positions: FloatArray) -> BoolArray:
    """Return which columns of positions (n, dim) have heavy tails on both sides, shape (dim,).

    By quantiles, which no single draw changes much. The distance from the median of the 0.025 and
    0.975 quantiles, in that of the quartile on their side, is 2.9 for a normal distribution, 3.5
    for Student's with five degrees of freedom, 4.2 with three, and 12.7 for a Cauchy distribution;
    from 4 on a tail is heavy. One on one side alone is that of a curved density as often as not,
    which no warp of each parameter makes normal. Less than 100 rows tell nothing.
    """
    if len(positions) < 100:
        return np.zeros(positions.shape[1], dtype=bool)
    quantiles = (0.025, 0.25, 0.5, 0.75, 0.975)
    low, left, middle, right, high = np.quantile(positions, quantiles, axis=0)
    heavy = (middle - low >= 4.0 * (middle - left)) & (high - middle >= 4.0 * (right - middle))
    return np.asarray(heavy & (low < left) & (right < high))


def fit_heavy(positions: FloatArray) -> FloatArray | None:
    """Return what :func:`fit_marginals` does for columns with heavy tails; None without any.

    The other columns are only shifted and scaled.
    """
    heavy = heavy_tails(positions)
    if not heavy.any():
        return None
    dim = positions.shape[1]
    plain = np.stack([positions.mean(axis=0), positions.std(axis=0), np.zeros(dim), np.ones(dim)])
    plain[1, ~(plain[1] > 0)] = 1.0
    plain[:, heavy] = fit_marginals(positions[:, heavy])
    return plain if (plain[3] < 1.0).any() else None


def fit_marginals(positions: FloatArray) -> FloatArray:
    """Return centre, scale, lean and tail of a warp, shape (4, dim), for positions (n, dim).

    Each parameter's are those of the greatest likelihood, with a penalty on lean and tail that
    counts as much as a few draws. They bend only where draws clearly are not normal: what chance
    bends makes straight ridges crooked. A parameter that does not vary is only shifted.
    """
    return np.stack([_fit_one(column) for column in positions.T], axis=1)


def _fit_one(column: FloatArray) -> FloatArray:
    from scipy.optimize import minimize

    middle, spread = float(np.median(column)), float(column.std())
    if not (np.isfinite(spread) and spread > 0):
        return np.array([middle, 1.0, 0.0, 1.0])
    units, most = (column - middle) / spread, np.log(3.0)
    # farther from normal than a lean of 2 and a tail of 3, a few draws cannot tell
    bounds = [(-3.0, 3.0), (-3.0, 3.0), (-2.0, 2.0), (-most, most)]
    start = np.zeros(4)
    found = minimize(_misfit, start, args=(units,), jac=True, method="L-BFGS-B", bounds=bounds)
    normal = 0.5 - np.log(2.0)  # the misfit of standardised draws as they are
    if not len(units) * (normal - found.fun) > 10.0:  # nats by which it must be more likely
        return np.array([float(column.mean()), spread, 0.0, 1.0])
    centre, log_scale, lean, log_tail = found.x
    return np.array([middle + spread * centre, spread * np.exp(log_scale), lean, np.exp(log_tail)])


def _misfit(setting: FloatArray, units: FloatArray) -> tuple[float, FloatArray]:
    """Return -log likelihood over the number of draws, penalty included, and its gradient.

    Settings are centre, log scale, lean and log tail. The penalty is that of ten draws that speak
    for no change of shape.
    """
    centre, log_scale, lean, log_tail = setting
    scale, tail = np.exp(log_scale), np.exp(log_tail)
    w = (units - centre) / scale
    root, arc = np.sqrt(1.0 + w * w), np.arcsinh(w)
    bent = tail * arc - lean
    z = np.sinh(bent)
    # dz/dx = cosh(bent) tail / (scale root)
    each = 0.5 * z * z - np.logaddexp(bent, -bent) + np.log(root)
    by_bent = z * np.cosh(bent) - np.tanh(bent)
    by_w = by_bent * tail / root + w / (root * root)
    weight = 10.0 / len(units)
    value = each.mean() + log_scale - log_tail + 0.5 * weight * (lean**2 + log_tail**2)
    by_tail = tail * (by_bent * arc).mean() - 1.0 + weight * log_tail
    gradient = [-by_w.mean() / scale, 1.0 - (by_w * w).mean(), -by_bent.mean() + weight * lean]
    return float(value), np.array([*gradient, by_tail])


@attrs.frozen(kw_only=True, eq=False)
class Warp:
    """A smooth map of each parameter by itself: x = centre + scale sinh((asinh z + lean) / tail).

    It is the sinh-arcsinh transformation of Jones and Pewsey (2009, doi:10.1093/biomet/asp053),
    and takes the line onto the line. With ``lean`` 0 and ``tail`` 1 it is a shift and a scale.

    Parameters
    ----------
    centre, scale : ndarray of shape (dim,)
        Where z = 0 lies without a lean, and units there.
    lean : ndarray of shape (dim,)
        Positive for a long tail towards large x.
    tail : ndarray of shape (dim,)
        Below 1 for tails of x that are longer than those of z.
    covariance : ndarray of shape (dim, dim)
        Of the target in z.
    """

    centre: FloatArray
    scale: FloatArray
    lean: FloatArray
    tail: FloatArray
    covariance: FloatArray

    def straighten(self, positions: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), of positions x (n, dim)."""
        units = (positions - self.centre) / self.scale
        return np.asarray(np.sinh(self.tail * np.arcsinh(units) - self.lean))

    def bend(self, straight: FloatArray) -> FloatArray:
        """Return x, shape (n, dim), of z (n, dim)."""
        return np.asarray(self.centre + self.scale * np.sinh(self._inside(straight)))

    def slopes(self, straight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dx/dz and the derivative of its logarithm by z, both of shape (n, dim)."""
        inside, root = self._inside(straight), np.sqrt(1.0 + np.square(straight))
        slope = self.scale / self.tail * np.cosh(inside) / root
        by_straight = np.tanh(inside) / (self.tail * root) - straight / np.square(root)
        return slope, by_straight

    def log_volume(self, straight: FloatArray) -> FloatArray:
        """Return log |dx/dz|, shape (n,), at z (n, dim)."""
        return np.asarray(np.log(self.slopes(straight)[0]).sum(axis=1))

    def pull(self, gradients: FloatArray, straight: FloatArray) -> FloatArray:
        """Return gradients by z of U - log |dx/dz| at z (n, dim), from those of U by x."""
        slope, by_straight = self.slopes(straight)
        return np.asarray(gradients * slope - by_straight)

    def push(self, gradients: FloatArray, straight: FloatArray) -> FloatArray:
        """Return gradients of U by x at z (n, dim), from those of U - log |dx/dz| by z."""
        slope, by_straight = self.slopes(straight)
        return np.asarray((gradients + by_straight) / slope)

    def _inside(self, straight: FloatArray) -> FloatArray:
        return np.asarray((np.arcsinh(straight) + self.lean) / self.tail)
