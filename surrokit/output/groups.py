"""Groups of arrays and attributes of a run, by ArviZ's names."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.potentials import Potential, with_rows
from surrokit.types import FloatArray
from surrokit.weighted.round import resampled_rows

Group: TypeAlias = Mapping[str, np.ndarray]
"""Name to an array of shape (chains, draws, ...); data that were observed have any shape."""

MOST_NUMBERS = 2**26
"""Log-likelihoods that are exported at most, half a gigabyte of them."""


MOST_DATA = 2**22
"""Numbers of an array of data that is exported at most: draws may be few, and data many."""


def groups_of(run: Any) -> dict[str, Group]:
    """Return the groups of a :class:`~surrokit.result.run.Run`.

    ``posterior`` and ``sample_stats``; ``warmup_posterior`` and ``warmup_sample_stats`` of
    iterations before the first kept draw; ``posterior_predictive`` with the outputs of a forward
    map, without noise, where the run has them; and ``observed_data`` where the target tells
    them, but for arrays of text or of more than :data:`MOST_DATA` numbers.

    Parameters
    ----------
    run
        The run.
    """
    groups: dict[str, Group] = {
        "posterior": {name: run[name] for name in run.parameters.specs},
        "sample_stats": {**run.kept.statistics(run.log_weights), **_depths(run, run.kept)},
        "warmup_sample_stats": {**run.warmup.statistics(), **_depths(run, run.warmup)},
    }
    if len(run.warmup):
        groups["warmup_posterior"] = run.parameters.split(run.warmup.draws)
    if run.outputs is not None:
        groups["posterior_predictive"] = {"outputs": run.outputs}
    observed = {name: array for name, array in run.observed_data.items() if _is_small(array)}
    if observed:
        groups["observed_data"] = observed
    return groups


def equally_weighted(run: Any, seed: int | np.random.Generator) -> Any:
    """Return a run with draws of equal weight, in one chain, in place of weighted ones.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    seed
        By which its draws are drawn anew; a run without weights is returned as it is.
    """
    if run.log_weights is None:
        return run
    places = resampled_rows(run.log_weights, np.random.default_rng(seed))
    return attrs.evolve(run, kept=run.kept.chosen(places), weights=None)


def _is_small(array: np.ndarray) -> bool:
    """Return whether an array holds numbers, and not too many to go with the draws."""
    return array.dtype.kind in "biuf" and array.size <= MOST_DATA


def _depths(run: Any, trace: Any) -> Group:
    """Return how often each path was doubled, of samplers that double paths."""
    if not hasattr(run.sampler, "max_depth"):
        return {}
    return {"tree_depth": np.ceil(np.log2(trace.n_steps + 1.0)).astype(np.int64)}


def attributes_of(run: Any) -> dict[str, Any]:
    """Return versions, calls and other facts of a run, as numbers and text.

    Parameters
    ----------
    run
        The run.
    """
    try:
        version = metadata.version("surrokit")
    except metadata.PackageNotFoundError:  # a bare checkout on the path
        version = "unknown"
    return {
        "inference_library": "surrokit",
        "inference_library_version": version,
        "python_version": platform.python_version(),
        "numpy_version": np.__version__,
        "sampling_time": run.seconds["sampling"],
        "warmup_time": run.seconds["warmup"],
        "training_time": run.seconds["training"],
        "tuning_steps": len(run.warmup),
        "stopped": run.stopped,
        "length": run.length,
        "exact": int(run.exact),
        "verdict": str(run.verdict),
        **({} if run.choice is None else {"choice": run.choice}),
        **{f"part_{kind}": name for kind, name in run.parts.items()},
        "deployments": len(run.adaptation.deployments),
        "failures": run.failures,
        "calls": float(run.total_calls),
        **{f"calls_{kind}": n for kind, n in run.calls.items()},
    }


def log_likelihood_of(run: Any, target: Potential) -> FloatArray:
    """Return the log-likelihood of each row of data at each draw, shape (chains, draws, rows).

    It is minus the target's term of the row, so constants that the target leaves out are missing.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    target
        Its target, a sum over rows.

    Raises
    ------
    CapabilityError
        If the target is no sum over rows.
    ConfigurationError
        If there are more than :data:`MOST_NUMBERS` numbers, or the target is another run's.
    """
    if ROWS not in target.capabilities:
        raise CapabilityError(
            "log-likelihoods by row need a target that is a sum over rows of data, such as "
            "surrokit.rows_potential makes; leave log_likelihood out"
        )
    positions, terms = run.kept.positions, with_rows(target)
    chains, draws, dim = positions.shape
    if target.dim != dim:
        raise ConfigurationError(
            f"log_likelihood must be the target of this run, whose positions have {dim} numbers, "
            f"got one with {target.dim}"
        )
    if terms.n_rows * chains * draws > MOST_NUMBERS:
        raise ConfigurationError(
            f"log-likelihoods of {terms.n_rows} rows at {chains * draws} draws are too many to "
            f"export ({MOST_NUMBERS} numbers at most); leave log_likelihood out, or draw fewer"
        )
    flat = positions.reshape(-1, dim)
    found = np.empty((len(flat), terms.n_rows))
    for row in range(terms.n_rows):
        found[:, row] = -terms.select(np.array([row])).value(flat)
    return found.reshape(chains, draws, -1)
