"""Formulas, and the design and response that they make of a table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.tables.frames import (
    check_columns,
    check_kinds,
    check_no_dates,
    library,
    number_column,
)
from surrokit.types import FloatArray

INTERCEPT = "Intercept"
"""How Formulaic calls the column of ones."""


@attrs.frozen(kw_only=True, eq=False)
class Matrices:
    """What a formula makes of a table."""

    design: FloatArray  # covariates, shape (n_rows, n_columns)
    columns: tuple[str, ...]  # of the design
    response: FloatArray  # numbers (n_rows,); or the number of each row's level, from 0
    levels: tuple[str, ...]  # those of a response that occur, in order; empty for numbers
    label: str  # what the response is called
    factors: Mapping[str, list[Any] | None] = attrs.field(factory=dict)  # levels; None for numbers
    transforms: Mapping[str, Any] = attrs.field(factory=dict)  # what they remember of the table


@attrs.frozen(kw_only=True)
class ParsedFormula:
    """A formula that has been read."""

    text: str  # as it was given
    columns: tuple[str, ...]  # of the table that it asks for
    available: tuple[str, ...]  # that a dot may stand for
    context: Mapping[str, Any]  # functions and values that it uses besides
    left: Any  # Formulaic's terms of the response
    right: Any  # and of the covariates

    def matrices(self, frame: Any) -> Matrices:
        """Return design and response of a pandas frame that lacks nothing.

        ConfigurationError is raised if a term cannot be evaluated, or is not finite, or there is no
        column on a side.
        """
        left, right = self._evaluate(frame)
        spec = right.model_spec
        found = dict(zip(map(str, spec.column_names), np.asarray(right, float).T, strict=True))
        if not found:
            raise ConfigurationError(
                f"formula {self.text!r} has no covariates; write y ~ 1 for an intercept alone"
            )
        response, levels = self._response(left)
        return Matrices(
            design=_finite_columns(found, "the design"),
            columns=tuple(found),
            response=response,
            levels=levels,
            label=self.text.partition("~")[0].strip(),
            factors={
                name: state.get("categories") for name, (_, state) in spec.encoder_state.items()
            },
            transforms=spec.transform_state,
        )

    def _evaluate(self, frame: Any) -> Any:
        """Return Formulaic's matrices of both sides."""
        formulaic = library("formulaic", "for formulas")
        for side, check in ((self.left, check_no_dates), (self.right, check_kinds)):
            check(frame, [name for name in frame.columns if name in _alone(side)])
        given = {"context": self.context, "na_action": "ignore", "output": "numpy"}
        both = formulaic.Formula(lhs=self.left, rhs=self.right)
        try:
            with np.errstate(all="ignore"):  # what is not finite is told later, by its column
                made = formulaic.model_matrix(both, frame, **given)
        except (Exception, SystemExit) as error:  # terms are the user's code, and raise anything
            raise ConfigurationError(
                f"formula {self.text!r} cannot be evaluated: {plain_text(error)}; check its terms, "
                "and give functions of your own by context={'name': function}"
            ) from error
        return made.lhs, made.rhs

    def _response(self, side: Any) -> tuple[FloatArray, tuple[str, ...]]:
        """Return numbers, or numbers of levels and these levels."""
        array = np.asarray(side, dtype=np.float64)
        states = list(side.model_spec.encoder_state.values())
        categories = [state["categories"] for _, state in states if "categories" in state]
        if array.shape[1] == 1 and not categories:
            return number_column(array[:, 0], "the response"), ()
        if len(states) != 1 or not categories or array.shape[1] != len(categories[0]):
            raise ConfigurationError(
                f"formula {self.text!r} must have one response, got "
                f"{', '.join(map(str, side.model_spec.column_names)) or 'none'}; write one column "
                "left of ~"
            )
        occurring = np.flatnonzero(array.any(axis=0))
        levels = tuple(str(categories[0][k]) for k in occurring)
        return array[:, occurring].argmax(axis=1).astype(np.float64), levels


def _finite_columns(columns: Mapping[str, FloatArray], whose: str) -> FloatArray:
    """Return columns side by side; ConfigurationError if one is not finite."""
    return np.column_stack(
        [number_column(column, f"column {name!r} of {whose}") for name, column in columns.items()]
    )


def parse_formula(
    text: str, columns: Sequence[str], context: Mapping[str, Any] | None
) -> ParsedFormula:
    """Read a formula such as ``"y ~ x"`` for a table with columns that a dot may stand for.

    ConfigurationError is raised if the formula cannot be read, has no response or several parts, or
    asks for a column that is absent.
    """
    if not isinstance(text, str):
        raise ConfigurationError(f"formula must be text such as 'y ~ x', got {text!r}")
    groups = re.search(
        r"(?<![\w.])\([^()|]*\|{1,2}[^()|]*\)", re.sub(r"`[^`]*`|\{[^}]*\}", "q", text)
    )
    if groups:  # which Formulaic cannot read
        raise ConfigurationError(
            f"formula {text!r} has {groups[0]!r}, effects that vary by group, which surrokit.glm "
            "does not offer. Write the model with Bambi, model = bambi.Model(formula, data), and "
            "sample it by surrokit.sample(('bambi', {'model': model})); or give each group a "
            "coefficient of its own by C(group)"
        )
    known = dict(context or {})
    parsed, variables = _read(text, columns, known)
    left, right = getattr(parsed, "lhs", None), getattr(parsed, "rhs", None)
    if not left or right is None:
        raise ConfigurationError(
            f"formula {text!r} has no response; write it left of a tilde, such as 'y ~ x'"
        )
    if isinstance(right, tuple) or isinstance(left, tuple):
        raise ConfigurationError(
            f"formula {text!r} has several parts; write one response, one ~ and terms with +"
        )
    variables |= {name for side in (left, right) for name in names_in(side) if name in columns}
    if "offset" not in {*known, *columns} and any("offset(" in each for each in map(str, right)):
        raise ConfigurationError(
            f"formula {text!r} has an offset in it; give it beside the formula, by "
            "offset='column' or an array"
        )
    check_columns(variables - set(known), columns, f"formula {text!r}")
    return ParsedFormula(
        text=text,
        columns=tuple(name for name in columns if name in variables),
        available=tuple(columns),
        context=known,
        left=left,
        right=right,
    )


def _read(text: str, columns: Sequence[str], context: Mapping[str, Any]) -> tuple[Any, set[str]]:
    """Return what Formulaic makes of a text, and the variables that it asks for."""
    formulaic = library("formulaic", "for formulas")
    given = {**context, "__formulaic_variables_available__": list(columns)}
    try:
        parsed = formulaic.Formula.from_spec(text, context=given)
        return parsed, {str(name) for name in parsed.required_variables}
    except (formulaic.errors.FormulaicError, SyntaxError) as error:
        raise ConfigurationError(
            f"formula {text!r} cannot be read: {plain_text(error)}; write it such as "
            "'y ~ x + C(group)'"
        ) from error


def _factors(side: Any) -> Iterator[Any]:
    for term in side:
        yield from term.factors


def _alone(side: Any) -> set[str]:
    """Return the columns that are factors by themselves."""
    return {str(each.expr) for each in _factors(side) if each.eval_method.value == "lookup"}


def names_in(side: Any) -> set[str]:
    """Return the names that occur in a side's expressions, those inside calls among them.

    Formulaic leaves out what stands in a call of one of its own transforms, such as a spline.
    """
    found = set()
    for expression in expressions_of(side):
        found |= set(re.findall(r"`([^`]*)`", expression))
        with suppress(SyntaxError):
            tree = ast.parse(re.sub(r"`[^`]*`", "0", expression), mode="eval")
            calls = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)}
            names = (each for each in ast.walk(tree) if isinstance(each, ast.Name))
            found |= {each.id for each in names if id(each) not in calls}
    return found


def expressions_of(side: Any) -> list[str]:
    """Return the factors of a side that are Python code."""
    return [str(each.expr) for each in _factors(side) if each.eval_method.value == "python"]


def plain_text(error: BaseException) -> str:
    """Return the first line of a message."""
    return str(error).strip().partition("\n")[0].rstrip(".")
