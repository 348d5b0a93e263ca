"""Registers the paper's tables and figures as experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit_paper.figure_1 import Figure1
    from surrokit_paper.figure_3 import Figure3

_PAPER = "Zhang, Shahbaba and Zhao (2017), doi:10.1007/s11222-016-9699-1"


def figure_1(
    *,
    quick: bool = False,
    n_points: int | Sequence[int] = (10, 20, 40),
    n_refits: int | None = None,
    n_data_sets: int | None = None,
    noise_sd: float = 0.1,
) -> Figure1:
    """Return figure 1; ``quick`` stands for fewer refits and data sets."""
    from surrokit_paper.figure_1 import Figure1

    few = 5 if quick else 100
    return Figure1(
        n_points=n_points,
        n_refits=few if n_refits is None else n_refits,
        n_data_sets=few if n_data_sets is None else n_data_sets,
        noise_sd=noise_sd,
    )


def figure_3(
    *,
    quick: bool = False,
    n_points: int | Sequence[int] | None = None,
    repeats: int | None = None,
    burn_in: int | None = None,
    draws: int | None = None,
    noise_sd: float = 0.1,
) -> Figure3:
    """Return figure 3; ``quick`` stands for fewer points, repeats and draws."""
    from surrokit_paper.figure_3 import Figure3

    if n_points is None:
        n_points = (150, 300, 600) if quick else (300, 600, 900, 1500, 2100, 3000)
    if repeats is None:
        repeats = 1 if quick else 10
    if burn_in is None:
        burn_in = 50 if quick else 400
    if draws is None:
        draws = 200 if quick else 1600
    return Figure3(
        n_points=n_points, repeats=repeats, burn_in=burn_in, draws=draws, noise_sd=noise_sd
    )


@hookimpl
def surrokit_register_experiments() -> Sequence[Component]:
    """Register figures 1 and 3."""
    return (
        Component(
            kind="experiment",
            name="figure-1",
            factory=figure_1,
            summary="surrogates of five nodes on a few noisy values of x^2/2",
            references=(f"{_PAPER}, section 3.3, figure 1",),
            examples=({"quick": True, "n_refits": 2, "n_data_sets": 2},),
        ),
        Component(
            kind="experiment",
            name="figure-3",
            factory=figure_3,
            summary="training time, acceptance and efficiency on a Gaussian in 32 dimensions",
            references=(f"{_PAPER}, section 3.4, figure 3",),
            examples=({"quick": True, "n_points": (60,), "burn_in": 5, "draws": 10},),
        ),
    )
