"""Marginal transformations of heavy tails, fitted to draws."""

from __future__ import annotations

from typing import NamedTuple

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
class Scales:
    """Locations and log scales of some parameters that are linear in the others.

    x = centre + w exp(w B) + w A, element by element but for the products. Only rows of parameters
    whose own columns are zero have entries, so that these are x - centre themselves, and the map
    takes space onto space. In a hierarchical model, with the log of a scale among the parameters,
    that is the way from centred to non-centred parameters, or part of it.

    Parameters
    ----------
    locations : ndarray of shape (dim, dim)
        A.
    logs : ndarray of shape (dim, dim)
        B.
    """

    locations: FloatArray
    logs: FloatArray

    def remove(self, away: FloatArray) -> FloatArray:
        """Return w, shape (n, dim), of x - centre (n, dim)."""
        return np.asarray((away - away @ self.locations) * np.exp(-(away @ self.logs)))

    def add(self, inner: FloatArray) -> FloatArray:
        """Return x - centre, shape (n, dim), of w (n, dim)."""
        return np.asarray(inner * np.exp(inner @ self.logs) + inner @ self.locations)

    def log_volume(self, inner: FloatArray) -> FloatArray:
        """Return log |dx/dw|, shape (n,), at w (n, dim)."""
        return np.asarray(inner @ self.logs.sum(axis=1))

    def pull(self, gradients: FloatArray, inner: FloatArray) -> FloatArray:
        """Return gradients by w of U - log |dx/dw| at w (n, dim), from those of U by x."""
        scaled = gradients * np.exp(inner @ self.logs)
        return np.asarray(scaled + self._of_others(gradients, scaled, inner))

    def push(self, gradients: FloatArray, inner: FloatArray) -> FloatArray:
        """Return gradients of U by x at w (n, dim), from those of U - log |dx/dw| by w."""
        scale = np.exp(inner @ self.logs)
        return np.asarray(
            (gradients - self._of_others(gradients / scale, gradients, inner)) / scale
        )

    def _of_others(
        self, gradients: FloatArray, scaled: FloatArray, inner: FloatArray
    ) -> FloatArray:
        """Return what gradients gain from parameters that depend on them."""
        by_logs = (scaled * inner) @ self.logs.T - self.logs.sum(axis=1)
        return np.asarray(by_logs + gradients @ self.locations.T)


WIDENS, GAINS = 0.4, 0.1
"""Change of a log scale over a standard deviation of another parameter from which on it is looked
at, and nats a draw by which a fitted one must be more likely than a constant."""

CLEAR = 5.0
"""Standard errors, of independent draws, from which on a location depends on another parameter."""

MOST_MEANS = 3
"""Parameters that are tried as means of others."""

_SD_OF_LOG = 1.11  # of log |x|, x standard normal


def fit_scales(
    positions: FloatArray, gradients: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, Scales] | None:
    """Return centre and scale (dim,) of w, and what changes with other parameters; None for none.

    Gradients of U at the positions (n, dim) make it known from few.

    A parameter's log scale is compared with all others, after what is linear in these. The one that
    most is gained by goes first; what depends on it governs no others.
    """
    n, dim = positions.shape
    centre, spread = positions.mean(axis=0), positions.std(axis=0)
    if n < 100 or n < 5 * dim or dim < 2 or not (np.isfinite(spread) & (spread > 0)).all():
        return None
    units = (positions - centre) / spread
    slopes, governs, governed = _dependence(units)
    # scales are few: where most parameters are taken for one, chains have yet to mix
    if not governs.any() or 2 * governs.sum() > dim + 2:
        return None
    pulled = None if gradients is None else gradients * spread
    found = _fit_widths(units, pulled, governed, governs, slopes)
    # one that no scale is found for may be the mean of others, and belong to their locations
    for _ in range(MOST_MEANS):
        without = [i for i in np.flatnonzero(governed) if i not in found]
        if not without:
            break
        ahead = governed.copy()
        ahead[without[np.argmax(_shared(units, governed)[without])]] = False
        better = _fit_widths(units, pulled, ahead, governs, slopes)
        if sum(fit.gain for fit in better.values()) <= sum(fit.gain for fit in found.values()):
            break
        governed, found = ahead, better
    scale, locations, widths = spread.copy(), np.zeros((dim, dim)), np.zeros((dim, dim))
    for i, fit in found.items():
        centre[i] += spread[i] * fit.middle
        scale[i] *= np.exp(fit.log_scale)
        locations[~governed, i] = spread[i] * fit.by_others / spread[~governed]
        widths[governs, i] = fit.by_governing / spread[governs]
    return (centre, scale, Scales(locations=locations, logs=widths)) if found else None


def _dependence(units: FloatArray) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Return how log scales go by other parameters, (dim, dim), and which go by which, (dim,) each.

    The first go by none, and the second by some of the first.
    """
    n, dim = units.shape
    chance = 4.0 / np.sqrt(n / 5.0)  # draws of chains are dependent
    correlations = units.T @ units / n
    # what chance makes of a correlation is more than all of the residual where that is narrow
    correlations[np.abs(correlations) < min(chance, 0.5)] = 0.0
    left = units @ np.linalg.pinv(correlations, hermitian=True)  # in proportion to residuals
    logs = np.log(np.abs(left - np.median(left, axis=0)) + 1e-300)
    slopes = np.clip(units, -3.0, 3.0).T @ (logs - logs.mean(axis=0)) / n
    np.fill_diagonal(slopes, 0.0)
    least = max(WIDENS, chance * _SD_OF_LOG)
    strong = np.where(np.abs(slopes) > least, np.square(slopes), 0.0)
    governs: BoolArray = np.zeros(dim, dtype=bool)
    governed: BoolArray = np.zeros(dim, dtype=bool)
    while (gains := (strong * ~governed[:, None] * ~governs).sum(axis=1) * ~governs).any():
        first = int(np.argmax(gains))
        governs[first] = True
        governed |= (strong[first] > 0) & ~governs
    return slopes, governs, governed


class _Width(NamedTuple):
    """Mean and log scale of a parameter, in units of standard deviations, and their gain."""

    middle: float
    by_others: FloatArray
    log_scale: float
    by_governing: FloatArray
    gain: float


def _shared(units: FloatArray, governed: BoolArray) -> FloatArray:
    """Return how much of governed parameters each explains, beside the others, shape (dim,)."""
    others = np.hstack([np.ones((len(units), 1)), units[:, ~governed]])
    left = units - others @ np.linalg.lstsq(others, units, rcond=None)[0]
    left = left / np.maximum(left.std(axis=0), 1e-9)
    return np.asarray(np.square(left.T @ left[:, governed] / len(left)).sum(axis=1))


def _fit_widths(
    units: FloatArray,
    pulled: FloatArray | None,
    governed: BoolArray,
    governs: BoolArray,
    slopes: FloatArray,
) -> dict[int, _Width]:
    """Return fits of governed parameters that gain, by number."""
    others, governing, found = units[:, ~governed], units[:, governs], {}
    for i in np.flatnonzero(governed):
        slope = None if pulled is None else pulled[:, i]
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                fit = _fit_width(units[:, i], others, governing, slopes[governs, i], slope)
        except np.linalg.LinAlgError:  # of scales or gradients that overflow
            continue
        if np.isfinite(fit.gain) and fit.gain > GAINS:
            found[int(i)] = fit
    return found


def _fit_width(
    y: FloatArray,
    others: FloatArray,
    governing: FloatArray,
    start: FloatArray,
    slope: FloatArray | None,
) -> _Width:
    """Return the mean of y (n,), linear in others, and its log scale, linear in governing ones.

    Both are the most likely ones, or of the least Fisher divergence where the gradients of U by y
    are known, slope (n,): of a normal y given all others they make them known exactly. What it
    gains is in nats a draw, over a constant scale.
    """
    ones = np.ones((len(y), 1))
    design, widths = np.hstack([ones, others]), np.hstack([ones, governing])
    plain = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    by_width = np.concatenate([[0.0], start])
    by_width[0] = 0.5 * np.log(np.mean(np.square(plain) * np.exp(-2.0 * (governing @ start))))
    mean, error, by_width = _scored(y, design, widths, by_width)
    if slope is not None:
        mean, by_width = _matched(y, slope, design, widths, mean, by_width)
    else:
        # where scales are narrow, a slope of the mean that chance makes would be far off
        clear = np.abs(mean) > CLEAR * error
        clear[0] = True
        slopes, _, by_width = _scored(y, design[:, clear], widths, by_width)
        mean = np.zeros(len(mean))
        mean[clear] = slopes
    log_scale = widths @ by_width
    left = np.mean(np.square(y - design @ mean) * np.exp(-2.0 * log_scale))
    gain = 0.5 * np.log(np.mean(plain**2)) - log_scale.mean() - 0.5 * np.log(left)
    return _Width(float(mean[0]), mean[1:], float(by_width[0]), by_width[1:], float(gain))


def _matched(
    y: FloatArray,
    slope: FloatArray,
    design: FloatArray,
    widths: FloatArray,
    mean: FloatArray,
    by_width: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return slopes of the mean of y (n,) and of its log scale for the least Fisher divergence.

    That is the mean square of slope times scale, less (y - mean) over the scale. By damped
    Gauss-Newton steps.
    """
    now, k, damping = np.concatenate([mean, by_width]), len(mean), 1e-3

    def parts(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        scale = np.exp(widths @ at[k:])
        return slope * scale, (y - design @ at[:k]) / scale

    with np.errstate(all="ignore"):  # steps to what is not finite are not taken
        pulled, away = parts(now)
        for _ in range(50):
            left = pulled - away
            by_mean = design * np.exp(-(widths @ now[k:]))[:, None]
            jacobian = np.hstack([by_mean, widths * (pulled + away)[:, None]])
            curvature = jacobian.T @ jacobian
            damped = curvature + damping * np.diag(np.diag(curvature) + 1e-12)
            step = -np.linalg.solve(damped, jacobian.T @ left)
            found = parts(now + step)
            if not np.square(found[0] - found[1]).sum() < np.square(left).sum():
                damping *= 10.0
                if damping > 1e6:
                    break
                continue
            now, (pulled, away), damping = now + step, found, 0.2 * damping
            if np.abs(step).max() < 1e-8:
                break
    return now[:k], now[k:]


def _scored(
    y: FloatArray, design: FloatArray, widths: FloatArray, by_width: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return slopes of the mean of y (n,), their errors, and slopes of the log scale.

    By Fisher scoring from slopes of the log scale.
    """
    n = len(y)
    information = np.linalg.inv(2.0 * widths.T @ widths / n + 1e-6 * np.eye(widths.shape[1]))
    for _ in range(50):
        weights = np.exp(-2.0 * (widths @ by_width))
        curvature = (design * weights[:, None]).T @ design
        inverse = np.linalg.pinv(curvature, hermitian=True)
        mean = inverse @ ((design * weights[:, None]).T @ y)
        surprise = np.minimum(np.square(y - design @ mean) * weights, 20.0) - 1.0
        step = np.clip(information @ (widths.T @ surprise / n), -0.5, 0.5)
        by_width = by_width + step
        if np.abs(step).max() < 1e-4:
            break
    return mean, np.sqrt(np.diag(inverse)), by_width


@attrs.frozen(kw_only=True, eq=False)
class Warp:
    """A smooth map of each parameter by itself: x = centre + scale sinh((asinh z + lean) / tail).

    With ``scales`` that is w in place of x - centre, and they make x - centre of it.

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
    scales
        How locations and scales of some parameters depend on others; None if they do not.
    """

    centre: FloatArray
    scale: FloatArray
    lean: FloatArray
    tail: FloatArray
    covariance: FloatArray
    scales: Scales | None = None

    @property
    def is_curved(self) -> bool:
        """Whether any parameter by itself is more than shifted and scaled."""
        return bool((self.lean != 0.0).any() or (self.tail != 1.0).any())

    def straighten(self, positions: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), of positions x (n, dim)."""
        away = positions - self.centre
        units = (away if self.scales is None else self.scales.remove(away)) / self.scale
        return np.asarray(np.sinh(self.tail * np.arcsinh(units) - self.lean))

    def bend(self, straight: FloatArray) -> FloatArray:
        """Return x, shape (n, dim), of z (n, dim)."""
        inner = self._inner(straight)
        return self.centre + (inner if self.scales is None else self.scales.add(inner))

    def slopes(self, straight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dw/dz and the derivative of its logarithm by z, both of shape (n, dim)."""
        inside, root = self._inside(straight), np.sqrt(1.0 + np.square(straight))
        slope = self.scale / self.tail * np.cosh(inside) / root
        by_straight = np.tanh(inside) / (self.tail * root) - straight / np.square(root)
        return slope, by_straight

    def log_volume(self, straight: FloatArray) -> FloatArray:
        """Return log |dx/dz|, shape (n,), at z (n, dim)."""
        volume = np.log(self.slopes(straight)[0]).sum(axis=1)
        if self.scales is not None:
            volume = volume + self.scales.log_volume(self._inner(straight))
        return np.asarray(volume)

    def pull(self, gradients: FloatArray, straight: FloatArray) -> FloatArray:
        """Return gradients by z of U - log |dx/dz| at z (n, dim), from those of U by x."""
        slope, by_straight = self.slopes(straight)
        if self.scales is not None:
            gradients = self.scales.pull(gradients, self._inner(straight))
        return np.asarray(gradients * slope - by_straight)

    def push(self, gradients: FloatArray, straight: FloatArray) -> FloatArray:
        """Return gradients of U by x at z (n, dim), from those of U - log |dx/dz| by z."""
        slope, by_straight = self.slopes(straight)
        gradients = (gradients + by_straight) / slope
        if self.scales is not None:
            gradients = self.scales.push(gradients, self._inner(straight))
        return np.asarray(gradients)

    def _inner(self, straight: FloatArray) -> FloatArray:
        """Return w, shape (n, dim): x - centre, but for scales."""
        return np.asarray(self.scale * np.sinh(self._inside(straight)))

    def _inside(self, straight: FloatArray) -> FloatArray:
        return np.asarray((np.arcsinh(straight) + self.lean) / self.tail)


def fit_warp(
    positions: FloatArray, gradients: FloatArray | None = None, *, every: bool
) -> Warp | None:
    """Return a warp for positions (n, dim), with the identity as its covariance; None for none.

    Gradients are those of U there (n, dim). Scales depend on other parameters where that is so. If
    they do not, ``every`` parameter that is not normal is bent, or those alone that have heavy
    tails on both sides.
    """
    dim, scaled = positions.shape[1], fit_scales(positions, gradients)
    fit = fit_marginals if every else fit_heavy
    if scaled is None:
        fitted = fit(positions)
        if fitted is None:
            return None
        centre, scale, lean, tail = fitted
        return Warp(centre=centre, scale=scale, lean=lean, tail=tail, covariance=np.eye(dim))
    centre, scale, scales = scaled
    return Warp(
        centre=centre,
        scale=scale,
        lean=np.zeros(dim),
        tail=np.ones(dim),
        covariance=np.eye(dim),
        scales=scales,
    )
