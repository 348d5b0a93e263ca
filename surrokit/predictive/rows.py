"""What regressions predict of rows: a family, and the design of new data."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import numbers
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.predictive.families import Classes, ResponseFamily
from surrokit.types import FloatArray

Family: TypeAlias = ResponseFamily | Classes
"""Of responses that are numbers, or classes."""


@attrs.frozen(kw_only=True, eq=False)
class Rows:
    """New rows of data."""

    design: FloatArray  # (n_rows, n_columns)
    offset: FloatArray  # (n_rows,), known parts of the predictors
    index: Any = None  # of a table's rows; None where data are an array


@attrs.frozen(kw_only=True)
class ArrayReader:
    """Reads designs that are arrays."""

    n_columns: int
    has_offset: bool  # whether the fit had known parts of the predictors

    def read(self, new: Any, offset: Any) -> Rows:
        """Return the rows of a design (n_rows, n_columns), with offsets (n_rows,).

        ShapeError is raised if shapes do not agree, ConfigurationError if the fit had offsets and
        none are given, or a number is not finite.
        """
        x = numbers("new data", new.toarray() if hasattr(new, "toarray") else new)
        if x.ndim != 2 or x.shape[1] != self.n_columns:
            raise ShapeError(
                f"new data must have shape (n_rows, {self.n_columns}), a column for each one of "
                f"the design of the fit, got {x.shape}"
            )
        if not np.isfinite(x).all():
            raise ConfigurationError("new data must be finite, got infinities or NaN; drop rows")
        known = read_offset(offset, len(x), needed=self.has_offset)
        return Rows(design=x, offset=known, index=getattr(new, "index", None))


def read_offset(offset: Any, n_rows: int, *, needed: bool) -> FloatArray:
    """Return known parts of predictors, shape (n_rows,); zeros where there are none.

    ConfigurationError is raised if the fit had some and none are given, or one is not finite;
    ShapeError if there is not one for each row.
    """
    if offset is None and needed:
        raise ConfigurationError(
            "the fit had an offset for each row, and predictions need one for each new row; "
            "give offset=..., such as zeros for an exposure of one"
        )
    array = numbers("offset", 0.0 if offset is None else offset)
    if array.shape not in ((), (n_rows,)):
        raise ShapeError(
            f"offset must be one number or have shape ({n_rows},), one for each new row, got "
            f"{array.shape}"
        )
    if not np.isfinite(array).all():
        raise ConfigurationError("offset must be finite, got infinities or NaN; fill them in")
    return np.broadcast_to(array, (n_rows,)).copy()


@attrs.frozen(kw_only=True, eq=False)
class RowPredictor:
    """Predictions of a regression."""

    family: Family
    n_columns: int  # of the design
    reader: Any  # ``read``s rows of new data
    levels: tuple[str, ...] = ()  # names of the classes in order; empty where they are numbers

    @classmethod
    def of(cls, family: Family, n_columns: int, *, has_offset: bool) -> RowPredictor:
        """Return that of a regression whose design is an array."""
        reader = ArrayReader(n_columns=n_columns, has_offset=has_offset)
        return cls(family=family, n_columns=n_columns, reader=reader)

    @property
    def has_classes(self) -> bool:
        """Whether responses are classes, each with a probability of its own."""
        return isinstance(self.family, Classes)

    def classes(self, dim: int) -> tuple[str, ...]:
        """Return the names of the classes, for positions of ``dim`` numbers.

        ConfigurationError is raised if responses are no classes.
        """
        n_classes = self.family.count(dim, self.n_columns)
        if not n_classes:
            raise ConfigurationError(
                f"the family {self.family.name!r} has no classes and so no probabilities of "
                "them; call predict for means and intervals"
            )
        return self.levels or tuple(map(str, range(n_classes)))
