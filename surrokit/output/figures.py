"""The figures of a run as plain data."""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np

from surrokit.output.json import plain


def figures_of(run: Any) -> dict[str, Any]:
    """Return those of a :class:`~surrokit.result.run.Run`, without its draws, as JSON holds them.

    Parameters
    ----------
    run
        The run.
    """
    ess = run.ess()
    figures = {
        "parts": dict(run.parts),
        "choice": run.choice,
        "stopped": run.stopped,
        "length": run.length,
        "complete": run.complete,
        "exact": run.exact,
        "chains": run.draws.shape[0],
        "draws": run.draws.shape[1],
        "acceptance": run.acceptance.tolist(),
        "divergences": run.divergences.tolist(),
        "calls": dict(run.calls),
        "failures": run.failures,
        "failure_kinds": {name: kind.to_dict() for name, kind in run.failure_kinds.items()},
        "recheck": attrs.asdict(run.recheck),
        "broken_gradients": run.broken_gradients.count,
        "seconds": dict(run.seconds),
        "path_failures": run.path_failures,
        "adaptation": run.adaptation.to_dict(),
        "modes": None if run.modes is None else run.modes.to_dict(),
        "held_out": None if run.fit_quality is None else run.fit_quality.to_dict(),
        "ess": {part: float(getattr(np, part)(ess)) for part in ("min", "median", "max")},
        "calls_per_effective_draw": run.calls_per_effective_draw(),
        "rhat_max": float(np.max(run.rhat()[run.parameters.varies])),
        "verdict": run.verdict.to_dict(),
        "summary": run.summary().to_dict(),
    }
    return cast(dict[str, Any], plain(figures))
