"""Means, standard deviations and intervals of what draws predict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import attrs
import numpy as np

from surrokit.diagnostics import check_probability
from surrokit.errors import ConfigurationError
from surrokit.predictive.rows import RowPredictor, Rows
from surrokit.types import FloatArray
from surrokit.weighted.round import Distribution

Kind: TypeAlias = Literal["mean", "response"]
"""Whether means of responses are predicted, or new responses."""

_NUMBERS_IN_A_BLOCK = 4_000_000


@attrs.frozen(kw_only=True, eq=False)
class Draws:
    """Positions with masses, under which averages are those under the target.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        In the user's coordinates.
    masses : ndarray of shape (n,), optional
        Of sum one, perhaps negative; None for equal ones.
    """

    positions: FloatArray
    masses: FloatArray | None = None

    def mean(self, values: FloatArray) -> FloatArray:
        """Return the averages of values (n, ...)."""
        if self.masses is None:
            return np.asarray(values.mean(axis=0))
        return np.asarray(np.tensordot(self.masses, values, axes=1))

    def quantiles(self, values: FloatArray, probabilities: FloatArray) -> FloatArray:
        """Return quantiles of values (n, k), shape (len(probabilities), k)."""
        if self.masses is None:
            return np.asarray(np.quantile(values, probabilities, axis=0))
        of = Distribution.of(values, self.masses)
        wanted = [np.full(values.shape[1], probability) for probability in probabilities]
        return np.stack([of.invert(each) for each in wanted])


def summarise(
    predictor: RowPredictor,
    draws: Draws,
    rows: Rows,
    kind: Kind,
    interval: float | None,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return columns of predictions, one number for each row, or for each row and class.

    Parameters
    ----------
    predictor
        Of the regression.
    draws
        Of its posterior.
    rows
        New data.
    kind
        ``"mean"`` or ``"response"``.
    interval
        Probability between ``lower`` and ``upper``, as much on either side; None for none.
    rng
        Draws responses.

    Raises
    ------
    ConfigurationError
        If the kind or the probability is none, or responses are classes.
    """
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
    ends = np.array([tail, 1.0 - tail])
    found: dict[str, list[FloatArray]] = {"mean": [], "sd": [], "lower": [], "upper": []}
    for part in _parts(predictor, draws, rows):
        values = (
            predictor.means(draws.positions, rows, part)
            if kind == "mean"
            else predictor.draw(rng, draws.positions, rows, part)
        )
        values = values.reshape(len(values), -1)
        mean = draws.mean(values)
        found["mean"].append(mean)
        found["sd"].append(np.sqrt(np.maximum(draws.mean(np.square(values - mean)), 0.0)))
        for name, column in zip(("lower", "upper"), draws.quantiles(values, ends), strict=True):
            found[name].append(column)
    columns: dict[str, Any] = {name: np.concatenate(each) for name, each in found.items()}
    if interval is None:
        del columns["lower"], columns["upper"]
    if predictor.has_classes:
        classes = predictor.classes(draws.positions.shape[1])
        columns = {"level": np.tile(classes, len(rows.design)), **columns}
    return columns


def predict_probabilities(predictor: RowPredictor, draws: Draws, rows: Rows) -> FloatArray:
    """Return the posterior mean of the probability of each class, shape (n_rows, classes).

    Raises
    ------
    ConfigurationError
        If responses are no classes.
    """
    predictor.classes(draws.positions.shape[1])
    found = [
        draws.mean(predictor.probabilities(draws.positions, rows, part))
        for part in _parts(predictor, draws, rows)
    ]
    return np.concatenate(found)


def draw_responses(
    predictor: RowPredictor, positions: FloatArray, rows: Rows, rng: np.random.Generator
) -> Any:
    """Return a response of each row at each position, shape (n, n_rows): numbers, or classes."""
    found = predictor.draw(rng, positions, rows, slice(None))
    if not predictor.levels:
        return found
    return np.asarray(predictor.levels)[found.astype(np.int64)]


def _parts(predictor: RowPredictor, draws: Draws, rows: Rows) -> Iterator[slice]:
    """Yield slices of rows, for so many numbers at once."""
    n, dim = draws.positions.shape
    each = n * (len(predictor.classes(dim)) if predictor.has_classes else 1)
    size = max(1, _NUMBERS_IN_A_BLOCK // max(1, each))
    for first in range(0, len(rows.design), size):
        yield slice(first, first + size)
