"""Figure 5: acceptance on a surrogate against its nodes and its training points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from surrokit.experiments.contract import Finished, Report
from surrokit_paper.acceptance.figure_5_report import report
from surrokit_paper.acceptance.grid import AcceptanceGrid
from surrokit_paper.problems.several import gradient_sizes, node_sizes, sizes


@attrs.frozen(kw_only=True)
class Figure5(AcceptanceGrid):
    """Section 4 and figure 5 of Zhang, Shahbaba and Zhao (2017).

    Acceptance over s and N with 32 parameters; see
    :class:`surrokit_paper.acceptance.grid.AcceptanceGrid` for how it is measured.

    Parameters
    ----------
    n_nodes
        s. The paper's axes have no numbers.
    n_points
        N, for values alone.
    gradient_points
        N, for gradients too.
    """

    name = "figure-5"
    title = "Figure 5: acceptance against hidden nodes and training points, 32 parameters"

    n_nodes: tuple[int, ...] = attrs.field(
        default=(100, 250, 500, 750, 1000, 1500, 2000), converter=node_sizes
    )
    n_points: tuple[int, ...] = attrs.field(
        default=(200, 350, 500, 750, 1000, 1250, 1600, 2000, 3000), converter=sizes
    )
    gradient_points: tuple[int, ...] = attrs.field(
        default=(10, 25, 50, 100, 200), converter=gradient_sizes
    )

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return medians over runs, and the paper's statements beside ours."""
        return report(finished)

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a picture: a heat map over s and N, and two sections through it."""
        from surrokit_paper.acceptance.figure_5_picture import picture

        return picture(finished)
