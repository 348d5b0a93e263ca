"""From a fitted estimator to the function that gives its gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import getattr_static
from typing import Any, TypeAlias

from surrokit.types import FloatArray
from surrokit_sklearn.gradients.linear import linear_gradient

Gradient: TypeAlias = Callable[[FloatArray], FloatArray]
"""Derivatives of the prediction, shape (n, n_features), at inputs of shape (n, n_features)."""

Pullback: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""From inputs (n, n_features) of a transformer and derivatives by its outputs, shape (n, n_out),
to derivatives by its inputs, shape (n, n_features)."""

GradientMaker: TypeAlias = Callable[[Any], Gradient | None]
"""Makes the gradient of a fitted regressor; None where its settings have none."""

PullbackMaker: TypeAlias = Callable[[Any], Pullback | None]
"""Makes the pullback of a fitted transformer; None where its settings have none."""

_GRADIENTS: dict[type, GradientMaker] = {}
_PULLBACKS: dict[type, PullbackMaker] = {}


def gradient_of(*regressors: type) -> Callable[[GradientMaker], GradientMaker]:
    """Register a function that makes the gradient of fitted regressors of some types.

    It is used for their subclasses too, unless those predict in a way of their own.

    Parameters
    ----------
    *regressors
        Classes of regressors.

    Examples
    --------
    >>> @gradient_of(MyRegressor)  # doctest: +SKIP
    ... def my_gradient(fitted):
    ...     return lambda inputs: 2.0 * inputs * fitted.slopes_
    """

    def register(make: GradientMaker) -> GradientMaker:
        _GRADIENTS.update(dict.fromkeys(regressors, make))
        return make

    return register


def pullback_of(*transformers: type) -> Callable[[PullbackMaker], PullbackMaker]:
    """Register a function that makes the pullback of fitted transformers of some types.

    It is used for their subclasses too, unless those transform in a way of their own.

    Parameters
    ----------
    *transformers
        Classes of transformers.
    """

    def register(make: PullbackMaker) -> PullbackMaker:
        _PULLBACKS.update(dict.fromkeys(transformers, make))
        return make

    return register


def analytic_gradient(regressor: Any) -> Gradient | None:
    """Return the gradient of what a fitted regressor predicts, or None if it is not known.

    In this order: its own method ``predict_gradient``; what :func:`gradient_of` registered for
    its type; its ``coef_``, if it predicts linearly.
    """
    own: Gradient | None = getattr(regressor, "predict_gradient", None)
    if own is not None:
        return own
    make = _make_for(_GRADIENTS, regressor, "predict")
    found = None if make is None else make(regressor)
    return linear_gradient(regressor) if found is None else found


def analytic_pullback(transformer: Any) -> Pullback | None:
    """Return the pullback of a fitted transformer, or None if it is not known."""
    make = _make_for(_PULLBACKS, transformer, "transform")
    return None if make is None else make(transformer)


def _make_for(makers: Mapping[type, Any], estimator: Any, method: str) -> Any | None:
    cls = type(estimator)
    # Looked up without descriptors: those of meta-estimators make a new function at each access.
    own = getattr_static(cls, method, None)
    for ancestor in cls.__mro__:
        if ancestor in makers and getattr_static(ancestor, method, None) is own:
            return makers[ancestor]
    return None
