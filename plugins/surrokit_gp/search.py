"""Hyperparameters of a process, and their search: L-BFGS-B on the log marginal likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np
from scipy.optimize import minimize

from surrokit.arguments import is_number, not_negative, positive
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.limits import check_deadline
from surrokit.types import FloatArray
from surrokit_gp.rows import TrainingRows

LengthScales: TypeAlias = float | tuple[float, ...]
"""One length scale for all coordinates, or one for each."""

Likelihood: TypeAlias = tuple[float, FloatArray]
"""A log marginal likelihood, constants included, and its derivatives: by log l_k (dim), log s and
log sigma, and whatever else it depends on."""


def _scales(value: Any) -> Any:
    if is_number(value) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return float(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(value.tolist() if isinstance(value, np.ndarray) else value)
    return value


def _positive_scales(_: object, __: object, value: Any) -> None:
    scales = value if isinstance(value, tuple) else (value,)
    if not scales or not all(is_number(x) and 0.0 < x < math.inf for x in scales):
        raise ConfigurationError(
            "length_scales must be a positive finite number, or one for each coordinate, "
            f"got {value!r}"
        )


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

    length_scales: LengthScales = attrs.field(converter=_scales, validator=_positive_scales)
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
    """Where hyperparameters of equations are sought: vectors of log l, log s and log sigma.

    There is one l for all coordinates if it is ``isotropic``, and no log sigma where it is fixed.
    """

    isotropic: bool
    noise: float | None
    starts: FloatArray  # vectors to start from, the best guess first: (3, n_entries)
    bounds: FloatArray  # (n_entries, 2)

    @classmethod
    def of(
        cls, rows: TrainingRows, isotropic: bool, noise: float | None, max_signal: float
    ) -> Space:
        """Return the space for equations; the signal is at most ``max_signal`` heights."""
        near = np.flatnonzero(rows.tail_sd == 0.0)
        near = near if len(near) > 1 else np.arange(len(rows))
        positions, values, basis = (
            array[near] for array in (rows.positions, rows.values, rows.basis)
        )
        spread = positions.std(axis=0)
        spread = np.where(spread > 0.0, spread, spread.max() if spread.any() else 1.0)
        spread = np.array([spread.mean()]) if isotropic else spread
        lengths = spread * math.sqrt(rows.dim)
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
        limits = [(0.03 * each, 100.0 * each) for each in lengths]
        limits += [(1e-6 * height, max_signal * height), noises]
        # length scales in root-dim spreads of the positions, and noise-to-signal ratios
        guesses = ((1.0, 0.03), (3.0, 0.003), (0.4, 0.1))
        starts = [[*(length * lengths), left, ratio * left] for length, ratio in guesses]
        bounds, n = np.log(limits), len(limits) - (noise is not None)
        clipped = np.clip(np.log(starts), *bounds.T)[:, :n]
        return cls(isotropic=isotropic, noise=noise, starts=clipped, bounds=bounds[:n])

    def unpack(self, vector: FloatArray) -> Hyperparameters:
        """Return the hyperparameters of a vector, which may go on with other numbers."""
        numbers = np.exp(vector[: len(self.bounds)]).tolist()
        noise = numbers.pop() if self.noise is None else self.noise
        *lengths, signal = numbers
        scales = lengths[0] if self.isotropic else lengths
        return Hyperparameters(length_scales=scales, signal_sd=signal, noise_sd=noise)

    def slope(self, derivatives: FloatArray, dim: int) -> FloatArray:
        """Return derivatives by the vector from those of a likelihood in ``dim`` coordinates."""
        lengths, (signal, noise, *rest) = derivatives[:dim], derivatives[dim:]
        scales = [lengths.sum()] if self.isotropic else lengths
        return np.array([*scales, signal, *([noise] if self.noise is None else []), *rest])


def _size(array: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.square(array))))


def search(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    starts: Iterable[FloatArray],
    bounds: FloatArray,
    iterations: int,
    *,
    every: bool = False,
) -> list[FloatArray]:
    """Return the best vectors on the ways of L-BFGS-B to maxima, the largest one first.

    Climbs begin at ``starts``, and take at most so many iterations; unless ``every`` is set, only
    until one succeeds. ``objective`` returns a value and its derivatives; where it raises
    SurrogateFitError or LinAlgError, or is not finite, it counts as very low. ``bounds (k, 2)`` are
    the least and largest of the first k numbers; others are free.

    Raises
    ------
    SurrogateFitError
        If the objective cannot be computed along any of the paths.
    """
    reason, seen, ends, tried = "it is not finite", [], [], 0

    def downhill(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal reason
        check_deadline()
        try:
            value, slope = objective(point)
        except (SurrogateFitError, np.linalg.LinAlgError) as error:
            reason = str(error)
            return 1e25, np.zeros_like(point)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            return 1e25, np.zeros_like(point)
        seen.append((value, point.copy()))
        return -value, -slope

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-6, "gtol": 1e-3}
    for start in starts:
        tried, seen = tried + 1, []
        free = [(-np.inf, np.inf)] * (len(start) - len(bounds))
        limits = [*bounds, *free]
        minimize(downhill, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
        if seen:
            ends.append(max(seen, key=lambda end: end[0]))
            if not every:
                break
    if ends:
        return [point for _, point in sorted(ends, key=lambda end: -end[0])]
    raise SurrogateFitError(
        f"the marginal likelihood of the process could not be computed from any of {tried} starts "
        f"(the last reason: {reason}); use whiten=True and a larger noise, give "
        "hyperparameters, or rescale the parameters"
    )
