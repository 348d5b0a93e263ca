"""What shows a run: tables, files, pictures and pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit.contracts.potential import Potential
    from surrokit.plots.plots import Plots


class Views:
    """Ways to look at a run."""

    __slots__ = ()

    @property
    def plot(self) -> Plots:
        """Pictures of the run: :class:`~surrokit.plots.plots.Plots`."""
        from surrokit.plots.plots import Plots

        return Plots(self)

    def report(self, path: str | os.PathLike[str], *, interval: float = 0.9) -> Path:
        """Write a page about the run, in one file that needs nothing else, and return its path.

        It has the verdict, the posterior, what tells whether it is to be trusted, what it cost,
        and what it was made of.

        Parameters
        ----------
        path
            A file that ends in ``.html``; one that exists is replaced.
        interval
            Probability of the highest-density intervals.

        Raises
        ------
        ConfigurationError
            If the ending is another one, the probability makes no sense, or the file cannot be
            written.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        from surrokit.report.page import write_report

        return write_report(self, path, interval=interval)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of a run, without its draws, as plain data for JSON.

        A figure that is not finite, such as R-hat of a parameter that never moved, is None.
        """
        from surrokit.output.figures import figures_of

        return figures_of(self)

    def to_arviz(self, *, log_likelihood: Potential | None = None) -> Any:
        """Return the draws as the installed ArviZ keeps them: a DataTree, or InferenceData.

        Groups are ``posterior``, ``sample_stats`` (with ``log_weight`` of weighted draws), the same
        of the warm-up, ``posterior_predictive`` with the ``outputs`` of a forward map without
        noise, and ``observed_data`` where the target tells them: ``outputs`` of a forward map, and
        ``row`` for the responses of a regression, but no text, and no array of more than four
        million numbers. Attributes have versions, calls, parts and the verdict.

        Parameters
        ----------
        log_likelihood
            The target, if it is a sum over rows of data: the group ``log_likelihood`` then has one
            number for each ``row`` at each draw. Constants that the target leaves out are missing.
            All rows are evaluated at all draws, in no count of the run.

        Raises
        ------
        MissingDependencyError
            If ArviZ is not installed.
        CapabilityError
            If the target is no sum over rows.
        ConfigurationError
            If it is another run's, or rows times draws are too many.
        """
        import attrs

        from surrokit.output.arviz import Draws, to_arviz
        from surrokit.output.groups import log_likelihood_of

        draws = Draws.of(self)
        if log_likelihood is not None:
            by_row = {"row": log_likelihood_of(self, log_likelihood)}
            draws = attrs.evolve(draws, groups={**draws.groups, "log_likelihood": by_row})
        return to_arviz(draws)

    def to_pandas(self) -> Any:
        """Return the draws as a data frame: ``chain``, ``draw``, and a column for each number.

        Weighted draws have a column ``log_weight`` as well, as in the tables of :meth:`save`.

        Raises
        ------
        MissingDependencyError
            If pandas is not installed.
        """
        from surrokit.output.frames import to_pandas

        return to_pandas(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the draws to a file, in the form that its ending asks for.

        ``.nc`` (netCDF) and ``.zarr`` hold draws and statistics as ArviZ reads them; names there
        have ÷ for each slash, which these forms refuse, and an underscore where they are those of
        axes, such as ``chain`` and ``draw``. ``.csv`` and ``.parquet`` hold a table of the draws
        alone, with columns ``chain``, ``draw``, of weighted draws ``log_weight``, and one for each
        of ``labels``.

        Raises
        ------
        ConfigurationError
            If the ending is another one, or the file cannot be written.
        MissingDependencyError
            If a library that the form needs is not installed.
        """
        from surrokit.output.arviz import Draws
        from surrokit.output.saving import save

        save(Draws.of(self), path)

    def _repr_html_(self) -> str:
        """Return the verdict and the first numbers as notebooks show them."""
        from surrokit.report.reprs import show_run

        return show_run(self)
