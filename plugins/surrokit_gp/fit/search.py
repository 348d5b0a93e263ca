"""The search for the hyperparameters that make the marginal likelihood largest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NoReturn, TypeAlias

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.limits import check_deadline
from surrokit.types import FloatArray
from surrokit_gp.data.observations import Observations
from surrokit_gp.fit.space import MAX_SIGNAL, Space
from surrokit_gp.kernel.hyperparameters import Hyperparameters
from surrokit_gp.posterior.likelihood import Likelihood

KernelScales: TypeAlias = Literal["isotropic", "per-dimension"]
"""One length scale for all coordinates, or one for each."""

LikelihoodOf: TypeAlias = Callable[[Hyperparameters, FloatArray | None], Likelihood]
"""The marginal likelihood at hyperparameters and inducing positions."""

_SCREENING = 10
"""Most iterations from each start while starts are compared."""

_REFUSED = 1e25
"""What the optimiser is told where the likelihood cannot be computed."""


@attrs.frozen(kw_only=True, eq=False)
class Found:
    """What a search found.

    Parameters
    ----------
    hyperparameters
        The best.
    inducing : ndarray of shape (M, dim) or None
        Inducing positions that go with them, for processes in which they move.
    """

    hyperparameters: Hyperparameters
    inducing: FloatArray | None


@attrs.frozen(kw_only=True)
class Search:
    """L-BFGS-B on the logarithms of length scales, signal and noise.

    Parameters
    ----------
    kernel_scales
        One length scale for all coordinates, or one for each.
    noise : float or None
        Fixed standard deviation of the noise in nats; None to find it.
    n_starts
        Starts: three fixed ones, then random ones.
    max_iterations
        Most iterations of the search from the best start.
    max_signal
        Largest standard deviation of the process, in standard deviations of the values.
    """

    kernel_scales: KernelScales
    noise: float | None
    n_starts: int
    max_iterations: int
    max_signal: float = MAX_SIGNAL

    def screen(
        self, observations: Observations, likelihood: LikelihoodOf, rng: np.random.Generator
    ) -> list[Hyperparameters]:
        """Return where a few iterations from each start lead, best first.

        Parameters
        ----------
        observations
            From which starts and bounds are chosen.
        likelihood
            By which they are compared.
        rng
            Draws the starts that are random.

        Raises
        ------
        SurrogateFitError
            If the likelihood cannot be computed along any of the paths.
        """
        space = self._space(observations, None)
        points = space.starts(self.n_starts, rng)
        iterations = min(_SCREENING, self.max_iterations)
        paths = [_climb(space, likelihood, point, iterations) for point in points]
        paths.sort(key=lambda path: -path.height)
        ends = [space.hyperparameters(path.point) for path in paths if path.point is not None]
        return ends or _give_up(paths)

    def find(
        self,
        observations: Observations,
        likelihood: LikelihoodOf,
        starts: Sequence[Hyperparameters],
        inducing: FloatArray | None = None,
        every: bool = False,
    ) -> Found:
        """Return the hyperparameters with the largest marginal likelihood.

        Parameters
        ----------
        observations
            From which bounds are chosen.
        likelihood
            What to maximise.
        starts
            Where to start; those after the first only if the likelihood cannot be computed along
            the path from those before.
        inducing : ndarray of shape (M, dim), optional
            Inducing positions to move as well.
        every
            Whether to climb from every start, and return the best end.

        Raises
        ------
        SurrogateFitError
            If the likelihood cannot be computed along any of the paths.
        """
        space = self._space(observations, inducing)
        paths = []
        for start in starts:
            path = _climb(space, likelihood, space.pack(start), self.max_iterations)
            paths.append(path)
            if path.point is not None and not every:
                break
        best = max(paths, key=lambda path: path.height)
        if best.point is None:
            return _give_up(paths)
        return Found(
            hyperparameters=space.hyperparameters(best.point), inducing=space.inducing(best.point)
        )

    def _space(self, observations: Observations, inducing: FloatArray | None) -> Space:
        isotropic = self.kernel_scales == "isotropic"
        return Space.of(observations, isotropic, self.noise, inducing, self.max_signal)


def _give_up(paths: Sequence[_Path]) -> NoReturn:
    raise SurrogateFitError(
        f"the marginal likelihood of the process could not be computed from any of {len(paths)} "
        f"starts (the last reason: {paths[-1].reason}); use whiten=True and a larger noise, give "
        "hyperparameters, or rescale the parameters"
    )


def _climb(space: Space, likelihood: LikelihoodOf, point: FloatArray, iterations: int) -> _Path:
    from scipy.optimize import minimize

    path = _Path(space, likelihood)
    path(point)
    if path.point is not None:
        options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-6, "gtol": 1e-3}
        minimize(path, point, jac=True, method="L-BFGS-B", bounds=space.bounds, options=options)
    return path


class _Path:
    """The objective along one path; remembers the best point that it was asked about."""

    def __init__(self, space: Space, likelihood: LikelihoodOf) -> None:
        self._space = space
        self._likelihood = likelihood
        self._last: tuple[FloatArray, tuple[float, FloatArray]] | None = None
        self.height = -math.inf
        self.point: FloatArray | None = None
        self.reason = "it is not finite"

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        check_deadline()
        if self._last is None or not np.array_equal(self._last[0], point):
            self._last = point.copy(), self._evaluate(point)
        value, slope = self._last[1]
        return value, slope.copy()

    def _evaluate(self, point: FloatArray) -> tuple[float, FloatArray]:
        space = self._space
        try:
            found = self._likelihood(space.hyperparameters(point), space.inducing(point))
        except (SurrogateFitError, np.linalg.LinAlgError) as error:
            self.reason = str(error)
            return _REFUSED, np.zeros_like(point)
        slope = space.slope(found)
        if not (math.isfinite(found.value) and np.isfinite(slope).all()):
            return _REFUSED, np.zeros_like(point)
        if found.value > self.height:
            self.height, self.point = found.value, point.copy()
        return -found.value, -slope
