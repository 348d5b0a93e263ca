"""Logistic regression, of two classes or more."""

from __future__ import annotations

from typing import Any, Self

import attrs
import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray
from surrokit_sklearn.posteriors.estimator import PosteriorEstimator, as_value_error, check_level
from surrokit_sklearn.posteriors.sampling import MANY
from surrokit_sklearn.regressors.validation import (
    check_weights,
    drop_unweighted,
    merge_rows,
    validate,
)


@attrs.define(slots=False, eq=False, repr=False, kw_only=True)
class BayesianLogisticRegression(ClassifierMixin, PosteriorEstimator):  # type: ignore[misc]
    """Logistic regression with draws from the exact posterior of its coefficients.

    With more than two classes it is multinomial: the first class is the reference, whose predictor
    is 0. Priors are independent and normal, of the coefficients of features about their means in
    units of their standard deviations. All that is reported is in units of the features.

    Findings on the draws come as :class:`surrokit.errors.SamplingWarning`.

    Parameters
    ----------
    prior_scale : float, optional
        Standard deviation of the prior of each coefficient; None for a flat one.
    intercept_scale : float, optional
        That of the intercept, where all features are at their means; None for a flat one.
    fit_intercept
        Whether there is an intercept.
    standardize
        Whether the prior is that of standardised features; else of the features as they are.
    chains
        Number of chains.
    target_ess
        Effective draws of every coefficient, at which a fit ends.
    sampling : mapping, optional
        Settings of :func:`surrokit.sample` in place of those that the fit chooses.
    random_state : int, RandomState or None
        From which random numbers are drawn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_, intercept_ : ndarray of shape (1, n_features) and (1,), or (n_classes, ...)
        Posterior means; one row for two classes, as in scikit-learn.
    coef_draws_, intercept_draws_ : ndarray of shape (n_draws, ...)
        Draws of both, all chains one after another.
    run_ : surrokit.Run
        The run, with its verdict: of coefficients of standardised features, called by these.
    n_features_in_ : int
        Features in the fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they all have one.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw from the posterior of the coefficients.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.
        y : array_like of shape (n_samples,)
            Classes.
        sample_weight : array_like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        BayesianLogisticRegression
            The estimator itself.

        Raises
        ------
        ValueError
            If rows or a parameter cannot be used.
        """
        inputs, labels = validate(self, X=X, y=y, dtype=np.float64)
        check_classification_targets(labels)
        weights = check_weights(sample_weight, len(inputs))
        inputs, labels, weights = drop_unweighted(inputs, labels, weights)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, got one class, "
                f"{self.classes_[0]}"
            )
        numbers = np.searchsorted(self.classes_, labels).astype(np.float64)
        if len(inputs) < MANY:
            inputs, numbers, weights = merge_rows(inputs, numbers, weights)
        _, first = np.unique(numbers, return_index=True)
        try:
            intercepts, coefficients = self._sample(
                "logistic" if len(self.classes_) == 2 else "multinomial",
                inputs,
                numbers,
                weights,
                settings={},
                kept=first,
                n_predictors=len(self.classes_) - 1,
            )
        except ConfigurationError as error:
            raise as_value_error(type(self).__name__, error) from error
        if len(self.classes_) > 2:
            intercepts = np.pad(intercepts, ((0, 0), (1, 0)))
            coefficients = np.pad(coefficients, ((0, 0), (1, 0), (0, 0)))
        self.intercept_draws_, self.coef_draws_ = intercepts, coefficients
        self.intercept_, self.coef_ = intercepts.mean(axis=0), coefficients.mean(axis=0)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the posterior mean of the probability of each class.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        inputs = self._inputs(X)
        found = np.empty((len(inputs), len(self.classes_)))
        for rows, block in self._blocks(inputs, self._numbers):
            found[rows] = self._probabilities(block).mean(axis=0)
        return found

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of :meth:`predict_proba`."""
        return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> Any:
        """Return the class of the largest probability, shape (n_samples,).

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_interval(self, X: Any, level: float = 0.9) -> FloatArray:
        """Return an interval of the probability of each class.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.
        level
            Share of the posterior in it, the same on both sides outside.

        Returns
        -------
        ndarray of shape (n_samples, n_classes, 2)
            Its ends.

        Raises
        ------
        ValueError
            If the level is none, or the inputs have other features than those in the fit.
        """
        ends = check_level(level)
        inputs = self._inputs(X)
        found = np.empty((len(inputs), len(self.classes_), 2))
        for rows, block in self._blocks(inputs, self._numbers):
            quantiles = np.quantile(self._probabilities(block), ends, axis=0)
            found[rows] = np.moveaxis(quantiles, 0, -1)
        return found

    @property
    def _numbers(self) -> int:
        return len(self.coef_draws_) * len(self.classes_)

    def _probabilities(self, inputs: FloatArray) -> FloatArray:
        """Return probabilities by each draw, shape (n_draws, n, n_classes)."""
        predictors = np.einsum("nd,skd->snk", inputs, self.coef_draws_, optimize=True)
        predictors += self.intercept_draws_[:, None, :]
        if len(self.classes_) > 2:
            return np.asarray(softmax(predictors, axis=2))
        one = expit(predictors)
        return np.concatenate([np.exp(log_expit(-predictors)), one], axis=2)
