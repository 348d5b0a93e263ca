"""The paper's targets and a few well-known ones."""

from surrokit import Component, hookimpl

_PAPER = "Zhang, Shahbaba and Zhao (2017), doi:10.1007/s11222-016-9699-1"

_FIVE_ROWS = ((1.0, 0.3), (1.0, -1.2), (1.0, 0.8), (1.0, 2.1), (1.0, -0.4))
_BINARY = {"design": _FIVE_ROWS, "response": (0, 0, 1, 1, 1)}


def _few_rows(family: str, response: tuple[float, ...], **settings: object) -> dict[str, object]:
    return {
        "family": family,
        "design": _FIVE_ROWS,
        "response": response,
        "prior": 10.0,
        **settings,
    }


_REGRESSIONS = (
    _few_rows("gaussian", (0.1, -0.9, 0.6, 2.0, -0.3), scale=0.5),
    _few_rows("student", (0.1, -0.9, 0.6, 9.0, -0.3), scale=0.5),
    _few_rows("logistic-errors", (0.1, -0.9, 0.6, 2.0, -0.3)),
    _few_rows("logistic", (0, 0, 1, 1, 1), weights=(1.0, 2.0, 0.0, 1.0, 1.5)),
    _few_rows("probit", (0, 0, 1, 1, 1)),
    _few_rows("multinomial", (0, 1, 2, 1, 0), prior=1.0),
    {
        "family": "ordinal",
        "design": ((0.3,), (-1.2,), (0.8,), (2.1,), (-0.4,)),
        "response": (0, 0, 1, 2, 1),
        "prior": 3.0,
        "offset": (0.0, 0.1, -0.2, 0.3, 0.0),
    },
    _few_rows("poisson", (1, 0, 2, 5, 0), prior=1.0, offset=(0.0, 0.1, -0.2, 0.3, 0.0)),
    _few_rows("negative-binomial", (1, 0, 2, 5, 0), prior=1.0, size=2.0),
    _few_rows("gamma", (1.2, 0.3, 1.8, 5.0, 0.4), prior=1.0, shape=2.0),
    _few_rows("exponential", (1.2, 0.3, 1.8, 5.0, 0.4), prior=1.0, event=(1, 1, 0, 1, 0)),
    _few_rows("weibull", (1.2, 0.3, 1.8, 2.0, 0.4), prior=1.0, shape=1.5),
)

_COMPONENTS = (
    Component(
        kind="potential",
        name="gaussian",
        factory="surrokit_problems.densities:gaussian",
        summary="Gaussian of given mean and covariance",
        references=(f"{_PAPER}, section 3.4",),
        examples=({}, {"dim": 5}, {"mean": (1.0, -2.0), "covariance": ((2.0, 0.6), (0.6, 0.5))}),
    ),
    Component(
        kind="potential",
        name="gaussian-32",
        factory="surrokit_problems.densities:gaussian_32",
        summary="Gaussian with one long axis among 32",
        references=(f"{_PAPER}, figure 3",),
    ),
    Component(
        kind="potential",
        name="banana",
        factory="surrokit_problems.densities:Banana",
        summary="Curved ridge in two dimensions",
        references=(
            f"{_PAPER}, figure 2",
            "Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x",
        ),
    ),
    Component(
        kind="potential",
        name="lynx-hare",
        factory="surrokit_problems.lynx_hare:lynx_hare",
        summary="Lotka-Volterra model of the Hudson's Bay Company's pelts, 8 parameters",
        references=(
            "Carpenter (2018), Predator-prey population dynamics: the Lotka-Volterra model in Stan",
            "posteriordb: hudson_lynx_hare-lotka_volterra",
        ),
    ),
    Component(
        kind="potential",
        name="elliptic-pde",
        factory="surrokit_problems.elliptic_pde:EllipticPde",
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
        name="aristoff-bangerth",
        factory="surrokit_problems.aristoff_bangerth:AristoffBangerth",
        summary="Coefficients of a diffusion from its solution, 64 parameters",
        references=("Aristoff and Bangerth (2023), arXiv:2102.07263",),
        examples=({}, {"jacobian": False}),
    ),
    Component(
        kind="potential",
        name="logistic",
        factory="surrokit_problems.logistic:logistic",
        summary="Logistic regression on a design and responses, arrays or files; may be sparse",
        references=(f"{_PAPER}, section 5.1",),
        examples=(_BINARY,),
    ),
    Component(
        kind="potential",
        name="regression",
        serves=("rows",),
        factory="surrokit_problems.regression:regression",
        summary="Regression of one of twelve families on arrays or files; may be sparse",
        references=(
            "McCullagh and Nelder (1989), Generalized linear models, 2nd edition",
            "McCullagh (1980), doi:10.1111/j.2517-6161.1980.tb01109.x, for ordinal",
            "Albert and Chib (1993), doi:10.1080/01621459.1993.10476321, for probit",
            "Lange, Little and Taylor (1989), doi:10.1080/01621459.1989.10478852, for student",
        ),
        examples=_REGRESSIONS,
    ),
    Component(
        kind="potential",
        name="row-terms",
        serves=("own-rows",),
        factory="surrokit_problems.own_rows:own_rows",
        summary="Sum over rows of terms that a function gives, by JAX or with derivatives",
        references=(
            "Cornish, Vanetti, Bouchard-Cote, Deligiannidis and Doucet (2019), arXiv:1901.09881",
        ),
        examples=(),
    ),
    Component(
        kind="potential",
        name="simulated-logistic",
        factory="surrokit_problems.logistic:simulated_logistic",
        summary="Simulated logistic regression, 100000 rows and 50 parameters",
        references=(f"{_PAPER}, section 5.1",),
        examples=({"n_rows": 2000, "dim": 5},),
    ),
    Component(
        kind="potential",
        name="bank",
        factory="surrokit_problems.real_data:bank",
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
        factory="surrokit_problems.real_data:a9a",
        summary="Logistic regression on a9a: 124 parameters, or a random projection",
        references=(f"{_PAPER}, section 5.1", "Lin, Weng and Keerthi (2008), JMLR 9, 627-650"),
        examples=(),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer the targets."""
    return _COMPONENTS
