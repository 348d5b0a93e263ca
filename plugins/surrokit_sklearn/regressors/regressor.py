"""The frame of surrogates as scikit-learn regressors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self, TypeAlias, overload

import attrs
import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.compose import make
from surrokit.contracts.learner import Evaluations, Learner, LearningProblem
from surrokit.contracts.potential import Potential, with_gradient, with_gradient_alone
from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray
from surrokit_sklearn.regressors.validation import (
    check_gradients,
    check_inputs,
    check_rows,
    check_weights,
)

Variance: TypeAlias = Callable[[FloatArray], FloatArray]
"""From inputs (n, n_features) to variances (n,)."""

WIDE_CHECKS = ("check_regressor_multioutput", "check_sample_weight_equivalence_on_dense_data")
"""Checks of scikit-learn by data with more features than samples, which no surrogate is fitted to
without gradients."""

_ONLINE = "greville"
"""Setting of ``updates`` with which a learner takes in rows without keeping them."""


class SurrogateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that is a registered surrogate, fitted to all rows it has seen.

    The parameters of a subclass are the settings of its surrogate, and ``random_state``. They
    are looked at when it is fitted. Targets of several columns have a surrogate each.

    Attributes
    ----------
    surrogate_ : Potential or list of Potential
        The fitted surrogate, with all that it can do; a list for targets of several columns.
    n_features_in_ : int
        Features in the fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they all have one.
    """

    _surrogate: ClassVar[str]

    def fit(
        self,
        X: Any,
        y: Any,
        gradients: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to some rows, and forget all others.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.
        y : array_like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        gradients : array_like of shape (n_samples, n_features), optional
            Derivatives of the target by the inputs; rows of NaN where they are not known. For
            targets of several columns of shape (n_samples, n_outputs, n_features).
        sample_weight : array_like of shape (n_samples,), optional
            How often each row counts; a row that counts twice is the same as two.

        Returns
        -------
        SurrogateRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If the rows or a parameter cannot be used.
        """
        rows = self._rows_of(X, y, gradients, sample_weight, reset=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return self._refit(rows, seed)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        gradients: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to some more rows, and to all that were there before.

        The result is that of one ``fit`` to all rows, and costs as much: all rows are kept, and
        the surrogate is fitted afresh with the same seed. With ``updates="greville"``,
        which networks have, rows are not kept: the surrogate goes on learning in the
        coordinates and with the nodes of the first fit.

        Parameters
        ----------
        X, y, gradients, sample_weight
            More rows, as :meth:`fit` takes them; the first time enough of them for a fit.

        Returns
        -------
        SurrogateRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            As :meth:`fit`.
        """
        if not hasattr(self, "surrogate_"):
            return self.fit(X, y, gradients, sample_weight)
        more = self._rows_of(X, y, gradients, sample_weight, reset=False)
        if len(more) != len(self._rows):
            raise ValueError(
                f"y must have as many columns as in the first fit, {len(self._rows)}, got "
                f"{len(more)}"
            )
        if self._goes_on is not None:
            for learner, rows in zip(self._goes_on, more, strict=True):
                learner.observe(rows)
            fits = [
                self._fit_by(each, len(rows))
                for each, rows in zip(self._goes_on, more, strict=True)
            ]
            self.surrogate_ = fits if self._several else fits[0]
            return self
        joined = [
            Evaluations.join([before, rows], self.n_features_in_)
            for before, rows in zip(self._rows, more, strict=True)
        ]
        return self._refit(joined, self._seed)

    def predict(self, X: Any) -> FloatArray:
        """Return predictions.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        inputs = self._inputs(X)
        return self._stack([surrogate.value(inputs) for surrogate in self._surrogates])

    def predict_gradient(self, X: Any) -> FloatArray:
        """Return derivatives of the prediction by the inputs.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_outputs, n_features)
            Gradients.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        inputs = self._inputs(X)
        return self._stack([_gradient(each, inputs) for each in self._surrogates])

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: there may be several outputs."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _more_tags(self) -> dict[str, Any]:
        """Return them as scikit-learn 1.5 wants them."""
        why = "more features than samples"
        return {"multioutput": True, "_xfail_checks": dict.fromkeys(WIDE_CHECKS, why)}

    @property
    def _surrogates(self) -> list[Any]:
        fitted: Any = self.surrogate_
        return list(fitted) if self._several else [fitted]

    def _stack(self, of_outputs: list[FloatArray]) -> FloatArray:
        return np.stack(of_outputs, axis=1) if self._several else of_outputs[0]

    def _inputs(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return check_inputs(self, X)

    def _rows_of(
        self,
        X: Any,
        y: Any,
        gradients: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
        *,
        reset: bool,
    ) -> list[Evaluations]:
        """Return the rows of each output."""
        inputs, targets = check_rows(self, X, y, reset=reset, multi_output=True)
        slopes = check_gradients(gradients, inputs, targets)
        weights = check_weights(sample_weight, len(inputs))
        kept = slice(None) if weights is None else weights > 0.0
        if reset:
            self._several = targets.ndim > 1
        columns = targets[:, None] if targets.ndim == 1 else targets
        if slopes is not None and targets.ndim == 1:
            slopes = slopes[:, None]
        every = Evaluations(positions=inputs, values=np.zeros(len(inputs)), weights=weights).take(
            kept
        )
        return [
            attrs.evolve(
                every,
                values=columns[kept, k],
                gradients=None if slopes is None else slopes[kept, k],
            )
            for k in range(columns.shape[1])
        ]

    def _refit(self, rows: list[Evaluations], seed: int) -> Self:
        learners = [self._learner(seed) for _ in rows]
        for learner, each in zip(learners, rows, strict=True):
            learner.observe(each)
        fits = [
            self._fit_by(learner, len(each)) for learner, each in zip(learners, rows, strict=True)
        ]
        online = getattr(self, "updates", "refit") == _ONLINE
        self._goes_on = learners if online else None
        self._rows = [each.take(slice(0, 0)) for each in rows] if online else rows
        self.surrogate_, self._seed = fits if self._several else fits[0], seed
        self._unsure: list[Variance] | None = None
        return self

    def _fit_by(self, learner: Learner, n_rows: int) -> Potential:
        try:
            return learner.fit()
        except SurrogateFitError as error:
            raise ValueError(
                f"{type(self).__name__} cannot be fitted to n_samples={n_rows}: {error}"
            ) from error

    def _learner(self, seed: int) -> Learner:
        """Return a learner of its own for every fit, as the first fit of one fixes what follows."""
        settings = self.get_params(deep=False)
        del settings["random_state"]
        surrogate = make("surrogate", self._surrogate, **settings)
        problem = LearningProblem(dim=self.n_features_in_, capabilities=frozenset({GRADIENT}))
        learner: Learner = surrogate.learner(problem, np.random.default_rng(seed))
        return learner


class DeviatingRegressor(SurrogateRegressor):
    """A regressor that knows how unsure it is."""

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> FloatArray: ...

    @overload
    def predict(self, X: Any, return_std: bool) -> FloatArray | tuple[FloatArray, FloatArray]: ...

    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return predictions, and how unsure they are if asked.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.
        return_std
            Whether to return standard deviations too.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predicted targets.
        std : ndarray of the same shape
            Standard deviations of what the target is without noise; only if ``return_std``.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        mean = super().predict(X)
        if not return_std:
            return mean
        inputs = self._inputs(X)
        return mean, self._stack([np.sqrt(each(inputs)) for each in self._variances()])

    def _variances(self) -> list[Variance]:
        """Return each output's variance, a function of inputs."""
        return [surrogate.variance for surrogate in self._surrogates]


def _gradient(surrogate: Any, inputs: FloatArray) -> FloatArray:
    if GRADIENT_ALONE in surrogate.capabilities:
        return with_gradient_alone(surrogate).gradient(inputs)
    return with_gradient(surrogate).value_and_gradient(inputs)[1]
