"""How notebooks show surrogates, before and after they are fitted."""

from __future__ import annotations

import inspect
from numbers import Number
from typing import Any

from surrokit.shown.html import show
from surrokit.shown.target import abilities_of, describe_value, settings_of
from surrokit.surrogate.quality import FitQuality, fit_quality_of

_APART = ("dim", "n_points", "n_gradients")


class ShownSurrogate:
    """A surrogate that notebooks show by its settings; its class is derived from this one."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the settings as HTML."""
        facts = [("surrogate", _kind(self)), ("fitted", "not yet")]
        return show("surrogate", facts=facts, **_settings(settings_of(self)))


class ShownFit:
    """A fitted surrogate that notebooks show with what it was fitted to, and how good it is.

    The class of a fitted potential may be derived from this one.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return what it was fitted to, and its error at points held out, as HTML."""
        fitted: Any = self
        numbers = {
            name: value
            for name, value in settings_of(fitted).items()
            if name not in _APART and isinstance(value, Number | str) and value is not None
        }
        n_nodes = getattr(fitted, "n_nodes", None)
        facts = [
            ("surrogate", _kind(fitted)),
            ("dimension", f"{fitted.dim:,}"),
            ("nodes", None if n_nodes is None else f"{n_nodes:,}"),
            ("fitted to", _points(fitted)),
            *_quality(fit_quality_of(fitted)),
            ("can be evaluated", abilities_of(fitted)),
        ]
        return show("surrogate", facts=facts, **_settings(numbers))


def _kind(part: Any) -> str:
    """Return the name of a part's class, and the first line of its docstring."""
    said = inspect.cleandoc(type(part).__doc__ or "").partition("\n")[0]
    return f"{type(part).__name__}: {said}" if said else type(part).__name__


def _points(fitted: Any) -> str | None:
    n_points = getattr(fitted, "n_points", None)
    if n_points is None:
        return None
    n_gradients = getattr(fitted, "n_gradients", None)
    slopes = "" if n_gradients is None else f", with the gradient at {n_gradients:,}"
    return f"{n_points:,} distinct points{slopes}"


def _quality(quality: FitQuality | None) -> list[tuple[str, str]]:
    if quality is None:
        return [("held out", "nothing, so that its error is not known")]
    told = [
        ("held out", f"{quality.n_points:,} points"),
        ("variance of V - U there", f"{quality.variance:.3g} squared nats"),
    ]
    if quality.gradient_error is not None:
        told.append(("error of its gradient", f"{quality.gradient_error:.2%}"))
    return [*told, ("foretold acceptance", f"{quality.acceptance:.1%} of independent draws")]


def _settings(settings: dict[str, Any]) -> dict[str, Any]:
    rows = [(name, [describe_value(value)]) for name, value in settings.items()]
    return {"columns": ["setting", "value"], "rows": rows}
