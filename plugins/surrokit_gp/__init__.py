"""Surrogates that are Gaussian processes: the full one, and FITC with inducing points."""

from surrokit import Component, Part, hookimpl

_PAPER = "Zhang, Shahbaba, Zhao 2017, arXiv:1506.05555, section 3.3"
_BOOK = "Rasmussen, Williams 2006, Gaussian Processes for Machine Learning"

_FIXED = {"length_scales": 2.0, "signal_sd": 5.0, "noise_sd": 0.02}

_COMPONENTS = (
    Component(
        kind="surrogate",
        name="gp",
        factory="surrokit_gp.process:GaussianProcess",
        summary="full Gaussian process, trained on values and, where cheap, gradients",
        references=(
            f"{_BOOK}, sections 2.7, 5.4 and 9.4",
            "Rasmussen 2003, Gaussian processes to speed up hybrid Monte Carlo, "
            "Bayesian Statistics 7",
            _PAPER,
        ),
        examples=(
            {},
            {"gradients": False, "mean": "linear"},
            {"gradients": False, "mean": "quadratic"},
            {"mean": "constant", "hyperparameters": _FIXED, "whiten": False},
        ),
    ),
    Component(
        kind="surrogate",
        name="fitc",
        factory="surrokit_gp.process:Fitc",
        summary="sparse Gaussian process with inducing points, trained on values",
        references=(
            "Snelson, Ghahramani 2006, Sparse Gaussian processes using pseudo-inputs",
            "Quinonero-Candela, Rasmussen 2005, JMLR 6",
            _PAPER,
        ),
        examples=(
            {},
            {"inducing": "data", "n_inducing": 25, "hyperparameters": _FIXED, "whiten": False},
            {"n_inducing": 10, "mean": "constant"},
        ),
    ),
    Component(
        kind="surrogate",
        name="quadratic-gp",
        serves=("few-values",),
        factory="surrokit_gp.quadratic:QuadraticGaussianProcess",
        summary="Gaussian process about a quadratic, for few values of a nearly normal density",
        references=(
            "Acerbi 2018, Variational Bayesian Monte Carlo, arXiv:1810.05558",
            f"{_BOOK}, section 2.7",
        ),
        examples=({},),
    ),
    Component(
        kind="explorer",
        name="active",
        serves=("few-values",),
        factory="surrokit_gp.active:Active",
        summary="Values where a process of those so far is least sure of the posterior",
        references=(
            "Kandasamy, Schneider, Poczos 2017, Query efficient posterior estimation, "
            "Artificial Intelligence 243",
            "Acerbi 2018, Variational Bayesian Monte Carlo, arXiv:1810.05558",
        ),
        parts={"tuned": Part("sampler"), "correction": Part("correction", "metropolis")},
        examples=({"tuned": "hmc"}, {"tuned": "hmc", "evaluations": 60}),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer the processes, and the explorer by one of them."""
    return _COMPONENTS
