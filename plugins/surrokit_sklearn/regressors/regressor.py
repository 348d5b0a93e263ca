"""The frame of surrogates as scikit-learn regressors."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, overload

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
from surrokit_sklearn.regressors.validation import check_gradients, check_inputs, check_rows

_ONLINE = ("greville", "moments")
"""Settings of ``updates`` with which a learner takes in rows without keeping them."""


class SurrogateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that is a registered surrogate, fitted to all rows it has seen.

    The parameters of a subclass are the settings of its surrogate, and ``random_state``. They
    are looked at when it is fitted.

    Attributes
    ----------
    surrogate_ : Potential
        The fitted surrogate, with all that it can do.
    n_features_in_ : int
        Features in the fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if they all have one.
    """

    _surrogate: ClassVar[str]

    def fit(self, X: Any, y: Any, gradients: npt.ArrayLike | None = None) -> Self:
        """Fit to some rows, and forget all others.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.
        y : array_like of shape (n_samples,)
            Targets.
        gradients : array_like of shape (n_samples, n_features), optional
            Derivatives of the target by the inputs; rows of NaN where they are not known.

        Returns
        -------
        SurrogateRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If the rows or a parameter cannot be used.
        """
        rows = self._rows_of(X, y, gradients, reset=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return self._refit(rows, seed)

    def partial_fit(self, X: Any, y: Any, gradients: npt.ArrayLike | None = None) -> Self:
        """Fit to some more rows, and to all that were there before.

        The result is that of one ``fit`` to all rows, and costs as much: all rows are kept, and
        the surrogate is fitted afresh with the same seed. With ``updates="greville"`` or
        ``"moments"``, which networks have, rows are not kept: the surrogate goes on learning in the
        coordinates and with the nodes of the first fit.

        Parameters
        ----------
        X, y, gradients
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
            return self.fit(X, y, gradients)
        more = self._rows_of(X, y, gradients, reset=False)
        if self._goes_on is not None:
            self._goes_on.observe(more)
            self.surrogate_ = self._fit_by(self._goes_on, len(more))
            return self
        rows = Evaluations.join([self._rows, more], self.n_features_in_)
        return self._refit(rows, self._seed)

    def predict(self, X: Any) -> FloatArray:
        """Return predictions.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted targets.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        surrogate, inputs = self._ask(X)
        predicted: FloatArray = surrogate.value(inputs)
        return predicted

    def predict_gradient(self, X: Any) -> FloatArray:
        """Return derivatives of the prediction by the inputs.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Gradients.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        surrogate, inputs = self._ask(X)
        if GRADIENT_ALONE in surrogate.capabilities:
            return with_gradient_alone(surrogate).gradient(inputs)
        return with_gradient(surrogate).value_and_gradient(inputs)[1]

    def _ask(self, X: Any) -> tuple[Any, FloatArray]:
        check_is_fitted(self)
        return self.surrogate_, check_inputs(self, X)

    def _rows_of(
        self, X: Any, y: Any, gradients: npt.ArrayLike | None, *, reset: bool
    ) -> Evaluations:
        inputs, targets = check_rows(self, X, y, reset=reset)
        return Evaluations(
            positions=inputs, values=targets, gradients=check_gradients(gradients, inputs)
        )

    def _refit(self, rows: Evaluations, seed: int) -> Self:
        learner = self._learner(seed)
        learner.observe(rows)
        surrogate = self._fit_by(learner, len(rows))
        online = getattr(self, "updates", "refit") in _ONLINE
        self._goes_on = learner if online else None
        self._rows = rows.take(slice(0, 0)) if online else rows
        self.surrogate_, self._seed = surrogate, seed
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
        mean : ndarray of shape (n_samples,)
            Predicted targets.
        std : ndarray of shape (n_samples,)
            Standard deviations of what the target is without noise; only if ``return_std``.

        Raises
        ------
        ValueError
            If the inputs have other features than those in the fit.
        """
        surrogate, inputs = self._ask(X)
        mean: FloatArray = surrogate.value(inputs)
        if not return_std:
            return mean
        return mean, np.sqrt(surrogate.variance(inputs))
