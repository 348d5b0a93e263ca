"""What shows a run: tables, files, pictures and pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surrokit.types import FloatArray
from surrokit.weighted.resampling import RESAMPLING_SEED

if TYPE_CHECKING:
    from surrokit.contracts.potential import Potential
    from surrokit.plots.plots import Plots
    from surrokit.predictive.runs import Kind


class Views:
    """Ways to look at a run."""

    __slots__ = ()

    @property
    def plot(self) -> Plots:
        """Pictures of the run: :class:`~surrokit.plots.plots.Plots`."""
        from surrokit.plots.plots import Plots

        return Plots(self)

    def predict(
        self,
        new: Any,
        *,
        kind: Kind = "mean",
        interval: float | None = 0.9,
        offset: Any = None,
        seed: int | np.random.Generator | None = None,
    ) -> Any:
        """Return what a regression predicts of new rows: mean, sd and an interval of each.

        Weighted and sharpened answers predict by all that they know, as their summary does.

        Parameters
        ----------
        new
            After :func:`surrokit.glm`: a table with the covariates of the formula, such as a pandas
            frame, or a dictionary of columns. After :func:`surrokit.rows_potential`: a design of
            shape (n_rows, n_columns).
        kind
            ``"mean"``: the mean of the response, of which the posterior is uncertain; probabilities
            for zeros and ones and for classes. ``"response"``: new responses, with their own
            scatter.
        interval
            Probability between ``lower`` and ``upper``, as much on either side; None for none.
        offset : str or array_like of shape (n_rows,), optional
            Known parts of the predictors: a column's name, or numbers; by default the column of the
            fit.
        seed
            From which new responses are drawn: a whole number, or a generator.

        Returns
        -------
        DataFrame or dict
            ``mean``, ``sd``, ``lower`` and ``upper``: columns of a pandas frame, with the index of
            the table, where the fit was by a formula or ``new`` is a frame; else arrays of shape
            (n_rows,). For classes each row comes once for each ``level``.

        Raises
        ------
        ConfigurationError
            If the run has no draws or its target no predictions, an argument makes no sense, or the
            data are none of those that were fitted.
        ShapeError
            If an array does not fit.
        """
        from surrokit.predictive import runs

        return runs.predict(self, new, kind, interval, offset, seed)

    def predict_proba(self, new: Any, *, offset: Any = None) -> FloatArray:
        """Return the posterior mean of the probability of each class, shape (n_rows, n_classes).

        Parameters
        ----------
        new, offset
            As for :meth:`predict`.

        Raises
        ------
        ConfigurationError
            As :meth:`predict`; or if responses are no classes.
        ShapeError
            If an array does not fit.
        """
        from surrokit.predictive import runs

        return runs.predict_proba(self, new, offset)

    def posterior_predictive(
        self,
        new: Any = None,
        *,
        offset: Any = None,
        seed: int | np.random.Generator | None = None,
    ) -> Any:
        """Return draws of new data, with their scatter: one for each draw of the posterior.

        Of weighted answers they are for the draws that :meth:`~surrokit.Run.to_arviz` has, which
        are drawn anew by weight.

        Parameters
        ----------
        new, offset
            New rows of a regression, as for :meth:`predict`. None of a forward model, whose outputs
            the run has.
        seed
            A whole number, or a generator.

        Returns
        -------
        ndarray of shape (chains, draws, m)
            Data of a forward model, or responses of m rows; classes by their names, if they have
            any.

        Raises
        ------
        ConfigurationError
            If the run has no draws or its target no predictions, or new rows are missing or given
            in vain.
        ShapeError
            If an array does not fit.
        """
        from surrokit.predictive import runs

        return runs.posterior_predictive(self, new, offset, seed)

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
        from surrokit.output.saving import figures_of

        return figures_of(self)

    def to_arviz(
        self,
        *,
        log_likelihood: Potential | None = None,
        seed: int | np.random.Generator = RESAMPLING_SEED,
    ) -> Any:
        """Return the draws as the installed ArviZ keeps them: a DataTree, or InferenceData.

        ArviZ knows nothing of weights. Weighted draws are therefore drawn anew, each as often as
        its weight says, as many as there are and in one chain; the attribute ``resampled`` is 1,
        and ``weights_worth`` is the number of draws of equal weight that they are worth. Means and
        errors of :meth:`~surrokit.Run.summary` are far more precise, and :meth:`to_pandas` has the
        draws with their weights.

        Groups are ``posterior``, ``sample_stats``, the same of the warm-up,
        ``posterior_predictive`` with the ``outputs`` of a forward map without noise, and
        ``observed_data`` where the target tells them: ``outputs`` of a forward map, and ``row`` for
        the responses of a regression, but no text, and no array of more than four million numbers.
        Attributes have versions, calls, parts and the verdict.

        Parameters
        ----------
        log_likelihood
            The target, if it is a sum over rows of data: the group ``log_likelihood`` then has one
            number for each ``row`` at each draw. Constants that the target leaves out are missing.
            All rows are evaluated at all draws, in no count of the run.
        seed
            By which weighted draws are drawn anew: a whole number, or a generator.

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

        from surrokit.output.arviz import Draws, equally_weighted, log_likelihood_of, to_arviz

        if isinstance(seed, np.random.Generator):  # which is drawn from twice
            seed = int(seed.integers(2**32))
        draws = Draws.unweighted(self, seed)
        if log_likelihood is not None:
            by_row = {"row": log_likelihood_of(equally_weighted(self, seed), log_likelihood)}
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
        from surrokit.output.saving import to_pandas

        return to_pandas(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the draws to a file, in the form that its ending asks for.

        ``.nc`` (netCDF) and ``.zarr`` hold draws and statistics as ArviZ reads them, and weighted
        draws as :meth:`to_arviz` returns them; names there have ÷ for each slash, which these forms
        refuse, and an underscore where they are those of axes, such as ``chain`` and ``draw``.
        ``.csv`` and ``.parquet`` hold a table of the draws alone, with columns ``chain``, ``draw``,
        of weighted draws ``log_weight``, and one for each of ``labels``, with any unit.

        Raises
        ------
        ConfigurationError
            If the ending is another one, or the file cannot be written.
        MissingDependencyError
            If a library that the form needs is not installed.
        """
        from surrokit.output.saving import save

        save(self, path, RESAMPLING_SEED)

    def _repr_html_(self) -> str:
        """Return the verdict and the first numbers as notebooks show them."""
        from surrokit.report.reprs import show_run

        return show_run(self)
