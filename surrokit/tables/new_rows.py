"""The design that a formula makes of new rows, with levels and transforms of the fit."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.predictive.rows import ArrayReader, RowPredictor, Rows, family_of, read_offset
from surrokit.tables.formula import (
    Matrices,
    ParsedFormula,
    expressions_of,
    names_in,
    parse_formula,
    plain_text,
)
from surrokit.tables.frames import (
    check_columns,
    column_names,
    keep_rows,
    library,
    number_column,
    read_columns,
    with_numbers,
)

_FUNCTIONS = (
    *("C", "I", "bs", "cc", "center", "cr", "cs", "exp", "exp10", "exp2", "lag", "log", "log10"),
    *("log2", "poly", "scale", "standardize", "Q"),
    *("Treatment", "Poly", "Sum", "Helmert", "Diff"),
)
_HARMLESS = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Tuple, ast.List),
    *(ast.operator, ast.unaryop, ast.cmpop, ast.expr_context, ast.keyword),
)


@attrs.frozen(kw_only=True, eq=False)
class FormulaReader:
    """Reads tables by the formula of a fit.

    A formula from a file is evaluated only if it is made of Formulaic's own functions and
    arithmetic: files hold data, and nothing in them is run.
    """

    formula: str  # as it was given
    available: tuple[str, ...]  # columns that it was read with: a dot stands for them
    columns: tuple[str, ...]  # of the design
    factors: Mapping[str, Sequence[Any] | None]  # levels of each; None for numbers
    transforms: Mapping[str, Any]  # what they remember of the fit's data
    offset: str | None  # the column of offsets, if any; empty if there was an array of them
    context: Mapping[str, Any] = attrs.field(factory=dict)  # what the formula uses besides
    from_file: bool = False

    @classmethod
    def of(cls, asked: ParsedFormula, made: Matrices, offset: Any) -> FormulaReader:
        """Return that of a formula, what it made of the table of the fit, and the fit's offset."""
        return cls(
            formula=asked.text,
            available=asked.available,
            columns=made.columns,
            factors=made.factors,
            transforms=made.transforms,
            offset=offset if offset is None or isinstance(offset, str) else "",
            context=asked.context,
        )

    def read(self, new: Any, offset: Any) -> Rows:
        """Return the rows of a table, with offsets from its column or as given.

        ConfigurationError is raised if a column is absent or lacks values, a level is new, or the
        formula cannot be evaluated; ShapeError if there is not one offset for each row.
        """
        names, asked = column_names(new), self._asked()
        required = {str(name) for name in asked.right.required_variables} - set(self.context)
        used = (required | names_in(asked.right)) & set(self.available)
        wanted = self.offset if offset is None else offset
        named = wanted if isinstance(wanted, str) and wanted else None
        check_columns(used := used | ({named} if named else set()), names, "the prediction")
        present = [name for name in names if name in used]
        frame = with_numbers(read_columns(new, present or names[:1]))  # perhaps an intercept alone
        keep_rows(frame[present], "raise")
        if named:
            known = number_column(frame[named], f"column {named!r}, the offset,")
        else:
            missing = isinstance(wanted, str)  # the fit had an array, and none is given
            known = read_offset(None if missing else wanted, len(frame), needed=missing)
        index = new.index if hasattr(new, "iloc") else None
        made = self._evaluate(asked, frame)
        found = dict(zip(map(str, made.model_spec.column_names), np.asarray(made).T, strict=True))
        if not set(self.columns) <= set(found):
            raise ConfigurationError(
                f"formula {self.formula!r} makes other columns of new data than of those of the "
                f"fit, {', '.join(self.columns)}; give columns of the same kinds"
            )
        design = np.column_stack([found[name] for name in self.columns]).astype(np.float64)
        for name, column in zip(self.columns, design.T, strict=True):
            number_column(column, f"column {name!r} of the design of new data")
        return Rows(design=design, offset=known, index=index)

    def _asked(self) -> ParsedFormula:
        if self.from_file:  # before anything else looks at them
            formulaic = library("formulaic", "for formulas")
            available = {"__formulaic_variables_available__": list(self.available)}
            read = formulaic.Formula.from_spec(self.formula, context=available)
            for expression in (
                each for side in (read.lhs, read.rhs) for each in expressions_of(side)
            ):
                if not _is_harmless(expression, {*self.available, *_FUNCTIONS}):
                    raise ConfigurationError(
                        f"the term {expression!r} of the formula in this file is Python code of "
                        "its own, and no code is ever run from a file; take up the run with its "
                        "target, run = surrokit.resume(path, target), and call run.predict"
                    )
        return parse_formula(self.formula, self.available, self.context)

    def _evaluate(self, asked: ParsedFormula, frame: Any) -> Any:
        """Return Formulaic's matrix of the covariates."""
        formulaic = library("formulaic", "for formulas")
        kinds = library("formulaic.parser.types", "for formulas").Factor.Kind
        spec = formulaic.ModelSpec(
            formula=asked.right,
            na_action="ignore",
            output="numpy",
            transform_state=deepcopy(dict(self.transforms)),  # which transforms may change
            encoder_state={
                name: (kinds.NUMERICAL, {})
                if levels is None
                else (kinds.CATEGORICAL, {"categories": list(levels)})
                for name, levels in self.factors.items()
            },
        )
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                # a level that the fit has not seen would silently count as the first one
                warnings.simplefilter("error", formulaic.errors.DataMismatchWarning)
                return spec.get_model_matrix(frame, context=asked.context)
        except formulaic.errors.DataMismatchWarning as error:
            known = [
                f"{', '.join(map(str, list(levels)[:10]))} of {name}"
                for name, levels in self.factors.items()
                if levels is not None
            ]
            raise ConfigurationError(
                f"new data have levels that never occurred in the fit, for formula "
                f"{self.formula!r}; known are {'; '.join(known)}. Drop those rows, or fit with them"
            ) from error
        except Exception as error:  # terms are the user's own code, and may raise anything
            raise ConfigurationError(
                f"formula {self.formula!r} cannot be evaluated on new data: {plain_text(error)}; "
                "give columns of the same kinds as in the fit"
            ) from error

    def to_plain(self) -> dict[str, Any] | None:
        """Return it as plain data, or None if it needs functions of the user's."""
        names = ("formula", "available", "columns", "factors", "transforms", "offset")
        try:
            return None if self.context else {n: _to_plain(getattr(self, n)) for n in names}
        except _NotPlainError:
            return None


def _is_harmless(expression: str, variables: set[str]) -> bool:
    """Return whether an expression is arithmetic of columns and calls of known functions.

    Attributes are NumPy's functions of numbers, and contrasts.
    """
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError:
        return False
    modules = set()
    for node in ast.walk(tree):  # an attribute before what it is of
        if isinstance(node, ast.Name):
            fine = node.id in variables or id(node) in modules
        elif isinstance(node, ast.Attribute):
            of = node.value.id if isinstance(node.value, ast.Name) else ""
            is_function = of == "np" and isinstance(getattr(np, node.attr, None), np.ufunc)
            fine = not node.attr.startswith("_") and (is_function or of == "contr")
            modules.add(id(node.value))
        elif isinstance(node, ast.Call):
            is_name = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
            fine = is_name or isinstance(node.func, ast.Attribute)
        else:
            fine = isinstance(node, _HARMLESS)
        if not fine:
            return False
    return True


def read_predictor(plain: Mapping[str, Any] | None) -> RowPredictor | None:
    """Return what predicts, as ``to_plain`` returned it to a file; None if that holds nothing.

    KeyError, TypeError or ConfigurationError is raised if it is damaged.
    """
    if plain is None:
        return None
    given: dict[str, Any] = {name: _from_plain(each) for name, each in plain["reader"].items()}
    if "formula" in given:
        given |= {name: tuple(given[name]) for name in ("available", "columns")}
    return RowPredictor(
        family=family_of(plain["family"], plain["settings"]),
        n_columns=int(plain["n_columns"]),
        reader=FormulaReader(**given, from_file=True)
        if "formula" in given
        else ArrayReader(**given),
        levels=tuple(plain["levels"]),
    )


def write_predictor(predictor: Any) -> dict[str, Any] | None:
    """Return what predicts as plain data, or None if that is not enough to make it again."""
    return predictor.to_plain() if isinstance(predictor, RowPredictor) else None


class _NotPlainError(Exception):
    """What a transform remembers cannot be written."""


def _to_plain(value: Any) -> Any:
    """Return a value for JSON, whose keys are texts: dictionaries become pairs."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_to_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {"pairs": [[_to_plain(key), _to_plain(each)] for key, each in value.items()]}
    raise _NotPlainError


def _from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_plain(each) for each in value]
    if isinstance(value, dict) and "array" in value:
        return np.asarray(value["array"])
    if isinstance(value, dict):
        return {_from_plain(key): _from_plain(each) for key, each in value["pairs"]}
    return value
