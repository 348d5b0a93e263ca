"""A run as plain data: what it found, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import surrokit as sk
from surrokit_paper.measures.marginals import Marginals


def measure(run: sk.Run) -> dict[str, Any]:
    """Return the posterior that a run found, effective draws, and exact calls, as plain data.

    Parameters
    ----------
    run
        Complete.

    Returns
    -------
    dict
        ``acceptance``, ``chains``, ``draws`` (of all chains together), ``ess_paper``, ``ess_bulk``,
        ``mean``, ``mean_error``, ``sd``, ``sd_error`` (lists of length dim), ``rhat`` (the
        largest), ``calls`` (of the whole run), ``sampling_calls`` (of the kept draws), ``steps``
        (of the integrator, in kept iterations), ``training_rows``, ``failed_paths`` and
        ``choice``.
    """
    draws, found = run.draws, Marginals.of(run.draws)
    return {
        "acceptance": float(run.acceptance.mean()),
        "chains": len(draws),
        "draws": draws[..., 0].size,
        "ess_paper": run.ess("paper"),
        "ess_bulk": found.ess,
        "mean": found.means,
        "mean_error": found.mean_errors,
        "sd": found.sds,
        "sd_error": found.sd_errors,
        "rhat": float(np.max(run.rhat())),
        "calls": dict(run.calls),
        "sampling_calls": _sampling_calls(run),
        "steps": int(run.kept.n_steps.sum()),
        "training_rows": run.adaptation.training_rows,
        "failed_paths": sum(run.path_failures.values()),
        "choice": run.choice,
    }


def _sampling_calls(run: sk.Run) -> dict[str, int]:
    before: Mapping[str, Any] = run.warmup.calls
    return {
        kind: int(calls[-1]) - (int(before[kind][-1]) if len(run.warmup) else 0)
        for kind, calls in run.kept.calls.items()
    }
