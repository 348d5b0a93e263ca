"""What a run cost in words, as the command line and pages show it alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.diagnostics import format_figure


def costs(run: Any) -> dict[str, str | None]:
    """Return what a run cost and how it went by titles, None where there is nothing to say."""
    quality, adaptation, modes = run.fit_quality, run.adaptation, run.modes
    held_out = {
        name: None if value is None else f"{value:.3g}"
        for name in ("variance", "gradient_error", "acceptance")
        for value in [None if quality is None else getattr(quality, name)]
    }
    deployed = f"{len(adaptation.deployments)}, last after iteration {adaptation.last_deployment}"
    each = run.calls_per_effective_draw() if run.draws.shape[1] else np.nan
    return {
        "acceptance rate": _figure(float(np.mean(run.acceptance)), 3) if run.by_chains else None,
        "surrogate, held-out Var(V - U)": held_out["variance"],
        "surrogate, held-out error of gradients": held_out["gradient_error"],
        "surrogate, predicted acceptance": held_out["acceptance"],
        "seconds, warm-up": f"{run.seconds['warmup']:.2f}",
        "seconds, training": f"{run.seconds['training']:.2f}",
        "seconds, sampling": f"{run.seconds['sampling']:.2f}",
        "modes found": None
        if modes is None
        else f"{len(modes)}, by {modes.searches} search{'es' if modes.searches > 1 else ''}",
        "surrogates deployed": deployed if adaptation.deployments else None,
        "draws of each chain": None if run.stopped == "draws" else str(len(run.kept)),
        "exact calls": calls(run),
        "exact calls per effective draw": _figure(each, 2),
    }


def calls(run: Any) -> str:
    """Return the exact calls of a run by kind."""
    return ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n) or "none"


def _figure(value: float, digits: int) -> str:
    return format_figure("", value) if np.isnan(value) else f"{value:.{digits}f}"
