"""The paper's targets and a few well-known ones."""

from typing import Any

from surrokit import Component, hookimpl

_PAPER = "Zhang, Shahbaba and Zhao (2017), doi:10.1007/s11222-016-9699-1"

_FIVE_ROWS = ((1.0, 0.3), (1.0, -1.2), (1.0, 0.8), (1.0, 2.1), (1.0, -0.4))


def _few_rows(family: str, response: tuple[float, ...], **settings: object) -> dict[str, object]:
    given = {"family": family, "design": _FIVE_ROWS, "response": response, "prior": 10.0}
    return {**given, **settings}


_REGRESSIONS = (
    _few_rows("gaussian", (0.1, -0.9, 0.6, 2.0, -0.3), scale=0.5),
    _few_rows("student", (0.1, -0.9, 0.6, 9.0, -0.3), scale=0.5),
    _few_rows("logistic-errors", (0.1, -0.9, 0.6, 2.0, -0.3)),
    _few_rows("logistic", (0, 0, 1, 1, 1), weights=(1.0, 2.0, 0.0, 1.0, 1.5)),
    _few_rows("probit", (0, 0, 1, 1, 1)),
    _few_rows("multinomial", (0, 1, 2, 1, 0), prior=1.0),
    _few_rows(
        "ordinal",
        (0, 0, 1, 2, 1),
        design=tuple(row[1:] for row in _FIVE_ROWS),
        prior=3.0,
        offset=(0.0, 0.1, -0.2, 0.3, 0.0),
    ),
    _few_rows("poisson", (1, 0, 2, 5, 0), prior=1.0, offset=(0.0, 0.1, -0.2, 0.3, 0.0)),
    _few_rows("negative-binomial", (1, 0, 2, 5, 0), prior=1.0, size=2.0),
    _few_rows("gamma", (1.2, 0.3, 1.8, 5.0, 0.4), prior=1.0, shape=2.0),
    _few_rows("exponential", (1.2, 0.3, 1.8, 5.0, 0.4), prior=1.0, event=(1, 1, 0, 1, 0)),
    _few_rows("weibull", (1.2, 0.3, 1.8, 2.0, 0.4), prior=1.0, shape=1.5),
)


def _target(name: str, factory: str, summary: str, *references: str, **more: Any) -> Component:
    return Component(
        kind="potential",
        name=name,
        factory=f"surrokit_problems.{factory}",
        summary=summary,
        references=references,
        **more,
    )


_COMPONENTS = (
    _target(
        "gaussian",
        "densities:gaussian",
        "Gaussian of given mean and covariance",
        f"{_PAPER}, section 3.4",
        examples=({}, {"dim": 5}, {"mean": (1.0, -2.0), "covariance": ((2.0, 0.6), (0.6, 0.5))}),
    ),
    _target(
        "gaussian-32",
        "densities:gaussian_32",
        "Gaussian with one long axis among 32",
        f"{_PAPER}, figure 3",
    ),
    _target(
        "banana",
        "densities:Banana",
        "Curved ridge in two dimensions",
        f"{_PAPER}, figure 2",
        "Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x",
    ),
    _target(
        "lynx-hare",
        "lynx_hare:lynx_hare",
        "Lotka-Volterra model of the Hudson's Bay Company's pelts, 8 parameters",
        "Carpenter (2018), Predator-prey population dynamics: the Lotka-Volterra model in Stan",
        "posteriordb: hudson_lynx_hare-lotka_volterra",
    ),
    _target(
        "elliptic-pde",
        "elliptic_pde:EllipticPde",
        "Coefficient of an elliptic equation from its solution, 20 parameters",
        f"{_PAPER}, section 5.2, equation (13)",
        "Dashti and Stuart (2011), doi:10.1137/100814664",
        examples=(
            {"mesh": 5, "modes": 3, "observations": 3},
            {"mesh": 4, "modes": 2, "observations": 2, "derivatives": False},
            {"mesh": 4, "modes": 2, "observations": 3, "outputs": False},
        ),
    ),
    _target(
        "aristoff-bangerth",
        "elliptic_pde:AristoffBangerth",
        "Coefficients of a diffusion from its solution, 64 parameters",
        "Aristoff and Bangerth (2023), arXiv:2102.07263",
    ),
    _target(
        "logistic",
        "regression:logistic",
        "Logistic regression on a design and responses, arrays or files; may be sparse",
        f"{_PAPER}, section 5.1",
        examples=({"design": _FIVE_ROWS, "response": (0, 0, 1, 1, 1)},),
    ),
    _target(
        "regression",
        "regression:regression",
        "Regression of one of twelve families on arrays or files; may be sparse",
        "McCullagh and Nelder (1989), Generalized linear models, 2nd edition",
        "McCullagh (1980), doi:10.1111/j.2517-6161.1980.tb01109.x, for ordinal",
        "Albert and Chib (1993), doi:10.1080/01621459.1993.10476321, for probit",
        "Lange, Little and Taylor (1989), doi:10.1080/01621459.1989.10478852, for student",
        serves=("rows",),
        examples=_REGRESSIONS,
    ),
    _target(
        "row-terms",
        "own_rows:own_rows",
        "Sum over rows of terms that a function gives, by JAX or with derivatives",
        "Cornish, Vanetti, Bouchard-Cote, Deligiannidis and Doucet (2019), arXiv:1901.09881",
        serves=("own-rows",),
        examples=(),
    ),
    _target(
        "simulated-logistic",
        "regression:simulated_logistic",
        "Simulated logistic regression, 100000 rows and 50 parameters",
        f"{_PAPER}, section 5.1",
        examples=({"n_rows": 2000, "dim": 5},),
    ),
    _target(
        "bank",
        "real_data:bank",
        "Logistic regression on the Bank Marketing data, 25 parameters",
        f"{_PAPER}, section 5.1",
        "Moro, Cortez and Rita (2014), doi:10.1016/j.dss.2014.03.001",
        examples=(),
    ),
    _target(
        "a9a",
        "real_data:a9a",
        "Logistic regression on a9a: 124 parameters, or a random projection",
        f"{_PAPER}, section 5.1",
        "Lin, Weng and Keerthi (2008), JMLR 9, 627-650",
        examples=(),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer the targets."""
    return _COMPONENTS
