"""Acceptance over runs, for each surrogate in a grid of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.experiments.contract import Finished
from surrokit_paper.measures.repeats import quantiles, repeats

NOTES = (
    "the paper prints no numbers on its axes; sizes are ours. It does not say how many rows its "
    "data have, nor how long its paths are: 10000 rows unless set otherwise, and up to 6 steps.",
    "acceptance is the mean of the exact acceptance probabilities of short chains from draws of "
    "the target; all surrogates of a run have the same starts, momenta and numbers of steps.",
    "numbers are medians over runs.",
    "training points are accepted proposals of one chain of exact HMC past its burn-in.",
    "surrokit's defaults choose their number of nodes themselves.",
)
"""What readers of figures 4 and 5 must know."""

Size: TypeAlias = Literal["dim", "n_nodes", "n_points"]
"""A size of a grid, as :class:`Tried` names it."""


@attrs.frozen(kw_only=True)
class OverRuns:
    """A number over several runs.

    Parameters
    ----------
    runs
        How many.
    low, median, high
        Quantiles of 10 %, 50 % and 90 %.
    mean
        The mean.
    """

    runs: int
    low: float
    median: float
    high: float
    mean: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> OverRuns:
        """Return what several numbers say, at least one."""
        return cls(runs=len(numbers), mean=float(np.mean(numbers)), **quantiles(numbers))


@attrs.frozen(kw_only=True)
class Tried:
    """A surrogate at one place of the grid.

    Parameters
    ----------
    dim
        Number of parameters d.
    method
        Name of the surrogate.
    n_nodes
        s; None where the surrogate chooses.
    n_points
        N.
    nodes_used
        What the surrogate has in fact, median over runs.
    acceptance
        Of proposals on it.
    training_seconds
        Processor time of a fit, median over runs.
    """

    dim: int
    method: str
    n_nodes: int | None
    n_points: int
    nodes_used: float
    acceptance: OverRuns
    training_seconds: float


@attrs.frozen(kw_only=True)
class GridSummary:
    """What the runs say.

    Parameters
    ----------
    hmc
        Acceptance of exact HMC by number of parameters.
    step_sizes
        Its step size, median over runs, by number of parameters.
    tried
        All surrogates, by d, N and s.
    """

    hmc: dict[int, OverRuns]
    step_sizes: dict[int, float]
    tried: tuple[Tried, ...]

    @classmethod
    def of(cls, finished: Sequence[Finished]) -> GridSummary:
        """Return the summary of finished rows of figure 4 or 5."""
        by_dim = {dim: rows for (dim,), rows in sorted(repeats(finished, "dim").items())}
        return cls(
            hmc={
                dim: OverRuns.of([row.result["hmc_acceptance"] for row in rows])
                for dim, rows in by_dim.items()
            },
            step_sizes={
                dim: float(np.median([row.result["step_size"] for row in rows]))
                for dim, rows in by_dim.items()
            },
            tried=tuple(found for dim, rows in by_dim.items() for found in _trials_of(dim, rows)),
        )

    @property
    def dims(self) -> list[int]:
        """Numbers of parameters, rising."""
        return list(self.hmc)

    def sizes(self, of: Size, method: str) -> list[int]:
        """Return the sizes at which a method was tried, rising."""
        found = {getattr(tried, of) for tried in self.tried if tried.method == method}
        return sorted(size for size in found if size is not None)

    def curve(
        self,
        method: str,
        *,
        dim: int | None = None,
        n_nodes: int | None = None,
        n_points: int | None = None,
    ) -> list[Tried]:
        """Return a method wherever it was tried at these sizes; None for any."""
        return [
            tried
            for tried in self.tried
            if tried.method == method
            and dim in (None, tried.dim)
            and n_nodes in (None, tried.n_nodes)
            and n_points in (None, tried.n_points)
        ]

    def ratio(self, tried: Tried) -> float:
        """Return the median acceptance on a surrogate over exact HMC's."""
        return tried.acceptance.median / self.hmc[tried.dim].median


def coefficients(dim: int) -> int:
    """Return how many coefficients a polynomial of second order has, (d + 1)(d + 2) / 2."""
    return (dim + 1) * (dim + 2) // 2


def section(sizes: Sequence[int], preferred: int) -> int:
    """Return the paper's size for a section through the grid; the largest where it is not there."""
    return preferred if preferred in sizes else max(sizes)


def _trials_of(dim: int, rows: Sequence[Finished]) -> list[Tried]:
    groups: dict[tuple[str, int, int | None], list[dict[str, float]]] = {}
    for row in rows:
        for cell in row.result["cells"]:
            key = cell["method"], cell["n_points"], cell["n_nodes"]
            groups.setdefault(key, []).append(cell)
    return [
        Tried(
            dim=dim,
            method=method,
            n_nodes=n_nodes,
            n_points=n_points,
            nodes_used=float(np.median([cell["nodes_used"] for cell in cells])),
            acceptance=OverRuns.of([cell["acceptance"] for cell in cells]),
            training_seconds=float(np.median([cell["training_seconds"] for cell in cells])),
        )
        for (method, n_points, n_nodes), cells in groups.items()
    ]
