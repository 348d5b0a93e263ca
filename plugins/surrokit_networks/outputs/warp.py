"""A monotone change of each coordinate, by how strongly outputs depend on it from place to place.

Many outputs saturate in a parameter: a block of a medium that conducts well hardly cares whether it
conducts twice as well. A quadratic cannot follow that. In a coordinate whose slope is the strength
of the dependence, the outputs are nearly linear.
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray

_CENTRES: FloatArray = np.linspace(-3.0, 3.0, 25)
"""Centres to try, in standard deviations from the mean."""

_SPREADS: FloatArray = np.geomspace(0.2, 6.0, 18)
"""Widths to try, in standard deviations."""

_PARAMETERS = 2  # that a warp has more than none
_LEAST_ROWS = 20
_LEAST_STRENGTH = 1e-300


@attrs.frozen(kw_only=True, eq=False)
class Warp:
    """t(q) with slope s((q - c) / w) / s((m - c) / w) in each coordinate, s that of a logistic.

    A coordinate with an infinite width w is left as it is, less m. So t and its slope are 0 and 1
    at m.

    Parameters
    ----------
    origin, centre, width : ndarray of shape (dim,)
        m, c and w.
    """

    origin: FloatArray
    centre: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, positions: FloatArray, strengths: FloatArray, weights: FloatArray) -> Warp:
        """Return the warp whose slopes follow the strengths best.

        A coordinate is left as it is unless a warp explains the strengths better by more than its
        two parameters would by chance (the Bayesian information criterion).

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            Where derivatives are known.
        strengths : ndarray of shape (n, dim)
            Norm of the outputs' derivatives in each coordinate.
        weights : ndarray of shape (n,)
            How much each row counts.
        """
        shares = weights / weights.sum()
        mean = shares @ positions
        sd = np.sqrt(shares @ np.square(positions - mean))
        centre, width = mean.copy(), np.full(len(mean), np.inf)
        logs = np.log(np.maximum(strengths, _LEAST_STRENGTH))
        if len(positions) >= _LEAST_ROWS:
            for k in np.flatnonzero(sd > 0.0):
                scaled = (positions[:, k] - mean[k]) / sd[k]
                best = _best_of(scaled, logs[:, k], shares)
                if best is not None:
                    centre[k], width[k] = mean[k] + sd[k] * best[0], sd[k] * best[1]
        return cls(origin=mean, centre=centre, width=width)

    @classmethod
    def none(cls, dim: int) -> Warp:
        """Return the warp that leaves every coordinate as it is."""
        return cls(origin=np.zeros(dim), centre=np.zeros(dim), width=np.full(dim, np.inf))

    @property
    def warps(self) -> bool:
        """Whether any coordinate changes."""
        return bool(np.isfinite(self.width).any())

    def apply(self, positions: FloatArray) -> FloatArray:
        """Return t, shape (n, dim), at positions of shape (n, dim)."""
        bent, at_origin = self._scaled(positions), self._scaled(self.origin)
        with np.errstate(all="ignore"):
            # differences of logistic functions, which do not cancel far from the centre
            moved = np.exp(_log_logistic(bent) + _log_logistic(-at_origin))
            moved -= np.exp(_log_logistic(at_origin) + _log_logistic(-bent))
            warped = self.width * moved / np.exp(_log_slope(at_origin))
        return np.where(np.isfinite(self.width), warped, positions - self.origin)

    def undo(self, warped: FloatArray) -> FloatArray:
        """Return the positions of t, as far as rounding lets tell, shape (n, dim)."""
        at_origin = self._scaled(self.origin)
        with np.errstate(all="ignore"):
            level = np.exp(_log_logistic(at_origin))
            level = level + warped * np.exp(_log_slope(at_origin)) / self.width
            level = np.clip(level, np.finfo(float).tiny, 1.0 - np.finfo(float).eps)
            bent = np.log(level) - np.log1p(-level)
            back = self.centre + self.width * bent
        return np.where(np.isfinite(self.width), back, self.origin + warped)

    def slopes(self, positions: FloatArray) -> FloatArray:
        """Return dt/dq, shape (n, dim)."""
        relative = _log_slope(self._scaled(positions)) - _log_slope(self._scaled(self.origin))
        return np.asarray(np.where(np.isfinite(self.width), np.exp(relative), 1.0))

    def bends(self, positions: FloatArray) -> FloatArray:
        """Return d^2t/dq^2, shape (n, dim)."""
        bent = self._scaled(positions)
        turn = np.exp(_log_logistic(-bent)) - np.exp(_log_logistic(bent))
        return np.asarray(self.slopes(positions) * turn / self.width)

    def _scaled(self, positions: FloatArray) -> FloatArray:
        """Return 0 for coordinates that stay as they are."""
        return (positions - self.centre) / self.width


def _best_of(
    scaled: FloatArray, logs: FloatArray, shares: FloatArray
) -> tuple[float, float] | None:
    """Return the centre and width that explain log strengths best; None if none is worth it."""
    bent = (scaled[:, None, None] - _CENTRES[:, None]) / _SPREADS
    left = logs[:, None, None] - _log_slope(bent)
    left -= np.einsum("n,ncs->cs", shares, left)
    errors = np.einsum("n,ncs->cs", shares, np.square(left))
    plain = float(shares @ np.square(logs - shares @ logs))
    c, s = np.unravel_index(int(errors.argmin()), errors.shape)
    n = 1.0 / float(np.square(shares).sum())
    if not plain > 0.0 or n * np.log(plain / errors[c, s]) <= _PARAMETERS * np.log(n):
        return None
    return float(_CENTRES[c]), float(_SPREADS[s])


def _log_logistic(x: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x))))


def _log_slope(x: FloatArray) -> FloatArray:
    """Return the logarithm of the logistic function's slope."""
    return _log_logistic(x) + _log_logistic(-x)
