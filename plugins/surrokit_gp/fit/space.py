"""Hyperparameters as points of a vector space, with bounds and starts."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_gp.data.observations import Observations
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.posterior.likelihood import Likelihood

_STARTS = ((1.0, 0.03), (3.0, 0.003), (0.4, 0.1))
"""Length scales, in root-dim spreads of the positions, and noise-to-signal ratios to start from."""

_DRAWN = ((0.2, 0.001), (10.0, 0.3))
"""Least and largest of the same for starts that are drawn."""

_LENGTHS = (0.03, 100.0)
"""Bounds of length scales, in the same unit."""

_LEAST_SIGNAL = 1e-6
"""Least signal, in standard deviations of the values."""

MAX_SIGNAL = 5.0
"""Largest signal unless another is asked for, in the same unit.

Towards long length scales and large signals a process becomes a polynomial, its weights grow as
signal^2 / noise, and its values lose as many digits.
"""

_LEAST_NOISE = 0.01
"""Least noise, in nats, or in standard deviations of the values if those are less than a nat.

It costs no acceptance, and keeps the digits that a smaller one would lose.
"""

_MOST_NOISE = 10.0
"""Largest noise, in standard deviations of the values."""


@attrs.frozen(kw_only=True, eq=False)
class Space:
    """Hyperparameters as a vector: log l, log s, log sigma, and inducing positions.

    Parameters
    ----------
    isotropic
        Whether there is one l.
    noise : float or None
        sigma where it is fixed; the vector then lacks log sigma.
    lengths : ndarray of shape (dim,)
        Spread of the positions times the root of dim.
    height
        Standard deviation of the values; their root mean square about a mean of zero.
    left
        The same of what basis functions do not explain, to start from.
    moved : ndarray of shape (M, dim) or None
        Inducing positions to start from.
    max_signal
        Largest signal, in units of ``height``.
    """

    isotropic: bool
    noise: float | None
    lengths: FloatArray
    height: float
    left: float
    moved: FloatArray | None
    max_signal: float = MAX_SIGNAL

    @classmethod
    def of(
        cls,
        observations: Observations,
        isotropic: bool,
        noise: float | None,
        inducing: FloatArray | None = None,
        max_signal: float = MAX_SIGNAL,
    ) -> Space:
        """Return a space scaled to observations.

        Parameters
        ----------
        observations
            Give bounds and starts their scale.
        isotropic, noise, max_signal
            See the class.
        inducing : ndarray of shape (M, dim), optional
            Inducing positions that move as well.
        """
        near = observations.near()
        values = near.values
        spread = near.positions.std(axis=0)
        spread = np.where(spread > 0.0, spread, spread.max() if spread.any() else 1.0)
        level = values.mean() if near.basis.shape[1] else 0.0
        height = max(
            float(np.sqrt(np.mean(np.square(values - level)))),
            1e-10,
            1e-8 * float(np.abs(values).max()),
        )
        spread = np.full_like(spread, spread.mean()) if isotropic else spread
        return cls(
            isotropic=isotropic,
            noise=noise,
            lengths=spread * math.sqrt(observations.dim),
            height=height,
            left=max(near.size_left(), 0.03 * height) if near.basis.shape[1] else height,
            moved=inducing,
            max_signal=max_signal,
        )

    @property
    def n_lengths(self) -> int:
        """Length scales in the vector."""
        return 1 if self.isotropic else len(self.lengths)

    @property
    def bounds(self) -> list[tuple[float | None, float | None]]:
        """Least and largest of each entry."""
        log_lengths = np.log(self.lengths[: self.n_lengths])
        found: list[tuple[float | None, float | None]] = [
            (x + math.log(_LENGTHS[0]), x + math.log(_LENGTHS[1])) for x in log_lengths.tolist()
        ]
        signal = math.log(self.height)
        found.append((signal + math.log(_LEAST_SIGNAL), signal + math.log(self.max_signal)))
        if self.noise is None:
            least = math.log(_LEAST_NOISE) + min(signal, 0.0)
            found.append((least, signal + math.log(_MOST_NOISE)))
        n_free = 0 if self.moved is None else self.moved.size
        return found + [(None, None)] * n_free

    def starts(self, number: int, rng: np.random.Generator) -> list[FloatArray]:
        """Return points to start from, each of shape (n_entries,)."""
        fixed = np.log(_STARTS[:number])
        low, high = np.log(_DRAWN)
        drawn = low + (high - low) * rng.random((number, 2))
        signal = math.log(self.left)
        return [
            self._vector(np.log(self.lengths) + length, signal, signal + float(ratio))
            for length, ratio in [*fixed, *drawn[len(fixed) :]]
        ]

    def pack(self, hyperparameters: Hyperparameters) -> FloatArray:
        """Return the vector of hyperparameters, within the bounds."""
        lengths = np.log(hyperparameters.scales(len(self.lengths)))
        noise = max(hyperparameters.noise_sd, 1e-300)
        return self._vector(lengths, math.log(hyperparameters.signal_sd), math.log(noise))

    def _vector(self, log_lengths: FloatArray, log_signal: float, log_noise: float) -> FloatArray:
        entries = [*log_lengths[: self.n_lengths], log_signal]
        if self.noise is None:
            entries.append(log_noise)
        low, high = np.array(self.bounds[: len(entries)], dtype=np.float64).T
        moved = np.empty(0) if self.moved is None else self.moved.ravel()
        return np.concatenate([np.clip(entries, low, high), moved])

    def hyperparameters(self, point: FloatArray) -> Hyperparameters:
        """Return the hyperparameters of a vector."""
        lengths = np.exp(point[: self.n_lengths])
        noise = self.noise
        return Hyperparameters(
            length_scales=float(lengths[0]) if self.isotropic else lengths,
            signal_sd=math.exp(point[self.n_lengths]),
            noise_sd=math.exp(point[self.n_lengths + 1]) if noise is None else noise,
        )

    def inducing(self, point: FloatArray) -> FloatArray | None:
        """Return the inducing positions in a vector, shape (M, dim); None if they do not move."""
        if self.moved is None:
            return None
        return np.asarray(point[-self.moved.size :].reshape(self.moved.shape))

    def slope(self, likelihood: Likelihood) -> FloatArray:
        """Return the derivative of a likelihood in the vector, shape (n_entries,)."""
        lengths = likelihood.length_scales
        entries = [lengths.sum()] if self.isotropic else list(lengths)
        entries.append(likelihood.signal)
        if self.noise is None:
            entries.append(likelihood.noise)
        moved = likelihood.inducing
        if self.moved is None or moved is None:
            return np.array(entries, dtype=np.float64)
        return np.concatenate([entries, moved.ravel()])
