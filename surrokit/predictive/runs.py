"""Predictions of a run's draws: means, standard deviations and intervals, and draws of new data.

See the methods of :class:`surrokit.Run`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import read_seed
from surrokit.diagnostics import check_probability
from surrokit.errors import ConfigurationError
from surrokit.predictive.rows import RowPredictor, Rows
from surrokit.types import FloatArray
from surrokit.weighted.round import RESAMPLING_SEED, Distribution, resampled_rows

Kind: TypeAlias = Literal["mean", "response"]
"""Whether means of responses are predicted, or new responses."""


@attrs.frozen(eq=False)
class _Draws:
    """Positions with masses, under which averages are those under the target."""

    positions: FloatArray  # (n, dim), in the user's coordinates
    masses: FloatArray | None = None  # (n,), of sum one, perhaps negative; None for equal ones

    @classmethod
    def of(cls, run: Any) -> _Draws:
        """Return all that is known of the posterior."""
        if run.better is not None:
            return cls(*run.better.with_masses)
        return cls(run.draws.reshape(-1, run.draws.shape[2]))

    def mean(self, values: FloatArray) -> FloatArray:
        if self.masses is None:
            return np.asarray(values.mean(axis=0))
        return np.asarray(np.tensordot(self.masses, values, axes=1))

    def quantiles(self, values: FloatArray, probabilities: FloatArray) -> FloatArray:
        """Return quantiles of values (n, k), shape (len(probabilities), k)."""
        if self.masses is None:
            return np.asarray(np.quantile(values, probabilities, axis=0))
        of, k = Distribution.of(values, self.masses), values.shape[1]
        return np.stack([of.invert(np.full(k, probability)) for probability in probabilities])

    def parts(self, predictor: RowPredictor, rows: Rows) -> Iterator[slice]:
        """Yield slices of rows, for so many numbers at once."""
        n, dim = self.positions.shape
        each = n * (len(predictor.classes(dim)) if predictor.has_classes else 1)
        size = max(1, 4_000_000 // max(1, each))
        for first in range(0, len(rows.design), size):
            yield slice(first, first + size)


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
    rng = read_seed(seed)
    columns = _summarise(predictor, _Draws.of(run), rows, kind, interval, rng)
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
    draws = _Draws.of(run)
    predictor.classes(draws.positions.shape[1])  # or an error
    found = np.concatenate(
        [
            draws.mean(predictor.family.means(draws.positions, rows.design[p], rows.offset[p]))
            for p in draws.parts(predictor, rows)
        ]
    )
    return found if found.ndim == 2 else np.stack([1.0 - found, found], axis=1)


def posterior_predictive(
    run: Any, new: Any, offset: Any, seed: int | np.random.Generator | None
) -> Any:
    """Return draws of new data; see :meth:`surrokit.Run.posterior_predictive`."""
    rng, chains = read_seed(seed), run.draws.shape[0]
    flat = run.draws.reshape(-1, run.draws.shape[2])
    taken: Any = slice(None)
    if run.log_weights is not None:
        taken = resampled_rows(run.log_weights, np.random.default_rng(RESAMPLING_SEED))
        chains, flat = 1, flat[taken]
    if not isinstance(run.predictor, RowPredictor):
        _check_model(run, new, offset)
        outputs = run.outputs.reshape(-1, run.outputs.shape[2])[taken]
        found = run.predictor.draw_data(rng, outputs, flat)
        return found.reshape(chains, -1, found.shape[1])
    if new is None:
        raise ConfigurationError(
            "posterior_predictive of a regression takes new rows, got none; pass the table or "
            "the design of the fit for a check of the model"
        )
    predictor, rows = _read(run, new, offset)
    found = predictor.family.draws(rng, flat, rows.design, rows.offset)
    if predictor.levels:
        found = np.asarray(predictor.levels)[found.astype(np.int64)]
    return found.reshape(chains, -1, found.shape[1])


def _check_model(run: Any, new: Any, offset: Any) -> None:
    """Raise unless a run is one of a forward model with draws, and nothing else is given."""
    if not run.draws.shape[1] or not hasattr(run.predictor, "draw_data"):
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
    """Return what predicts, and new rows; raise if the run has no draws, or is of no regression."""
    if run.draws.shape[1] and hasattr(run.predictor, "draw_data"):
        raise ConfigurationError(
            "this run is of a forward model, which has no rows to predict; call "
            "run.posterior_predictive() for draws of its data"
        )
    if not run.draws.shape[1] or not isinstance(run.predictor, RowPredictor):
        raise _nothing_predicted(run)
    return run.predictor, run.predictor.reader.read(new, offset)


def _nothing_predicted(run: Any) -> ConfigurationError:
    if not run.draws.shape[1]:
        return ConfigurationError("there are no draws to predict from; draw some first")
    if run.surrogate is None and run.kernel is None:  # as of a run that was opened
        return ConfigurationError(
            "the file of this run does not hold how its target predicts; take it up with its "
            "target, run = surrokit.resume(path, target), and ask that run"
        )
    return ConfigurationError(
        "the target of this run has no predictions: surrokit.glm, surrokit.rows_potential by the "
        "name of a family and forward models with surrokit.observed data have them; for others "
        "apply your own function to run.draws, or average it by run.expectation"
    )


def _summarise(
    predictor: RowPredictor,
    draws: _Draws,
    rows: Rows,
    kind: Kind,
    interval: float | None,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return columns of predictions, one number for each row, or for each row and class."""
    if kind not in ("mean", "response"):
        raise ConfigurationError(f"kind must be 'mean' or 'response', got {kind!r}")
    if interval is not None:
        check_probability(interval)
    if kind == "response" and predictor.has_classes:
        raise ConfigurationError(
            f"responses of the family {predictor.family.name!r} are classes, which have no mean "
            "and no interval; take kind='mean' for their probabilities, or "
            "run.posterior_predictive for draws of them"
        )
    tail = 0.5 * (1.0 - (0.9 if interval is None else float(interval)))
    parts = []
    for part in draws.parts(predictor, rows):
        of, given = predictor.family, (draws.positions, rows.design[part], rows.offset[part])
        values = of.means(*given) if kind == "mean" else of.draws(rng, *given)
        values = values.reshape(len(values), -1)
        mean = draws.mean(values)
        sd = np.sqrt(np.maximum(draws.mean(np.square(values - mean)), 0.0))
        parts.append([mean, sd, *draws.quantiles(values, np.array([tail, 1.0 - tail]))])
    whole = np.concatenate(parts, axis=1)
    columns: dict[str, Any] = dict(zip(("mean", "sd", "lower", "upper"), whole, strict=True))
    if interval is None:
        del columns["lower"], columns["upper"]
    if predictor.has_classes:
        classes = predictor.classes(draws.positions.shape[1])
        columns = {"level": np.tile(classes, len(rows.design)), **columns}
    return columns
