"""Registers the paper's tables and figures as experiments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit_paper.figure_1 import Figure1
    from surrokit_paper.figure_3 import Figure3
    from surrokit_paper.figure_7 import Figure7
    from surrokit_paper.figure_8 import Figure8

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


_QUICK_ROWS = 10_000


def figure_7(
    *,
    quick: bool = False,
    problems: str | Sequence[str] | None = None,
    repeats: int | None = None,
    paper_points: Sequence[int] | None = None,
    default_points: Sequence[int] = (50, 600),
    n_bins: int | None = None,
    burn_in: int | None = None,
    draws: int | None = None,
    n_nodes: int | None = None,
    updates: str = "auto",
    kappa: float = 0.6,
    n_rows: int | None = None,
    dim: int | None = None,
    a9a_step_size: float = 0.0085,
) -> Figure7:
    """Return figure 7; ``quick`` stands for a tenth of the simulated data, few nodes and runs."""
    from surrokit_paper.figure_7 import Figure7

    return Figure7(
        problems=_first(problems, ("simulated",) if quick else ("simulated", "bank", "a9a")),
        repeats=_first(repeats, 2 if quick else 10),
        paper_points=_first(paper_points, (300, 2000) if quick else (500, 6000)),
        default_points=default_points,
        n_bins=_first(n_bins, 8 if quick else 22),
        burn_in=_first(burn_in, 100 if quick else 500),
        draws=_first(draws, 300 if quick else 1000),
        n_nodes=500 if quick and n_nodes is None else n_nodes,
        updates=updates,
        kappa=kappa,
        n_rows=_first(n_rows, _QUICK_ROWS if quick else 100_000),
        dim=_first(dim, 20 if quick else 50),
        a9a_step_size=a9a_step_size,
    )


def figure_8(
    *,
    quick: bool = False,
    problems: str | Sequence[str] | None = None,
    schemes: str | Sequence[str] = ("paper", "defaults"),
    repeats: int | None = None,
    seconds: float | None = None,
    n_times: int | None = None,
    burn_in: int | None = None,
    rns_values: int | None = None,
    n_nodes: int | None = None,
    updates: str = "auto",
    kappa: float = 0.6,
    reference_draws: int | None = None,
    n_rows: int | None = None,
    dim: int | None = None,
    a9a_step_size: float = 0.0085,
) -> Figure8:
    """Return figure 8; ``quick`` stands for a tenth of the simulated data and short runs."""
    from surrokit_paper.figure_8 import Figure8

    return Figure8(
        problems=_first(problems, ("simulated",) if quick else ("simulated", "bank", "a9a")),
        schemes=schemes,
        repeats=_first(repeats, 2 if quick else 10),
        seconds=_first(seconds, 4.0 if quick else 60.0),
        n_times=_first(n_times, 20 if quick else 40),
        burn_in=_first(burn_in, 100 if quick else 500),
        rns_values=_first(rns_values, 1500 if quick else 4000),
        n_nodes=500 if quick and n_nodes is None else n_nodes,
        updates=updates,
        kappa=kappa,
        reference_draws=_first(reference_draws, 2000 if quick else 25_000),
        n_rows=_first(n_rows, _QUICK_ROWS if quick else 100_000),
        dim=_first(dim, 20 if quick else 50),
        a9a_step_size=a9a_step_size,
    )


def _first(asked: Any, usual: Any) -> Any:
    return usual if asked is None else asked


@hookimpl
def surrokit_register_experiments() -> Sequence[Component]:
    """Register figures 1, 3, 7 and 8."""
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
        Component(
            kind="experiment",
            name="figure-7",
            factory=figure_7,
            summary="acceptance of ARNS-HMC against the number of training points",
            references=(f"{_PAPER}, section 5.3, figure 7",),
            examples=(
                {"quick": True, "n_rows": 500, "dim": 3, "burn_in": 5, "draws": 20, "repeats": 1},
            ),
        ),
        Component(
            kind="experiment",
            name="figure-8",
            factory=figure_8,
            summary="relative error of the mean against running time",
            references=(f"{_PAPER}, section 5.3, figure 8",),
            examples=(
                {"quick": True, "n_rows": 500, "dim": 3, "reference_draws": 50, "seconds": 0.1},
            ),
        ),
    )
