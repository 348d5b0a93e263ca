"""Runs in the form of the ArviZ project."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from surrokit.errors import MissingDependencyError

if TYPE_CHECKING:
    from surrokit.history import Trace
    from surrokit.result import Run

_INSTALL = "python -m pip install 'surrokit[arviz]'"


def to_arviz(run: Run) -> Any:
    """Return a DataTree (ArviZ 1 and later) or InferenceData (before).

    Raises
    ------
    MissingDependencyError
        If ArviZ is not installed.
    """
    groups = {
        "posterior": {name: run[name] for name in run.parameters.specs},
        "sample_stats": _statistics(run.kept),
        "warmup_sample_stats": _statistics(run.warmup),
    }
    with warnings.catch_warnings():
        # ArviZ takes fewer draws than chains for swapped axes
        warnings.filterwarnings("ignore", category=UserWarning, message=".*chain.*")
        converted = _converted(groups)
    converted.attrs.update(_attributes(run))
    return converted


def _converted(groups: dict[str, dict[str, np.ndarray]]) -> Any:
    try:
        from arviz_base import from_dict
    except ImportError:
        pass
    else:
        return from_dict(groups, save_warmup=True)
    try:
        import arviz
    except ImportError as error:
        raise MissingDependencyError(
            f"ArviZ is needed for this and is not installed; run {_INSTALL}"
        ) from error
    return arviz.from_dict(**groups, save_warmup=True)


def _statistics(trace: Trace) -> dict[str, np.ndarray]:
    """Return sampler statistics under ArviZ's names, each of shape (chains, draws).

    ``lp`` is left out where a correction did not evaluate the target at every draw.
    """
    chains = trace.draws.shape[0]
    known = not np.isnan(trace.values).any()
    return {
        **({"lp": -trace.values} if known else {}),
        "acceptance_rate": trace.acceptance,
        "diverging": trace.divergent,
        "n_steps": trace.n_steps,
        "step_size": np.tile(trace.step_size, (chains, 1)),
    }


def _attributes(run: Run) -> dict[str, Any]:
    return {
        "inference_library": "surrokit",
        "sampling_time": run.seconds["sampling"],
        "stopped": run.stopped,
        **({} if run.choice is None else {"choice": run.choice}),
        **{f"calls_{kind}": n for kind, n in run.calls.items()},
    }
