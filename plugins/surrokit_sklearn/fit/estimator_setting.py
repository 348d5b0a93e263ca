"""From what a user gives as the estimator to an unfitted regressor of one's own."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from surrokit.errors import ConfigurationError

_ADVICE = "give an unfitted regressor, such as SVR(C=100.0), or its name, such as 'sklearn.svm.SVR'"


def regressor_given(estimator: object, parameters: Mapping[str, Any] | None = None) -> Any:
    """Return an unfitted copy of a regressor.

    Parameters
    ----------
    estimator
        A regressor, or the dotted name of its class or of a function that makes one.
    parameters
        Keywords for the class or function, or to be set on the regressor.

    Raises
    ------
    ConfigurationError
        If there is no such thing, or it is not a regressor, or has no such parameters.
    """
    if isinstance(estimator, str):
        return _unfitted(_make(estimator, parameters or {}))
    copy = _unfitted(estimator)
    if parameters:
        try:
            copy.set_params(**parameters)
        except ValueError as error:
            raise ConfigurationError(
                f"parameters cannot be set on {type(copy).__name__}: {error}"
            ) from error
    return copy


def _make(name: str, parameters: Mapping[str, Any]) -> Any:
    try:
        return _import_module(name)(**parameters)
    except (TypeError, ValueError) as error:
        given = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        raise ConfigurationError(
            f"estimator {name!r} could not be made of parameters {given or '(none)'}: {error}"
        ) from error


def _import_module(name: str) -> Callable[..., Any]:
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"estimator {name!r} cannot be imported: {error}; {_ADVICE}"
        ) from error
    if not callable(found):
        raise ConfigurationError(f"estimator {name!r} is of type {type(found).__name__}; {_ADVICE}")
    return found  # type: ignore[no-any-return]


def _unfitted(estimator: Any) -> Any:
    from sklearn.base import clone

    if isinstance(estimator, type):
        raise ConfigurationError(
            f"estimator must be a regressor, got the class {estimator.__name__}; write "
            f"{estimator.__name__}()"
        )
    kind = type(estimator).__name__
    # Not the methods themselves: those of some estimators are there only once they are fitted.
    missing = [
        name for name in ("fit", "predict", "get_params") if not hasattr(type(estimator), name)
    ]
    if missing:
        raise ConfigurationError(
            f"estimator must be a regressor, got a {kind} without {', '.join(missing)}; {_ADVICE}"
        )
    if not _regresses(estimator):
        raise ConfigurationError(
            f"estimator must be a regressor, got a {kind}, which scikit-learn does not count as "
            f"one; {_ADVICE}"
        )
    try:
        return clone(estimator)
    except (TypeError, RuntimeError) as error:
        raise ConfigurationError(
            f"estimator cannot be copied: {error}; a class of your own must keep what its "
            "constructor is given unchanged"
        ) from error


def _regresses(estimator: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(estimator))
    except Exception:  # tags of estimators that do not follow scikit-learn's rules
        return False
