"""Hyperparameters of a process, and their search: L-BFGS-B on the log marginal likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import is_number, not_negative, positive
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.limits import check_deadline
from surrokit.types import FloatArray
from surrokit_gp.rows import TrainingRows

LengthScales: TypeAlias = float | tuple[float, ...]
"""One length scale for all coordinates, or one for each."""

MAX_SIGNAL = 5.0
"""Largest signal unless another is asked for, in standard deviations of the values.

Towards long length scales and large signals a process becomes a polynomial, its weights grow as
signal^2 / noise, and its values lose as many digits.
"""


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


Likelihood: TypeAlias = tuple[float, FloatArray]
"""A log marginal likelihood, constants included, and its derivatives: by log l_k (dim), log s and
log sigma."""


@attrs.frozen(kw_only=True, eq=False)
class Space:
    """Hyperparameters as vectors: log l, log s, log sigma, scaled to equations."""

    isotropic: bool  # is there one l for all coordinates?
    noise: float | None  # sigma, where it is fixed
    lengths: FloatArray  # spread of the positions times the root of dim, (dim,)
    left: float  # root mean square of what basis functions leave of the values
    height: float  # standard deviation of the values, or root mean square about a mean of zero
    bounds: FloatArray  # of a vector, (n_entries, 2)

    @classmethod
    def of(
        cls, rows: TrainingRows, isotropic: bool, noise: float | None, max_signal: float
    ) -> Space:
        """Return the space for equations; the signal is at most ``max_signal`` heights."""
        near = rows.near()
        values, has_mean = near.values, near.basis.shape[1] > 0
        spread = near.positions.std(axis=0)
        spread = np.where(spread > 0.0, spread, spread.max() if spread.any() else 1.0)
        lengths = (np.full_like(spread, spread.mean()) if isotropic else spread) * math.sqrt(
            len(spread)
        )
        level = values.mean() if has_mean else 0.0
        height = max(
            float(np.sqrt(np.mean(np.square(values - level)))),
            1e-10,
            1e-8 * float(np.abs(values).max()),
        )
        limits = [np.multiply((0.03, 100.0), each) for each in lengths[: 1 if isotropic else None]]
        limits.append(np.multiply((1e-6, max_signal), height))
        # a hundredth of a nat costs no acceptance, and keeps the digits that less would lose
        noises = np.array([0.01 * min(height, 1.0), 10.0 * height])
        limits.append(noises if noise is None else np.ones(2))
        return cls(
            isotropic=isotropic,
            noise=noise,
            lengths=lengths,
            left=max(_size_left(near), 0.03 * height) if has_mean else height,
            height=height,
            bounds=np.log(np.array(limits)),
        )

    def starts(self) -> list[FloatArray]:
        """Return vectors to start from, the best guess first."""
        # length scales in root-dim spreads of the positions, and noise-to-signal ratios
        return [
            self.pack(
                Hyperparameters(
                    length_scales=length * self.lengths,
                    signal_sd=self.left,
                    noise_sd=ratio * self.left,
                )
            )
            for length, ratio in ((1.0, 0.03), (3.0, 0.003), (0.4, 0.1))
        ]

    def pack(self, values: Hyperparameters) -> FloatArray:
        """Return the vector of hyperparameters, within the bounds."""
        lengths = values.scales(len(self.lengths))[: 1 if self.isotropic else None]
        numbers = [*lengths, values.signal_sd, max(values.noise_sd, 1e-300)]
        return np.clip(np.log(numbers), *self.bounds.T)

    def unpack(self, vector: FloatArray) -> Hyperparameters:
        """Return the hyperparameters of a vector."""
        *lengths, signal, noise = np.exp(vector).tolist()
        return Hyperparameters(
            length_scales=lengths[0] if self.isotropic else lengths,
            signal_sd=signal,
            noise_sd=noise if self.noise is None else self.noise,
        )

    def slope(self, derivatives: FloatArray) -> FloatArray:
        """Return derivatives by the vector from those of a likelihood."""
        lengths, rest = derivatives[:-2], derivatives[-2:] * [1.0, self.noise is None]
        return np.append(lengths.sum() if self.isotropic else lengths, rest)


def _size_left(near: TrainingRows) -> float:
    """Return the root mean square of what a constant and the basis leave of the values."""
    basis = np.column_stack([np.ones(len(near)), near.basis])
    if basis.shape[1] >= len(near):
        return 0.0
    left = near.values - basis @ np.linalg.lstsq(basis, near.values, rcond=None)[0]
    return float(np.sqrt(np.mean(np.square(left))))


def search(
    space: Space,
    likelihood: Callable[[Hyperparameters], Likelihood],
    starts: list[FloatArray],
    iterations: int,
    *,
    every: bool = False,
) -> list[Hyperparameters]:
    """Return where climbs of the log marginal likelihood end, the largest one first.

    They begin at vectors of the space, and take at most so many iterations; unless ``every`` is
    set, only until one succeeds.

    Raises
    ------
    SurrogateFitError
        If the likelihood cannot be computed along any of the paths.
    """

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        value, derivatives = likelihood(space.unpack(point))
        return value, space.slope(derivatives)

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-6, "gtol": 1e-3}
    ends: list[tuple[float, FloatArray]] = []
    for start in starts:
        point, value, reason = climb(objective, start, space.bounds, options)
        if point is not None:
            ends.append((value, point))
            if not every:
                break
    if ends:
        return [space.unpack(point) for _, point in sorted(ends, key=lambda end: -end[0])]
    raise SurrogateFitError(
        f"the marginal likelihood of the process could not be computed from any of {len(starts)} "
        f"starts (the last reason: {reason}); use whiten=True and a larger noise, give "
        "hyperparameters, or rescale the parameters"
    )


def climb(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    bounds: FloatArray,
    options: Mapping[str, float],
) -> tuple[FloatArray | None, float, str]:
    """Return the best point on the way of SciPy's L-BFGS-B to a maximum, and its value.

    And, where nothing could be computed, the reason.

    ``objective`` returns a value and its derivatives, shape (n,); where it raises
    :class:`~surrokit.errors.SurrogateFitError` or ``LinAlgError``, or is not finite, it counts as
    very low. ``bounds (n, 2)`` are least and largest entries.
    """
    from scipy.optimize import minimize

    best: FloatArray | None = None
    highest, reason = -math.inf, "it is not finite"

    def downhill(point: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best, highest, reason
        check_deadline()
        try:
            value, slope = objective(point)
        except (SurrogateFitError, np.linalg.LinAlgError) as error:
            value, slope, reason = math.nan, point, str(error)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            return 1e25, np.zeros_like(point)
        if value > highest:
            highest, best = value, point.copy()
        return -value, -slope

    minimize(downhill, start, jac=True, method="L-BFGS-B", bounds=bounds, options=dict(options))
    return best, highest, reason
