"""What this plugin offers to surrokit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit_networks.activations import Activation
    from surrokit_networks.additive import Additive
    from surrokit_networks.rbf import Rbf, Widths
    from surrokit_networks.regression import Level
    from surrokit_networks.training_rows import Tail

_PAPER = "Zhang, Shahbaba, Zhao 2017, arXiv:1506.05555"


def additive(
    *,
    n_nodes: int | None = None,
    activation: str | Activation = "softplus",
    whiten: bool = True,
    weight_scale: float = 0.3,
    bias_scale: float = 1.0,
    level: Level = "trained",
    ridge: float | None = None,
    tail: Tail = "down-weighted",
) -> Additive:
    """Return the additive random network; see :class:`surrokit_networks.additive.Additive`."""
    from surrokit_networks.activations import named
    from surrokit_networks.additive import Additive

    return Additive(
        n_nodes=n_nodes,
        activation=named(activation),
        whiten=whiten,
        weight_scale=weight_scale,
        bias_scale=bias_scale,
        level=level,
        ridge=ridge,
        tail=tail,
    )


def rbf(
    *,
    n_nodes: int | None = None,
    whiten: bool = True,
    centre_scale: float = 1.0,
    widths: Widths = "dimension",
    width_scale: float = 4.0,
    level: Level = "trained",
    ridge: float | None = None,
    tail: Tail = "down-weighted",
) -> Rbf:
    """Return the radial random network; see :class:`surrokit_networks.rbf.Rbf`."""
    from surrokit_networks.rbf import Rbf

    return Rbf(
        n_nodes=n_nodes,
        whiten=whiten,
        centre_scale=centre_scale,
        widths=widths,
        width_scale=width_scale,
        level=level,
        ridge=ridge,
        tail=tail,
    )


@hookimpl
def surrokit_register_surrogates() -> Sequence[Component]:
    """Register the additive and the radial random network."""
    raw = {"whiten": False, "level": "minimum", "ridge": 1e-6, "tail": "full"}
    return [
        Component(
            kind="surrogate",
            name="additive",
            factory=additive,
            summary="network of random additive nodes, softplus by default, trained on values",
            references=(f"{_PAPER}, section 3.1, Algorithm 2, equations (10) to (12)",),
            examples=(
                {},
                {"activation": "tanh"},
                {"activation": "cosine"},
                {"n_nodes": 30},
                {"n_nodes": 200, "weight_scale": 1.0, **raw},
                {"n_nodes": 20, "ridge": 0.0},
            ),
        ),
        Component(
            kind="surrogate",
            name="rbf",
            factory=rbf,
            summary="network of random radial nodes, trained on values",
            references=(f"{_PAPER}, section 3.1, Algorithm 2, equation (10)",),
            examples=(
                {},
                {"n_nodes": 30},
                {"n_nodes": 200, "widths": "chi-square", "width_scale": 1.0, **raw},
                {"widths": "chi-square", "width_scale": 1.0},
                {"n_nodes": 20, "ridge": 0.0},
            ),
        ),
    ]
