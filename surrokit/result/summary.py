"""A table of what the draws say about each parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
import numpy as np

from surrokit.diagnostics import QUANTILES, effective_sample_size, mean_error, r_hat, units
from surrokit.types import FloatArray
from surrokit.weighted.figures import Figures

MISSING = "missing"
"""Stands in a table for NaN."""

WIDTH = 80
"""Characters of a line that a terminal holds."""

_GAP = "  "
_SHORT = ("mean", "sd", "q05", "q50", "q95", "ess", "rhat", "mcse")
_WITH_INTERVAL = ("mean", "sd", "hdi_low", "q50", "hdi_high", "ess", "rhat", "mcse")
_LAST = ("ess_bulk", "q50", "mcse", "hdi_high", "hdi_low", "q95", "q05", "rhat", "ess")
"""What is left out where lines are too long, one after the other."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Summary:
    """Statistics of each number of a position; ``print`` shows eight columns, or all if ``wide``.

    Lines that are printed hold 80 characters, unless ``wide``; where names are long, fewer columns
    are shown, and a line below tells which ones are left out.

    Parameters
    ----------
    labels
        One name for each row.
    columns
        Column name to ndarray of shape (dim,): ``mean``, ``sd``, ``q05``, ``q50``, ``q95``,
        ``ess`` (the least of the three that follow), ``ess_bulk`` (for means), ``ess_tail``,
        ``ess_square`` (for spreads), ``rhat``, ``mcse`` (Monte Carlo standard error of the mean)
        and ``calls_per_ess`` (exact calls of any kind, exploration and training included, for
        each effective draw). NaN where a figure cannot be computed. Of weighted answers ``ess`` is
        the number of independent exact draws that would be as good, alone; ``mcse_sd``,
        ``mcse_q05``, ``mcse_q50`` and ``mcse_q95`` are errors of the other figures. ``hdi_low``
        and ``hdi_high`` are ends of highest-density intervals, where these are asked for.
    remarks
        What stands below the table.
    wide
        Whether all columns are printed.
    titles
        What is printed for each row: its name with its unit; the labels unless given.
    """

    labels: list[str]
    columns: dict[str, FloatArray]
    remarks: str = ""
    wide: bool = False
    titles: list[str] = attrs.field()

    @titles.default
    def _name_rows(self) -> list[str]:
        return self.labels

    @classmethod
    def of(cls, draws: FloatArray, labels: list[str], calls: float) -> Summary:
        """Return the summary of draws (chains, draws, dim) that cost ``calls`` exact calls."""
        bulk, tail, square = (
            effective_sample_size(draws, kind) for kind in ("bulk", "tail", "square")
        )
        ess = np.min([bulk, tail, square], axis=0)
        columns = {
            **_moments(draws),
            "ess": ess,
            "ess_bulk": bulk,
            "ess_tail": tail,
            "ess_square": square,
            "rhat": r_hat(draws),
            "mcse": mean_error(draws),
            "calls_per_ess": calls / ess,
        }
        return cls(labels=labels, columns=columns)

    @classmethod
    def of_figures(
        cls, figures: Figures, labels: list[str], calls: float, *, rhat: FloatArray
    ) -> Summary:
        """Return the summary of weighted answers, with an error for each figure.

        Parameters
        ----------
        figures
            The answers.
        labels
            A name for each number.
        calls
            Exact calls that they cost.
        rhat : ndarray of shape (dim,)
            Of chains on the surrogate.
        """
        estimates = figures.named
        columns = {
            **{name: each.value for name, each in estimates.items()},
            "ess": figures.effective,
            "rhat": rhat,
            "mcse": figures.mean.error,
            **{f"mcse_{name}": each.error for name, each in estimates.items() if name != "mean"},
            "calls_per_ess": calls / figures.effective,
        }
        return cls(labels=labels, columns=columns)

    def with_interval(self, ends: FloatArray) -> Summary:
        """Return the summary with columns ``hdi_low`` and ``hdi_high`` behind the quantiles.

        Parameters
        ----------
        ends : ndarray of shape (dim, 2)
            Of the highest-density interval of each number.
        """
        added = {"hdi_low": ends[:, 0], "hdi_high": ends[:, 1]}
        at = list(self.columns).index("ess")
        items = list(self.columns.items())
        return attrs.evolve(self, columns=dict([*items[:at], *added.items(), *items[at:]]))

    def only(self, rows: Sequence[int]) -> Summary:
        """Return the summary of some of the numbers, by their places."""
        return attrs.evolve(
            self,
            labels=[self.labels[i] for i in rows],
            titles=[self.titles[i] for i in rows],
            columns={name: column[list(rows)] for name, column in self.columns.items()},
        )

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

    def table(self, titles: Mapping[str, str], corner: str = "") -> str:
        """Return the table as text.

        Parameters
        ----------
        titles
            Columns that are shown, in their order, each with what stands above it.
        corner
            What stands above the names.
        """
        names = _align([corner, *self.titles], "<")
        cells = {
            name: _align(
                [title, *(format_figure(name, float(value)) for value in self.columns[name])], ">"
            )
            for name, title in titles.items()
        }
        left_out = [] if self.wide else _too_many(len(names[0]), cells)
        columns = [names, *(each for name, each in cells.items() if name not in left_out)]
        lines = [_GAP.join(line) for line in zip(*columns, strict=True)]
        if left_out:
            shown = ", ".join(titles[name] for name in titles if name in left_out)
            lines.append(f"(left out to fit the line: {shown}; wide shows all)")
        return "\n".join(lines)

    def __str__(self) -> str:
        short = _WITH_INTERVAL if "hdi_low" in self.columns else _SHORT
        shown = self.columns if self.wide else [name for name in short if name in self.columns]
        table = self.table({name: name for name in shown})
        return f"{table}\n\n{self.remarks}" if self.remarks else table

    def _repr_html_(self) -> str:
        """Return the table as notebooks show it."""
        from surrokit.report.reprs import show_summary

        return show_summary(self)

    def __repr__(self) -> str:
        return f"<Summary of {len(self.labels)} parameters>\n{self}"


def format_figure(column: str, value: float) -> str:
    """Return a figure of a column as tables print it; :data:`MISSING` for NaN."""
    if np.isnan(value):
        return MISSING
    if column.startswith("ess"):
        return f"{value:.0f}"
    return f"{value:.3f}" if column == "rhat" else f"{value:.4g}"


def _moments(draws: FloatArray) -> dict[str, FloatArray]:
    """Return mean, sd and quantiles, without overflow however large the draws are."""
    dim, unit = draws.shape[2], units(draws)
    flat = (draws / unit).reshape(-1, dim)
    missing = np.full(dim, np.nan)
    quantiles = (
        np.quantile(flat, list(QUANTILES.values()), axis=0)
        if len(flat)
        else np.tile(missing, (len(QUANTILES), 1))
    )
    found = {
        "mean": flat.mean(axis=0) if len(flat) else missing,
        "sd": flat.std(axis=0, ddof=1) if len(flat) > 1 else missing,
        **dict(zip(QUANTILES, quantiles, strict=True)),
    }
    return {name: unit * column for name, column in found.items()}


def _too_many(width: int, cells: Mapping[str, list[str]]) -> list[str]:
    """Return the columns that do not fit beside names of some width, the least important ones."""
    left_out: list[str] = []
    for name in _LAST:
        shown = [len(each[0]) for column, each in cells.items() if column not in left_out]
        if width + sum(shown) + len(_GAP) * len(shown) <= WIDTH:
            break
        left_out += [name] if name in cells else []
    return left_out


def _align(cells: list[str], side: str) -> list[str]:
    width = max(map(len, cells))
    return [f"{cell:{side}{width}}" for cell in cells]
