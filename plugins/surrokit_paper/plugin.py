"""Registers the paper's tables and figures as experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surrokit.components import Component
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    from surrokit_paper.figure_1 import Figure1
    from surrokit_paper.figure_2 import Figure2
    from surrokit_paper.figure_3 import Figure3
    from surrokit_paper.figure_4 import Figure4
    from surrokit_paper.figure_5 import Figure5
    from surrokit_paper.figure_6 import Figure6
    from surrokit_paper.figure_7 import Figure7
    from surrokit_paper.figure_8 import Figure8
    from surrokit_paper.table_1 import Table1

_PAPER = "Zhang, Shahbaba and Zhao (2017), doi:10.1007/s11222-016-9699-1"
_QUICK_ROWS = 10_000


def _given(asked: Mapping[str, Any], **small: Any) -> dict[str, Any]:
    """Return what was asked for, over small sizes if ``quick``; an experiment knows the others."""
    given = {name: value for name, value in asked.items() if name != "quick" and value is not None}
    return {**(small if asked["quick"] else {}), **given}


def figure_1(
    *,
    quick: bool = False,
    n_points: int | Sequence[int] = (10, 20, 40),
    n_refits: int | None = None,
    n_data_sets: int | None = None,
    noise_sd: float = 0.1,
) -> Figure1:
    """Return figure 1; ``quick`` stands for fewer refits and data sets."""
    asked = dict(locals())
    from surrokit_paper.figure_1 import Figure1

    return Figure1(
        **_given(
            asked,
            n_refits=5,
            n_data_sets=5,
        )
    )


def figure_2(
    *,
    quick: bool = False,
    repeats: int | None = None,
    burn_in: int = 100,
    n_states: int = 400,
    draws: int = 500,
    n_nodes: int = 40,
    ridge: float = 1e-6,
    step_size: float = 0.065,
    n_steps: int = 25,
) -> Figure2:
    """Return figure 2; ``quick`` stands for fewer repeats."""
    asked = dict(locals())
    from surrokit_paper.figure_2 import Figure2

    return Figure2(
        **_given(
            asked,
            repeats=4,
        )
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
    asked = dict(locals())
    from surrokit_paper.figure_3 import Figure3

    return Figure3(
        **_given(
            asked,
            n_points=(150, 300, 600),
            repeats=1,
            burn_in=50,
            draws=200,
        )
    )


def figure_4(
    *,
    quick: bool = False,
    dims: int | Sequence[int] | None = None,
    n_nodes: int | Sequence[int] | None = None,
    n_points: int | Sequence[int] | None = None,
    gradient_points: int | Sequence[int] = (200,),
    repeats: int | None = None,
    n_rows: int = 10_000,
    ridge: float = 1e-6,
    acceptance: float = 0.7,
    n_steps: int = 6,
    burn_in: int = 100,
    chains: int = 50,
    iterations: int = 20,
) -> Figure4:
    """Return figure 4; ``quick`` stands for few sizes, points and runs."""
    asked = dict(locals())
    from surrokit_paper.figure_4 import Figure4

    return Figure4(
        **_given(
            asked,
            dims=(8, 16, 32),
            n_nodes=(100, 500, 1000),
            n_points=(1500,),
            repeats=1,
        )
    )


def figure_5(
    *,
    quick: bool = False,
    dims: int | Sequence[int] = (32,),
    n_nodes: int | Sequence[int] | None = None,
    n_points: int | Sequence[int] | None = None,
    gradient_points: int | Sequence[int] = (10, 25, 50, 100, 200),
    repeats: int | None = None,
    n_rows: int = 10_000,
    ridge: float = 1e-6,
    acceptance: float = 0.7,
    n_steps: int = 6,
    burn_in: int = 100,
    chains: int = 50,
    iterations: int = 20,
) -> Figure5:
    """Return figure 5; ``quick`` stands for few sizes and runs."""
    asked = dict(locals())
    from surrokit_paper.figure_5 import Figure5

    return Figure5(
        **_given(
            asked,
            n_nodes=(250, 500, 1000),
            n_points=(250, 500, 1000, 1600),
            repeats=1,
        )
    )


def figure_6(
    *,
    quick: bool = False,
    burn_in: int | None = None,
    discard: int | None = None,
    draws: int | None = None,
    n_nodes: int | None = None,
    ridge: float = 1e-6,
    parameters: int | Sequence[int] | None = None,
    n_shown: int = 1600,
    n_rows: int | None = None,
    dim: int | None = None,
) -> Figure6:
    """Return figure 6; ``quick`` stands for a tenth of the data, 20 dimensions and short runs."""
    asked = dict(locals())
    from surrokit_paper.figure_6 import Figure6

    return Figure6(
        **_given(
            asked,
            burn_in=600,
            discard=100,
            draws=1500,
            n_nodes=500,
            parameters=(1, 6, 11, 16),
            n_rows=_QUICK_ROWS,
            dim=20,
        )
    )


def figure_7(
    *,
    quick: bool = False,
    problems: str | Sequence[str] | None = None,
    repeats: int | None = None,
    paper_points: Sequence[int] | None = None,
    default_points: Sequence[int] | None = None,
    emulator_points: Sequence[int] | None = None,
    n_bins: int | None = None,
    burn_in: int | None = None,
    draws: int | None = None,
    n_nodes: int | None = None,
    updates: str = "auto",
    kappa: float = 0.6,
    n_rows: int | None = None,
    dim: int | None = None,
    mesh: int = 30,
) -> Figure7:
    """Return figure 7; ``quick`` stands for a tenth of the simulated data, few nodes and runs."""
    asked = dict(locals())
    from surrokit_paper.figure_7 import Figure7

    return Figure7(
        **_given(
            asked,
            repeats=1,
            paper_points=(300, 2000),
            default_points=(50, 300),
            emulator_points=(20, 60),
            n_bins=8,
            burn_in=50,
            draws=100,
            n_nodes=500,
            n_rows=_QUICK_ROWS,
            dim=20,
        )
    )


def figure_8(
    *,
    quick: bool = False,
    problems: str | Sequence[str] | None = None,
    schemes: str | Sequence[str] | None = None,
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
    mesh: int = 30,
) -> Figure8:
    """Return figure 8; ``quick`` stands for a tenth of the simulated data and short runs."""
    asked = dict(locals())
    from surrokit_paper.figure_8 import Figure8

    return Figure8(
        **_given(
            asked,
            repeats=1,
            seconds=2.0,
            n_times=20,
            burn_in=50,
            rns_values=800,
            n_nodes=500,
            reference_draws=300,
            n_rows=_QUICK_ROWS,
            dim=20,
        )
    )


def table_1(
    *,
    quick: bool = False,
    problems: str | Sequence[str] = ("simulated", "bank", "a9a", "pde"),
    methods: str | Sequence[str] | None = None,
    repeats: int = 1,
    burn_in: int | None = None,
    discard: int | None = None,
    draws: int | None = None,
    settling: int | None = None,
    riemannian_burn_in: int | None = None,
    riemannian_draws: int | None = None,
    surrogate_riemannian_draws: int | None = None,
    warmup: int | None = None,
    n_nodes: int | None = None,
    convex_metric: str | None = None,
    n_rows: int | None = None,
    dim: int | None = None,
    mesh: int | None = None,
) -> Table1:
    """Return table 1; ``quick`` stands for a tenth of the simulated data, few nodes and draws."""
    asked = dict(locals())
    from surrokit_paper.table_1 import Table1

    return Table1(
        **_given(
            asked,
            burn_in=150,
            discard=30,
            draws=200,
            settling=50,
            riemannian_burn_in=1,
            riemannian_draws=5,
            surrogate_riemannian_draws=20,
            warmup=100,
            n_nodes=100,
            convex_metric="softabs",
            n_rows=_QUICK_ROWS,
            dim=20,
            mesh=10,
        )
    )


_SMALL_GRID = {
    "n_nodes": 20,
    "repeats": 1,
    "n_rows": 300,
    "burn_in": 20,
    "chains": 5,
    "iterations": 5,
}


@hookimpl
def surrokit_register_experiments() -> Sequence[Component]:
    """Register every table and figure there is."""
    return (*_of_sections_3_and_4(), *_of_section_5())


def _of_sections_3_and_4() -> tuple[Component, ...]:
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
            name="figure-2",
            factory=figure_2,
            summary="forces, paths and acceptance on a banana-shaped posterior",
            references=(f"{_PAPER}, section 3.4, figure 2",),
            examples=({"repeats": 1, "burn_in": 5, "n_states": 50, "draws": 10, "n_nodes": 10},),
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
            name="figure-4",
            factory=figure_4,
            summary="acceptance of RNS-HMC against hidden nodes and number of parameters",
            references=(f"{_PAPER}, section 3.4, figure 4",),
            examples=({**_SMALL_GRID, "dims": 2, "n_points": 40, "gradient_points": 20},),
        ),
        Component(
            kind="experiment",
            name="figure-5",
            factory=figure_5,
            summary="acceptance of RNS-HMC against hidden nodes and training points",
            references=(f"{_PAPER}, section 4, figure 5",),
            examples=({**_SMALL_GRID, "dims": 2, "n_points": 40, "gradient_points": 20},),
        ),
    )


_TINY = {"quick": True, "problems": "simulated", "n_rows": 500, "dim": 3}


def _of_section_5() -> tuple[Component, ...]:
    return (
        Component(
            kind="experiment",
            name="figure-6",
            factory=figure_6,
            summary="marginals of the simulated logistic regression by HMC and RNS-HMC",
            references=(f"{_PAPER}, section 5.1, figure 6",),
            examples=(
                {
                    "n_rows": 500,
                    "dim": 3,
                    "parameters": (1, 3),
                    "burn_in": 60,
                    "discard": 10,
                    "draws": 50,
                    "n_nodes": 20,
                },
            ),
        ),
        Component(
            kind="experiment",
            name="figure-7",
            factory=figure_7,
            summary="acceptance of ARNS-HMC against the number of training points",
            references=(f"{_PAPER}, section 5.3, figure 7",),
            examples=({**_TINY, "burn_in": 5, "draws": 20},),
        ),
        Component(
            kind="experiment",
            name="figure-8",
            factory=figure_8,
            summary="relative error of the mean against running time",
            references=(f"{_PAPER}, section 5.3, figure 8",),
            examples=({**_TINY, "reference_draws": 50, "seconds": 0.1},),
        ),
        Component(
            kind="experiment",
            name="table-1",
            factory=table_1,
            summary="HMC, RMHMC, RNS-HMC and RNS-RMHMC on four problems, and defaults beside them",
            references=(f"{_PAPER}, section 5, table 1",),
            examples=({**_TINY, "burn_in": 100, "draws": 50},),
        ),
    )
