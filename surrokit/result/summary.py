"""Summaries of draws by parameter, and expectations of functions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import unmasked
from surrokit.diagnostics import (
    QUANTILES,
    EssKind,
    effective_sample_size,
    format_figure,
    mean_error,
    r_hat,
    units,
)
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray
from surrokit.weighted.answer import Answer, Figures, ratio
from surrokit.weighted.round import Estimate, effective, reshaped, shares
from surrokit.weighted.separate_modes import SeparateModes
from surrokit.weighted.sharpened import Sharpened


def expectation(
    draws: FloatArray,
    answer: Answer | SeparateModes | Sharpened | None,
    calls: float,
    function: Callable[[FloatArray], npt.ArrayLike],
    *,
    batched: bool,
    independent: float,
) -> Estimate:
    """Return the mean of a function; see :meth:`surrokit.result.run.Run.expectation`.

    It is that of weighted or sharpened answers, or the plain mean of draws (chains, draws, dim),
    which are worth at least so many ``independent`` ones.
    """
    if not draws.shape[1]:
        raise ConfigurationError("there are no draws to take a mean over; draw some first")
    is_vector = False

    def columns(positions: FloatArray) -> FloatArray:
        nonlocal is_vector
        values = _values(function, positions, batched=batched)
        is_vector = values.ndim == 2
        return values.reshape(len(positions), -1)

    if answer is None:
        values = columns(draws.reshape(-1, draws.shape[2]))
        error = mean_error(values.reshape(*draws.shape[:2], -1))
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = values.var(axis=0) / np.square(error)
        degrees = np.full(len(error), np.inf)
        named: dict[str, Any] = {"error": error, "effective": effective, "degrees": degrees}
        found = Estimate(value=values.mean(axis=0), calls=calls, **named)
    else:
        found = attrs.evolve(answer, calls=calls).expectation(columns)
    event = ~(found.error > 0.0) & np.isin(found.value, (0.0, 1.0))
    if event.any():
        # an event that no draw saw, or none missed, has by n independent draws a probability of at
        # most 3 / n, with a confidence of 95 % (Hanley and Lippman-Hand 1983,
        # doi:10.1001/jama.1983.03330370053031): half an interval is 1.96 errors
        found = attrs.evolve(
            found,
            error=np.where(event, 3.0 / 1.959964 / independent, found.error),
            effective=np.where(event, independent, found.effective),
            degrees=np.where(event, np.inf, found.degrees),
        )
    if is_vector:
        return found
    return reshaped(found, ())


_A_TERM = 8
"""Weighted draws for each number of a line along them."""


def expectation_of_draws(
    draws: FloatArray,
    log_weights: FloatArray | None,
    calls: float,
    independent: float,
    answer: Answer | None = None,
    positions: FloatArray | None = None,
) -> Estimate:
    """Return the mean of draws (chains, draws, ...), as :func:`expectation` returns it.

    Of draws with weights it is their weighted mean. What a line along the ``positions (chains,
    draws, dim)`` and their squares says of them is averaged by the answer, over many more.
    """
    shape, values = draws.shape[2:], draws.reshape(*draws.shape[:2], -1)
    if np.isnan(values).any():
        raise ConfigurationError(
            "the quantity is not known at all draws; average those where it is no NaN"
        )
    if log_weights is None:
        of = expectation(values, None, calls, np.asarray, batched=True, independent=independent)
        return reshaped(of, shape)
    weights, flat = shares(log_weights), values.reshape(-1, values.shape[2])
    mean = weights @ flat
    square, rest, known = np.square(flat - mean), flat - mean, np.zeros(len(mean))
    if answer is not None and positions is not None:
        at = positions.reshape(len(flat), -1)
        centre, scale = at.mean(axis=0), at.std(axis=0)

        def terms(places: FloatArray) -> FloatArray:
            z = (places - centre) / np.where(scale > 0.0, scale, 1.0)
            return np.hstack([np.ones((len(z), 1)), z, np.square(z)][:n_terms])

        n_terms = next((k for k in (3, 2) if len(flat) >= _A_TERM * (k - 1) * at.shape[1]), 1)
        if n_terms > 1:  # control variates, with residuals from lines without each draw
            root = np.sqrt(weights)[:, None]
            basis, triangle = np.linalg.qr(root * terms(at))
            line = np.linalg.lstsq(triangle, basis.T @ (root * flat), rcond=None)[0]
            left_out = np.maximum(1.0 - np.square(basis).sum(axis=1), np.finfo(float).eps)
            rest = (flat - terms(at) @ line) / left_out[:, None]
            ahead = answer.expectation(lambda places: terms(places) @ line)
            mean, known = ahead.value, np.square(ahead.error)
    own = np.square(weights) @ np.square(rest) / (1.0 - np.square(weights).sum())
    variance = own + known
    found = Estimate(
        value=mean,
        error=np.sqrt(variance),
        effective=ratio(weights @ square, variance),
        degrees=np.full(len(mean), max(effective(log_weights) - 1.0, 1.0)),
        calls=calls,
    )
    return reshaped(found, shape)


def _values(function: Callable[..., Any], positions: FloatArray, *, batched: bool) -> FloatArray:
    """Return what a function gives at positions (n, dim), shape (n,) or (n, k)."""
    found: Any
    if batched:
        found = unmasked(function(positions.copy()))
    else:  # a function may return the same array each time
        found = [np.array(unmasked(function(each.copy()))) for each in positions]
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"the function must return a number, or a vector of one length: {error}"
        ) from error
    if values.ndim not in (1, 2) or len(values) != len(positions):
        raise ShapeError(
            "the function must return a number or a vector for each position, got an array of "
            f"shape {values.shape} for {len(positions)} of them; see batched="
        )
    if np.isnan(values).any():
        raise ShapeError("the function returned NaN at some draws; give it a value there")
    return values


_SHORT = ("mean", "sd", "q05", "q50", "q95", "ess", "rhat", "mcse")
_WITH_INTERVAL = ("mean", "sd", "hdi_low", "q50", "hdi_high", "ess", "rhat", "mcse")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Summary:
    """Statistics of each number of a position; ``print`` shows eight columns, or all if ``wide``.

    Lines that are printed hold 80 characters, unless ``wide``; where names are long, fewer columns
    are shown, and a line below lists which ones are left out.

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
    """

    labels: list[str]
    columns: dict[str, FloatArray]
    remarks: str = ""
    wide: bool = False

    @classmethod
    def of(cls, draws: FloatArray, labels: list[str], calls: float) -> Summary:
        """Return the summary of draws (chains, draws, dim) that cost ``calls`` exact calls."""
        dim, unit = draws.shape[2], units(draws)  # so that nothing overflows
        flat, missing = (draws / unit).reshape(-1, dim), np.full(dim, np.nan)
        quantiles = [
            np.quantile(flat, part, axis=0) if len(flat) else missing for part in QUANTILES.values()
        ]
        kinds: tuple[EssKind, ...] = ("bulk", "tail", "square")
        sizes = [effective_sample_size(draws, kind) for kind in kinds]
        ess = np.min(sizes, axis=0)
        columns = {
            "mean": unit * (flat.mean(axis=0) if len(flat) else missing),
            "sd": unit * (flat.std(axis=0, ddof=1) if len(flat) > 1 else missing),
            **{name: unit * each for name, each in zip(QUANTILES, quantiles, strict=True)},
            "ess": ess,
            **{f"ess_{kind}": each for kind, each in zip(kinds, sizes, strict=True)},
            "rhat": r_hat(draws),
            "mcse": mean_error(draws),
            "calls_per_ess": calls / ess,
        }
        return cls(labels=labels, columns=columns)

    @classmethod
    def of_figures(
        cls, figures: Figures, rhat: FloatArray, calls: float, labels: list[str], rows: list[int]
    ) -> Summary:
        """Return the summary of some numbers of weighted answers, with an error for each figure.

        ``rhat`` (dim,) is that of chains on the surrogate; ``labels`` are those of ``rows``.
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
        return cls(labels=labels, columns={name: each[rows] for name, each in columns.items()})

    def with_interval(self, ends: FloatArray) -> Summary:
        """Return the summary with columns ``hdi_low`` and ``hdi_high``, from ends (dim, 2)."""
        items = list(self.columns.items())
        at = list(self.columns).index("ess")
        items[at:at] = [("hdi_low", ends[:, 0]), ("hdi_high", ends[:, 1])]
        return attrs.evolve(self, columns=dict(items))

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
        names = _align([corner, *self.labels], "<")
        cells = {
            name: _align([title, *(format_figure(name, x) for x in self.columns[name])], ">")
            for name, title in titles.items()
        }
        # what lines of 80 characters do not hold, the least important first
        last = ("ess_bulk", "q50", "mcse", "hdi_high", "hdi_low", "q95", "q05", "rhat", "ess")
        may_go = [] if self.wide else [name for name in last if name in cells]
        left_out: list[str] = []
        while may_go and len(names[0]) + sum(2 + len(each[0]) for each in cells.values()) > 80:
            left_out.append(may_go.pop(0))
            del cells[left_out[-1]]
        lines = ["  ".join(line) for line in zip(names, *cells.values(), strict=True)]
        if left_out:
            shown = ", ".join(titles[name] for name in titles if name in left_out)
            lines.append(f"(left out to fit the line: {shown}; wide shows all)")
        return "\n".join(lines)

    def __str__(self) -> str:
        short = _WITH_INTERVAL if "hdi_low" in self.columns else _SHORT
        shown = self.columns if self.wide else [name for name in short if name in self.columns]
        table = self.table({name: name for name in shown})
        return f"{table}\n\n{self.remarks}" if self.remarks else table

    def __repr__(self) -> str:
        return f"<Summary of {len(self.labels)} parameters>\n{self}"


def _align(cells: list[str], side: str) -> list[str]:
    width = max(map(len, cells))
    return [f"{cell:{side}{width}}" for cell in cells]
