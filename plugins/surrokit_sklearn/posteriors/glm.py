"""Generalised linear models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs
import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from surrokit.errors import ConfigurationError
from surrokit.predictive.families import ResponseFamily, response_family
from surrokit.predictive.names import read_name, suggest
from surrokit.types import FloatArray
from surrokit_sklearn.posteriors.estimator import PosteriorEstimator, as_value_error, check_level
from surrokit_sklearn.posteriors.gaussian_errors import GaussianErrors
from surrokit_sklearn.posteriors.sampling import MANY, sample_by
from surrokit_sklearn.regressors.validation import (
    check_rows,
    check_weights,
    drop_unweighted,
    merge_rows,
)

_SPREADS = 2.5
_POSITIVE = ("poisson", "negative-binomial", "gamma", "exponential", "weibull")
_FAMILIES = ("gaussian", "student", *_POSITIVE)
_NONE = np.zeros(0, dtype=np.int64)


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class BayesianGLMRegressor(RegressorMixin, PosteriorEstimator):  # type: ignore[misc]
    """A generalised linear model with draws from the exact posterior of its coefficients.

    Priors are independent and normal, of the coefficients of features about their means in units of
    their standard deviations; for ``gaussian`` and ``student`` also in units of the response's
    standard deviation. All that is reported is in units of features and response.

    Findings on the draws come as :class:`surrokit.errors.SamplingWarning`.

    Parameters
    ----------
    family
        ``"gaussian"``, ``"student"`` and ``"cauchy"`` with means x . b; ``"poisson"``,
        ``"negative-binomial"`` and ``"gamma"`` with means exp(x . b); ``"exponential"`` and
        ``"weibull"`` times with hazards in proportion to exp(x . b). Names of other libraries do as
        well, as in :func:`surrokit.rows_potential`.
    settings : mapping, optional
        Known numbers of the family: ``scale``, ``degrees``, ``size`` and ``shape``, as in
        :func:`surrokit.rows_potential`. The scale of ``"gaussian"`` is inferred unless given, with
        half of Student's t with 3 degrees of freedom as prior, whose scale is 2.5 standard
        deviations of the response, and hardly any mass below a thousandth of that.
    prior_scale, intercept_scale, fit_intercept, standardize
        See :class:`BayesianLogisticRegression`; the prior of the intercept of ``"gaussian"`` and
        ``"student"`` is about the response's mean.
    chains, target_ess, sampling, random_state
        See :class:`BayesianLogisticRegression`.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (n_features,) and float
        Posterior means.
    coef_draws_, intercept_draws_ : ndarray of shape (n_draws, n_features) and (n_draws,)
        Draws of both, all chains one after another.
    scale_, scale_draws_ : float and ndarray of shape (n_draws,)
        Posterior mean and draws of the scale of ``"gaussian"`` errors, or what it is known to be.
    run_ : surrokit.Run
        The run, with its verdict: of coefficients of standardised features, or where the scale of
        ``"gaussian"`` is inferred of its logarithm, given which coefficients are normal.
    n_features_in_ : int
        Features in the fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they all have one.
    """

    family: str = "gaussian"
    settings: Mapping[str, Any] | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: which responses there may be."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = read_name(self.family, {})[0] in _POSITIVE
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """Return them as scikit-learn 1.5 wants them."""
        return {"requires_positive_y": read_name(self.family, {})[0] in _POSITIVE}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw from the posterior of the coefficients.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.
        y : array_like of shape (n_samples,)
            Responses, of the kind that the family has.
        sample_weight : array_like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        BayesianGLMRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If rows or a parameter cannot be used.
        """
        inputs, response = check_rows(self, X, y, reset=True)
        weights = check_weights(sample_weight, len(inputs))
        inputs, response, weights = drop_unweighted(inputs, response, weights)
        if len(inputs) < MANY:
            inputs, response, weights = merge_rows(inputs, response, weights)
        try:
            family, settings = _read_family(self.family, self.settings)
            self._fit_family(family, settings, inputs, response, weights)
        except ConfigurationError as error:
            raise as_value_error(type(self).__name__, error) from error
        self.intercept_ = float(self.intercept_draws_.mean())
        self.coef_ = self.coef_draws_.mean(axis=0)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the posterior mean of the mean response.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted responses.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        inputs, family = self._inputs(X), self._family
        if family.of_errors:
            return np.asarray(inputs @ self.coef_ + self.intercept_)
        found = np.empty(len(inputs))
        for rows, block in self._blocks(inputs, len(self.coef_draws_)):
            found[rows] = family.mean(self._predictors(block)).mean(axis=1)
        return found

    def predict_interval(
        self,
        X: Any,
        level: float = 0.9,
        kind: Literal["mean", "response"] = "mean",
        random_state: int | np.random.RandomState | None = None,
    ) -> FloatArray:
        """Return an interval of the mean response, or of a new response.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.
        level
            Share of the posterior in it, the same on both sides outside.
        kind
            ``"mean"``, or ``"response"`` for a new one, of which one is drawn for each draw.
        random_state : int, RandomState or None
            From which new responses are drawn.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Its ends.

        Raises
        ------
        ValueError
            If level or kind is none, or the inputs have other features than those in the fit.
        """
        ends = check_level(level)
        if kind not in ("mean", "response"):
            raise ValueError(f"kind must be 'mean' or 'response', got {kind!r}")
        inputs, family = self._inputs(X), self._family
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        found = np.empty((len(inputs), 2))
        for rows, block in self._blocks(inputs, len(self.coef_draws_)):
            e = self._predictors(block)
            of = family.mean(e) if kind == "mean" else family.draw(rng, e, self._scales)
            found[rows] = np.quantile(of, ends, axis=1).T
        return found

    def _fit_family(
        self,
        family: ResponseFamily,
        settings: Mapping[str, Any],
        inputs: FloatArray,
        response: FloatArray,
        weights: FloatArray | None,
    ) -> None:
        for name in ("scale_", "scale_draws_"):
            if hasattr(self, name):
                delattr(self, name)
        self._family = family
        if family.name == "gaussian" and "scale" not in settings:
            self._fit_gaussian(inputs, response, weights)
            return
        mean = float(np.average(response, weights=weights))
        level = (
            np.log(max(mean, 0.5 / len(response))) / family.log_mean if family.log_mean else mean
        )
        unit = _spread(response, weights) if family.of_errors else 1.0
        intercepts, coefficients = self._sample(
            family.name,
            inputs,
            response,
            weights,
            settings=settings,
            kept=_NONE,
            level=level,
            unit=unit,
            centre=mean if family.of_errors else 0.0,
        )
        self.intercept_draws_, self.coef_draws_ = intercepts[:, 0], coefficients[:, 0]
        if "scale" in settings:
            self.scale_ = float(settings["scale"])
            self.scale_draws_ = np.full(len(self.coef_draws_), self.scale_)

    def _fit_gaussian(
        self, inputs: FloatArray, response: FloatArray, weights: FloatArray | None
    ) -> None:
        columns = self._columns(inputs, weights)
        unit = _spread(response, weights)
        level = float(np.average(response, weights=weights))
        prior = self._prior(columns, unit=unit, level=level)
        design = columns.design(inputs)
        self._check_decided(columns, design, prior)
        target = GaussianErrors.of(design, response, weights, prior=prior, scale=_SPREADS * unit)
        rng = self._generator()
        starts = target.draw_starts(int(self.chains), rng)
        self.run_ = sample_by(
            target, rng, self._goals, {"sampler": "hmc", "initial": starts}, self.sampling
        )
        logs = self.run_.draws.reshape(-1)
        coefficients = target.draw_coefficients(logs, rng)
        self.intercept_draws_, self.coef_draws_ = columns.undo(coefficients)
        self.scale_draws_ = np.exp(logs)
        self.scale_ = float(self.scale_draws_.mean())

    @property
    def _scales(self) -> FloatArray:
        return getattr(self, "scale_draws_", np.ones(1))

    def _predictors(self, inputs: FloatArray) -> FloatArray:
        """Return linear predictors by each draw, shape (n, n_draws)."""
        return np.asarray(inputs @ self.coef_draws_.T + self.intercept_draws_)


def _read_family(
    name: object, given: Mapping[str, Any] | None
) -> tuple[ResponseFamily, dict[str, Any]]:
    """Return a family and its settings.

    Raises
    ------
    ConfigurationError
        If there is no such family, it has no such setting, or lacks one.
    """
    known, settings = read_name(name, given or {})
    settings = {key: value for key, value in settings.items() if value is not None}
    if known not in _FAMILIES:
        raise ConfigurationError(
            f"family must be one of {', '.join(_FAMILIES)}, got {name!r}{suggest(name, _FAMILIES)}"
        )
    family = response_family(known, settings)
    if known == "student" and "scale" not in settings:
        raise ConfigurationError(
            f"the family {name!r} needs scale, that of its errors, which is not inferred; give "
            "settings={'scale': ...}, such as the residuals' standard deviation"
        )
    return family, settings


def _spread(response: FloatArray, weights: FloatArray | None) -> float:
    """Return the standard deviation of responses, or 1 where they are all the same."""
    mean = np.average(response, weights=weights)
    found = float(np.sqrt(np.average(np.square(response - mean), weights=weights)))
    return found if found > 1e-12 * abs(mean) else 1.0
