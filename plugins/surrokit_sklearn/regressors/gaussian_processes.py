"""The Gaussian processes as scikit-learn regressors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs
import numpy as np

from surrokit_sklearn.regressors.regressor import DeviatingRegressor


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class ProcessRegressor(DeviatingRegressor):
    """What both kinds of process have; see :class:`GPRegressor` for the parameters."""

    kernel_scales: Literal["isotropic", "per-dimension"] = "isotropic"
    mean: Literal["zero", "constant", "linear", "quadratic", "auto"] = "constant"
    noise: float | None = None
    whiten: bool = True
    hyperparameters: Mapping[str, Any] | Any | None = None
    n_starts: int = 3
    max_iterations: int = 50
    max_signal: float = 5.0
    tail: Literal["down-weighted", "full"] = "full"
    random_state: int | np.random.RandomState | None = None


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class GPRegressor(ProcessRegressor):
    """A Gaussian process with a squared-exponential kernel: the surrogate ``gp``.

    Zhang, Shahbaba and Zhao (2017), section 3.3. Hyperparameters maximise the marginal likelihood.
    Unlike :class:`sklearn.gaussian_process.GaussianProcessRegressor` it gives gradients, and
    learns from them. A fit to N samples takes O(N^3) operations.

    Parameters
    ----------
    kernel_scales
        ``"isotropic"`` for one length scale, ``"per-dimension"`` for one for each feature.
    mean
        The polynomial under the process: ``"zero"``, ``"constant"``, ``"linear"``, ``"quadratic"``
        or ``"auto"``. A quadratic is kept convex, as suits a potential.
    noise : float, optional
        Standard deviation of the noise, in units of y; None to find it with the hyperparameters.
    whiten
        Whether the kernel sees whitened inputs, or the inputs themselves.
    hyperparameters : Hyperparameters or mapping, optional
        ``length_scales``, ``signal_sd`` and ``noise_sd`` to use; None to find them.
    n_starts
        Starts of the search for hyperparameters.
    max_iterations
        Most iterations from each.
    max_signal
        Largest standard deviation of the process that the search looks at, in standard deviations
        of y.
    n_search : int, optional
        Most equations that the search looks at; None for all.
    max_points : int, optional
        Most samples that the process is conditioned on, drawn at random; None for all.
    gradients
        Whether gradients handed to ``fit`` are used: ``"auto"`` for as many as are cheap, True
        for all, False for none.
    tail
        ``"full"``, or ``"down-weighted"`` for less weight where the target is far above its least.
    random_state : int, RandomState or None
        From which random choices are drawn.
    """

    _surrogate = "gp"

    n_search: int | None = 500
    max_points: int | None = 3000
    gradients: bool | Literal["auto"] = "auto"


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class FITCRegressor(ProcessRegressor):
    """A sparse Gaussian process with inducing points, FITC: the surrogate ``fitc``.

    Zhang, Shahbaba and Zhao (2017), section 3.3. A fit of M inducing points to N samples takes
    O(M^2 N) operations, and a prediction O(M). It learns from values only.

    Parameters
    ----------
    n_inducing : int, optional
        M; None to choose from the number of samples.
    inducing
        Inducing points are drawn from the samples (``"data"``), spread like them
        (``"k-means++"``), or moved to where the marginal likelihood is largest (``"optimised"``).
    kernel_scales, mean, noise, whiten, hyperparameters, n_search, tail
        See :class:`GPRegressor`.
    n_starts, max_iterations, max_signal, random_state
        See :class:`GPRegressor`.
    """

    _surrogate = "fitc"

    n_inducing: int | None = None
    inducing: Literal["data", "k-means++", "optimised"] = "k-means++"
    n_search: int | None = 1000
