"""The components of surrokit_paper: the paper's tables and figures as experiments."""

from surrokit import Component, hookimpl

_PAPER = "Zhang, Shahbaba and Zhao (2017), doi:10.1007/s11222-016-9699-1"
_QUICK_ROWS = 10_000

_SMALL_GRID = {
    "n_nodes": 20,
    "repeats": 1,
    "n_rows": 300,
    "burn_in": 20,
    "chains": 5,
    "iterations": 5,
}

_TINY = {"quick": True, "problems": "simulated", "n_rows": 500, "dim": 3}

_COMPONENTS = (
    Component(
        kind="experiment",
        name="figure-1",
        factory="surrokit_paper.figure_1.experiment:Figure1",
        quick={"n_refits": 5, "n_data_sets": 5},
        summary="surrogates of five nodes on a few noisy values of x^2/2",
        references=(f"{_PAPER}, section 3.3, figure 1",),
        examples=({"quick": True, "n_refits": 2, "n_data_sets": 2},),
    ),
    Component(
        kind="experiment",
        name="figure-2",
        factory="surrokit_paper.figure_2.experiment:Figure2",
        quick={"repeats": 4},
        summary="forces, paths and acceptance on a banana-shaped posterior",
        references=(f"{_PAPER}, section 3.4, figure 2",),
        examples=({"repeats": 1, "burn_in": 5, "n_states": 50, "draws": 10, "n_nodes": 10},),
    ),
    Component(
        kind="experiment",
        name="figure-3",
        factory="surrokit_paper.figure_3.experiment:Figure3",
        quick={"n_points": (150, 300, 600), "repeats": 1, "burn_in": 50, "draws": 200},
        summary="training time, acceptance and efficiency on a Gaussian in 32 dimensions",
        references=(f"{_PAPER}, section 3.4, figure 3",),
        examples=({"quick": True, "n_points": (60,), "burn_in": 5, "draws": 10},),
    ),
    Component(
        kind="experiment",
        name="figure-4",
        factory="surrokit_paper.acceptance.figure_4:Figure4",
        quick={"dims": (8, 16, 32), "n_nodes": (100, 500, 1000), "n_points": (1500,), "repeats": 1},
        summary="acceptance of RNS-HMC against hidden nodes and number of parameters",
        references=(f"{_PAPER}, section 3.4, figure 4",),
        examples=({**_SMALL_GRID, "dims": 2, "n_points": 40, "gradient_points": 20},),
    ),
    Component(
        kind="experiment",
        name="figure-5",
        factory="surrokit_paper.acceptance.figure_5:Figure5",
        quick={"n_nodes": (250, 500, 1000), "n_points": (250, 500, 1000, 1600), "repeats": 1},
        summary="acceptance of RNS-HMC against hidden nodes and training points",
        references=(f"{_PAPER}, section 4, figure 5",),
        examples=({**_SMALL_GRID, "dims": 2, "n_points": 40, "gradient_points": 20},),
    ),
    Component(
        kind="experiment",
        name="figure-6",
        factory="surrokit_paper.figure_6.experiment:Figure6",
        quick={
            "burn_in": 600,
            "discard": 100,
            "draws": 1500,
            "n_nodes": 500,
            "parameters": (1, 6, 11, 16),
            "n_rows": _QUICK_ROWS,
            "dim": 20,
        },
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
        factory="surrokit_paper.figure_7.experiment:Figure7",
        quick={
            "repeats": 1,
            "paper_points": (300, 2000),
            "default_points": (50, 300),
            "emulator_points": (20, 60),
            "n_bins": 8,
            "burn_in": 50,
            "draws": 100,
            "n_nodes": 500,
            "n_rows": _QUICK_ROWS,
            "dim": 20,
        },
        summary="acceptance of ARNS-HMC against the number of training points",
        references=(f"{_PAPER}, section 5.3, figure 7",),
        examples=({**_TINY, "burn_in": 5, "draws": 20},),
    ),
    Component(
        kind="experiment",
        name="figure-8",
        factory="surrokit_paper.figure_8.experiment:Figure8",
        quick={
            "repeats": 1,
            "seconds": 2.0,
            "n_times": 20,
            "burn_in": 50,
            "rns_values": 800,
            "n_nodes": 500,
            "reference_draws": 300,
            "n_rows": _QUICK_ROWS,
            "dim": 20,
        },
        summary="relative error of the mean against running time",
        references=(f"{_PAPER}, section 5.3, figure 8",),
        examples=({**_TINY, "reference_draws": 50, "seconds": 0.1},),
    ),
    Component(
        kind="experiment",
        name="table-1",
        factory="surrokit_paper.table_1.experiment:Table1",
        quick={
            "burn_in": 150,
            "discard": 30,
            "draws": 200,
            "settling": 50,
            "riemannian_burn_in": 1,
            "riemannian_draws": 5,
            "surrogate_riemannian_draws": 20,
            "warmup": 100,
            "n_nodes": 100,
            "convex_metric": "softabs",
            "n_rows": _QUICK_ROWS,
            "dim": 20,
            "mesh": 10,
        },
        summary="HMC, RMHMC, RNS-HMC and RNS-RMHMC on four problems, and defaults beside them",
        references=(f"{_PAPER}, section 5, table 1",),
        examples=({**_TINY, "burn_in": 100, "draws": 50},),
    ),
)


@hookimpl
def surrokit_components() -> tuple[Component, ...]:
    """Offer every table and figure there is."""
    return _COMPONENTS
