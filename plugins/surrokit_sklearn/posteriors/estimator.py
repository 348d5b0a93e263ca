"""The frame of estimators with draws of a posterior inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from surrokit import rows_potential
from surrokit.contracts.potential import Potential
from surrokit.errors import SurrokitError
from surrokit.settings import is_number
from surrokit.tables.priors import check_rank
from surrokit.targets.gaussian import GaussianPrior, gaussian_prior
from surrokit.targets.named import NamedPotential
from surrokit.targets.scaling.choice import scaled, scaling_of
from surrokit.types import FloatArray, IntArray
from surrokit_sklearn.posteriors.columns import Columns
from surrokit_sklearn.posteriors.sampling import Goals, draw_posterior
from surrokit_sklearn.regressors.validation import check_inputs

_NUMBERS_IN_A_BLOCK = 4_000_000


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class PosteriorEstimator(BaseEstimator):  # type: ignore[misc]
    """A regression whose coefficients have a posterior, of which it keeps draws.

    See :class:`BayesianLogisticRegression` for the parameters.
    """

    prior_scale: float | None = 2.5
    intercept_scale: float | None = 10.0
    fit_intercept: bool = True
    standardize: bool = True
    chains: int = 4
    target_ess: float = 1000.0
    sampling: Mapping[str, Any] | None = None
    random_state: int | np.random.RandomState | None = None

    def _sample(
        self,
        family: str,
        inputs: FloatArray,
        response: FloatArray,
        weights: FloatArray | None,
        *,
        settings: Mapping[str, Any],
        kept: IntArray,
        n_predictors: int = 1,
        level: float = 0.0,
        unit: float = 1.0,
        centre: float = 0.0,
    ) -> tuple[FloatArray, FloatArray]:
        """Fit to a sum over rows; return draws of intercepts and coefficients.

        Parameters
        ----------
        family, settings
            As for :func:`surrokit.rows_potential`.
        inputs, response, weights
            Rows, (n, n_features), (n,) and (n,).
        kept : ndarray of int
            Rows that a fit to few of them must see.
        n_predictors
            Linear predictors of each row.
        level
            Where the search for the intercept starts.
        unit, centre
            Unit of the priors' scales, and what the intercept's prior is about.

        Returns
        -------
        intercepts : ndarray of shape (n_draws, n_predictors)
            In units of the features.
        coefficients : ndarray of shape (n_draws, n_predictors, n_features)
            In units of the features.
        """
        columns = self._columns(inputs, weights)
        design = columns.design(inputs)
        prior = self._prior(columns, n_predictors, unit=unit, level=centre)
        self._check_decided(columns, design, prior)
        names = self._names_of_coefficients(n_predictors)

        def plain(rows: Any) -> Potential:
            more = {} if weights is None else {"weights": weights[rows]}
            rows = rows_potential(
                family, design[rows], response[rows], prior=prior, **more, **settings
            )
            return NamedPotential.of(rows, names)

        scaling = scaling_of(plain(slice(None)))

        def target_of(rows: Any) -> Potential:
            return plain(rows) if scaling is None else scaled(plain(rows), scaling)

        def few(step: int) -> Potential:
            return target_of(np.union1d(np.arange(0, len(design), step), kept))

        start = np.zeros(columns.count * n_predictors)
        if self.fit_intercept:
            start[:: columns.count] = level
        if scaling is not None:
            start = scaling.to_unbounded(start[None])[0]
        self.run_ = draw_posterior(
            target_of(slice(None)),
            start,
            few,
            len(design),
            goals=self._goals,
            rng=self._generator(),
            settings=self.sampling,
        )
        return columns.undo(self.run_.draws.reshape(-1, n_predictors, columns.count))

    def _check_decided(self, columns: Columns, design: FloatArray, prior: GaussianPrior) -> None:
        """Raise if columns with flat priors are linearly dependent; the error names them."""
        count = self.n_features_in_
        names = list(getattr(self, "feature_names_in_", [f"x{k}" for k in range(count)]))
        names = ["the intercept", *names] if columns.intercept else names
        flat = np.isinf(prior.sd.reshape(-1, columns.count)).any(axis=0)
        check_rank(design, names, np.asarray(flat))

    def _names_of_coefficients(self, n_predictors: int) -> list[str]:
        """Return a name for each coefficient: its feature, behind its class if there are several.

        Features without names are called x0, x1, ..., as scikit-learn does.
        """
        given = getattr(self, "feature_names_in_", None)
        features = [f"x{k}" for k in range(self.n_features_in_)] if given is None else list(given)
        columns = ["Intercept", *features] if self.fit_intercept else features
        if n_predictors > 1:
            columns = [f"{label}: {column}" for label in self.classes_[1:] for column in columns]
        return unlike(map(str, columns))

    def _columns(self, inputs: FloatArray, weights: FloatArray | None) -> Columns:
        return Columns.of(
            inputs, weights, intercept=self.fit_intercept, standardize=self.standardize
        )

    def _prior(
        self, columns: Columns, n_predictors: int = 1, *, unit: float = 1.0, level: float = 0.0
    ) -> GaussianPrior:
        """Return the prior of all coefficients of the columns, the intercept first."""
        sd = np.full(columns.count, _scale("prior_scale", self.prior_scale) * unit)
        mean = np.zeros(columns.count)
        if columns.intercept:
            sd[0] = _scale("intercept_scale", self.intercept_scale) * unit
            mean[0] = level
        return gaussian_prior(np.tile(mean, n_predictors), np.tile(sd, n_predictors))

    @property
    def _goals(self) -> Goals:
        if not isinstance(self.chains, int | np.integer) or self.chains < 1:
            raise ValueError(f"chains must be a whole number of at least 1, got {self.chains!r}")
        if not is_number(self.target_ess) or not 0.0 < self.target_ess < np.inf:
            raise ValueError(f"target_ess must be a positive number, got {self.target_ess!r}")
        return Goals(chains=int(self.chains), target_ess=float(self.target_ess))

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _inputs(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return check_inputs(self, X)

    def _blocks(self, inputs: FloatArray, n_numbers: int) -> Iterator[tuple[slice, FloatArray]]:
        """Yield slices of rows, and these, for so many numbers of each row at once."""
        size = max(1, _NUMBERS_IN_A_BLOCK // max(1, n_numbers))
        for first in range(0, len(inputs), size):
            rows = slice(first, first + size)
            yield rows, inputs[rows]


def unlike(names: Iterable[str]) -> list[str]:
    """Return names of which none comes twice: a later one of two that are alike is numbered."""
    found: list[str] = []
    for name in names:
        again, k = name, 2
        while again in found:
            again, k = f"{name} ({k})", k + 1
        found.append(again)
    return found


def check_level(level: object) -> tuple[float, float]:
    """Return the quantiles at both ends of an interval with a share of the posterior.

    Raises
    ------
    ValueError
        If it is none between 0 and 1.
    """
    if not is_number(level) or not 0.0 < level < 1.0:  # type: ignore[operator]
        raise ValueError(f"level must be between 0 and 1, got {level!r}")
    tail = 0.5 * (1.0 - float(level))  # type: ignore[arg-type]
    return tail, 1.0 - tail


def _scale(name: str, given: object) -> float:
    if given is None:
        return np.inf
    if not is_number(given) or not given > 0.0:  # type: ignore[operator]
        raise ValueError(f"{name} must be a positive number, or None for a flat prior, got {given}")
    return float(given)  # type: ignore[arg-type]


def as_value_error(name: str, error: SurrokitError) -> ValueError:
    """Return an error as those of scikit-learn's estimators are."""
    return ValueError(f"{name} cannot be fitted: {error}")
