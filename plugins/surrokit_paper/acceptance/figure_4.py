"""Figure 4: acceptance on a surrogate against its nodes and the number of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from surrokit.experiments.contract import Finished, Report
from surrokit_paper.acceptance.figure_4_report import report
from surrokit_paper.acceptance.grid import AcceptanceGrid
from surrokit_paper.problems.several import dim_sizes, node_sizes


@attrs.frozen(kw_only=True)
class Figure4(AcceptanceGrid):
    """Section 3.4 and figure 4 of Zhang, Shahbaba and Zhao (2017).

    Acceptance over s and d, with N "sufficiently large"; see
    :class:`surrokit_paper.acceptance.grid.AcceptanceGrid` for how it is measured.

    Parameters
    ----------
    dims
        d. The paper's axes have no numbers.
    n_nodes
        s.
    """

    name = "figure-4"
    title = "Figure 4: acceptance against hidden nodes and number of parameters"

    dims: tuple[int, ...] = attrs.field(
        default=(8, 16, 24, 32, 40, 48, 56, 64), converter=dim_sizes
    )
    n_nodes: tuple[int, ...] = attrs.field(
        default=(100, 250, 500, 1000, 1500, 2000), converter=node_sizes
    )

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return medians over runs, and the paper's statements beside ours."""
        return report(finished)

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a picture: a heat map over s and d, and two sections through it."""
        from surrokit_paper.acceptance.figure_4_picture import picture

        return picture(finished)
