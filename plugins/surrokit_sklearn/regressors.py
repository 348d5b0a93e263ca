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
import numpy.typing as npt
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

WIDE_CHECKS = ("check_regressor_multioutput", "check_sample_weight_equivalence_on_dense_data")
"""Checks of scikit-learn by data with more features than samples, which no surrogate is fitted to
without gradients."""

_DEFAULTS = {"tail": "full", "trend": "constant", "mean": "constant"}
"""Defaults for any function, where those of the surrogate suit a potential."""

_ONLINE = "greville"
"""Setting of ``updates`` with which a learner learns from rows without keeping them."""

_RANDOM_STATE = "random_state : int, RandomState or None\n    From which random choices are drawn."


class SurrogateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that is a registered surrogate, fitted to all rows it was given.

    The parameters of a subclass are the settings of its surrogate, and ``random_state``. They
    are checked when it is fitted. Targets of several columns have a surrogate each.

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
    random_state: int | np.random.RandomState | None
    _variances: list[Callable[[FloatArray], FloatArray]] | None

    def fit(
        self,
        X: Any,
        y: Any,
        gradients: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit to some rows, and forget all others.

        ``X`` has shape (n_samples, n_features) and ``y`` (n_samples,) or (n_samples, n_outputs).
        ``gradients`` are derivatives of the target by the inputs, of the shape of X, or for several
        outputs (n_samples, n_outputs, n_features); rows of NaN where they are not known.
        ``sample_weight (n_samples,)`` says how often each row counts.

        Raises
        ------
        ValueError
            If the rows or a parameter cannot be used.
        """
        rows = self._check_rows(X, y, gradients, sample_weight, reset=True)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._is_online = self.get_params(deep=False).get("updates") == _ONLINE
        return self._learn([self._learner() for _ in rows], rows)

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
        coordinates and with the nodes of the first fit. The first rows must suffice for a fit.

        Raises
        ------
        ValueError
            As :meth:`fit`.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, gradients, sample_weight)
        more = self._check_rows(X, y, gradients, sample_weight, reset=False)
        if len(more) != len(self._rows):
            raise ValueError(
                f"y must have as many columns as in the first fit, {len(self._rows)}, got "
                f"{len(more)}"
            )
        if self._is_online:
            return self._learn(self._learners, more)
        blocks = zip(self._rows, more, strict=True)
        rows = [Evaluations.join([*pair], self.n_features_in_) for pair in blocks]
        # Learners afresh, as the first fit of one fixes what follows.
        return self._learn([self._learner() for _ in rows], rows)

    def predict(
        self, X: Any, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Return predictions, shape (n_samples,) or (n_samples, n_outputs).

        With ``return_std`` their standard deviations follow, of the target without noise.

        Raises
        ------
        ValueError
            If these are asked of an online fit, which keeps no rows.
        """
        inputs = self._check_inputs(X)
        mean = self._by_output([surrogate.value(inputs) for surrogate in self._surrogates])
        if not return_std:
            return mean
        if self._variances is None:
            self._variances = [self._variance(k) for k in range(len(self._rows))]
        return mean, self._by_output([np.sqrt(each(inputs)) for each in self._variances])

    def predict_gradient(self, X: Any) -> FloatArray:
        """Return derivatives of the prediction by the inputs.

        Their shape is (n_samples, n_features) or (n_samples, n_outputs, n_features).
        """
        inputs = self._check_inputs(X)
        return self._by_output([_gradient(each, inputs) for each in self._surrogates])

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: there may be several outputs."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is a fit."""
        return "surrogate_" in self.__dict__

    def _check_inputs(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        found: FloatArray = validate_data(self, X, reset=False, dtype=np.float64)
        return found

    def _check_rows(
        self,
        X: Any,
        y: Any,
        gradients: npt.ArrayLike | None,
        sample_weight: npt.ArrayLike | None,
        *,
        reset: bool,
    ) -> list[Evaluations]:
        """Return the rows of each output."""
        # A partial fit may bring a single row.
        shape = {"multi_output": True, "ensure_min_samples": 2 if reset else 1}
        inputs, targets = validate_data(
            self, X, y, reset=reset, dtype=np.float64, y_numeric=True, **shape
        )
        targets = np.asarray(targets, dtype=np.float64)
        slopes = _check_gradients(gradients, inputs, targets)
        weights = check_weights(sample_weight, len(inputs))
        kept = slice(None) if weights is None else weights > 0.0
        if reset:
            self._several = targets.ndim > 1
        outputs = targets.reshape(len(inputs), -1)
        return [
            Evaluations(
                positions=inputs[kept],
                values=outputs[kept, k],
                gradients=None if slopes is None else slopes[kept, k],
                weights=None if weights is None else weights[kept],
            )
            for k in range(outputs.shape[1])
        ]

    def _learner(self) -> Any:
        settings = self.get_params(deep=False)
        del settings["random_state"]
        problem = LearningProblem(dim=self.n_features_in_, capabilities=frozenset({GRADIENT}))
        surrogate = make("surrogate", self._surrogate, **settings)
        return surrogate.learner(problem, np.random.default_rng(self._seed))

    def _learn(self, learners: list[Any], rows: list[Evaluations]) -> Self:
        for learner, each in zip(learners, rows, strict=True):
            learner.observe(each)
        try:
            fits = [learner.fit() for learner in learners]
        except SurrogateFitError as error:
            raise ValueError(
                f"{type(self).__name__} cannot be fitted to n_samples={len(rows[0])}: {error}"
            ) from error
        self.surrogate_ = fits if self._several else fits[0]
        self._variances = None
        self._learners = learners if self._is_online else []
        self._rows = [each.take(slice(0, 0)) for each in rows] if self._is_online else rows
        return self

    def _variance(self, output: int) -> Callable[[FloatArray], FloatArray]:
        """Return the variance of an output: the surrogate's own, or that of its weights."""
        surrogate = self._surrogates[output]
        if VARIANCE in surrogate.capabilities:
            return surrogate.variance  # type: ignore[no-any-return]
        if self._is_online:
            raise ValueError(
                "return_std needs the rows of the fit, which updates="
                f"{self.get_params(deep=False)['updates']!r} does not keep; use updates='refit'"
            )
        learner = self._learner()
        learner.observe(self._rows[output])
        return learner.posterior().variance  # type: ignore[no-any-return]

    @property
    def _surrogates(self) -> list[Any]:
        fitted: Any = self.surrogate_
        return list(fitted) if self._several else [fitted]

    def _by_output(self, arrays: list[FloatArray]) -> FloatArray:
        return np.stack(arrays, axis=1) if self._several else arrays[0]


def _check_gradients(
    gradients: npt.ArrayLike | None, inputs: FloatArray, targets: FloatArray
) -> FloatArray | None:
    """Return gradients, shape (n, n_outputs, n_features), with NaN where they are not known."""
    if gradients is None:
        return None
    found = np.asarray(gradients, dtype=np.float64)
    expected = (*targets.shape, inputs.shape[1])
    if found.shape != expected:
        shape = "the shape of X" if targets.ndim == 1 else "an axis for outputs in its middle"
        raise ShapeError(
            f"gradients must have {shape}, {expected}, got {found.shape}; pass one row for each "
            "sample and output, of NaN where the gradient is not known"
        )
    if np.isinf(found).any():
        row = int(np.isinf(found).reshape(len(found), -1).any(axis=1).argmax())
        raise ValueError(
            f"gradients must be finite, or NaN where they are not known, but row {row} is infinite"
        )
    return found.reshape(len(found), -1, inputs.shape[1])


def _gradient(surrogate: Any, inputs: FloatArray) -> FloatArray:
    if GRADIENT_ALONE in surrogate.capabilities:
        return with_gradient_alone(surrogate).gradient(inputs)
    return with_gradient(surrogate).value_and_gradient(inputs)[1]


@cache
def regressor_class(name: str) -> type[SurrogateRegressor]:
    """Return the regressor of a name in :data:`SURROGATES`, always the same class."""
    component = default_catalogue().get("surrogate", SURROGATES[name])
    settings = component.settings()
    texts = [
        f"{each.name} : {each.type or 'object'}\n{indent(each.help or '-', '    ')}"
        for each in settings.values()
    ]
    parameters = "\n".join([*texts, _RANDOM_STATE])
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
