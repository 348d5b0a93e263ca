"""The fourth section of a page: what the run cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.plots.cost import cost_panels
from surrokit.report.svg import Drawer
from surrokit.shown.elements import Child, Markup, items, join, tag

MOST_REPAIRS = 12
"""Repairs of the surrogate that are told one by one."""


def section(run: Any, drawer: Drawer) -> Markup:
    """Return the section.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    drawer
        Draws its pictures.
    """
    return join(
        [
            tag(
                "div",
                *(drawer.draw(panel, caption=True) for panel in cost_panels(run)),
                class_="pictures",
            ),
            items(_facts(run)),
            *_repairs(run),
        ]
    )


def _facts(run: Any) -> list[tuple[str, str | None]]:
    adaptation, n_paths = run.adaptation, int(np.size(run.divergences))
    acceptance = run.acceptance
    accepted = None if np.isnan(acceptance).all() else f"{float(np.nanmean(acceptance)):.3f}"
    deployed = [f"{i}" for i in adaptation.deployments[:10]]
    more = len(adaptation.deployments) - len(deployed)
    after = f" after iteration {', '.join(deployed)}{f' and {more} more' if more else ''}"
    return [
        (
            "exact calls by kind",
            ", ".join(f"{n:,} {kind}" for kind, n in run.calls.items() if n) or "none",
        ),
        ("for nothing, ahead", f"{run.vain_calls:,}" if run.vain_calls else None),
        ("acceptance", accepted),
        ("diverged paths", str(int(run.divergences.sum())) if n_paths else None),
        ("positions that failed", f"{run.failures:,}"),
        ("surrogates deployed", f"{len(adaptation.deployments)}{after if deployed else ''}"),
        ("evaluations learnt from", f"{adaptation.training_rows:,}"),
        ("repairs", str(len(adaptation.rescues) + len(adaptation.restarts))),
        ("seconds", ", ".join(f"{value:.3g} {phase}" for phase, value in run.seconds.items())),
        ("iterations", f"{len(run.warmup):,} of warm-up, {len(run.kept):,} kept"),
    ]


def _repairs(run: Any) -> list[Child]:
    repairs = [*run.adaptation.rescues, *run.adaptation.restarts]
    if not repairs:
        return []
    rows = [
        tag("li", f"after iteration {each.iteration}: {each.reason}")
        for each in repairs[:MOST_REPAIRS]
    ]
    more = len(repairs) - len(rows)
    rows += [tag("li", f"and {more} more")] if more else []
    return [tag("h3", "Repairs of the surrogate"), tag("ul", *rows)]
