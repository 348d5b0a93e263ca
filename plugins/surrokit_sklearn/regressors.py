"""Registered surrogates as scikit-learn regressors.

The parameters of a regressor are the settings of its surrogate, read off the catalogue, and
``random_state``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from textwrap import indent
from typing import Any, ClassVar, Self

import attrs
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, VARIANCE
from surrokit.compose import make
from surrokit.errors import ShapeError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.potentials import with_gradient, with_gradient_alone
from surrokit.registry.catalogue import default_catalogue
from surrokit.types import FloatArray
from surrokit_sklearn.design import check_weights

SURROGATES = {
    "AdditiveNetworkRegressor": "additive",
    "RBFNetworkRegressor": "rbf",
    "GPRegressor": "gp",
    "FITCRegressor": "fitc",
}
"""Names of regressors, and of the surrogates that they are."""

WIDE_CHECKS = ("check_sample_weight_equivalence_on_dense_data",)
"""Checks of scikit-learn by data with more features than samples, which no surrogate is fitted to
without gradients."""

_DEFAULTS = {"tail": "full", "trend": "constant", "mean": "constant"}
"""Defaults for any function, where those of the surrogate suit a potential."""


class SurrogateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that is a registered surrogate, fitted to all rows it was given.

    The parameters of a subclass are the settings of its surrogate, and ``random_state``. They
    are checked when it is fitted.

    Attributes
    ----------
    surrogate_ : Potential
        The fitted surrogate, with all that it can do.
    """

    _surrogate: ClassVar[str]
    random_state: int | np.random.RandomState | None
    _variance: Callable[[FloatArray], FloatArray] | None

    def fit(self, X: Any, y: Any, gradients: Any = None, sample_weight: Any = None) -> Self:
        """Fit to some rows, and forget all others.

        ``X`` has shape (n_samples, n_features) and ``y`` (n_samples,). ``gradients`` are
        derivatives of the target by the inputs, of the shape of X, with rows of NaN where they are
        not known. ``sample_weight (n_samples,)`` says how often each row counts. ValueError is
        raised if rows or a parameter cannot be used.
        """
        rows = self._check_rows(X, y, gradients, sample_weight, reset=True)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._is_online = self.get_params(deep=False).get("updates") == "greville"
        return self._learn(self._learner(), rows)

    def partial_fit(self, X: Any, y: Any, gradients: Any = None, sample_weight: Any = None) -> Self:
        """Fit to some more rows, and to all that were there before.

        The result is that of one ``fit`` to all rows, and costs as much: all rows are kept, and
        the surrogate is fitted afresh with the same seed. With ``updates="greville"``,
        which networks have, rows are not kept: the surrogate goes on learning in the
        coordinates and with the nodes of the first fit. The first rows must suffice for a fit.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, gradients, sample_weight)
        more = self._check_rows(X, y, gradients, sample_weight, reset=False)
        if self._is_online:
            return self._learn(self._online, more)
        # A learner afresh, as the first fit of one fixes what follows.
        return self._learn(
            self._learner(), Evaluations.join([self._rows, more], self.n_features_in_)
        )

    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return predictions, shape (n_samples,).

        With ``return_std`` their standard deviations follow, of the target without noise. They are
        not known of an online fit, which keeps no rows.
        """
        inputs = self._check_inputs(X)
        mean: FloatArray = self.surrogate_.value(inputs)
        if not return_std:
            return mean
        if self._variance is None:
            self._variance = self._find_variance()
        return mean, np.sqrt(self._variance(inputs))

    def predict_gradient(self, X: Any) -> FloatArray:
        """Return derivatives of the prediction by the inputs, shape (n_samples, n_features)."""
        inputs = self._check_inputs(X)
        if GRADIENT_ALONE in self.surrogate_.capabilities:
            return with_gradient_alone(self.surrogate_).gradient(inputs)
        return with_gradient(self.surrogate_).value_and_gradient(inputs)[1]

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a fit."""
        return "surrogate_" in self.__dict__

    def _check_inputs(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        found: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        return found

    def _check_rows(
        self, X: Any, y: Any, gradients: Any, sample_weight: Any, *, reset: bool
    ) -> Evaluations:
        # A partial fit may bring a single row.
        least = 2 if reset else 1
        inputs, targets = validate_data(
            self, X, y, reset=reset, dtype=np.float64, y_numeric=True, ensure_min_samples=least
        )
        slopes = None if gradients is None else np.asarray(gradients, dtype=np.float64)
        if slopes is not None and slopes.shape != inputs.shape:
            raise ShapeError(
                f"gradients must have the shape of X, {inputs.shape}, got {slopes.shape}; pass "
                "one row for each sample, of NaN where the gradient is not known"
            )
        if slopes is not None and np.isinf(slopes).any():
            row = int(np.isinf(slopes).any(axis=1).argmax())
            raise ValueError(
                "gradients must be finite, or NaN where they are not known, but row "
                f"{row} is infinite"
            )
        weights = check_weights(sample_weight, len(inputs))
        rows = Evaluations(
            positions=inputs,
            values=np.asarray(targets, dtype=np.float64),
            gradients=slopes,
            weights=weights,
        )
        return rows if weights is None else rows.take(weights > 0.0)

    def _learner(self) -> Any:
        settings = self.get_params(deep=False)
        del settings["random_state"]
        problem = LearningProblem(dim=self.n_features_in_, capabilities=frozenset({GRADIENT}))
        surrogate = make("surrogate", self._surrogate, **settings)
        return surrogate.learner(problem, np.random.default_rng(self._seed))

    def _learn(self, learner: Any, rows: Evaluations) -> Self:
        learner.observe(rows)
        try:
            self.surrogate_ = learner.fit()
        except SurrogateFitError as error:
            raise ValueError(
                f"{type(self).__name__} cannot be fitted to n_samples={len(rows)}: {error}"
            ) from error
        self._variance = None
        self._online = learner if self._is_online else None
        self._rows = rows.take(slice(0, 0)) if self._is_online else rows
        return self

    def _find_variance(self) -> Callable[[FloatArray], FloatArray]:
        """Return the surrogate's own variance, or that of its weights, which takes a fit."""
        if VARIANCE in self.surrogate_.capabilities:
            return self.surrogate_.variance  # type: ignore[no-any-return]
        if self._is_online:
            raise ValueError(
                "return_std needs the rows of the fit, which updates="
                f"{self.get_params(deep=False)['updates']!r} does not keep; use updates='refit'"
            )
        learner = self._learner()
        learner.observe(self._rows)
        return learner.posterior().variance  # type: ignore[no-any-return]


@cache
def regressor_class(name: str) -> type[SurrogateRegressor]:
    """Return the regressor of a name in :data:`SURROGATES`, always the same class."""
    component = default_catalogue().get("surrogate", SURROGATES[name])
    settings = component.settings()
    texts = [
        f"{each.name} : {each.type or 'object'}\n{indent(each.help or '-', '    ')}"
        for each in settings.values()
    ]
    texts.append("random_state : int, RandomState or None\n    From which choices are drawn.")
    parameters = "\n".join(texts)
    fields = {
        key: attrs.field(default=_DEFAULTS.get(key, s.default)) for key, s in settings.items()
    }
    summary = f"The surrogate ``{SURROGATES[name]}`` as a regressor: {component.summary}."
    made = attrs.make_class(
        name,
        {**fields, "random_state": attrs.field(default=None)},
        bases=(SurrogateRegressor,),
        class_body={
            "_surrogate": SURROGATES[name],
            "__doc__": f"{summary}\n\nParameters\n----------\n{parameters}\n",
        },
        slots=False,
        eq=False,
        repr=False,
        kw_only=True,
    )
    made.__module__ = __package__
    return made
