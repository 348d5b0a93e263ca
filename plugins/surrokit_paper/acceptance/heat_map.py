"""Heat maps with their numbers written in the cells, and curves beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit_paper.acceptance.grid_summary import GridSummary, Size, Tried
from surrokit_paper.style import LOOKS

COLOURS = "cividis"
"""Even steps of lightness, also for readers who do not tell all colours apart."""

ACCEPTANCE = "acceptance probability"
"""What is shown, as labels call it."""

_ROOM = 1.15
_DARK = 0.5  # part of the scale below which writing is white


def heat_map(
    ax: Any,
    numbers: npt.ArrayLike,
    columns: Sequence[int],
    rows: Sequence[int],
    *,
    inside: npt.ArrayLike | None = None,
) -> Any:
    """Draw numbers between 0 and 1 as coloured cells of one size; the first row is at the bottom.

    Parameters
    ----------
    ax
        Axes of Matplotlib.
    numbers : array_like of shape (rows, columns)
        What is shown; NaN where nothing is known.
    columns, rows
        What stands at the axes.
    inside : array_like of bool, shape (rows, columns), optional
        Cells that a line sets apart from the others.

    Returns
    -------
    AxesImage
        For a colour bar.
    """
    grid = np.asarray(numbers, dtype=np.float64)
    top = float(np.ceil(20.0 * np.nanmax(grid, initial=0.05)) / 20.0)
    image = ax.imshow(grid, origin="lower", aspect="auto", cmap=COLOURS, vmin=0.0, vmax=top)
    ax.set_xticks(range(len(columns)), [str(size) for size in columns])
    ax.set_yticks(range(len(rows)), [str(size) for size in rows])
    ax.tick_params(length=0)
    for (i, j), number in np.ndenumerate(grid):
        if np.isfinite(number):
            colour = "white" if number < _DARK * top else "black"
            ax.text(j, i, f"{number:.2f}", ha="center", va="center", color=colour, fontsize=8)
    if inside is not None:
        _outline(ax, np.asarray(inside, dtype=bool))
    return image


def _outline(ax: Any, inside: npt.NDArray[np.bool_]) -> None:
    """Draw a line wherever a cell that is inside meets one that is not."""
    across = [
        ([j + 0.5, j + 0.5], [i - 0.5, i + 0.5])
        for i, j in np.argwhere(inside[:, 1:] != inside[:, :-1])
    ]
    along = [
        ([j - 0.5, j + 0.5], [i + 0.5, i + 0.5]) for i, j in np.argwhere(inside[1:] != inside[:-1])
    ]
    for x, y in across + along:
        ax.plot(x, y, color="white", linewidth=2.2, solid_capstyle="projecting")


def draw_curve(ax: Any, curve: Sequence[Tried], over: Size, label: str) -> None:
    """Draw the median acceptance of a surrogate with bars from 10 % to 90 %.

    Parameters
    ----------
    ax
        Axes of Matplotlib.
    curve
        The surrogate at several sizes; nothing is drawn where there is none.
    over
        The size along the axis.
    label
        In the legend.
    """
    if not curve:
        return
    numbers = [tried.acceptance for tried in curve]
    ax.errorbar(
        [getattr(tried, over) for tried in curve],
        [each.median for each in numbers],
        [
            [each.median - each.low for each in numbers],
            [each.high - each.median for each in numbers],
        ],
        capsize=2,
        elinewidth=0.8,
        label=label,
        **LOOKS[curve[0].method].options(),
    )


def level(ax: Any, name: str, acceptance: float, label: str | None = None) -> None:
    """Draw an acceptance that does not depend on what is along the axis.

    Parameters
    ----------
    ax
        Axes of Matplotlib.
    name
        Whose it is.
    acceptance
        How high.
    label
        In the legend; None where it stands there already.
    """
    look = LOOKS[name]
    ax.axhline(acceptance, color=look.colour, linestyle=look.line, label=label)


def headroom(found: GridSummary) -> float:
    """Return where an axis of acceptance ends: a little above exact HMC."""
    return _ROOM * max(hmc.high for hmc in found.hmc.values())
