"""Surrogates that are shallow networks of random nodes."""

from surrokit import Component, hookimpl

_PAPER = "Zhang, Shahbaba, Zhao 2017, arXiv:1506.05555"

_POTENTIAL, _VALUES = {"learns": "potential"}, {"learns": "potential", "train_on": "values"}
_PSEUDOINVERSE = {"n_nodes": 20, "ridge": 0.0, "trend": "constant", **_VALUES}

_COMPONENTS = (
    Component(
        kind="surrogate",
        name="additive",
        default=True,
        factory="surrokit_networks.surrogates:Additive",
        summary="network of random additive nodes on a quadratic trend",
        references=(f"{_PAPER}, section 3.1, Algorithm 2, equations (10) to (12)",),
        examples=(
            {},
            _POTENTIAL,
            {"trend": "linear", **_POTENTIAL},
            {"n_nodes": 30, **_VALUES},
            {"weight_scale": 1.0, **_PSEUDOINVERSE},
            {"n_nodes": 30, "updates": "greville", **_POTENTIAL},
        ),
    ),
    Component(
        kind="surrogate",
        name="rbf",
        factory="surrokit_networks.surrogates:Rbf",
        summary="network of random radial nodes on a quadratic trend",
        references=(f"{_PAPER}, section 3.1, Algorithm 2, equation (10)",),
        examples=({}, _POTENTIAL, {"width_scale": 1.0, **_PSEUDOINVERSE}),
    ),
    Component(
        kind="surrogate",
        name="additive-paper",
        factory="surrokit_networks.surrogates:Additive.paper",
        summary="the paper's additive network: raw coordinates, values alone, fixed ridge",
        references=(f"{_PAPER}, section 5",),
        examples=({"n_nodes": 200},),
    ),
    Component(
        kind="surrogate",
        name="rbf-paper",
        factory="surrokit_networks.surrogates:Rbf.paper",
        summary="the authors' radial network: raw coordinates, values alone, fixed ridge",
        references=(f"{_PAPER}, section 3.3",),
        examples=({"n_nodes": 200},),
    ),
    Component(
        kind="surrogate",
        name="quadratic",
        serves=("normal",),
        factory="surrokit_networks.surrogates:Quadratic",
        summary="positive definite quadratic: the trend of the networks alone",
        references=(
            "MacKay 2003, Information Theory, Inference, and Learning Algorithms, chapter 27",
        ),
        examples=(_POTENTIAL, _VALUES, {}),
    ),
    Component(
        kind="surrogate",
        name="rows",
        serves=("rows",),
        factory="surrokit_networks.rows:Rows",
        summary="rows of the data with most leverage, and a fitted quadratic for the rest",
        references=(
            "Cornish, Vanetti, Bouchard-Cote, Deligiannidis, Doucet 2019, arXiv:1901.09881, "
            "for the bounds of the rows",
        ),
        examples=({"n_rows": 1}, {"n_rows": 1, "train_on": "values"}),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer the random networks, the trend alone, and rows of the data on a trend."""
    return _COMPONENTS
