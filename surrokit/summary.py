"""A table of what the draws say about each parameter."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from surrokit.diagnostics import effective_sample_size, mean_error, r_hat
from surrokit.types import FloatArray

QUANTILES = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
"""Column names of the quantiles."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Summary:
    """Statistics of each number of a position; ``print`` shows the table.

    Parameters
    ----------
    labels
        One name for each row.
    columns
        Column name to ndarray of shape (dim,): ``mean``, ``sd``, ``q05``, ``q50``, ``q95``,
        ``ess`` (bulk), ``ess_tail``, ``rhat``, ``mcse`` (Monte Carlo standard error of the mean)
        and ``calls_per_ess`` (exact calls of any kind, exploration and training included, for
        each effective draw).
    """

    labels: list[str]
    columns: dict[str, FloatArray]

    @classmethod
    def of(cls, draws: FloatArray, labels: list[str], calls: float) -> Summary:
        """Summarise draws of shape (chains, draws, dim) that cost so many exact calls."""
        dim = draws.shape[2]
        if draws.shape[1] == 0:
            names = ("mean", "sd", *QUANTILES, "ess", "ess_tail", "rhat", "mcse", "calls_per_ess")
            return cls(labels=labels, columns={name: np.full(dim, np.nan) for name in names})
        flat = draws.reshape(-1, dim)
        ess = effective_sample_size(draws)
        columns = {
            "mean": flat.mean(axis=0),
            "sd": flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(dim, np.nan),
            **dict(
                zip(QUANTILES, np.quantile(flat, list(QUANTILES.values()), axis=0), strict=True)
            ),
            "ess": ess,
            "ess_tail": effective_sample_size(draws, "tail"),
            "rhat": r_hat(draws),
            "mcse": mean_error(draws),
            "calls_per_ess": calls / ess,
        }
        return cls(labels=labels, columns=columns)

    def __getitem__(self, column: str) -> FloatArray:
        """Return a column, shape (dim,)."""
        return self.columns[column]

    def rows(self) -> Iterator[tuple[str, dict[str, float]]]:
        """Iterate over parameters, each with its statistics by name."""
        for i, label in enumerate(self.labels):
            yield label, {name: float(column[i]) for name, column in self.columns.items()}

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return name to statistics, for JSON."""
        return dict(self.rows())

    def __str__(self) -> str:
        width = max(map(len, self.labels), default=0)
        header = " " * width + "".join(f"{name:>14}" for name in self.columns)
        lines = [
            f"{label:<{width}}" + "".join(f"{_number(name, x):>14}" for name, x in row.items())
            for label, row in self.rows()
        ]
        return "\n".join([header, *lines])

    def __repr__(self) -> str:
        return f"<Summary of {len(self.labels)} parameters>\n{self}"


def _number(column: str, value: float) -> str:
    if column.startswith("ess"):
        return f"{value:.0f}"
    return f"{value:.3f}" if column == "rhat" else f"{value:.4g}"
