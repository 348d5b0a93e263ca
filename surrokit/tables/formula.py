"""Formulas: the design and response that they make of a table, and the design of new rows."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.predictive.rows import Rows, read_offset
from surrokit.tables.frames import (
    check_columns,
    check_kinds,
    column_names,
    keep_rows,
    library,
    number_column,
    read_columns,
    with_numbers,
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
    spec: Any  # Formulaic's, of the design: with levels, and with what transforms remember


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
            spec=spec,
        )

    def _evaluate(self, frame: Any) -> Any:
        """Return Formulaic's matrices of both sides."""
        formulaic = library("formulaic", "for formulas")
        alone = {str(x.expr) for x in _factors(self.right) if x.eval_method.value == "lookup"}
        check_kinds(frame, [name for name in frame.columns if name in alone])
        given = {"context": self.context, "na_action": "ignore", "output": "numpy"}
        both = formulaic.Formula(lhs=self.left, rhs=self.right)
        try:
            with np.errstate(all="ignore"):  # what is not finite is told later, by its column
                made = formulaic.model_matrix(both, frame, **given)
        except (Exception, SystemExit) as error:  # terms are the user's code, and raise anything
            raise ConfigurationError(
                f"formula {self.text!r} cannot be evaluated: {_plain_text(error)}; check its "
                "terms, and give functions of your own by context={'name': function}"
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
    check_columns(variables - set(known), columns, f"formula {text!r}")
    used = _used_by(left, columns, known) | _used_by(right, columns, known)
    return ParsedFormula(
        text=text,
        columns=tuple(name for name in columns if name in used),
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
            f"formula {text!r} cannot be read: {_plain_text(error)}. Write it like "
            "'y ~ x + C(group)', with offsets beside it; effects that vary by group need Bambi"
        ) from error


def _factors(side: Any) -> Iterator[Any]:
    for term in side:
        yield from term.factors


def _used_by(side: Any, columns: Collection[str], context: Collection[str]) -> set[str]:
    """Return the columns that occur in the terms of a side.

    Formulaic does not say what stands in a call of one of its own transforms, such as a spline.
    """
    terms = " ".join(str(factor.expr) for factor in _factors(side))
    words = {*re.findall(r"(?<![\w.])\w+(?![\w(])", terms), *re.findall(r"`([^`]*)`", terms)}
    words |= {str(factor.expr) for factor in _factors(side)}
    return (words & set(columns)) - set(context)


def _plain_text(error: BaseException) -> str:
    """Return the first line of a message."""
    return str(error).strip().partition("\n")[0].rstrip(".")


@attrs.frozen(kw_only=True, eq=False)
class FormulaReader:
    """Reads new tables by the formula of a fit, with the levels and transforms of that."""

    asked: ParsedFormula
    made: Matrices  # of the fit's table
    offset: str | None  # the column of offsets, if any; empty if there was an array of them

    def read(self, new: Any, offset: Any) -> Rows:
        """Return the rows of a table, with offsets from its column or as given.

        ConfigurationError is raised if a column is absent or lacks values, a level is new, or the
        formula cannot be evaluated; ShapeError if there is not one offset for each row.
        """
        names, asked = column_names(new), self.asked
        wanted = self.offset if offset is None else offset
        named = {wanted} - {""} if isinstance(wanted, str) else set()
        used = _used_by(asked.right, asked.available, asked.context) | named
        check_columns(used, names, "the prediction")
        present = [name for name in names if name in used]
        frame = with_numbers(read_columns(new, present or names[:1]))  # perhaps an intercept alone
        keep_rows(frame[present], "raise")
        if named:
            known = number_column(frame[wanted], f"column {wanted!r}, the offset,")
        else:
            missing = isinstance(wanted, str)  # the fit had an array, and none is given
            known = read_offset(None if missing else wanted, len(frame), needed=missing)
        index = new.index if hasattr(new, "iloc") else None
        made = np.asarray(self._evaluate(frame), dtype=np.float64)
        found = dict(zip(map(str, self.made.spec.column_names), made.T, strict=True))
        own = {name: found[name] for name in self.made.columns}
        return Rows(
            design=_finite_columns(own, "the design of new data"), offset=known, index=index
        )

    def _evaluate(self, frame: Any) -> Any:
        """Return Formulaic's matrix of the covariates."""
        formulaic = library("formulaic", "for formulas")
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                # a level that the fit has not seen would silently count as the first one
                warnings.simplefilter("error", formulaic.errors.DataMismatchWarning)
                spec = deepcopy(self.made.spec)  # which transforms may change
                return spec.get_model_matrix(frame, context=self.asked.context)
        except formulaic.errors.DataMismatchWarning as error:
            raise ConfigurationError(
                "new data have levels that never occurred in the fit, for formula "
                f"{self.asked.text!r}: {_plain_text(error)}. Drop those rows, or fit with them"
            ) from error
        except Exception as error:  # terms are the user's own code, and may raise anything
            raise ConfigurationError(
                f"formula {self.asked.text!r} cannot be evaluated on new data: "
                f"{_plain_text(error)}; give columns of the same kinds as in the fit"
            ) from error
