"""The surrogate against the exact potential: at draws, and along lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.limits import one_thread
from surrokit.plots.panel import BLUE, GREY, ORANGE, VERMILION, Panel, draw_dots, short_name
from surrokit.plots.posterior import MOST_DOTS
from surrokit.potentials import Potential
from surrokit.types import FloatArray

REACH = 3.0  #: Posterior standard deviations that lines reach to each side.
LARGE = 0.5  #: Error in nats from which on a dot is marked.


@attrs.frozen(kw_only=True, eq=False)
class Comparison:
    """A surrogate V, and the exact potential U where a run has evaluated it."""

    surrogate: Potential
    transform: Any  # from the sampling coordinates to the user's
    labels: list[str]  # a name for each number of the sampling coordinates
    positions: FloatArray  # where U is known, in these coordinates, shape (n, dim)
    errors: FloatArray  # U - V there, less its median: potentials are known up to a constant
    values: FloatArray  # U there, above the least
    mean: FloatArray  # of the draws, shape (dim,)
    covariance: FloatArray  # of the draws, shape (dim, dim)

    @classmethod
    def of(cls, run: Any) -> Comparison:
        """Return that of a :class:`~surrokit.result.run.Run`, without an exact call."""
        if run.surrogate is None:
            raise ConfigurationError(
                "this run has no surrogate to look at: it was exact throughout, or was opened from "
                "a file, which holds none; sample with a surrogate, or use surrokit.resume"
            )
        if len(run.kept) * len(run.draws) < 2:
            raise ConfigurationError("there are no draws to look at a surrogate by; draw some")
        positions = run.kept.positions.reshape(-1, run.kept.positions.shape[2])
        exact = run.kept.values.reshape(-1)
        known = np.flatnonzero(np.isfinite(exact))
        known = known[:: max(-(-len(known) // MOST_DOTS), 1)]
        at, exact = positions[known], exact[known]
        apart = exact - _value(run.surrogate, at)
        same = len(run.titles) == positions.shape[1]
        return cls(
            surrogate=run.surrogate,
            transform=run.kept.transform,
            labels=run.titles if same else run.parameters.labels_on_line,
            positions=at,
            errors=apart - (np.nanmedian(apart) if np.isfinite(apart).any() else 0.0),
            values=exact - exact.min(initial=np.inf),
            mean=positions.mean(axis=0),
            covariance=np.atleast_2d(np.cov(positions, rowvar=False)),
        )

    def through(self, column: int, steps: FloatArray) -> FloatArray:
        """Return positions (n, dim) through the mean, at steps (n,) of a number's sd.

        The other numbers go along as they do in the draws, by their regression on this one.
        """
        along, sd = self.covariance[column], np.sqrt(self.covariance[column, column])
        return np.asarray(self.mean + steps[:, None] * (along / sd if sd > 0.0 else 0.0 * along))

    def place(self, positions: FloatArray, column: int) -> FloatArray:
        """Return where positions are on the axis of a number, in the user's coordinates if any."""
        user = self.transform.to_bounded(positions)
        same = user.shape == positions.shape
        return np.asarray(user[:, column] if same else positions[:, column])


def _value(potential: Potential, positions: FloatArray) -> FloatArray:
    """Return values, NaN where they are not finite."""
    with one_thread():
        values = np.asarray(potential.value(positions), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def error_panel(run: Any) -> Panel | None:
    """Return the surrogate's errors at draws; None where they are not known."""
    if run.surrogate is None or not run.exact or not np.isfinite(run.kept.values).any():
        return None
    found = Comparison.of(run)
    values, errors, large = found.values, found.errors, np.abs(found.errors) > LARGE
    spread = float(np.nanstd(errors)) if np.isfinite(errors).any() else np.nan

    def draw(axes: Any) -> None:
        axes.axhline(0.0, color=GREY, linewidth=0.6)
        draw_dots(axes, values[~large], errors[~large], colour=BLUE, size=2.5, alpha=0.6)
        axes.plot(values[large], errors[large], "x", color=VERMILION, markersize=4)
        axes.set(xlabel="exact potential above its least, nats", ylabel="exact less surrogate")
        axes.set(title=f"surrogate at draws: error {spread:.2g} nats")
        axes.margins(y=0.1)
        axes.locator_params(nbins=5)

    text = (
        f"Exact potential less surrogate at {len(errors)} draws: standard deviation {spread:.2g} "
        f"nats; {int(large.sum())} draws are off by more than {LARGE} nats."
    )
    return Panel(title="surrogate's error", text=text, draw=draw)


def surrogate_panels(run: Any, columns: Sequence[int]) -> list[Panel]:
    """Return errors at draws, and lines along columns through the posterior."""
    found, errors = Comparison.of(run), error_panel(run)
    return [*([] if errors is None else [errors]), *(_line(found, column) for column in columns)]


def _line(found: Comparison, column: int) -> Panel:
    name = found.labels[column]
    at = found.through(column, np.linspace(-REACH, REACH, 81))

    def draw(axes: Any) -> None:
        x, curve = found.place(at, column), _value(found.surrogate, at)
        curve -= curve[len(curve) // 2]
        axes.plot(x, curve, color=BLUE, label="surrogate")
        where = found.place(found.positions, column)
        inside, order = (where >= x.min()) & (where <= x.max()), np.argsort(x)
        heights = np.interp(where, x[order], curve[order]) + found.errors
        draw_dots(axes, where[inside], heights[inside], colour=ORANGE, size=2.2, alpha=0.7)
        axes.plot([], [], "o", color=ORANGE, markersize=2.2, label="exact at draws")
        top = float(np.nanquantile(curve, 0.97))
        axes.set_ylim(np.nanmin(curve) - 0.5, max(top, 1.0) + 0.5)
        axes.set(ylabel="nats", title=short_name(name))
        axes.legend(loc="upper center")
        axes.locator_params(nbins=5)

    close = int((np.abs(found.errors) <= LARGE).sum())
    text = (
        f"Surrogate along {name} through the middle of the draws, {REACH:g} standard deviations to "
        "each side; dots are as far from it as the exact potential at draws, within "
        f"{LARGE} nats at {close} of {len(found.errors)}."
    )
    return Panel(title=name, text=text, draw=draw)
