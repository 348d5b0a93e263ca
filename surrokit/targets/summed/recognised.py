"""Models of other libraries whose observed data are the rows of a regression.

A library knows more of a model than its log density: of each observed number the distribution, and
how its parameters follow from those that are drawn. Where the distribution is that of a family of
:func:`surrokit.rows_potential`, and its predictor is linear in the position on the line, the model
is a sum over rows with bounded derivatives, and the rest is cheap. Whether it is linear the library
tells from its graph; here the whole is compared with the library's own log density, since a sum
that is not the model would be wrong and silent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.rows import SummedPotential
from surrokit.errors import ConfigurationError, NotASumError
from surrokit.targets.summed.level import Level, Raised
from surrokit.targets.summed.rest import Rest, Sum, SumAndRest
from surrokit.targets.summed.rows import ModelRows
from surrokit.types import FloatArray

ENOUGH_ROWS = 1000
"""Rows from which on a model becomes a sum without being asked to."""

ENOUGH_FOR_ONE = 10
"""And as many for each parameter, since rows with parameters of their own stand for no others."""

_POSITIONS, _SUBSETS, _IN_A_SUBSET = 4, 3, 50
_REACH = 2.0  # by which predictors change where densities are compared
_AGREES = 1e-10  # relative


def sum_if_safe(
    wanted: bool | None, recognise: Callable[[], SumAndRest]
) -> tuple[SumAndRest | None, str]:
    """Return a model as a sum over rows, or None and the reason why it is none.

    Parameters
    ----------
    wanted
        Whether it is to be one; None for where that is safe and worth it.
    recognise
        Makes it; whatever it raises is a reason.

    Raises
    ------
    ConfigurationError
        If it is to be one, and is not known to be.
    """
    if wanted not in (None, True, False):
        raise ConfigurationError(f"rows must be True, False or None, got {wanted!r}")
    if wanted is False:
        return None, "the model is sampled whole, as rows=False was given"
    try:
        return recognise(), ""
    except NotASumError as error:
        reason = str(error)
    except (
        Exception
    ) as error:  # a model is code of the user's, and a library's graph has many forms
        reason = f"looking at it raised {type(error).__name__}: {str(error)[:200]}"
    if wanted:
        raise ConfigurationError(
            f"rows=True demands a sum over rows, but {reason}; leave rows out, and the model is "
            "sampled whole"
        )
    return None, f"the model is sampled whole: {reason}"


def check_worth(n_rows: int, dim: int, wanted: bool | None) -> None:
    """Raise if a model has too few rows to be looked at without being asked to.

    Parameters
    ----------
    n_rows, dim
        Observed numbers, and parameters.
    wanted
        Whether the model is to be a sum; None for where it has many rows.

    Raises
    ------
    NotASumError
        If so.
    """
    if wanted is None and n_rows < max(ENOUGH_ROWS, ENOUGH_FOR_ONE * dim):
        raise NotASumError(
            f"a sum over rows pays from {ENOUGH_ROWS} observed numbers on, {ENOUGH_FOR_ONE} for "
            f"each parameter, and it has {n_rows} for {dim}"
        )


def confirm(
    rows: ModelRows,
    terms: SummedPotential,
    whole: Potential,
    rest: Rest | None,
    start: FloatArray,
) -> SumAndRest:
    """Return a sum and its rest, which have the library's own density.

    Parameters
    ----------
    rows
        What the model says.
    terms
        The sum that these make; with the prior, where there is no rest.
    whole
        The library's own U on the line.
    rest
        What U has beside the observed numbers; None where the sum has a normal prior.
    start : ndarray of shape (dim,)
        About where densities are compared.

    Raises
    ------
    NotASumError
        If both densities, or some rows of them, differ by more than rounding.
    """
    rng = np.random.default_rng(20190601)
    positions = _positions(rows.design, start, rng)
    summed = cast(Sum, terms)  # regressions have derivatives
    plain = SumAndRest(summed, Level(terms.dim, 0.0) if rest is None else rest)
    theirs, ours = whole.value(positions), plain.value(positions)
    level = float(theirs[0] - ours[0])
    size = 1.0 + np.abs(theirs) + np.abs(ours)
    if not (np.abs(theirs - ours - level) <= _AGREES * size).all():
        raise NotASumError("the sum that its graph tells of has another density than the model")
    _confirm_rows(rows, summed, positions, rng)
    added = Level(terms.dim, level) if rest is None else Raised(rest, level)
    return SumAndRest(summed, added)


def _confirm_rows(
    rows: ModelRows, terms: Sum, positions: FloatArray, rng: np.random.Generator
) -> None:
    theirs = np.array([rows.each(position) for position in positions])
    n_rows = theirs.shape[1]
    for _ in range(_SUBSETS):
        some = rng.choice(n_rows, max(1, min(n_rows // 2, _IN_A_SUBSET)), replace=False)
        ours = terms.select(np.flatnonzero(np.isin(rows.owners, some))).value(positions)
        expected = -theirs[:, some].sum(axis=1)
        size = 1.0 + np.abs(expected) + np.abs(ours)
        if not (np.abs(np.diff(ours - expected)) <= _AGREES * (size[1:] + size[:-1])).all():
            raise NotASumError("some of its rows have another likelihood than the model's")


def _positions(design: Any, start: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return positions where densities are compared, shape (n, dim); the first is the start."""
    largest = abs(design).max(axis=0)
    largest = np.ravel(largest.toarray() if hasattr(largest, "toarray") else largest)
    n_used = max(1, int((largest > 0.0).sum()))
    with np.errstate(divide="ignore"):
        reach = np.minimum(1.0, _REACH / (largest * np.sqrt(n_used)))
    steps = rng.uniform(-1.0, 1.0, size=(_POSITIONS, len(start))) * reach
    return np.vstack([start, start + steps])
