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
from surrokit_gp.observations import Observations

LengthScales: TypeAlias = float | tuple[float, ...]
"""One length scale for all coordinates, or one for each."""

MAX_SIGNAL = 5.0
"""Largest signal unless another is asked for, in standard deviations of the values.

Towards long length scales and large signals a process becomes a polynomial, its weights grow as
signal^2 / noise, and its values lose as many digits.
"""

# length scales, in root-dim spreads of the positions, and noise-to-signal ratios: fixed starts, the
# limits of those that are drawn, and the bounds of the former
_STARTS = ((1.0, 0.03), (3.0, 0.003), (0.4, 0.1))
_DRAWN = ((0.2, 0.001), (10.0, 0.3))
_LENGTHS = (0.03, 100.0)

_LEAST_SIGNAL, _MOST_NOISE = 1e-6, 10.0  # in standard deviations of the values

# in nats, or in standard deviations of the values if those are less than a nat: it costs no
# acceptance, and keeps the digits that a smaller one would lose
_LEAST_NOISE = 0.01

_REFUSED = 1e25  # what is minimised, where the likelihood cannot be computed


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
"""A log marginal likelihood, constants included, and its derivatives: by log l_k (dim), log s, log
sigma, and the inducing positions z (M dim) if there are any."""

LikelihoodOf: TypeAlias = Callable[[Hyperparameters, FloatArray | None], Likelihood]
"""The likelihood at hyperparameters and, where these move, inducing positions."""


@attrs.frozen(kw_only=True, eq=False)
class Space:
    """Hyperparameters as vectors: log l, log s, log sigma, scaled to observations."""

    isotropic: bool  # is there one l for all coordinates?
    noise: float | None  # sigma, where it is fixed
    lengths: FloatArray  # spread of the positions times the root of dim, (dim,)
    left: float  # root mean square of what basis functions leave of the values
    height: float  # standard deviation of the values, or root mean square about a mean of zero
    bounds: FloatArray  # of a vector, (n_entries, 2)

    @classmethod
    def of(
        cls, observations: Observations, isotropic: bool, noise: float | None, max_signal: float
    ) -> Space:
        """Return the space for observations; the signal is at most ``max_signal`` heights."""
        near = observations.near()
        values, has_mean = near.rows.values, near.basis.shape[1] > 0
        spread = near.rows.positions.std(axis=0)
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
        limits = [np.multiply(_LENGTHS, each) for each in lengths[: 1 if isotropic else None]]
        limits.append(np.multiply((_LEAST_SIGNAL, max_signal), height))
        noises = np.array([_LEAST_NOISE * min(height, 1.0), _MOST_NOISE * height])
        limits.append(noises if noise is None else np.ones(2))
        return cls(
            isotropic=isotropic,
            noise=noise,
            lengths=lengths,
            left=max(near.size_left(), 0.03 * height) if has_mean else height,
            height=height,
            bounds=np.log(np.array(limits)),
        )

    def starts(self, number: int, rng: np.random.Generator) -> list[FloatArray]:
        """Return vectors to start from: three fixed ones, then random ones."""
        fixed = np.log(_STARTS[:number])
        low, high = np.log(_DRAWN)
        drawn = low + (high - low) * rng.random((number, 2))
        signal = math.log(self.left)
        return [
            self._vector(np.log(self.lengths) + length, signal, signal + float(ratio))
            for length, ratio in [*fixed, *drawn[len(fixed) :]]
        ]

    def pack(self, values: Hyperparameters) -> FloatArray:
        """Return the vector of hyperparameters, within the bounds."""
        log_lengths = np.log(values.scales(len(self.lengths)))
        noise = max(values.noise_sd, 1e-300)
        return self._vector(log_lengths, math.log(values.signal_sd), math.log(noise))

    def _vector(self, log_lengths: FloatArray, log_signal: float, log_noise: float) -> FloatArray:
        lengths = log_lengths[: 1 if self.isotropic else None]
        low, high = self.bounds.T
        return np.asarray(np.clip([*lengths, log_signal, log_noise], low, high))

    def unpack(self, vector: FloatArray) -> Hyperparameters:
        """Return the hyperparameters of a vector, which may go on with inducing positions."""
        n = len(self.bounds)
        lengths = np.exp(vector[: n - 2])
        return Hyperparameters(
            length_scales=float(lengths[0]) if self.isotropic else lengths,
            signal_sd=math.exp(vector[n - 2]),
            noise_sd=math.exp(vector[n - 1]) if self.noise is None else self.noise,
        )

    def slope(self, derivatives: FloatArray) -> FloatArray:
        """Return derivatives by the vector from those of a likelihood."""
        dim = len(self.lengths)
        lengths = derivatives[:dim]
        slope = np.concatenate([[lengths.sum()] if self.isotropic else lengths, derivatives[dim:]])
        if self.noise is not None:
            slope[len(self.bounds) - 1] = 0.0
        return slope


@attrs.frozen(kw_only=True, eq=False)
class Found:
    """Hyperparameters, and the inducing positions (M, dim) that go with them if they move."""

    hyperparameters: Hyperparameters = attrs.field(converter=given_hyperparameters)
    inducing: FloatArray | None = None


def search(
    space: Space,
    likelihood: LikelihoodOf,
    starts: Iterable[FloatArray],
    iterations: int,
    inducing: FloatArray | None = None,
    every: bool = True,
) -> list[Found]:
    """Return where climbs of the marginal likelihood end, the largest one first.

    Climbs begin at ``starts``, vectors of the space, and take at most so many iterations; unless
    ``every`` is set, only until one succeeds. Inducing positions (M, dim) that are given move, too.

    Raises
    ------
    SurrogateFitError
        If the likelihood cannot be computed along any of the paths.
    """
    bounds, kept, moves = space.bounds, len(space.lengths) + 2, np.empty(0)
    if inducing is not None:
        kept, moves = kept + inducing.size, inducing.ravel()
        bounds = np.concatenate([bounds, np.full((inducing.size, 2), (-np.inf, np.inf))])

    def moved(point: FloatArray) -> FloatArray | None:
        return None if inducing is None else point[-inducing.size :].reshape(inducing.shape)

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        value, derivatives = likelihood(space.unpack(point), moved(point))
        return value, space.slope(derivatives[:kept])

    options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-6, "gtol": 1e-3}
    paths = []
    for start in starts:
        paths.append(climb(objective, np.concatenate([start, moves]), bounds, options))
        if paths[-1].point is not None and not every:
            break
    found = [
        Found(hyperparameters=space.unpack(path.point), inducing=moved(path.point))
        for path in sorted(paths, key=lambda path: -path.value)
        if path.point is not None
    ]
    if found:
        return found
    raise SurrogateFitError(
        f"the marginal likelihood of the process could not be computed from any of {len(paths)} "
        f"starts (the last reason: {paths[-1].reason}); use whiten=True and a larger noise, give "
        "hyperparameters, or rescale the parameters"
    )


@attrs.define(kw_only=True, eq=False)
class Path:
    """The best point of a climb; None, and the reason, where nothing could be computed."""

    value: float = -math.inf
    point: FloatArray | None = None
    reason: str = "it is not finite"


def climb(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    bounds: FloatArray,
    options: Mapping[str, float],
) -> Path:
    """Return the best point on the way of SciPy's L-BFGS-B to a maximum.

    ``objective`` returns a value and its derivatives, shape (n,); where it raises
    :class:`~surrokit.errors.SurrogateFitError` or ``LinAlgError``, or is not finite, it counts as
    very low. ``bounds (n, 2)`` are least and largest entries.
    """
    from scipy.optimize import minimize

    path = Path()

    def downhill(point: FloatArray) -> tuple[float, FloatArray]:
        check_deadline()
        try:
            value, slope = objective(point)
        except (SurrogateFitError, np.linalg.LinAlgError) as error:
            path.reason = str(error)
            return _REFUSED, np.zeros_like(point)
        if not (math.isfinite(value) and np.isfinite(slope).all()):
            return _REFUSED, np.zeros_like(point)
        if value > path.value:
            path.value, path.point = value, point.copy()
        return -value, -slope

    minimize(downhill, start, jac=True, method="L-BFGS-B", bounds=bounds, options=dict(options))
    return path
