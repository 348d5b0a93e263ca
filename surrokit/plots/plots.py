"""Pictures of a run, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from surrokit.errors import ConfigurationError
from surrokit.plots.panel import Sample, arrange, arrange_at
from surrokit.plots.panels import (
    cost_panels,
    marginal_panels,
    most_correlated,
    pair_panels,
    surrogate_panels,
)


class Plots:
    """Pictures of a run; each is a Matplotlib figure, and costs no exact call.

    Weighted answers are shown resampled by their weights, and figures say so. ``parameters`` are
    names of parameters, or of single numbers such as ``w[0]``. Each method raises a
    ConfigurationError if there are no draws, or an argument makes no sense, and a
    MissingDependencyError if Matplotlib is not installed. Other pictures are ArviZ's, by
    :meth:`surrokit.Run.to_arviz`.
    """

    def __init__(self, run: Any) -> None:
        self._run = run

    def __repr__(self) -> str:
        names = ", ".join(name for name in vars(type(self)) if not name.startswith("_"))
        return f"<Plots: {names}>"

    def marginals(self, parameters: Iterable[str] | None = None, *, interval: float = 0.9) -> Any:
        """Return densities of numbers, by chain and of all, with highest-density intervals.

        By default they are the first 24 numbers.
        """
        run, most = self._run, 24
        note, n = Sample.of(run).note, len(run.labels)
        columns = list(range(min(n, most)))
        if parameters is not None:
            columns = run.parameters.find(parameters)
        elif n > most:
            note = "; ".join(filter(None, (note, f"the first {most} of {n} numbers")))
        return arrange(marginal_panels(run, columns, interval), columns=4, title=note)

    def pairs(self, parameters: Iterable[str] | None = None) -> Any:
        """Return draws of each pair of 2 to 6 numbers.

        By default they are the 4 numbers with the largest rank correlations.
        """
        run, most = self._run, 6
        columns = most_correlated(run, 4) if parameters is None else run.parameters.find(parameters)
        if not 2 <= len(columns) <= most:
            raise ConfigurationError(
                f"pairs takes 2 to {most} numbers, got {len(columns)}; name some of them in "
                "parameters="
            )
        places = [(i, j) for j in range(1, len(columns)) for i in range(j)]
        panels = pair_panels(run, [(columns[i], columns[j]) for i, j in places])
        at = {(j - 1, i): panel for (i, j), panel in zip(places, panels, strict=True)}
        return arrange_at(at, title=Sample.of(run).note)

    def surrogate(self, parameters: Iterable[str] | None = None) -> Any:
        """Return the surrogate against the exact potential: at draws, and along lines.

        Lines go through the mean of the draws, by default along the 4 numbers with the largest rank
        correlations; the other numbers go along as they do in the draws. Exact values are those
        that the run has evaluated at its draws: a dot is as far from the curve as the exact
        potential is from the surrogate at that draw. The potential is that of the sampling
        coordinates.
        """
        run, free = self._run, self._run.kept.positions.shape[2]
        if free == len(run.labels):
            named = parameters is not None
            columns = run.parameters.find(parameters) if named else most_correlated(run, 4)
        elif parameters is None:
            columns = list(range(min(free, 4)))
        else:
            raise ConfigurationError(
                "parameters cannot be named here: constraints tie numbers together, and the "
                "surrogate has others; leave parameters out"
            )
        return arrange(surrogate_panels(run, columns))

    def cost(self) -> Any:
        """Return exact calls over time, and acceptance."""
        return arrange(cost_panels(self._run))
