"""Registers the paper's tables and figures as experiments."""

from __future__ import annotations

from collections.abc import Sequence
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
    from surrokit_paper.figure_2 import Figure2

    return Figure2(
        repeats=_first(repeats, 4 if quick else 30),
        burn_in=burn_in,
        n_states=n_states,
        draws=draws,
        n_nodes=n_nodes,
        ridge=ridge,
        step_size=step_size,
        n_steps=n_steps,
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
    from surrokit_paper.figure_4 import Figure4

    return Figure4(
        dims=_first(dims, (8, 16, 32) if quick else (8, 16, 24, 32, 40, 48, 56, 64)),
        n_nodes=_first(n_nodes, (100, 500, 1000) if quick else (100, 250, 500, 1000, 1500, 2000)),
        n_points=_first(n_points, (1500,) if quick else (4000,)),
        gradient_points=gradient_points,
        repeats=_first(repeats, 1 if quick else 10),
        n_rows=n_rows,
        ridge=ridge,
        acceptance=acceptance,
        n_steps=n_steps,
        burn_in=burn_in,
        chains=chains,
        iterations=iterations,
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
    from surrokit_paper.figure_5 import Figure5

    if n_nodes is None:
        n_nodes = (250, 500, 1000) if quick else (100, 250, 500, 750, 1000, 1500, 2000)
    if n_points is None:
        n_points = (
            (250, 500, 1000, 1600) if quick else (200, 350, 500, 750, 1000, 1250, 1600, 2000, 3000)
        )
    return Figure5(
        dims=dims,
        n_nodes=n_nodes,
        n_points=n_points,
        gradient_points=gradient_points,
        repeats=_first(repeats, 1 if quick else 10),
        n_rows=n_rows,
        ridge=ridge,
        acceptance=acceptance,
        n_steps=n_steps,
        burn_in=burn_in,
        chains=chains,
        iterations=iterations,
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
    from surrokit_paper.figure_6 import Figure6

    return Figure6(
        burn_in=_first(burn_in, 600 if quick else 5000),
        discard=_first(discard, 100 if quick else 1000),
        draws=_first(draws, 1500 if quick else 5000),
        n_nodes=500 if quick and n_nodes is None else n_nodes,
        ridge=ridge,
        parameters=_first(parameters, (1, 6, 11, 16) if quick else (1, 11, 21, 31, 41)),
        n_shown=n_shown,
        n_rows=_first(n_rows, _QUICK_ROWS if quick else 100_000),
        dim=_first(dim, 20 if quick else 50),
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
    from surrokit_paper.figure_7 import Figure7
    from surrokit_paper.paper_problems import PROBLEMS

    return Figure7(
        problems=_first(problems, PROBLEMS),
        repeats=_first(repeats, 1 if quick else 10),
        paper_points=_first(paper_points, (300, 2000) if quick else (500, 6000)),
        default_points=_first(default_points, (50, 300) if quick else (50, 600)),
        emulator_points=_first(emulator_points, (20, 60) if quick else (20, 200)),
        n_bins=_first(n_bins, 8 if quick else 22),
        burn_in=_first(burn_in, 50 if quick else 500),
        draws=_first(draws, 100 if quick else 1000),
        n_nodes=500 if quick and n_nodes is None else n_nodes,
        updates=updates,
        kappa=kappa,
        n_rows=_first(n_rows, _QUICK_ROWS if quick else 100_000),
        dim=_first(dim, 20 if quick else 50),
        mesh=mesh,
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
    from surrokit_paper.figure_8 import Figure8
    from surrokit_paper.paper_problems import PROBLEMS
    from surrokit_paper.schemes import SCHEMES

    return Figure8(
        problems=_first(problems, PROBLEMS),
        schemes=_first(schemes, tuple(SCHEMES)),
        repeats=_first(repeats, 1 if quick else 10),
        seconds=_first(seconds, 2.0 if quick else 60.0),
        n_times=_first(n_times, 20 if quick else 40),
        burn_in=_first(burn_in, 50 if quick else 500),
        rns_values=_first(rns_values, 800 if quick else 4000),
        n_nodes=500 if quick and n_nodes is None else n_nodes,
        updates=updates,
        kappa=kappa,
        reference_draws=_first(reference_draws, 300 if quick else 10_000),
        n_rows=_first(n_rows, _QUICK_ROWS if quick else 100_000),
        dim=_first(dim, 20 if quick else 50),
        mesh=mesh,
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
    from surrokit_paper.table_1 import Table1
    from surrokit_paper.table_1_methods import METHODS

    return Table1(
        problems=problems,
        methods=_first(methods, tuple(METHODS)),
        repeats=repeats,
        burn_in=_first(burn_in, 150 if quick else 5000),
        discard=_first(discard, 30 if quick else 1000),
        draws=_first(draws, 200 if quick else 5000),
        settling=_first(settling, 50 if quick else 300),
        riemannian_burn_in=_first(riemannian_burn_in, 1 if quick else 50),
        riemannian_draws=_first(riemannian_draws, 5 if quick else 300),
        surrogate_riemannian_draws=_first(surrogate_riemannian_draws, 20 if quick else 2000),
        warmup=100 if quick and warmup is None else warmup,
        n_nodes=100 if quick and n_nodes is None else n_nodes,
        convex_metric=_first(convex_metric, "softabs" if quick else "hessian"),
        n_rows=_first(n_rows, _QUICK_ROWS if quick else 100_000),
        dim=_first(dim, 20 if quick else 50),
        mesh=_first(mesh, 10 if quick else 30),
    )


def _first(asked: Any, usual: Any) -> Any:
    return usual if asked is None else asked


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
