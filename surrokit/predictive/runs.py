"""Predictions of a run's draws; see the methods of :class:`surrokit.Run`."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.predictive.rows import RowPredictor, Rows
from surrokit.predictive.summary import (
    Draws,
    Kind,
    draw_responses,
    predict_probabilities,
    summarise,
)
from surrokit.types import FloatArray
from surrokit.weighted.round import RESAMPLING_SEED, resampled_rows


def predict(
    run: Any,
    new: Any,
    kind: Kind,
    interval: float | None,
    offset: Any,
    seed: int | np.random.Generator | None,
) -> Any:
    """Return means, standard deviations and intervals; see :meth:`surrokit.Run.predict`."""
    predictor, rows = _read(run, new, offset)
    columns = summarise(
        predictor, _all_draws(run), rows, kind, interval, np.random.default_rng(seed)
    )
    if rows.index is None and isinstance(new, np.ndarray | list | tuple):
        return columns
    try:
        import pandas
    except ImportError:  # designs are arrays, which take no pandas
        return columns
    n_columns = len(columns["mean"]) // max(1, len(rows.design))
    index = pandas.RangeIndex(len(rows.design)) if rows.index is None else rows.index
    return pandas.DataFrame(columns, index=index.repeat(n_columns) if n_columns > 1 else index)


def predict_proba(run: Any, new: Any, offset: Any) -> FloatArray:
    """Return probabilities of classes; see :meth:`surrokit.Run.predict_proba`."""
    predictor, rows = _read(run, new, offset)
    return predict_probabilities(predictor, _all_draws(run), rows)


def posterior_predictive(
    run: Any, new: Any, offset: Any, seed: int | np.random.Generator | None
) -> Any:
    """Return draws of new data; see :meth:`surrokit.Run.posterior_predictive`."""
    rng = np.random.default_rng(seed)
    positions, outputs = run.draws, run.outputs
    chains = positions.shape[0]
    flat = positions.reshape(-1, positions.shape[2])
    flat_outputs = None if outputs is None else outputs.reshape(-1, outputs.shape[2])
    if run.log_weights is not None:
        taken = resampled_rows(run.log_weights, np.random.default_rng(RESAMPLING_SEED))
        chains, flat = 1, flat[taken]
        flat_outputs = None if flat_outputs is None else flat_outputs[taken]
    if isinstance(run.predictor, RowPredictor):
        if new is None:
            raise ConfigurationError(
                "posterior_predictive of a regression takes new rows, got none; pass the table or "
                "the design of the fit for a check of the model"
            )
        predictor, rows = _read(run, new, offset)
        found = draw_responses(predictor, flat, rows, rng)
    else:
        _check_model(run, new, offset)
        found = run.predictor.draw_data(rng, flat_outputs, flat)
    return found.reshape(chains, -1, found.shape[1])


def _check_model(run: Any, new: Any, offset: Any) -> None:
    """Raise unless a run is one of a forward model with draws, and nothing else is given."""
    _check_draws(run)
    if not hasattr(run.predictor, "draw_data"):
        raise _nothing_predicted(run)
    missing = True if run.outputs is None else np.isnan(run.outputs).any(axis=2)
    if np.any(missing):
        raise ConfigurationError(
            f"{'the' if np.all(missing) else f'{np.sum(missing)} of the'} draws of this run have "
            "no outputs of the model beside them, which were not evaluated there or are not in its "
            "file. Evaluate the model at run.draws, and add errors of your own"
        )
    if new is not None or offset is not None:
        raise ConfigurationError(
            "this run is of a forward model, which predicts the data that it was fitted to; leave "
            "new rows and offset out"
        )


def _read(run: Any, new: Any, offset: Any) -> tuple[RowPredictor, Rows]:
    """Return what predicts, and new rows.

    Raises
    ------
    ConfigurationError
        If the run has no draws, or is of no regression.
    """
    _check_draws(run)
    predictor = run.predictor
    if hasattr(predictor, "draw_data"):
        raise ConfigurationError(
            "this run is of a forward model, which has no rows to predict; call "
            "run.posterior_predictive() for draws of its data"
        )
    if not isinstance(predictor, RowPredictor):
        raise _nothing_predicted(run)
    return predictor, predictor.reader.read(new, offset)


def _check_draws(run: Any) -> None:
    if not run.draws.shape[1]:
        raise ConfigurationError("there are no draws to predict from; draw some first")


def _nothing_predicted(run: Any) -> ConfigurationError:
    if run.surrogate is None and run.kernel is None:
        # as of a run that was opened
        return ConfigurationError(
            "the file of this run does not hold how its target predicts; take it up with its "
            "target, run = surrokit.resume(path, target), and ask that run"
        )
    return ConfigurationError(
        "the target of this run has no predictions: surrokit.glm, surrokit.rows_potential by the "
        "name of a family and forward models with surrokit.observed data have them; for others "
        "apply your own function to run.draws, or average it by run.expectation"
    )


def _all_draws(run: Any) -> Draws:
    """Return all that is known of the posterior, as positions with masses."""
    better = run.answer or run.sharpened
    if better is not None:
        positions, masses = better.with_masses
        return Draws(positions=positions, masses=masses)
    return Draws(positions=run.draws.reshape(-1, run.draws.shape[2]))
