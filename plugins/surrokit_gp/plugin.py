"""What this plugin offers to surrokit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit.distinct import Tail
    from surrokit_gp.fitc import Fitc
    from surrokit_gp.gp import GaussianProcess, Gradients
    from surrokit_gp.hyperparameters import Hyperparameters
    from surrokit_gp.inducing import Inducing
    from surrokit_gp.mean_functions import Mean
    from surrokit_gp.search import KernelScales

_PAPER = "Zhang, Shahbaba, Zhao 2017, arXiv:1506.05555, section 3.3"
_BOOK = "Rasmussen, Williams 2006, Gaussian Processes for Machine Learning"


def gp(
    *,
    kernel_scales: KernelScales = "isotropic",
    mean: Mean = "auto",
    noise: float | None = None,
    whiten: bool = True,
    hyperparameters: Hyperparameters | Mapping[str, Any] | None = None,
    n_starts: int = 3,
    max_iterations: int = 50,
    max_signal: float = 5.0,
    n_search: int | None = 500,
    max_points: int | None = 3000,
    gradients: Gradients = "auto",
    tail: Tail = "down-weighted",
) -> GaussianProcess:
    """Return the full Gaussian process; see :class:`surrokit_gp.gp.GaussianProcess`."""
    from surrokit_gp.gp import GaussianProcess

    return GaussianProcess(
        kernel_scales=kernel_scales,
        mean=mean,
        noise=noise,
        whiten=whiten,
        hyperparameters=hyperparameters,
        n_starts=n_starts,
        max_iterations=max_iterations,
        max_signal=max_signal,
        n_search=n_search,
        max_points=max_points,
        gradients=gradients,
        tail=tail,
    )


def fitc(
    *,
    n_inducing: int | None = None,
    inducing: Inducing = "k-means++",
    kernel_scales: KernelScales = "isotropic",
    mean: Mean = "auto",
    noise: float | None = None,
    whiten: bool = True,
    hyperparameters: Hyperparameters | Mapping[str, Any] | None = None,
    n_starts: int = 3,
    max_iterations: int = 50,
    max_signal: float = 5.0,
    n_search: int | None = 1000,
    tail: Tail = "down-weighted",
) -> Fitc:
    """Return FITC with inducing points; see :class:`surrokit_gp.fitc.Fitc`."""
    from surrokit_gp.fitc import Fitc

    return Fitc(
        n_inducing=n_inducing,
        inducing=inducing,
        kernel_scales=kernel_scales,
        mean=mean,
        noise=noise,
        whiten=whiten,
        hyperparameters=hyperparameters,
        n_starts=n_starts,
        max_iterations=max_iterations,
        max_signal=max_signal,
        n_search=n_search,
        tail=tail,
    )


@hookimpl
def surrokit_register_surrogates() -> Sequence[Component]:
    """Register the full process and FITC."""
    quick = {"n_starts": 1, "max_iterations": 10}
    fixed = {"length_scales": 2.0, "signal_sd": 5.0, "noise_sd": 0.02}
    return [
        Component(
            kind="surrogate",
            name="gp",
            factory=gp,
            summary="full Gaussian process, trained on values and, where cheap, gradients",
            references=(
                f"{_BOOK}, sections 2.7, 5.4 and 9.4",
                "Rasmussen 2003, Gaussian processes to speed up hybrid Monte Carlo, "
                "Bayesian Statistics 7",
                _PAPER,
            ),
            examples=(
                {},
                {"gradients": False, "kernel_scales": "per-dimension", "mean": "linear", **quick},
                {"gradients": False, "mean": "quadratic", "noise": 0.1, **quick},
                {"gradients": True, "mean": "constant", "hyperparameters": fixed, "whiten": False},
            ),
        ),
        Component(
            kind="surrogate",
            name="fitc",
            factory=fitc,
            summary="sparse Gaussian process with inducing points, trained on values",
            references=(
                "Snelson, Ghahramani 2006, Sparse Gaussian processes using pseudo-inputs",
                "Quinonero-Candela, Rasmussen 2005, JMLR 6",
                _PAPER,
            ),
            examples=(
                {},
                {"inducing": "data", "n_inducing": 25, "hyperparameters": fixed, "whiten": False},
                {"inducing": "optimised", "n_inducing": 10, "mean": "constant", **quick},
            ),
        ),
    ]
