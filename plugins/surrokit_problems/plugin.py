"""Registers the paper's targets and a few well-known ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    import numpy.typing as npt

    from surrokit.protocols import Potential
    from surrokit_problems.a9a import Directions

_PAPER = "Zhang, Shahbaba and Zhao (2017), doi:10.1007/s11222-016-9699-1"


def make_gaussian(
    dim: int = 2,
    mean: npt.ArrayLike | None = None,
    covariance: npt.ArrayLike | None = None,
) -> Potential:
    """Make a Gaussian of given mean (zero) and covariance (identity); ``dim`` where both are."""
    import numpy as np

    from surrokit_problems.gaussian import GaussianPotential

    if covariance is not None:
        dim = len(np.atleast_1d(covariance))
    elif mean is not None:
        dim = len(np.atleast_1d(mean))
    return GaussianPotential(
        np.zeros(dim) if mean is None else mean, np.eye(dim) if covariance is None else covariance
    )


def make_gaussian_32() -> Potential:
    """Make the 32-dimensional Gaussian of figure 3."""
    import numpy as np

    from surrokit_problems.gaussian import GaussianPotential, figure_three_covariance

    return GaussianPotential(np.zeros(32), figure_three_covariance())


def make_banana(
    n_observations: int = 100, sigma_y: float = 2.0, sigma_theta: float = 1.0, seed: int = 2011
) -> Potential:
    """Make the banana of figure 2."""
    from surrokit_problems.banana import Banana

    return Banana(n_observations, sigma_y, sigma_theta, seed)


def make_lynx_hare() -> Potential:
    """Make the Lotka-Volterra posterior, in logarithms of its eight parameters."""
    from surrokit.bounds import BoundedPotential
    from surrokit_problems.lynx_hare import LynxHare

    return BoundedPotential(LynxHare(), LynxHare.parameters)


def make_elliptic_pde(
    mesh: int = 30,
    modes: int = 20,
    observations: int = 11,
    noise_sd: float = 0.1,
    prior_sd: float = 0.5,
    length: float = 0.2,
    seed: int = 2017,
    outputs: bool = True,
    derivatives: bool = True,
) -> Potential:
    """Make the elliptic inverse problem; ``derivatives=False`` makes a black box of it."""
    from surrokit_problems.elliptic_pde import EllipticPde

    return EllipticPde(
        mesh=mesh,
        modes=modes,
        observations=observations,
        noise_sd=noise_sd,
        prior_sd=prior_sd,
        length=length,
        seed=seed,
        outputs=outputs,
        derivatives=derivatives,
    )


def make_logistic(
    design: str | Path | npt.ArrayLike,
    response: str | Path | npt.ArrayLike,
    prior_variance: float = 100.0,
) -> Potential:
    """Make a logistic regression from arrays, sparse ones too, or from .npy and .npz files."""
    from surrokit_problems.data_file import array_from, design_from
    from surrokit_problems.logistic import LogisticRegression

    x, y = design_from(design), array_from(response, "response")
    return LogisticRegression(x, y, prior_variance)


def make_probit(
    design: str | Path | npt.ArrayLike,
    response: str | Path | npt.ArrayLike,
    prior_variance: float = 100.0,
) -> Potential:
    """Make a probit regression from arrays, sparse ones too, or from .npy and .npz files."""
    from surrokit_problems.data_file import array_from, design_from
    from surrokit_problems.family import PROBIT
    from surrokit_problems.glm import GeneralizedLinearModel

    x, y = design_from(design), array_from(response, "response")
    return GeneralizedLinearModel(x, y, PROBIT, prior_variance)


def make_robust(
    design: str | Path | npt.ArrayLike,
    response: str | Path | npt.ArrayLike,
    scale: float = 1.0,
    degrees: float | None = 4.0,
    prior_variance: float = 100.0,
) -> Potential:
    """Make a regression with heavy-tailed errors: Student's t, or logistic for ``degrees=None``.

    ``scale`` is that of the errors. Arrays may be sparse, or the paths of .npy and .npz files.
    """
    from surrokit_problems.data_file import array_from, design_from
    from surrokit_problems.family import logistic_errors, student_errors
    from surrokit_problems.glm import GeneralizedLinearModel

    x, y = design_from(design), array_from(response, "response")
    errors = logistic_errors(scale) if degrees is None else student_errors(degrees, scale)
    return GeneralizedLinearModel(x, y, errors, prior_variance)


def make_simulated_logistic(
    n_rows: int = 100_000, dim: int = 50, prior_variance: float = 100.0, seed: int = 2017
) -> Potential:
    """Make the simulated logistic regression of section 5.1."""
    from surrokit_problems.logistic import LogisticRegression
    from surrokit_problems.simulated_logistic import simulated_regression

    design, response, _ = simulated_regression(n_rows, dim, seed)
    return LogisticRegression(design, response, prior_variance)


def make_bank(
    path: str | Path | None = None,
    openml_id: int | None = None,
    prior_variance: float = 100.0,
) -> Potential:
    """Make the Bank Marketing regression, from a file or a data set on OpenML."""
    from surrokit_problems.bank import bank_regression
    from surrokit_problems.logistic import LogisticRegression

    return LogisticRegression(*bank_regression(path, openml_id), prior_variance)


def make_a9a(
    path: str | Path | None = None,
    projected: int | None = None,
    seed: int = 2017,
    prior_variance: float = 100.0,
    directions: Directions = "normal",
) -> Potential:
    """Make the a9a regression, from a file or, without one, from OpenML."""
    from scipy import sparse

    from surrokit_problems.a9a import a9a_regression
    from surrokit_problems.logistic import LogisticRegression

    design, response = a9a_regression(path, projected, seed, directions)
    # one entry in eight is not zero: with compressed rows a value takes a third of the time
    rows = sparse.csr_array(design) if projected is None else design
    return LogisticRegression(rows, response, prior_variance)


_COMPONENTS = (
    Component(
        kind="potential",
        name="gaussian",
        factory=make_gaussian,
        summary="Gaussian of given mean and covariance",
        references=(f"{_PAPER}, section 3.4",),
        examples=(
            {},
            {"dim": 5},
            {"mean": (1.0, -2.0), "covariance": ((2.0, 0.6), (0.6, 0.5))},
        ),
    ),
    Component(
        kind="potential",
        name="gaussian-32",
        factory=make_gaussian_32,
        summary="Gaussian with one long axis among 32",
        references=(f"{_PAPER}, figure 3",),
    ),
    Component(
        kind="potential",
        name="banana",
        factory=make_banana,
        summary="Curved ridge in two dimensions",
        references=(
            f"{_PAPER}, figure 2",
            "Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x",
        ),
    ),
    Component(
        kind="potential",
        name="lynx-hare",
        factory=make_lynx_hare,
        summary="Lotka-Volterra model of the Hudson's Bay Company's pelts, 8 parameters",
        references=(
            "Carpenter (2018), Predator-prey population dynamics: the Lotka-Volterra model in Stan",
            "posteriordb: hudson_lynx_hare-lotka_volterra",
        ),
    ),
    Component(
        kind="potential",
        name="elliptic-pde",
        factory=make_elliptic_pde,
        summary="Coefficient of an elliptic equation from its solution, 20 parameters",
        references=(
            f"{_PAPER}, section 5.2, equation (13)",
            "Dashti and Stuart (2011), doi:10.1137/100814664",
        ),
        examples=(
            {"mesh": 5, "modes": 3, "observations": 3},
            {"mesh": 4, "modes": 2, "observations": 2, "derivatives": False},
            {"mesh": 4, "modes": 2, "observations": 3, "outputs": False},
        ),
    ),
    Component(
        kind="potential",
        name="logistic",
        factory=make_logistic,
        summary="Logistic regression on a design and responses, arrays or files; may be sparse",
        references=(f"{_PAPER}, section 5.1",),
        examples=(
            {
                "design": ((1.0, 0.3), (1.0, -1.2), (1.0, 0.8), (1.0, 2.1), (1.0, -0.4)),
                "response": (0, 0, 1, 1, 1),
            },
        ),
    ),
    Component(
        kind="potential",
        name="probit",
        factory=make_probit,
        summary="Probit regression on a design and responses, arrays or files; may be sparse",
        references=("Albert and Chib (1993), doi:10.1080/01621459.1993.10476321",),
        examples=(
            {
                "design": ((1.0, 0.3), (1.0, -1.2), (1.0, 0.8), (1.0, 2.1), (1.0, -0.4)),
                "response": (0, 0, 1, 1, 1),
            },
        ),
    ),
    Component(
        kind="potential",
        name="robust",
        factory=make_robust,
        summary="Linear regression with heavy-tailed errors of known scale; may be sparse",
        references=("Lange, Little and Taylor (1989), doi:10.1080/01621459.1989.10478852",),
        examples=(
            {
                "design": ((1.0, 0.3), (1.0, -1.2), (1.0, 0.8), (1.0, 2.1), (1.0, -0.4)),
                "response": (0.1, -0.9, 0.6, 9.0, -0.3),
                "scale": 0.5,
            },
        ),
    ),
    Component(
        kind="potential",
        name="simulated-logistic",
        factory=make_simulated_logistic,
        summary="Simulated logistic regression, 100000 rows and 50 parameters",
        references=(f"{_PAPER}, section 5.1",),
        examples=({"n_rows": 2000, "dim": 5},),
    ),
    Component(
        kind="potential",
        name="bank",
        factory=make_bank,
        summary="Logistic regression on the Bank Marketing data, 25 parameters",
        references=(
            f"{_PAPER}, section 5.1",
            "Moro, Cortez and Rita (2014), doi:10.1016/j.dss.2014.03.001",
        ),
        examples=(),
    ),
    Component(
        kind="potential",
        name="a9a",
        factory=make_a9a,
        summary="Logistic regression on a9a: 124 parameters, or a random projection",
        references=(
            f"{_PAPER}, section 5.1",
            "Lin, Weng and Keerthi (2008), JMLR 9, 627-650",
        ),
        examples=(),
    ),
)


@hookimpl
def surrokit_register_potentials() -> Sequence[Component]:
    """Return the targets."""
    return _COMPONENTS
