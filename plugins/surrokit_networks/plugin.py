"""What this plugin offers to surrokit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit.distinct import Tail
    from surrokit_networks.activations import Activation
    from surrokit_networks.additive import Additive
    from surrokit_networks.draws import Draws
    from surrokit_networks.laplace import Laplace
    from surrokit_networks.quadratic import Quadratic
    from surrokit_networks.rbf import Centres, Rbf, Widths
    from surrokit_networks.regression import Hidden, Level, TrainOn
    from surrokit_networks.rows import Rows
    from surrokit_networks.solving import ChooseRidge
    from surrokit_networks.training import Learns, Training
    from surrokit_networks.trend import Trend
    from surrokit_networks.updates import Updates

_PAPER = "Zhang, Shahbaba, Zhao 2017, arXiv:1506.05555"


def additive(
    *,
    n_nodes: int | None = None,
    activation: str | Activation = "softplus",
    weight_scale: float | None = None,
    bias_scale: float = 1.0,
    draws: Draws = "orthogonal",
    hidden: Hidden = "random",
    trend: Trend = "auto",
    train_on: TrainOn = "auto",
    gradient_weight: float = 1.0,
    whiten: bool = True,
    level: Level = "trained",
    ridge: float | None = None,
    choose_ridge: ChooseRidge = "gcv",
    tail: Tail = "down-weighted",
    hold_out: float = 0.1,
    learns: Learns = "auto",
    laplace: Laplace | None = None,
    updates: Updates = "auto",
) -> Additive:
    """Return the additive random network; see :class:`surrokit_networks.additive.Additive`."""
    from surrokit_networks.activations import named
    from surrokit_networks.additive import Additive

    return Additive(
        n_nodes=n_nodes,
        activation=named(activation),
        weight_scale=weight_scale,
        bias_scale=bias_scale,
        draws=draws,
        training=_training(
            hidden=hidden,
            trend=trend,
            train_on=train_on,
            gradient_weight=gradient_weight,
            whiten=whiten,
            level=level,
            ridge=ridge,
            choose_ridge=choose_ridge,
            tail=tail,
            hold_out=hold_out,
            learns=learns,
            laplace=laplace,
            updates=updates,
        ),
    )


def rbf(
    *,
    n_nodes: int | None = None,
    centre_scale: float = 1.0,
    widths: Widths = "dimension",
    width_scale: float | None = None,
    draws: Centres = "gaussian",
    hidden: Hidden = "random",
    trend: Trend = "auto",
    train_on: TrainOn = "auto",
    gradient_weight: float = 1.0,
    whiten: bool = True,
    level: Level = "trained",
    ridge: float | None = None,
    choose_ridge: ChooseRidge = "gcv",
    tail: Tail = "down-weighted",
    hold_out: float = 0.1,
    learns: Learns = "auto",
    laplace: Laplace | None = None,
    updates: Updates = "auto",
) -> Rbf:
    """Return the radial random network; see :class:`surrokit_networks.rbf.Rbf`."""
    from surrokit_networks.rbf import Rbf

    return Rbf(
        n_nodes=n_nodes,
        centre_scale=centre_scale,
        widths=widths,
        width_scale=width_scale,
        draws=draws,
        training=_training(
            hidden=hidden,
            trend=trend,
            train_on=train_on,
            gradient_weight=gradient_weight,
            whiten=whiten,
            level=level,
            ridge=ridge,
            choose_ridge=choose_ridge,
            tail=tail,
            hold_out=hold_out,
            learns=learns,
            laplace=laplace,
            updates=updates,
        ),
    )


def additive_paper(
    *, n_nodes: int = 1000, ridge: float = 1e-6, updates: Updates = "auto"
) -> Additive:
    """Return :meth:`surrokit_networks.additive.Additive.paper`."""
    from surrokit_networks.additive import Additive

    return Additive.paper(n_nodes, ridge, updates)


def rbf_paper(
    *,
    n_nodes: int = 1000,
    ridge: float = 1e-6,
    width_scale: float = 1.0,
    updates: Updates = "auto",
) -> Rbf:
    """Return :meth:`surrokit_networks.rbf.Rbf.paper`."""
    from surrokit_networks.rbf import Rbf

    return Rbf.paper(n_nodes, ridge, width_scale, updates)


def quadratic(
    *,
    trend: Literal["quadratic", "laplace"] = "quadratic",
    train_on: TrainOn = "auto",
    gradient_weight: float = 1.0,
    whiten: bool = True,
    tail: Tail = "down-weighted",
    hold_out: float = 0.1,
    learns: Learns = "auto",
    laplace: Laplace | None = None,
) -> Quadratic:
    """Return the trend alone; see :class:`surrokit_networks.quadratic.Quadratic`."""
    from surrokit_networks.quadratic import Quadratic

    return Quadratic(
        training=_training(
            trend=trend,
            train_on=train_on,
            gradient_weight=gradient_weight,
            whiten=whiten,
            tail=tail,
            hold_out=hold_out,
            learns=learns,
            laplace=laplace,
            updates="refit",
        )
    )


def rows(
    *,
    n_rows: int | None = None,
    left: float = 2.0,
    most: float = 0.0625,
    n_nodes: int = 0,
    activation: str | Activation = "softplus",
    weight_scale: float | None = None,
    bias_scale: float = 1.0,
    draws: Draws = "orthogonal",
    trend: Trend = "quadratic",
    least_curvature: float = 1e-3,
    train_on: TrainOn = "auto",
    gradient_weight: float = 1.0,
    ridge: float | None = None,
    choose_ridge: ChooseRidge = "gcv",
    tail: Tail = "down-weighted",
    hold_out: float = 0.1,
) -> Rows:
    """Return the data's own rows as a surrogate; see :class:`surrokit_networks.rows.Rows`."""
    from surrokit_networks.activations import named
    from surrokit_networks.additive import Additive
    from surrokit_networks.exact_rows import RowChoice
    from surrokit_networks.rows import Rows

    return Rows(
        choice=RowChoice(n_rows=n_rows, left=left, most=most),
        n_nodes=n_nodes,
        nodes=Additive(
            activation=named(activation),
            weight_scale=weight_scale,
            bias_scale=bias_scale,
            draws=draws,
        ),
        training=_training(
            trend=trend,
            least_curvature=least_curvature,
            train_on=train_on,
            gradient_weight=gradient_weight,
            whiten=True,
            ridge=ridge,
            choose_ridge=choose_ridge,
            tail=tail,
            hold_out=hold_out,
            learns="potential",
            laplace=None,
            updates="refit",
        ),
    )


def _training(
    *,
    whiten: bool,
    tail: Tail,
    hold_out: float,
    learns: Learns,
    laplace: Laplace | None,
    updates: Updates,
    **regression: Any,
) -> Training:
    from surrokit_networks.regression import Regression
    from surrokit_networks.training import Training

    return Training(
        regression=Regression(**regression),
        whiten=whiten,
        tail=tail,
        hold_out=hold_out,
        learns=learns,
        laplace=laplace,
        updates=updates,
    )


_VALUES = {"learns": "potential", "train_on": "values"}

_WAYS: tuple[Mapping[str, Any], ...] = (
    {},
    {"learns": "potential"},
    _VALUES,
    {"learns": "potential", "train_on": "gradients", "trend": "linear"},
)

_PSEUDOINVERSE = {"n_nodes": 20, "ridge": 0.0, "trend": "constant", **_VALUES}


@hookimpl
def surrokit_register_surrogates() -> Sequence[Component]:
    """Register the random networks, the trend alone, and rows of the data on a trend."""
    return [_additive(), _rbf(), *_of_the_paper(), _quadratic(), _rows()]


def _additive() -> Component:
    return Component(
        kind="surrogate",
        name="additive",
        factory=additive,
        summary="network of random additive nodes, softplus by default, on a quadratic trend",
        references=(f"{_PAPER}, section 3.1, Algorithm 2, equations (10) to (12)",),
        examples=(
            *_WAYS,
            {"activation": "tanh", "learns": "potential"},
            {"activation": "cosine", "draws": "quasi-random", "learns": "potential"},
            {"learns": "potential", "trend": "constant", "choose_ridge": "held-out"},
            {"learns": "potential", "trend": "laplace", "n_nodes": 30},
            {"weight_scale": 1.0, **_PSEUDOINVERSE},
            {"n_nodes": 30, "learns": "potential", "updates": "greville"},
            {"n_nodes": 30, "learns": "potential", "updates": "moments"},
        ),
    )


def _rbf() -> Component:
    return Component(
        kind="surrogate",
        name="rbf",
        factory=rbf,
        summary="network of random radial nodes on a quadratic trend",
        references=(f"{_PAPER}, section 3.1, Algorithm 2, equation (10)",),
        examples=(
            *_WAYS,
            {"draws": "data", "learns": "potential"},
            {"width_scale": 1.0, **_PSEUDOINVERSE},
        ),
    )


def _of_the_paper() -> tuple[Component, Component]:
    return (
        Component(
            kind="surrogate",
            name="additive-paper",
            factory=additive_paper,
            summary="the paper's additive network: raw coordinates, values alone, fixed ridge",
            references=(f"{_PAPER}, section 5",),
            examples=({"n_nodes": 200},),
        ),
        Component(
            kind="surrogate",
            name="rbf-paper",
            factory=rbf_paper,
            summary="the authors' radial network: raw coordinates, values alone, fixed ridge",
            references=(f"{_PAPER}, section 3.3",),
            examples=({"n_nodes": 200},),
        ),
    )


def _quadratic() -> Component:
    return Component(
        kind="surrogate",
        name="quadratic",
        factory=quadratic,
        summary="positive definite quadratic: the trend of the networks alone",
        references=(
            "MacKay 2003, Information Theory, Inference, and Learning Algorithms, chapter 27",
        ),
        examples=({"learns": "potential"}, _VALUES, {}),
    )


def _rows() -> Component:
    return Component(
        kind="surrogate",
        name="rows",
        factory=rows,
        summary="rows of the data with most leverage as they are, a fitted quadratic for the rest",
        references=(
            "Cornish, Vanetti, Bouchard-Cote, Deligiannidis, Doucet 2019, arXiv:1901.09881, for "
            "the bounds of the rows",
        ),
        examples=({"n_rows": 1}, {"n_rows": 1, "train_on": "values", "n_nodes": 20}),
    )
