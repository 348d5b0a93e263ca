"""The result of a run: draws, statistics, costs and views of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import is_whole, read_seed
from surrokit.capabilities import FORWARD
from surrokit.coordinates.parameters import Parameters
from surrokit.cost.budget import Length, StopReason, count_calls
from surrokit.cost.probes import Exchange
from surrokit.diagnostics import (
    EssKind,
    check_probability,
    effective_sample_size,
    highest_density,
    r_hat,
)
from surrokit.errors import ConfigurationError, NumericalError
from surrokit.failures import BrokenGradients, FailureKind, Recheck
from surrokit.history import Trace
from surrokit.limits import one_thread
from surrokit.modes import Modes
from surrokit.potentials import with_forward
from surrokit.result.records import Adaptation, Choice, Verdict, Weights
from surrokit.result.summary import Summary, expectation, expectation_of_draws
from surrokit.surrogate.quality import FitQuality, fit_quality_of
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit.weighted.answer import Answer, Figures
from surrokit.weighted.round import RESAMPLING_SEED, Estimate, reshaped, shares
from surrokit.weighted.separate_modes import ModeVisits, SeparateModes, evidence_of_modes, spreads
from surrokit.weighted.sharpened import Sharpened

if TYPE_CHECKING:
    from surrokit.interfaces import Kernel, Sampler
    from surrokit.plots.plots import Plots
    from surrokit.potentials import Potential
    from surrokit.predictive.runs import Kind
    from surrokit.result.density import SurrogateDensity


@attrs.frozen(kw_only=True, eq=False, repr=False, slots=False)
class Run:
    """The result of :func:`surrokit.sample`.

    Parameters
    ----------
    kept, warmup
        Traces of the kept iterations, and of warm-up with exploration.
    calls
        Exact evaluations by kind, in positions (``rows``: in data rows), exploration and training
        included. ``gradient`` counts positions evaluated with value and gradient together.
    failures, failure_kinds
        Positions at which the target raised, or returned NaN or U = -inf, which were rejected; by
        kind, such as ``NaN`` or ``exception ValueError``.
    recheck, broken_gradients
        What came of evaluating failed positions once more; and positions where U is finite and its
        gradient is not.
    seconds
        ``warmup`` (exploration included), ``training`` and ``sampling``.
    stopped
        Why the run ended: ``draws`` if it drew all that was asked for, one of the limits of
        :class:`~surrokit.cost.budget.Budget`, ``observer``, ``interrupted``, or ``error``.
    unchecked
        What the draws are, where a limit ended the run before its first draw, and the target has
        not checked them.
    parts, chosen
        Kind of part to its description; and which were picked, why, and what replaced them.
    surrogate
        That of the last proposals; None if these were made on the exact potential.
    sampler, kernel
        The tuned sampler, with which another run needs no warm-up; and as it was bound last, with
        its potential and step size. None where no chain moved.
    noticed
        Sentences about the target, such as that its density is constant but for steps.
    endless, exchange
        Numbers along which the density is as high far away as at the draws; and an exchange of
        parameters that leaves it unchanged, where draws are on one side of it alone.
    n_rows, modes, weights
        Data rows of a target that is a sum over rows; where searches for modes ended; what came of
        weighted answers. None without.
    length
        How the number of kept draws was determined: ``fixed`` before the first draw, ``judged`` by
        the draws' quality, or ``cut`` by a limit or an interrupt.
    more, sharpened
        Goes on with a run that has a file; and answers by :func:`surrokit.sharpen`.
    observed_data, predictor, pointwise, unnormalized
        What was observed, by name; what makes predictions of draws; what makes log likelihoods and
        priors of outputs and draws; and what of the density may lack its normalising constant. As
        far as the target knows.
    asked
        What :func:`surrokit.sample` was given, by name, an ellipsis for each object; with a seed
        that makes the same draws.
    """

    parameters: Parameters
    kept: Trace
    warmup: Trace
    calls: Mapping[str, int]
    failures: int
    failure_kinds: Mapping[str, FailureKind] = attrs.field(factory=dict)
    recheck: Recheck = attrs.field(factory=Recheck)
    broken_gradients: BrokenGradients = attrs.Factory(BrokenGradients)
    seconds: Mapping[str, float]
    adaptation: Adaptation
    stopped: StopReason
    unchecked: str | None = None
    parts: Mapping[str, str]
    surrogate: Potential | None
    sampler: Sampler
    kernel: Kernel | None = None
    chosen: Choice | None = None
    noticed: tuple[str, ...] = ()
    endless: tuple[str, ...] = ()
    exchange: Exchange | None = None
    n_rows: int | None = None
    length: Length = "fixed"
    modes: Modes | None = None
    weights: Weights | None = None
    verdict: Verdict = attrs.field(factory=Verdict)
    more: Callable[..., Run] | None = None
    sharpened: Sharpened | None = None
    observed_data: Mapping[str, Any] = attrs.field(factory=dict)
    predictor: Any = None
    pointwise: Any = None
    unnormalized: tuple[str, ...] = ("the density",)
    asked: Mapping[str, Any] | None = None

    @property
    def draws(self) -> FloatArray:
        """Kept draws in the user's coordinates, shape (chains, draws, dim).

        Of weighted answers they are some thousand draws of the latest surrogate, or where it is not
        good enough those that were evaluated; ``log_weights`` make them draws of the target as far
        as that is known. The answers themselves (``summary``, ``expectation``,
        ``highest_density``) rest on all draws of all rounds, corrected by all evaluations.
        """
        return self.kept.draws if self._latest is None else self._latest[0]

    @property
    def choice(self) -> str | None:
        """What was picked automatically, and why, in words; None where nothing was."""
        return None if self.chosen is None else str(self.chosen)

    @property
    def exact(self) -> bool:
        """Whether the draws are the target's, unweighted."""
        return self.by_chains and self.by_mode is None

    @property
    def by_chains(self) -> bool:
        """Whether the draws are those of chains on which the target decided."""
        return self.answer is None and self.unchecked is None

    @property
    def accepted(self) -> bool:
        """Whether the target has checked the draws or the weighted answers: else nothing is known.

        Where it has not, ``density``, ``log_evidence`` and the draws are the surrogate's own.
        """
        return self.unchecked is None

    @property
    def answer(self) -> Answer | None:
        """Weighted answers; None where there are none."""
        return None if self.weights is None else self.weights.answer

    @cached_property
    def visits(self) -> ModeVisits:
        """Which of the modes that searches found each draw is at."""
        assert self.modes is not None
        return ModeVisits.of(self.modes, self.kept.positions)

    @cached_property
    def by_mode(self) -> SeparateModes | None:
        """Answers of chains that stay at modes, each weighed by its evidence; None of any other."""
        found = None if self.modes is None else self.modes.evidences
        if found is None or not found.separate or self.modes is None or not self.by_chains:
            return None
        visits = self.visits
        rows = visits.first
        return SeparateModes(
            draws=self.kept.draws,
            visited=visits.at,
            logs=np.where(np.isnan(found.errors), -np.inf, found.logs)[rows],
            errors=np.nan_to_num(found.errors[rows]),
            calls=self.total_calls,
        )

    @property
    def better(self) -> Answer | SeparateModes | Sharpened | None:
        """Answers that are more precise or more right than plain means of draws; None without."""
        return self.answer or self.by_mode or self.sharpened

    @property
    def log_weights(self) -> FloatArray | None:
        """Log weights of the draws, of mean one, shape (chains, draws); None if all are one.

        Of weighted answers, ``expectation`` and ``summary`` are much more precise, since they use
        all the surrogate's draws. Of chains that stay at modes they are the masses of these.
        """
        if self.by_mode is not None:
            with np.errstate(divide="ignore"):
                return np.log(self.by_mode.weights)
        if self.answer is None or self._latest is not None:
            return None if self._latest is None else self._latest[1]
        return self.answer.log_weights.reshape(-1, len(self.draws)).T

    @property
    def _latest(self) -> tuple[FloatArray, FloatArray] | None:
        # quantities are known beside the evaluated draws alone
        return None if self.answer is None or self.kept.quantities else self.answer.latest

    def log_evidence(
        self,
        target: Potential | None = None,
        *,
        calls: int = 1000,
        seed: int | np.random.Generator = RESAMPLING_SEED,
    ) -> Estimate:
        """Return the logarithm of the integral of exp(-U), the evidence of a posterior.

        It costs no call: weighted answers correct that of their surrogates, and exact draws are
        bridged to the surrogate or to a normal distribution; see
        :mod:`surrokit.weighted.normalizer`. Of draws that are weighted by mode it is the sum over
        modes, and nothing is evaluated for it. Of a run that is not ``accepted`` it is what the
        surrogate alone expects, with an infinite error. The difference between two runs on the same
        data is the logarithm of a Bayes factor.

        Families of errors, priors and bounds have all their constants. Where a function of the
        user's may lack its own, ``unnormalized`` of the estimate names it.

        Parameters
        ----------
        target
            The target of the run: it is evaluated at fresh positions, which makes the estimate
            more precise. Where rows decided, so that U is not known at the draws, it is needed.
        calls
            Evaluations of the target at most.

        Raises
        ------
        ConfigurationError, ShapeError
            If there are no exact draws and no weighted answers, or the target is another one.
        NumericalError
            If draws alone do not tell it.
        """
        # imported late, so that importing the package stays fast
        from surrokit.result.evidence import evidence_by_calls
        from surrokit.weighted.normalizer import evidence_of_chains, evidence_of_surrogate

        if self.answer is not None:
            return self._weights.log_evidence
        if self.by_mode is not None:
            return attrs.evolve(self.by_mode.log_evidence, unnormalized=self.unnormalized)
        positions, values, rng = self.kept.positions, self.kept.values, read_seed(seed)
        if not self.accepted and self.surrogate is not None:
            found = evidence_of_surrogate(self.surrogate, positions, rng).unverified
            return attrs.evolve(found, calls=self.total_calls, unnormalized=self.unnormalized)
        if not self.by_chains or not len(self.kept):
            raise ConfigurationError(
                "the evidence takes exact draws or weighted answers, and this run has none; give "
                "it more calls"
            )
        if target is not None:
            if not is_whole(calls, 1):
                raise ConfigurationError(
                    f"calls must be a whole number of at least 1, got {calls!r}; give another"
                )
            found = evidence_by_calls(target, self.kept, rng, calls)
        elif np.isnan(values).any():
            raise ConfigurationError(
                "U is not known at the draws, since single rows decided; pass the target, which is "
                "then evaluated: run.log_evidence(target)"
            )
        else:
            self.kept.demand_evidence()
            several = self.modes is not None and self.modes.reliable and len(self.modes) > 1
            modes = self.modes if several else None
            try:
                found = evidence_of_chains(positions, values, rng, self.surrogate, modes=modes)
            except NumericalError:
                evidences = None if modes is None else modes.evidences
                if evidences is None or (of_modes := evidence_of_modes(evidences)) is None:
                    raise
                found = of_modes
        calls_made = self.total_calls + found.calls
        return attrs.evolve(found, calls=calls_made, unnormalized=self.unnormalized)

    @cached_property
    def density(self) -> SurrogateDensity:
        """The surrogate as a normalised log density, an approximation of the posterior.

        Raises
        ------
        ConfigurationError
            If there is no surrogate, or constraints tie numbers together.
        """
        from surrokit.result.density import density_of

        positions = self.kept.positions
        flat = positions.reshape(-1, positions.shape[2])
        return density_of(self.surrogate, self.kept.transform, flat)

    @property
    def _weights(self) -> Weights:
        assert self.weights is not None
        return self.weights

    @property
    def _figures(self) -> Figures:
        better = self._weights if self.answer is not None else self.by_mode or self.sharpened
        assert better is not None
        return better.figures

    def resampled(self, n: int, rng: np.random.Generator | int | None = None) -> FloatArray:
        """Return draws of equal weight, shape (n, dim), with replacement and by their weights.

        Raises
        ------
        ConfigurationError
            If n is no whole number of at least 1, or there are no draws.
        """
        flat = self.draws.reshape(-1, self.draws.shape[2])
        if not is_whole(n, 1) or not len(flat):
            raise ConfigurationError(
                f"n must be a whole number of at least 1, and there must be draws, got n={n!r} and "
                f"{len(flat)} draws"
            )
        logs = np.zeros(len(flat)) if self.log_weights is None else self.log_weights
        rows = read_seed(rng).choice(len(flat), int(n), p=shares(logs))
        return np.asarray(flat[rows])

    def expectation(
        self, function: Callable[[FloatArray], npt.ArrayLike] | str, *, batched: bool = False
    ) -> Estimate:
        """Return the mean of a function under the target, with its Monte Carlo error.

        Of a parameter or a quantity, given by its name, each array of the estimate has its shape.
        The mean of a quantity under weighted answers is that of the draws that were evaluated, but
        for what follows from the position by a line and its square. Its error is larger than that
        of a function.

        A function that is 0 at all draws, or 1 at all of them, is taken for an event that no draw
        saw, or none missed: by the rule of three, its interval of 95 % ends at 3 over the least
        effective sample size.

        Parameters
        ----------
        function
            Of a position in the user's coordinates, shape (dim,), to a number or a vector; or the
            name of a parameter, or of a quantity that the target returned besides.
        batched
            Whether it takes many positions (n, dim) at once, and returns values (n,) or (n, k).

        Raises
        ------
        ShapeError
            If the function returns something else, or NaN.
        ConfigurationError
            If there are no draws, or a quantity is not known at some.
        KeyError
            If there is nothing of that name.
        """
        ess = self.ess()
        least = float(min(ess[np.isfinite(ess) & (ess > 0.0)], default=np.nan))
        better, calls = self.better, self.total_calls
        if isinstance(function, str):
            draws = self[function]
            if function in self.parameters.specs and better is not None:
                where, shape = self.parameters.slices()[function], draws.shape[2:]
                return reshaped(self.expectation(lambda q: q[:, where], batched=True), shape)
            found = self._mean_of(draws, least)
        else:
            parts = self.draws, better, calls
            found = expectation(*parts, function, batched=batched, independent=least)
        return found if self.accepted else found.unverified

    def _mean_of(self, draws: FloatArray, independent: float) -> Estimate:
        """Return the mean of what is known at draws alone, (chains, draws, ...)."""
        if self.by_mode is not None and not np.isnan(draws).any():
            return self.by_mode.mean_of(draws)
        weighted = draws, self.log_weights, self.total_calls, independent
        return expectation_of_draws(*weighted, self.answer, self.draws)

    @property
    def outputs(self) -> FloatArray | None:
        """Forward outputs of the draws, shape (chains, draws, m); None without a map.

        At draws that were not evaluated, as ``evaluated`` says, they are the surrogate's, and None
        where it has none.
        """
        if self._latest is None:
            return self.kept.outputs
        if self.surrogate is None or FORWARD not in self.surrogate.capabilities:
            return None
        flat = self.draws.reshape(-1, self.draws.shape[2])
        with one_thread():
            found = with_forward(self.surrogate).forward(self.kept.transform.to_unbounded(flat))
        rows, kept = self._evaluated_rows, self.kept.outputs
        if kept is not None:
            known = kept.reshape(-1, kept.shape[2])[rows]
            found = np.where((rows >= 0)[:, None] & np.isfinite(known), known, found)
        return found.reshape(*self.draws.shape[:2], -1)

    @property
    def evaluated(self) -> BoolArray:
        """At which draws the target was evaluated, shape (chains, draws)."""
        if self._latest is None:
            return np.isfinite(self.kept.values)
        return (self._evaluated_rows >= 0).reshape(self.draws.shape[:2])

    @cached_property
    def _evaluated_rows(self) -> IntArray:
        """For each draw the place among the kept ones where it was evaluated, or -1."""
        kept = self.kept.draws
        places = {q.tobytes(): i for i, q in enumerate(kept.reshape(-1, kept.shape[2]))}
        flat = np.ascontiguousarray(self.draws.reshape(-1, self.draws.shape[2]))
        return np.array([places.get(q.tobytes(), -1) for q in flat], dtype=np.int64)

    @property
    def acceptance(self) -> FloatArray:
        """Part of the kept iterations in which each chain moved, (chains,); NaN without any."""
        accepted, decided = self.kept.accepted, self.by_chains and len(self.kept)
        return accepted.mean(axis=1) if decided else np.full(len(accepted), np.nan)

    @property
    def divergences(self) -> IntArray:
        """Kept iterations in which each chain's path failed, shape (chains,)."""
        return np.asarray(self.kept.divergent.sum(axis=1))

    @property
    def complete(self) -> bool:
        """Whether the run ended by itself, and not by an interrupt or an error."""
        return self.stopped not in ("interrupted", "error")

    @property
    def labels(self) -> list[str]:
        """A name for each number of a position."""
        return self.parameters.labels

    @property
    def fit_quality(self) -> FitQuality | None:
        """Held-out error that the surrogate reports, or None."""
        return None if self.surrogate is None else fit_quality_of(self.surrogate)

    @property
    def path_failures(self) -> dict[str, int]:
        """Number of kept iterations whose path failed; see :meth:`Trace.path_failures`."""
        return self.kept.path_failures()

    def __getitem__(self, name: str) -> FloatArray:
        """Return the draws of one parameter or quantity, shape (chains, draws, *shape).

        Raises
        ------
        KeyError
            If there is none of that name.
        """
        if name not in self.parameters.specs:
            if name in self.kept.quantities:
                return self.kept.quantities[name]
            known = ", ".join([*self.parameters.specs, *self.kept.quantities])
            raise KeyError(f"no parameter or quantity is named {name!r}; there are {known}")
        columns = self.draws[:, :, self.parameters.slices()[name]]
        return columns.reshape(*columns.shape[:2], *self.parameters.specs[name].shape)

    def ess(self, kind: EssKind = "least") -> FloatArray:
        """Return the effective sample size of each number, shape (dim,).

        By default the least of three: ``bulk`` for means, ``tail``, and ``square`` for spreads;
        see :func:`surrokit.diagnostics.effective_sample_size`. Of weighted answers it is the number
        of independent exact draws that would be as good: for the worst of mean, standard deviation
        and quantiles by default, else for the mean.
        """
        if self.answer is not None or self.by_mode is not None:
            figures = self._figures
            return figures.effective if kind == "least" else figures.mean.effective
        return effective_sample_size(self.draws, kind)

    def rhat(self) -> FloatArray:
        """Return R-hat of each number, shape (dim,); see :func:`surrokit.diagnostics.r_hat`.

        Of weighted answers it is that of the chains on the surrogate, and of draws weighted by mode
        the largest among chains at one mode.
        """
        if self.by_mode is not None:
            return self.by_mode.rhat
        return r_hat(self.draws) if self.answer is None else self._weights.rhat

    @property
    def total_calls(self) -> float:
        """Exact calls of all kinds; a data row counts as its part of an evaluation of all rows."""
        return count_calls(self.calls, self.n_rows)

    def calls_per_effective_draw(self) -> float:
        """Return exact calls, all kinds and phases together, over the smallest ESS."""
        return float(self.total_calls / np.min(self.ess()))

    def summary(
        self,
        parameters: Iterable[str] | None = None,
        interval: float | None = None,
        *,
        wide: bool = False,
    ) -> Summary:
        """Return mean, sd, quantiles, ESS, R-hat, Monte Carlo error and cost of each number.

        Parameters
        ----------
        parameters
            Names of parameters, or of single numbers such as ``w[0]``; None for all of them.
        interval
            Probability of highest-density intervals, whose ends are the columns ``hdi_low`` and
            ``hdi_high``; None for none.
        wide
            Whether all columns are printed, and not only those that 80 characters hold.

        Raises
        ------
        ConfigurationError
            If there is no such parameter, or the probability is not between zero and one.
        """
        every = list(range(len(self.labels)))
        rows = every if parameters is None else self.parameters.find(parameters)
        labels = [self.labels[row] for row in rows]
        if self.better is None:
            draws = self.draws if parameters is None else self.draws[:, :, rows]
            summary = Summary.of(draws, labels, self.total_calls)
        else:
            figures = self._figures, self.rhat(), self.total_calls
            summary = Summary.of_figures(*figures, labels, rows)
        if interval is not None:
            summary = summary.with_interval(self.highest_density(interval)[rows])
        remarks = [str(self.verdict), *self.describe_modes()]
        below = "\n".join(filter(None, remarks))
        return attrs.evolve(summary, remarks=below, wide=wide)

    def describe_modes(self) -> list[str]:
        """Return the mass and the log evidence of each mode in a sentence, if there are several."""
        if self.modes is None or self.modes.evidences is None or not len(self.kept):
            return []
        known = self.modes.evidences
        matters = np.flatnonzero(known.masses > 0.0)
        places = self.modes.take(matters).name_places(self.labels, spreads(self.kept.draws))
        return [known.describe(matters, places)]

    def summary_of_quantities(self, interval: float = 0.9) -> Summary | None:
        """Return the summary of quantities, as far as they are known at all draws; None without.

        Of weighted answers it has ``mean``, ``ess``, ``rhat`` and ``mcse``, by draws that were
        evaluated.
        """
        labels, draws = self.kept.quantity_columns()
        if not labels or np.isnan(draws).any():
            return None
        if self.log_weights is None:
            summary = Summary.of(draws, labels, self.total_calls)
            return summary.with_interval(highest_density(draws, interval))
        found = self._mean_of(draws, np.nan)
        columns = {"mean": found.value, "ess": found.effective, "mcse": found.error}
        columns["rhat"] = np.full(len(labels), np.max(self.rhat()))
        return Summary(labels=labels, columns=columns)

    def highest_density(self, probability: float = 0.9) -> FloatArray:
        """Return the shortest interval of each number that holds so much, shape (dim, 2).

        Of plain draws it is ArviZ's; weighted and sharpened answers have one by all that they know.

        Raises
        ------
        ConfigurationError
            If the probability is not between zero and one.
        """
        check_probability(probability)
        better = self.better
        if better is None:
            return highest_density(self.draws, probability)
        return better.distribution.shortest(probability)

    def extend(self, draws: int, **changed: Any) -> Run:
        """Draw more of each chain with a run that has a file; see :func:`surrokit.resume`.

        Raises
        ------
        ConfigurationError
            If the run has no file, or a limit has ended it and is not raised.
        """
        if self.more is None:
            raise ConfigurationError("only a run with a file can go on; pass path=... to sample")
        made = len(self.kept) if self.unchecked is None else 0
        return self.more(draws=made + draws, **changed)

    def __repr__(self) -> str:
        chains, draws, dim = self.draws.shape
        state = "" if self.answer is None else ", weighted draws of the surrogate"
        state += "" if self.unchecked is None else ", which are not exact"
        state += "" if self.complete else ", incomplete"
        drawn = f"{chains} chains of {draws} draws of {dim} numbers{state}"
        return f"<Run: {drawn}; {self.total_calls:.0f} exact calls>"

    # --- ways to look at it ---

    @property
    def plot(self) -> Plots:
        """Pictures of the run: :class:`~surrokit.plots.plots.Plots`."""
        from surrokit.plots.plots import Plots

        return Plots(self)

    def predict(
        self,
        new: Any = None,
        *,
        kind: Kind = "mean",
        interval: float | None = 0.9,
        offset: Any = None,
        seed: int | np.random.Generator | None = None,
    ) -> Any:
        """Return what a regression predicts of new rows: mean, sd and an interval of each.

        A forward model takes no rows, and predicts its outputs, or the data that it was fitted to,
        by the outputs of the draws: without a call.

        Weighted and sharpened answers predict by all that they know, as their summary does.

        Parameters
        ----------
        new
            After :func:`surrokit.glm`: a table with the covariates of the formula, such as a pandas
            frame, or a dictionary of columns. After :func:`surrokit.rows_potential`: a design of
            shape (n_rows, n_columns).
        kind
            ``"mean"`` of the response, or probabilities of classes; or ``"response"``: new
            responses, with their own scatter, drawn from ``seed``.
        interval
            Probability between ``lower`` and ``upper``, as much on either side; None for none.
        offset : str or array_like of shape (n_rows,), optional
            Known parts of the predictors, or their column; by default the column of the fit.

        Returns
        -------
        DataFrame or dict
            ``mean``, ``sd``, ``lower`` and ``upper``: columns of a pandas frame, with the index of
            the table, where the fit was by a formula or ``new`` is a frame; else arrays of shape
            (n_rows,). For classes each row comes once for each ``level``.

        Raises
        ------
        ConfigurationError, ShapeError
            If the run has no draws or its target no predictions, or an argument does not fit.
        """
        from surrokit.predictive import runs

        return runs.predict(self, new, kind, interval, offset, seed)

    def predict_proba(self, new: Any, *, offset: Any = None) -> FloatArray:
        """Return the posterior mean of the probability of each class, shape (n_rows, n_classes).

        Arguments and errors are those of :meth:`predict`; and responses must be classes.
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

        They have shape (chains, draws, m): data of a forward model, or responses of m rows, classes
        by their names if they have any. Arguments and errors are those of :meth:`predict`; a
        forward model takes no ``new`` rows. Of weighted answers they are for the draws that
        :meth:`~surrokit.Run.to_arviz` has.
        """
        from surrokit.predictive import runs

        return runs.posterior_predictive(self, new, offset, seed)

    def report(self, path: str | os.PathLike[str], *, interval: float = 0.9) -> Path:
        """Write a page about the run, in one file that needs nothing else, and return its path.

        The path ends in ``.html``; a file that exists is replaced. ``interval`` is the probability
        of the highest-density intervals.

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
        log_likelihood: bool = False,
        seed: int | np.random.Generator = RESAMPLING_SEED,
    ) -> Any:
        """Return the draws as the installed ArviZ keeps them: a DataTree, or InferenceData.

        ArviZ knows nothing of weights. Weighted draws are therefore drawn anew from ``seed``, each
        as often as its weight says, in one chain; the attribute ``resampled`` is 1, and
        ``weights_worth`` is the number of draws of equal weight that they are worth.
        :meth:`summary` is far more precise, and :meth:`to_pandas` has the draws with their weights.

        Groups are ``posterior`` with quantities, ``sample_stats``, the same of the warm-up,
        ``posterior_predictive`` with the ``outputs`` of a forward map without noise, and
        ``observed_data`` where the target has them: ``outputs`` of a forward map, and ``row`` for
        the responses of a regression. ``log_likelihood``, by observation under the same names, and
        ``log_prior`` are what ArviZ compares models by, and looks for sensitivity.
        Attributes have versions, calls, parts and the verdict.

        Parameters
        ----------
        log_likelihood
            Whether a regression, a sum over rows or a model of PyMC or NumPyro evaluates the groups
            ``log_likelihood`` and ``log_prior`` at all draws, once and in no count of the run. A
            forward model has them for nothing, from outputs that are known.

        Raises
        ------
        MissingDependencyError
            If ArviZ is not installed.
        ConfigurationError
            If ``log_likelihood`` is wanted where the parts of the density are not known, or
            observations times draws are too many.
        """
        from surrokit.output.arviz import to_arviz

        if isinstance(seed, np.random.Generator):
            seed = int(seed.integers(2**32))
        return to_arviz(self, seed, log_likelihood)

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

        ``.nc`` (netCDF) holds what :meth:`to_arviz` returns, ``.csv`` a table like
        that of :meth:`to_pandas`.

        Raises
        ------
        ConfigurationError
            If the ending is another one, or the file cannot be written.
        MissingDependencyError
            If a library that the form needs is not installed.
        """
        from surrokit.output.saving import save

        save(self, path)
