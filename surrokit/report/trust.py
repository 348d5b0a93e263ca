"""The third section of a page: whether the draws are to be trusted."""

from __future__ import annotations

from typing import Any

from surrokit.plots.surrogate import error_panel
from surrokit.plots.trust import rank_panels, trust_panels
from surrokit.report.posterior import Shown
from surrokit.report.svg import Drawer
from surrokit.shown.elements import Child, Markup, join, tag

RANKED = 12
"""Numbers whose ranks are shown at most: those of the largest R-hat."""


def section(run: Any, summary: Any, drawer: Drawer) -> Markup:
    """Return the section.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run` with draws.
    summary
        Its summary.
    drawer
        Draws its pictures.
    """
    columns = Shown.of(summary).columns
    panels = [*trust_panels(run, columns, summary["ess"], summary["rhat"])]
    error = error_panel(run)
    panels += [] if error is None else [error]
    ranked = sorted(columns, key=lambda column: -float(summary["rhat"][column]))[:RANKED]
    chains = "chains on the surrogate, before weights" if run.answer is not None else "chains"
    parts: list[Child] = [
        tag("div", *(drawer.draw(panel, caption=True) for panel in panels), class_="pictures"),
        _surrogate(run),
        tag("h3", "Ranks"),
        tag(
            "p",
            f"How the ranks of each chain's draws are spread ({chains}). Where chains agree, all "
            "lines stay about 1; the grey band holds most of them by chance if draws are "
            "independent.",
        ),
        tag(
            "div",
            *(drawer.draw(panel) for panel in rank_panels(run, sorted(ranked), summary["rhat"])),
            class_="pictures",
        ),
    ]
    return join(parts)


def _surrogate(run: Any) -> Markup | None:
    """Return what is known of the surrogate, in words."""
    quality = run.fit_quality
    if quality is not None:
        return tag(
            "p",
            f"At {quality.n_points} evaluations that were held out, Var(V - U) of the surrogate is "
            f"{quality.variance:.3g} squared nats, by which {quality.acceptance:.1%} of "
            "independent draws from it would be accepted. The exact potential decided on every "
            "draw: errors of the surrogate cost mixing, not correctness.",
        )
    if run.surrogate is None and run.adaptation.deployments:
        return tag(
            "p",
            "A file holds no surrogate: its errors are shown where the page is made by "
            "run.report(...) of the run itself, or of surrokit.resume(...).",
        )
    if run.surrogate is None:
        return tag("p", "All proposals were made on the exact potential; there was no surrogate.")
    return None
