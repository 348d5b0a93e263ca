"""Figure 1: surrogates of few nodes, fitted to few noisy values of x^2 / 2."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.experiments.contract import Conditions, Finished, Report, Row, Table
from surrokit.settings import positive, positive_integer
from surrokit.types import FloatArray
from surrokit_paper.experiment import PaperExperiment
from surrokit_paper.problems.several import sizes
from surrokit_paper.surrogates.methods import (
    DEFAULTS,
    PAPER_GP,
    Method,
    squared_length_scale,
    train,
)

N_NODES = 5
"""Nodes of the networks, and inducing points of FITC, in the paper."""

GRID: FloatArray = np.linspace(-4.0, 4.0, 41)
"""Where curves are kept."""

FAR = 2.0
"""Few points lie further out than this."""

_WHERE = {
    "near": "root of Var(V - U) under N(0, 1), in nats",
    "far": "root mean square of V - U, its mean under N(0, 1) taken off, where |x| >= 2, in nats",
}
_WHAT = {"error": "mean curve", "error_one_fit": "one fit", "error_other_data": "other data"}

NOTES = (
    "near: root of Var(V - U) under N(0, 1); far: root mean square of V - U for 2 <= |x| <= 4; "
    "both in nats. Of single fits the median is shown.",
    "other data: one fit to each of the other data sets, since a single one may mislead.",
)

_FROM_FITC = "squared length scale of FITC"

METHODS = (
    Method(name="gp", label="GP", surrogate="gp", settings=PAPER_GP, random=False),
    Method(
        name="fitc",
        label="FITC",
        surrogate="fitc",
        settings={**PAPER_GP, "n_inducing": N_NODES, "inducing": "data"},
    ),
    Method(
        name="additive",
        label="additive nodes",
        surrogate="additive-paper",
        settings={"n_nodes": N_NODES},
    ),
    Method(
        name="rbf",
        label="radial nodes",
        surrogate="rbf-paper",
        settings={"n_nodes": N_NODES, "width_scale": _FROM_FITC},
    ),
    *DEFAULTS,
)
"""The four of the paper, then this project's own settings."""


@attrs.frozen(kw_only=True)
class Figure1(PaperExperiment):
    """Section 3.3 and figure 1 of Zhang, Shahbaba and Zhao (2017).

    U(x) = x^2 / 2 is seen at N draws from N(0, 1), with noise N(0, noise_sd^2); smaller data sets
    are the beginnings of larger ones. Every surrogate is refitted with other nodes, and the curves
    are averaged.

    Parameters
    ----------
    n_points
        N, one panel each.
    n_refits
        Fits to the one data set that is shown.
    n_data_sets
        Other data sets, to each of which every surrogate is fitted once: what one data set shows
        may be chance.
    noise_sd
        Of the values, and of gradients where a surrogate is shown any.
    """

    name = "figure-1"
    title = "Figure 1: surrogates of U(x) = x^2/2 from a few noisy values"

    n_points: tuple[int, ...] = attrs.field(default=(10, 20, 40), converter=sizes)
    n_refits: int = attrs.field(default=100, validator=positive_integer)
    n_data_sets: int = attrs.field(default=100, validator=positive_integer)
    noise_sd: float = attrs.field(default=0.1, validator=positive)

    def rows(self) -> list[Row]:
        """Return a row for each surrogate and N."""
        shared = self.settings_without("n_points")
        return [
            Row(name=f"{method.name}/{n}", settings={"n_points": n, **method.facts(), **shared})
            for n in self.n_points
            for method in METHODS
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Fit a surrogate again and again; return the mean curve, its spread, and errors."""
        (method,) = [method for method in METHODS if method.name == row.settings["method"]]
        n: int = row.settings["n_points"]
        n_refits = self.n_refits if method.random else 1
        shown = self._data(0, n, conditions)
        curves = _curves(method, shown, n_refits, conditions, 0)
        others = [
            _curves(method, self._data(i, n, conditions), 1, conditions, i)
            for i in range(1, self.n_data_sets + 1)
        ]
        one_each = np.concatenate(others)
        if not len(curves):
            raise SurrogateFitError(
                f"{method.label} could be fitted to none of {n_refits} draws of its nodes; use "
                "more points"
            )
        mean = curves.mean(axis=0)
        low, high = np.quantile(curves, [0.1, 0.9], axis=0)
        return {
            "mean": np.round(mean, 6),
            "low": np.round(low, 6),
            "high": np.round(high, 6),
            "points": np.round(shown.positions[:, 0], 6),
            "values": np.round(shown.values, 6),
            "failures": n_refits - len(curves) + self.n_data_sets - len(one_each),
            "error": _errors(mean[None]),
            "error_one_fit": _errors(curves),
            "error_other_data": _errors(one_each),
        }

    def _data(self, number: int, n: int, conditions: Conditions) -> sk.Evaluations:
        """Return the first n points of a data set."""
        rng = conditions.generator("data", number)
        x, value_noise, gradient_noise = rng.standard_normal((n, 3)).T
        return sk.Evaluations(
            positions=x[:, None],
            values=0.5 * x**2 + self.noise_sd * value_noise,
            gradients=(x + self.noise_sd * gradient_noise)[:, None],
        )

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return errors of the mean curve, of one fit, and of one fit to other data."""
        columns = ["surrogate", "N"]
        columns += [f"{what}, {where}" for what in _WHAT.values() for where in _WHERE]
        lines = [
            (
                row.settings["label"],
                row.settings["n_points"],
                *(row.result[what][where] for what in _WHAT for where in _WHERE),
            )
            for row in finished
        ]
        return Report(
            tables=(Table(columns=tuple(columns), lines=tuple(lines)),),
            figures={"grid": GRID, "where": dict(_WHERE)},
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a picture: the paper's surrogates above, this project's below."""
        from surrokit_paper.figure_1.picture import picture

        return picture(finished, GRID, METHODS)


def _curves(
    method: Method, data: sk.Evaluations, n_fits: int, conditions: Conditions, number: int
) -> FloatArray:
    """Return curves on the grid, shape (at most n_fits, grid), of fits with different nodes."""
    shown = data if method.gradients else attrs.evolve(data, gradients=None)
    settings = dict(method.settings)
    if settings.get("width_scale") == _FROM_FITC:
        settings["width_scale"] = _squared_length(data, conditions, number)
    curves = []
    for fit in range(n_fits):
        rng = conditions.generator("fit", method.name, len(data), number, fit)
        with contextlib.suppress(SurrogateFitError):
            fitted = train(method.surrogate, settings, shown, rng)
            curves.append(fitted.potential.value(GRID[:, None]))
    return np.reshape(curves, (-1, GRID.size))


def _squared_length(data: sk.Evaluations, conditions: Conditions, number: int) -> float:
    """Return l^2 of FITC on the same values, from which the authors draw the widths of nodes."""
    (fitc,) = [method for method in METHODS if method.name == "fitc"]
    values = attrs.evolve(data, gradients=None)
    rng = conditions.generator("fit", "fitc", len(data), number, 0)
    return squared_length_scale(train(fitc.surrogate, fitc.settings, values, rng).potential)


def _errors(curves: FloatArray) -> dict[str, float]:
    """Return the median over curves of each error."""
    error = curves - 0.5 * GRID**2
    density = np.exp(-0.5 * GRID**2)
    density /= density.sum()
    level = error @ density
    inside = np.sqrt(np.square(error - level[:, None]) @ density)
    far = np.abs(GRID) >= FAR
    outside = np.sqrt(np.square(error[:, far] - level[:, None]).mean(axis=1))
    return {"near": float(np.median(inside)), "far": float(np.median(outside))}
