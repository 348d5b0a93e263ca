"""Hyperparameters of a process, and their search: L-BFGS-B on the log marginal likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np
from scipy.optimize import minimize

from surrokit.arguments import Limits, is_number, not_negative, positive
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.limits import check_deadline
from surrokit.types import FloatArray
from surrokit_gp.rows import TrainingRows

LengthScales: TypeAlias = float | tuple[float, ...]
"""One length scale for all coordinates, or one for each."""

Likelihood: TypeAlias = tuple[float, FloatArray]
"""A log marginal likelihood, constants included, and its derivatives: by log l_k (dim), log s and
log sigma, and whatever else it depends on."""


def _plain(value: Any) -> Any:
    plain = np.asarray(value).tolist()
    return tuple(plain) if isinstance(plain, list) else plain


def _are_positive(scales: Any) -> bool:
    each = scales if isinstance(scales, tuple) else (scales,)
    return bool(each) and all(is_number(x) and 0.0 < x < math.inf for x in each)


_SCALES = Limits("a positive finite number, or one for each coordinate", _are_positive)


@attrs.frozen(kw_only=True)
class Hyperparameters:
    """Length scales, signal and noise of a squared-exponential process.

    Parameters
    ----------
    length_scales : float or sequence of float
        l, one for all coordinates or one for each, in the coordinates that the kernel sees:
        whitened ones unless ``whiten=False``.
    signal_sd
        s, standard deviation of the process about its mean function, in nats.
    noise_sd
        sigma, standard deviation of the noise of a value, in nats; that of a derivative along one
        length scale is the same.

    Raises
    ------
    ConfigurationError
        If a number makes no sense.
    """

    length_scales: LengthScales = attrs.field(converter=_plain, validator=_SCALES)
    signal_sd: float = attrs.field(validator=positive)
    noise_sd: float = attrs.field(validator=not_negative)

    def scales(self, dim: int) -> FloatArray:
        """Return the length scale of each coordinate, shape (dim,).

        Raises
        ------
        ConfigurationError
            If there is neither one length scale nor one for each of ``dim`` coordinates.
        """
        if isinstance(self.length_scales, tuple) and len(self.length_scales) != dim:
            raise ConfigurationError(
                f"hyperparameters have {len(self.length_scales)} length scales, but positions have "
                f"{dim} coordinates; give one length scale, or one for each"
            )
        return np.full(dim, self.length_scales, dtype=np.float64)


def given_hyperparameters(
    value: Hyperparameters | Mapping[str, float | Sequence[float]] | None,
) -> Any:
    """Return hyperparameters from a mapping of their names to numbers; others as they are."""
    numbers: Any = value
    return Hyperparameters(**numbers) if isinstance(value, Mapping) else value


@attrs.frozen(kw_only=True, eq=False)
class Space:
    """Where hyperparameters are sought: vectors of log l, log s and log sigma."""

    starts: FloatArray  # vectors to start from, the best guess first: (3, 3)
    bounds: FloatArray  # (3, 2)

    @classmethod
    def of(cls, rows: TrainingRows, max_signal: float) -> Space:
        """Return the space for equations; the signal is at most ``max_signal`` heights."""
        near = np.flatnonzero(rows.tail_sd == 0.0)
        near = near if len(near) > 1 else np.arange(len(rows))
        positions, values, basis = (
            array[near] for array in (rows.positions, rows.values, rows.basis)
        )
        spread = positions.std(axis=0)
        spread = np.where(spread > 0.0, spread, spread.max() if spread.any() else 1.0)
        length = float(spread.mean()) * math.sqrt(rows.dim)
        # the values' standard deviation, or root mean square about a mean of zero
        away = values - (values.mean() if basis.shape[1] else 0.0)
        height = max(_size(away), 1e-10, 1e-8 * float(np.abs(values).max()))
        left = height
        if basis.shape[1]:  # what basis functions leave of the values
            basis = np.column_stack([np.ones(len(near)), basis])
            fitted = basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
            left = max(_size(values - fitted), 0.03 * height)
        # a noise of a hundredth of a nat costs no acceptance, and keeps the digits that less would
        # lose: towards long length scales and large signals weights grow as signal^2 / noise
        noises = (0.01 * min(height, 1.0), 10.0 * height)
        signals = (1e-6 * height, max_signal * height)
        bounds = np.log([(0.03 * length, 100.0 * length), signals, noises])
        # length scales in root-dim spreads of the positions, and noise-to-signal ratios
        guesses = ((1.0, 0.03), (3.0, 0.003), (0.4, 0.1))
        starts = np.log([[scale * length, left, ratio * left] for scale, ratio in guesses])
        return cls(starts=np.clip(starts, *bounds.T), bounds=bounds)

    @staticmethod
    def unpack(vector: FloatArray) -> Hyperparameters:
        """Return the hyperparameters of a vector, which may go on with other numbers."""
        length, signal, noise = np.exp(vector[:3]).tolist()
        return Hyperparameters(length_scales=length, signal_sd=signal, noise_sd=noise)

    @staticmethod
    def slope(derivatives: FloatArray, dim: int) -> FloatArray:
        """Return derivatives by the vector from those of a likelihood in ``dim`` coordinates."""
        return np.array([derivatives[:dim].sum(), *derivatives[dim:]])


def _size(array: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(array))))


def search(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    starts: Sequence[FloatArray],
    bounds: FloatArray,
    iterations: int,
) -> FloatArray:
    """Return the best vector on the way of L-BFGS-B to a maximum, from the best of some starts.

    A climb takes at most so many iterations. ``objective`` returns a value and its derivatives;
    where it raises SurrogateFitError or LinAlgError, or is not finite, it counts as very low.
    ``bounds (k, 2)`` are the least and largest numbers, of the first k where there are more.

    Raises
    ------
    SurrogateFitError
        If the objective cannot be computed at any of the starts.
    """
    reason, best, least = "it is not finite", None, np.inf

    def downhill(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal reason, best, least
        check_deadline()
        try:
            value, slope = objective(point)
        except (SurrogateFitError, np.linalg.LinAlgError) as error:
            reason = str(error)
            return 1e25, np.zeros_like(point)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            return 1e25, np.zeros_like(point)
        if -value < least:
            best, least = point.copy(), -value
        return -value, -slope

    for start in starts:
        downhill(start)
    if best is None:
        raise SurrogateFitError(
            "the marginal likelihood of the process could not be computed from any of "
            f"{len(starts)} starts (the last reason: {reason}); use whiten=True, give "
            "hyperparameters, or rescale the parameters"
        )
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-6, "gtol": 1e-3}
    ends = np.pad(bounds, ((0, len(best) - len(bounds)), (0, 0)), constant_values=np.nan)
    ends = np.where(np.isnan(ends), [-np.inf, np.inf], ends)
    minimize(downhill, best, jac=True, method="L-BFGS-B", bounds=ends, options=options)
    return best
