"""Pictures of a run, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from surrokit.arguments import is_whole
from surrokit.errors import ConfigurationError
from surrokit.plots.cost import cost_panels
from surrokit.plots.forest import forest_panel
from surrokit.plots.marginals import marginal_panels
from surrokit.plots.pairs import numbers_that_matter, pair_panels, strongest_pairs
from surrokit.plots.panel import Panel, arrange, arrange_at
from surrokit.plots.sample import Sample
from surrokit.plots.surrogate import surrogate_panels
from surrokit.plots.trace import trace_panels
from surrokit.plots.trust import rank_panels, trust_panels
from surrokit.potentials import Potential

MOST_PANELS = 24
"""Numbers that a figure shows where none are named."""

MOST_OF_PAIRS = 6
"""Numbers of which all pairs are shown at most."""


class Plots:
    """Pictures of a run; each is a Matplotlib figure, and costs no exact call unless told.

    Statistics in them (densities, highest-density intervals, ranks, effective sample sizes) are
    ArviZ's. Weighted answers are shown resampled by their weights, and figures say so.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """

    def __init__(self, run: Any) -> None:
        self._run = run

    def __repr__(self) -> str:
        names = ", ".join(name for name in vars(type(self)) if not name.startswith("_"))
        return f"<Plots: {names}>"

    def marginals(self, parameters: Iterable[str] | None = None, *, interval: float = 0.9) -> Any:
        """Return densities of numbers, by chain and of all, with highest-density intervals.

        Parameters
        ----------
        parameters
            Names of parameters, or of single numbers such as ``w[0]``; None for the first 24.
        interval
            Probability of the intervals.

        Raises
        ------
        ConfigurationError
            If there are no draws or no such parameter, or the probability makes no sense.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        columns, title = self._columns(parameters)
        return arrange(marginal_panels(self._run, columns, interval), columns=4, title=title)

    def pairs(self, parameters: Iterable[str] | None = None) -> Any:
        """Return draws of each pair of numbers.

        Parameters
        ----------
        parameters
            At most 6 numbers, by name; None for the 4 that tell most of one another, by rank
            correlation.

        Raises
        ------
        ConfigurationError
            If there are no draws, no such parameter, or other than 2 to 6 numbers.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        run = self._run
        if parameters is None:
            columns = numbers_that_matter(run, 4)
        else:
            columns = run.parameters.find(parameters)
        if not 2 <= len(columns) <= MOST_OF_PAIRS:
            raise ConfigurationError(
                f"pairs takes 2 to {MOST_OF_PAIRS} numbers, got {len(columns)}; name some of them "
                "in parameters="
            )
        places = [(i, j) for j in range(1, len(columns)) for i in range(j)]
        panels = pair_panels(run, [(columns[i], columns[j]) for i, j in places])
        at = {(j - 1, i): panel for (i, j), panel in zip(places, panels, strict=True)}
        return arrange_at(at, title=Sample.of(run).note)

    def trace(self, parameters: Iterable[str] | None = None) -> Any:
        """Return draws in order, and how their ranks are spread over the chains.

        Parameters
        ----------
        parameters
            As for :meth:`marginals`.

        Raises
        ------
        ConfigurationError
            If there are no draws or no such parameter.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        columns, title = self._columns(parameters)
        run, sample, rhat = self._run, Sample.of(self._run), self._run.rhat()
        both = zip(trace_panels(run, columns, rhat), rank_panels(run, columns, rhat), strict=True)
        panels: list[Panel] = [panel for pair in both for panel in pair]
        told = title if sample.note is None else sample.note_on_chains
        return arrange(panels, columns=2, title=told)

    def forest(self, parameters: Iterable[str] | None = None, *, interval: float = 0.9) -> Any:
        """Return medians and intervals of numbers, a row for each.

        Parameters
        ----------
        parameters
            As for :meth:`marginals`; None for the first 60.
        interval
            Probability of the long intervals.

        Raises
        ------
        ConfigurationError
            If there are no draws or no such parameter, or the probability makes no sense.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        run = self._run
        columns = list(range(len(run.labels)))
        if parameters is not None:
            columns = run.parameters.find(parameters)
        panel = forest_panel(run, columns, interval, "all parameters", run.rhat())
        return arrange([panel], title=Sample.of(run).note)

    def surrogate(
        self,
        parameters: Iterable[str] | None = None,
        *,
        exact: Potential | None = None,
        points: int = 9,
    ) -> Any:
        """Return the surrogate against the exact potential: at draws, along lines, and in planes.

        Lines and planes go through the mean of the draws. Where some numbers are given, the others
        go along as they do in the draws. Exact values are those that the run has paid for at its
        draws: on a line, a dot is as far from the curve as the exact potential is from the
        surrogate at that draw. The potential is that of the sampling coordinates.

        Parameters
        ----------
        parameters
            Numbers along which lines go; None for the 4 that tell most of one another.
        exact
            The target, to pay for exact values on the lines and in the planes; None to pay for
            nothing.
        points
            Exact values on each line, and on each side of a plane, if ``exact`` is given.

        Raises
        ------
        ConfigurationError
            If the run has no surrogate, no draws or no such parameter, or ``points`` is no whole
            number of at least 2.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        if not is_whole(points, 2):
            raise ConfigurationError(f"points must be a whole number of at least 2, got {points!r}")
        columns, pairs = self._lines(parameters)
        return arrange(surrogate_panels(self._run, columns, pairs, exact, points), columns=3)

    def cost(self) -> Any:
        """Return exact calls over time, acceptance, and seconds by phase.

        Raises
        ------
        MissingDependencyError
            If Matplotlib is not installed.
        """
        return arrange(cost_panels(self._run))

    def trust(self) -> Any:
        """Return R-hat, effective draws, energies and weights, as far as the run has them.

        Raises
        ------
        ConfigurationError
            If there are no draws.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        run = self._run
        columns = list(range(min(len(run.labels), MOST_PANELS)))
        return arrange(list(trust_panels(run, columns, run.ess(), run.rhat())), columns=2)

    def _columns(self, parameters: Iterable[str] | None) -> tuple[list[int], str | None]:
        """Return places of numbers, and what a figure's title says."""
        run = self._run
        notes = [Sample.of(run).note]
        if parameters is not None:
            return run.parameters.find(parameters), notes[0]
        n = len(run.labels)
        if n > MOST_PANELS:
            notes.append(f"the first {MOST_PANELS} of {n} numbers")
        return list(range(min(n, MOST_PANELS))), "; ".join(filter(None, notes)) or None

    def _lines(self, parameters: Iterable[str] | None) -> tuple[list[int], list[tuple[int, int]]]:
        run, free = self._run, self._run.kept.positions.shape[2]
        if free != len(run.labels):  # draws have other numbers than the surrogate
            if parameters is not None:
                raise ConfigurationError(
                    "parameters cannot be named here: constraints tie numbers together, and the "
                    "surrogate has others; leave parameters out"
                )
            first = list(range(min(free, 4)))
            return first, [(first[0], first[1])] if free > 1 else []
        if parameters is None:
            columns = numbers_that_matter(run, 4)
        else:
            columns = run.parameters.find(parameters)
        if len(columns) < 2:
            return columns, []
        return columns, strongest_pairs(run, 1, columns)
