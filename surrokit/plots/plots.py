"""Pictures of a run, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from surrokit.errors import ConfigurationError
from surrokit.plots.diagnostics import cost_panels, rank_panels, trust_panels
from surrokit.plots.panel import Sample, arrange, arrange_at
from surrokit.plots.posterior import (
    forest_panel,
    marginal_panels,
    most_correlated,
    pair_panels,
    trace_panels,
)
from surrokit.plots.surrogate import surrogate_panels

MOST_PANELS = 24  #: Numbers that a figure shows where none are named.


class Plots:
    """Pictures of a run; each is a Matplotlib figure, and costs no exact call.

    Statistics in them (densities, highest-density intervals, ranks, effective sample sizes) are
    ArviZ's. Weighted answers are shown resampled by their weights, and figures say so.

    ``parameters`` are names of parameters, or of single numbers such as ``w[0]``; where they are
    None, the first 24 numbers are shown. ``interval`` is the probability of intervals.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.

    Raises
    ------
    ConfigurationError
        By each method: if there are no draws or no such parameter, or an argument makes no sense.
    MissingDependencyError
        By each method: if Matplotlib is not installed.
    """

    def __init__(self, run: Any) -> None:
        self._run = run

    def __repr__(self) -> str:
        names = ", ".join(name for name in vars(type(self)) if not name.startswith("_"))
        return f"<Plots: {names}>"

    def marginals(self, parameters: Iterable[str] | None = None, *, interval: float = 0.9) -> Any:
        """Return densities of numbers, by chain and of all, with highest-density intervals."""
        columns, title = self._columns(parameters)
        return arrange(marginal_panels(self._run, columns, interval), columns=4, title=title)

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

    def trace(self, parameters: Iterable[str] | None = None) -> Any:
        """Return draws in order, and how their ranks are spread over the chains."""
        columns, title = self._columns(parameters)
        run, rhat = self._run, self._run.rhat()
        both = zip(trace_panels(run, columns, rhat), rank_panels(run, columns, rhat), strict=True)
        panels = [panel for pair in both for panel in pair]
        return arrange(panels, columns=2, title=Sample.of(run).note_on_chains or title)

    def forest(self, parameters: Iterable[str] | None = None, *, interval: float = 0.9) -> Any:
        """Return medians and intervals of numbers, a row for each; by default of the first 60."""
        run = self._run
        everything = list(range(len(run.labels)))
        columns = everything if parameters is None else run.parameters.find(parameters)
        panel = forest_panel(run, columns, interval, "all parameters", run.rhat())
        return arrange([panel], title=Sample.of(run).note)

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
        else:  # draws have other numbers than the surrogate
            raise ConfigurationError(
                "parameters cannot be named here: constraints tie numbers together, and the "
                "surrogate has others; leave parameters out"
            )
        return arrange(surrogate_panels(run, columns))

    def cost(self) -> Any:
        """Return exact calls over time, and acceptance."""
        return arrange(cost_panels(self._run))

    def trust(self) -> Any:
        """Return R-hat and effective draws, energies and weights, as far as the run has them."""
        run = self._run
        return arrange(trust_panels(run, run.ess(), run.rhat()), columns=2)

    def _columns(self, parameters: Iterable[str] | None) -> tuple[list[int], str | None]:
        """Return places of numbers, and the title of their figure."""
        run = self._run
        note, n = Sample.of(run).note, len(run.labels)
        if parameters is not None:
            return run.parameters.find(parameters), note
        part = f"the first {MOST_PANELS} of {n} numbers" if n > MOST_PANELS else None
        return list(range(min(n, MOST_PANELS))), "; ".join(filter(None, (note, part))) or None
