"""The surrogate against the exact potential: at draws, along lines and in planes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.limits import one_thread
from surrokit.plots.pairs import Pair
from surrokit.plots.panel import Panel
from surrokit.plots.style import BLUE, GREY, ORANGE, VERMILION, draw_dots, short_name
from surrokit.potentials import Potential
from surrokit.types import FloatArray

MOST_DOTS = 400
LEVELS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Contours of planes, in nats above the least."""

REACH = 3.0
"""Posterior standard deviations that lines and planes reach to each side."""

LARGE = 0.5
"""Error in nats from which on a dot is marked."""

_LINE, _SIDE = 81, 41  # points of curves


@attrs.frozen(kw_only=True, eq=False)
class Comparison:
    """A surrogate V, and the exact potential U where a run has paid for it.

    Parameters
    ----------
    surrogate
        V.
    transform
        From the sampling coordinates to the user's.
    labels
        A name for each number of the sampling coordinates.
    positions : ndarray of shape (n, dim)
        Where U is known, in the sampling coordinates.
    errors : ndarray of shape (n,)
        U - V there, less its median: potentials are known up to a constant.
    values : ndarray of shape (n,)
        U there, above the least.
    mean : ndarray of shape (dim,)
        Of the draws.
    covariance : ndarray of shape (dim, dim)
        Of the draws.
    """

    surrogate: Potential
    transform: Any
    labels: list[str]
    positions: FloatArray
    errors: FloatArray
    values: FloatArray
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, run: Any) -> Comparison:
        """Return that of a :class:`~surrokit.result.run.Run`, without an exact call.

        Raises
        ------
        ConfigurationError
            If it has no surrogate, or no draws.
        """
        if run.surrogate is None:
            raise ConfigurationError(
                "this run has no surrogate to look at: it was exact throughout, or was opened from "
                "a file, which holds none; sample with a surrogate, or use surrokit.resume"
            )
        if len(run.kept) * len(run.draws) < 2:
            raise ConfigurationError("there are no draws to look at a surrogate by; draw some")
        transform, own = run.kept.transform, run.titles
        positions = run.kept.positions.reshape(-1, run.kept.positions.shape[2])
        exact = run.kept.values.reshape(-1)
        known = np.flatnonzero(np.isfinite(exact))
        known = known[:: max(-(-len(known) // MOST_DOTS), 1)]
        at = positions[known]
        with one_thread():
            apart = exact[known] - run.surrogate.value(at)
        apart = np.where(np.isfinite(apart), apart, np.nan)
        return cls(
            surrogate=run.surrogate,
            transform=transform,
            labels=own if len(own) == positions.shape[1] else run.parameters.labels_on_line,
            positions=at,
            errors=apart - (np.nanmedian(apart) if np.isfinite(apart).any() else 0.0),
            values=exact[known] - exact[known].min(initial=np.inf),
            mean=positions.mean(axis=0),
            covariance=np.atleast_2d(np.cov(positions, rowvar=False)),
        )

    @property
    def spread(self) -> float:
        """Standard deviation of the errors, in nats; NaN without any."""
        return float(np.nanstd(self.errors)) if np.isfinite(self.errors).any() else np.nan

    def through(self, columns: Sequence[int], steps: FloatArray) -> FloatArray:
        """Return positions (n, dim) through the mean, on which some numbers are given.

        The other numbers go along as they do in the draws, by their regression on those given.

        Parameters
        ----------
        columns
            Places of the k numbers that are given.
        steps : ndarray of shape (n, k)
            How far each is from its mean, in standard deviations.
        """
        given = list(columns)
        inner, outer = self.covariance[np.ix_(given, given)], self.covariance[:, given]
        offsets = steps * np.sqrt(np.diagonal(inner))
        slopes = np.linalg.lstsq(inner, outer.T, rcond=None)[0]
        return np.asarray(self.mean + offsets @ slopes)

    def place(self, positions: FloatArray, column: int) -> FloatArray:
        """Return where positions are on the axis of a number, in the user's coordinates if any."""
        user = self.transform.to_bounded(positions)
        same = user.shape == positions.shape
        return np.asarray(user[:, column] if same else positions[:, column])


def error_panel(run: Any) -> Panel | None:
    """Return a panel of the surrogate's errors at draws; None where they are not known.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    if run.surrogate is None or not run.exact or not np.isfinite(run.kept.values).any():
        return None
    found = Comparison.of(run)
    large = int((np.abs(found.errors) > LARGE).sum())
    text = (
        f"Exact potential less surrogate at {len(found.errors)} draws: standard deviation "
        f"{found.spread:.2g} nats; {large} draws are off by more than {LARGE} nats."
    )
    return Panel(title="surrogate's error", text=text, draw=partial(_draw_errors, found=found))


def surrogate_panels(
    run: Any, columns: Sequence[int], pairs: Sequence[Pair], exact: Potential | None, points: int
) -> list[Panel]:
    """Return panels of errors, of lines and of planes through the posterior.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    columns
        Numbers along which lines go.
    pairs
        Numbers that span planes.
    exact
        The target, which is paid for; None to pay for nothing.
    points
        Exact values on each line; the square of it in each plane.
    """
    found = Comparison.of(run)
    least = [panel for panel in [error_panel(run)] if panel is not None]
    lines = [_line(found, column, exact, points) for column in columns]
    return [*least, *lines, *(_plane(found, pair, exact, points) for pair in pairs)]


def _line(found: Comparison, column: int, exact: Potential | None, points: int) -> Panel:
    at = found.through([column], np.linspace(-REACH, REACH, _LINE)[:, None])
    paid = None
    if exact is not None:
        paid = found.through([column], np.linspace(-REACH, REACH, points)[:, None])
    name = found.labels[column]
    text = (
        f"Surrogate along {name} through the middle of the draws, {REACH:g} standard deviations to "
        "each side; "
        + (
            f"exact values at {points} points of the line."
            if exact is not None
            else f"dots are as far from it as the exact potential at draws, within {LARGE} nats at "
            f"{int((np.abs(found.errors) <= LARGE).sum())} of {len(found.errors)}."
        )
    )
    draw = partial(_draw_line, found=found, column=column, at=at, paid=paid, exact=exact)
    return Panel(title=name, text=text, draw=draw)


def _plane(found: Comparison, pair: Pair, exact: Potential | None, points: int) -> Panel:
    names = [found.labels[column] for column in pair]
    levels = ", ".join(f"{level:g}" for level in LEVELS)
    text = (
        f"Contours of the surrogate in the plane of {names[0]} and {names[1]} through the middle "
        f"of the draws, at {levels} nats above its least value; "
        + ("dashed contours are exact." if exact is not None else "dots are draws.")
    )
    draw = partial(_draw_plane, found=found, pair=pair, exact=exact, points=points)
    return Panel(title=" and ".join(names), text=text, draw=draw, height=2.5)


def _value(potential: Potential, positions: FloatArray) -> FloatArray:
    with one_thread():
        values = np.asarray(potential.value(positions), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def _draw_errors(axes: Any, *, found: Comparison) -> None:
    large = np.abs(found.errors) > LARGE
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    draw_dots(axes, found.values[~large], found.errors[~large], colour=BLUE, size=2.5, alpha=0.6)
    axes.plot(found.values[large], found.errors[large], "x", color=VERMILION, markersize=4)
    axes.set(
        xlabel="exact potential above its least, nats",
        ylabel="exact less surrogate",
        title=f"surrogate at draws: error {found.spread:.2g} nats",
    )
    axes.margins(y=0.1)
    axes.locator_params(nbins=5)


def _draw_line(
    axes: Any,
    *,
    found: Comparison,
    column: int,
    at: FloatArray,
    paid: FloatArray | None,
    exact: Potential | None,
) -> None:
    x, curve = found.place(at, column), _value(found.surrogate, at)
    middle = curve[len(curve) // 2]
    curve -= middle
    axes.plot(x, curve, color=BLUE, label="surrogate")
    if paid is not None and exact is not None:
        values = _value(exact, paid)
        shift = np.nanmedian(values - _value(found.surrogate, paid))
        label = "exact, paid for"
        axes.plot(
            found.place(paid, column), values - shift - middle, "o", color=ORANGE, label=label
        )
    else:
        where = found.place(found.positions, column)
        inside = (where >= x.min()) & (where <= x.max())
        order = np.argsort(x)
        on_curve = np.interp(where, x[order], curve[order])
        heights = (on_curve + found.errors)[inside]
        draw_dots(axes, where[inside], heights, colour=ORANGE, size=2.2, alpha=0.7)
        axes.plot([], [], "o", color=ORANGE, markersize=2.2, label="exact at draws")
    top = float(np.nanquantile(curve, 0.97))
    axes.set_ylim(np.nanmin(curve) - 0.5, max(top, 1.0) + 0.5)
    axes.set(ylabel="nats", title=short_name(found.labels[column]))
    axes.legend(loc="upper center")
    axes.locator_params(nbins=5)


def _grid(found: Comparison, pair: Pair, side: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return positions in a plane, shape (side^2, dim), and where they are on its axes."""
    steps = np.linspace(-REACH, REACH, side)
    both = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    at = found.through(pair, both)
    x, y = (found.place(at, column).reshape(side, side) for column in pair)
    return at, x, y


def _draw_plane(
    axes: Any, *, found: Comparison, pair: Pair, exact: Potential | None, points: int
) -> None:
    potentials = [(found.surrogate, _SIDE, BLUE, "-")]
    if exact is None:
        x, y = (found.place(found.positions, column) for column in pair)
        large = np.abs(found.errors) > LARGE
        draw_dots(axes, x[~large], y[~large], colour=GREY, size=1.8, alpha=0.5)
        axes.plot(x[large], y[large], "x", color=VERMILION, markersize=4)
    else:
        potentials.append((exact, points, ORANGE, "--"))
    for potential, side, colour, style in potentials:
        at, x, y = _grid(found, pair, side)
        values = _value(potential, at)
        heights = (values - np.nanmin(values)).reshape(side, side)
        axes.contour(x, y, heights, levels=LEVELS, colors=colour, linestyles=style, linewidths=0.9)
    axes.set_xlabel(short_name(found.labels[pair[0]]))
    axes.set_ylabel(short_name(found.labels[pair[1]]))
    axes.set_title("surrogate" if exact is None else "surrogate, and exact (dashed)")
    axes.locator_params(nbins=5)
