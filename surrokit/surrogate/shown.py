"""How notebooks show surrogates, before and after they are fitted."""

from __future__ import annotations

import inspect
from numbers import Number
from typing import Any

from surrokit.shown.html import show
from surrokit.shown.target import abilities_of, describe_value, settings_of
from surrokit.surrogate.quality import fit_quality_of


class ShownSurrogate:
    """A surrogate that notebooks show by its settings; its class is derived from this one."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _shown(self, settings_of(self), [("fitted", "not yet")])


class ShownFit:
    """A fitted surrogate that notebooks show with what it was fitted to, and how good it is.

    The class of a fitted potential may be derived from this one.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        fitted: Any = self
        numbers = {
            name: value
            for name, value in settings_of(fitted).items()
            if isinstance(value, Number | str) and name not in ("dim", "n_points", "n_gradients")
        }
        nodes, points, slopes = (
            getattr(fitted, name, None) for name in ("n_nodes", "n_points", "n_gradients")
        )
        learnt = None if points is None else f"{points:,} distinct points"
        if learnt is not None and slopes is not None:
            learnt += f", with the gradient at {slopes:,}"
        held_out: list[tuple[str, str]] = [("held out", "nothing, so that its error is not known")]
        if (quality := fit_quality_of(fitted)) is not None:
            held_out = [
                ("held out", f"{quality.n_points:,} points"),
                ("variance of V - U there", f"{quality.variance:.3g} squared nats"),
                ("foretold acceptance", f"{quality.acceptance:.1%} of independent draws"),
            ]
            if quality.gradient_error is not None:
                held_out.insert(2, ("error of its gradient", f"{quality.gradient_error:.2%}"))
        facts = [
            ("dimension", f"{fitted.dim:,}"),
            ("nodes", None if nodes is None else f"{nodes:,}"),
            ("fitted to", learnt),
            *held_out,
            ("can be evaluated", abilities_of(fitted)),
        ]
        return _shown(fitted, numbers, facts)


def _shown(part: Any, settings: dict[str, Any], facts: list[tuple[str, str | None]]) -> str:
    """Return a part as HTML, by its class, the first line of its docstring, and facts."""
    said = inspect.cleandoc(type(part).__doc__ or "").partition("\n")[0]
    kind = f"{type(part).__name__}: {said}" if said else type(part).__name__
    rows = [(name, [describe_value(value)]) for name, value in settings.items()]
    columns = ["setting", "value"]
    return show("surrogate", facts=[("surrogate", kind), *facts], columns=columns, rows=rows)
