"""The picture of figure 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments import Finished
from surrokit_paper.figure_8_report import HMC, Errors, errors
from surrokit_paper.schemes import SCHEMES
from surrokit_paper.style import LOOKS, RC, common_legend

KINDS = {"hmc": "HMC", "rns": "RNS-HMC", "arns": "ARNS-HMC"}
"""First words of methods, and what the legend says."""

_WIDTH, _HEIGHT = 3.2, 2.9  # inches of a panel


def picture(finished: Sequence[Finished]) -> Any:
    """Return a figure with a panel for each problem and scheme: error over seconds.

    Parameters
    ----------
    finished
        Rows of figure 8.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    found = errors(finished)
    problems = {row.settings["problem"]: row.settings["label"] for row in finished}
    named = dict.fromkeys(e.scheme for e in found if e.scheme is not None)
    schemes: list[str | None] = list(named) or [None]
    size = (max(_WIDTH * len(problems), 5.0), _HEIGHT * len(schemes) + 0.5)
    with mpl.rc_context(RC):
        width, height = size
        figure = Figure(figsize=(max(width, 6.4), height), layout="constrained")
        axes = figure.subplots(len(schemes), len(problems), sharex=True, squeeze=False)
        for row, scheme in zip(axes, schemes, strict=True):
            for ax, (problem, label) in zip(row, problems.items(), strict=True):
                for e in found:
                    if e.problem == problem and (e.method == HMC or e.scheme == scheme):
                        _curve(ax, e)
                ax.set(xscale="log", yscale="log", title=_title(label, scheme))
            row[0].set_ylabel("relative error of the mean")
        for ax in axes[-1]:
            ax.set_xlabel("processor seconds, training included")
        common_legend(figure, axes.ravel())
    return figure


def _title(label: str, scheme: str | None) -> str:
    return label if scheme is None else f"{label}\n{SCHEMES[scheme].label}"


def _curve(ax: Any, e: Errors) -> None:
    kind = e.method.partition("-")[0]
    look = LOOKS[kind]
    known = np.isfinite(e.median) & (e.low > 0)
    if not known.any():
        return
    times = e.times[known]
    ax.fill_between(times, e.low[known], e.high[known], color=look.colour, alpha=0.15, linewidth=0)
    ax.plot(times, e.median[known], markevery=4, label=KINDS[kind], **look.options())
    start = e.numbers["starting_seconds"]
    if start is not None:
        ax.axvline(
            start,
            color=look.colour,
            linestyle=look.line,
            linewidth=0.8,
            label=f"{KINDS[kind]}'s starting phase ends",
        )
