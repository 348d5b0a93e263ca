"""Summaries of draws by parameter, and expectations of functions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import is_whole, unmasked
from surrokit.diagnostics import (
    QUANTILES,
    effective_sample_size,
    format_figure,
    mean_error,
    r_hat,
    units,
)
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray
from surrokit.weighted.answer import Answer, Figures
from surrokit.weighted.round import Estimate, shares
from surrokit.weighted.sharpened import Sharpened

RULE_OF_THREE = 3.0
"""By n independent draws that none saw, an event has a probability of at most 3 / n, with a
confidence of 95 % (Hanley and Lippman-Hand 1983, doi:10.1001/jama.1983.03330370053031)."""

_NORMAL = 1.959964  # half an interval of 95 %, in standard errors


def expectation(
    draws: FloatArray,
    answer: Answer | Sharpened | None,
    calls: float,
    function: Callable[[FloatArray], npt.ArrayLike],
    *,
    batched: bool,
    independent: Callable[[], float],
) -> Estimate:
    """Return the mean of a function; see :meth:`surrokit.result.run.Run.expectation`.

    It is that of weighted or sharpened answers, or the plain mean of draws (chains, draws, dim) in
    the user's coordinates. ``independent`` returns how many independent draws these are worth at
    least.
    """
    if not draws.shape[1]:
        raise ConfigurationError("there are no draws to take a mean over; draw some first")
    values = _Values(function, batched)
    estimate = (
        _of_draws(draws, values(draws.reshape(-1, draws.shape[2])), calls)
        if answer is None
        else attrs.evolve(answer, calls=calls).expectation(values)
    )
    estimate = _unseen(estimate, independent)
    if values.many:
        return estimate
    names = ("value", "error", "effective", "degrees")
    return attrs.evolve(estimate, **{name: getattr(estimate, name)[0] for name in names})


def _unseen(estimate: Estimate, independent: Callable[[], float]) -> Estimate:
    """Return an estimate whose errors say what events that were not seen may hide.

    All draws have one value of the function. If that is 0 or 1, the function may be an event that
    no draw saw, or that none missed, and has an upper bound.
    """
    event = ~(estimate.error > 0.0) & np.isin(estimate.value, (0.0, 1.0))
    if not event.any():
        return estimate
    n = independent()
    return attrs.evolve(
        estimate,
        error=np.where(event, RULE_OF_THREE / _NORMAL / n, estimate.error),
        effective=np.where(event, n, estimate.effective),
        degrees=np.where(event, np.inf, estimate.degrees),
    )


def resample(
    draws: FloatArray,
    log_weights: FloatArray | None,
    n: int,
    rng: np.random.Generator | int | None,
) -> FloatArray:
    """Return draws of equal weight; see :meth:`surrokit.result.run.Run.resampled`."""
    flat = draws.reshape(-1, draws.shape[2])
    if not is_whole(n, 1) or not len(flat):
        raise ConfigurationError(
            f"n must be a whole number of at least 1, and there must be draws, got n={n!r} and "
            f"{len(flat)} draws"
        )
    logs = np.zeros(len(flat)) if log_weights is None else log_weights
    rows = np.random.default_rng(rng).choice(len(flat), int(n), p=shares(logs))
    return np.asarray(flat[rows])


class _Values:
    """A function as it was given, made one of positions (n, dim) to values (n, k)."""

    def __init__(self, function: Callable[[FloatArray], npt.ArrayLike], batched: bool) -> None:
        self._function, self._batched, self.many = function, batched, False

    def __call__(self, positions: FloatArray) -> FloatArray:
        function: Any = self._function
        n = len(positions)
        found: Any
        if self._batched:
            found = unmasked(function(positions.copy()))
        else:  # a function may return the same array each time
            found = [np.array(unmasked(function(each.copy()))) for each in positions]
        try:
            values = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ShapeError(
                f"the function must return a number, or a vector of one length: {error}"
            ) from error
        if values.ndim not in (1, 2) or len(values) != n:
            raise ShapeError(
                f"the function must return a number or a vector for each position, got an array of "
                f"shape {values.shape} for {n} of them; see batched="
            )
        if np.isnan(values).any():
            raise ShapeError("the function returned NaN at some draws; give it a value there")
        self.many = values.ndim == 2
        return np.asarray(values.reshape(n, -1))


def _of_draws(draws: FloatArray, values: FloatArray, calls: float) -> Estimate:
    """Return the plain mean over draws of the target."""
    by_chain = values.reshape(*draws.shape[:2], -1)
    error = mean_error(by_chain)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = values.var(axis=0) / np.square(error)
    return Estimate(
        value=values.mean(axis=0),
        error=error,
        effective=effective,
        degrees=np.full(len(error), np.inf),
        calls=calls,
    )


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
    labels, titles
        One name for each row; and what is printed, its name with its unit.
    columns
        Column name to ndarray of shape (dim,): ``mean``, ``sd``, ``q05``, ``q50``, ``q95``,
        ``ess`` (the least of the three that follow), ``ess_bulk`` (for means), ``ess_tail``,
        ``ess_square`` (for spreads), ``rhat``, ``mcse`` (Monte Carlo standard error of the mean)
        and ``calls_per_ess`` (exact calls of any kind, exploration and training included, for
        each effective draw). NaN where a figure cannot be computed. Of weighted answers ``ess`` is
        the number of independent exact draws that would be as good, alone; ``mcse_sd``,
        ``mcse_q05``, ``mcse_q50`` and ``mcse_q95`` are errors of the other figures. ``hdi_low``
        and ``hdi_high`` are ends of highest-density intervals, where these are asked for.
    """

    labels: list[str]
    columns: dict[str, FloatArray]
    remarks: str = ""
    wide: bool = False
    titles: list[str] = attrs.Factory(lambda self: self.labels, takes_self=True)

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

        ``rhat`` (dim,) is that of chains on the surrogate.
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
        """Return the summary with columns ``hdi_low`` and ``hdi_high``, from ends (dim, 2)."""
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
        """Return the table as text: columns with what stands above each, and above the names."""
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
        from surrokit.report.words import show_summary

        return show_summary(self)

    def __repr__(self) -> str:
        return f"<Summary of {len(self.labels)} parameters>\n{self}"


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
