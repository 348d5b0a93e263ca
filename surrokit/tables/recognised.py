"""Models of other libraries that are sums over the rows of their one observed variable.

An adapter reads of a model which variable is observed, and gives its predictors, log likelihoods
and the rest of U as functions of a position z on the line. The model is a regression if

    predictors(z) = offset + X z,  and  U(z) = sum_i l_i(predictor_i) + rest(z) + a number.

Slopes of the predictors of all rows are compared with X, about pairs of opposite positions from
near the origin to far beyond the data, so that a bend, a threshold, a cap or single precision on
the way shows. Then densities are compared, in whole and of some rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, NotASumError
from surrokit.potentials import Potential
from surrokit.tables.rows import rows_potential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import Nothing, Rest, Sum, SumAndRest
from surrokit.types import FloatArray, IntArray

ENOUGH_ROWS = 1000
"""Rows from which on a model becomes a sum by default."""

ENOUGH_FOR_ONE = 10
"""And as many for each parameter, since rows with parameters of their own stand for no others."""

_AGREES = 1e-10  # relative, of densities
_STRAIGHT = 1e-8  # of slopes of predictors
_AWAY = (0.3, 3.0, 30.0, 300.0, 3e3, 3e4)
# Predictors up to which links are finite, and up to which their derivatives do not underflow.
_FINITE, _CLEAN = 30.0, 300.0


@attrs.frozen
class Family:
    """A family of :func:`surrokit.rows_potential` that a distribution of a library is.

    ``argument`` of it is the predictor under a link; ``constants`` are settings of the family.
    Arguments go by what the library calls them.
    """

    family: str
    argument: Any
    link: str = "identity"  # or "log", "reciprocal", "logit"
    constants: Mapping[Any, str] = attrs.field(factory=dict)

    def predictors(self, given: Any, log: Callable[[Any], Any], log1p: Callable[[Any], Any]) -> Any:
        """Return the predictors in an argument, by functions of the library."""
        if self.link == "identity":
            return given
        if self.link == "reciprocal":
            return -log(given)
        return log(given) - log1p(-given) if self.link == "logit" else log(given)


@attrs.frozen(kw_only=True, eq=False)
class Observed:
    """The one observed variable of a model, as functions of a position (dim,) on the line."""

    name: str
    family: Family
    values: FloatArray  # (n_rows,)
    predictors: Callable[[FloatArray], FloatArray]  # (n_rows,)
    slopes: Callable[[FloatArray, FloatArray], FloatArray]  # (k, n_rows), along (k, dim)
    settings: Callable[[FloatArray], Mapping[str, Any]]  # of the family, (n_rows,) each
    log_likelihoods: Callable[[FloatArray], FloatArray]  # (n_rows,)
    rest: Rest  # what U has beside it


def sum_if_safe(
    wanted: bool | None, recognise: Callable[[], SumAndRest]
) -> tuple[SumAndRest | None, str]:
    """Return a model as a sum over rows, or None and the reason why it is none.

    Whatever ``recognise`` raises is a reason. ``wanted`` is None for where a sum is safe and worth
    it.

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
    except Exception as error:  # a model is code of the user's
        reason = f"looking at it raised {type(error).__name__}: {str(error)[:200]}"
    if wanted:
        raise ConfigurationError(
            f"rows=True demands a sum over rows, but {reason}; leave rows out, and the model is "
            "sampled whole"
        )
    return None, f"the model is sampled whole: {reason}"


def recognise(
    observed: Observed, whole: Potential, start: FloatArray, wanted: bool | None
) -> SumAndRest:
    """Return a model, ``whole`` on the line, as a sum over rows and its rest.

    Densities are compared about ``start (dim,)``.

    Raises
    ------
    NotASumError
        If it is not known to be one, or has too few rows.
    """
    n_rows, dim = len(observed.values), len(start)
    if wanted is None and n_rows < max(ENOUGH_ROWS, ENOUGH_FOR_ONE * dim):
        raise NotASumError(
            f"a sum over rows pays from {ENOUGH_ROWS} observed numbers on, {ENOUGH_FOR_ONE} for "
            f"each parameter, and it has {n_rows} for {dim}"
        )
    origin, rng = np.zeros(dim), np.random.default_rng(20190601)
    offset, settings = observed.predictors(origin), observed.settings(origin)
    with np.errstate(all="ignore"):
        design = _design(lambda along: observed.slopes(origin, along), n_rows, dim)
        largest = abs(design).max(axis=0)
        largest = np.ravel(largest.toarray() if hasattr(largest, "toarray") else largest)
        # by these steps predictors change by about one
        reach = 1.0 / (
            np.where(largest > 0.0, largest, 1.0) * np.sqrt(max(1, int((largest > 0.0).sum())))
        )
        size = 1.0  # a link's argument has a scale of its own
        if observed.family.link == "identity":
            size = max(1.0, np.abs(observed.values).max(), np.abs(offset).max())
        for away in 3 * _AWAY:
            z, along = reach * rng.standard_normal((2, dim))
            for at in (away * size * z, -away * size * z):
                _check_straight(observed, at, size * along, design, offset)
                _check_constant(observed, at, settings)
    prior = _normal(observed.rest, np.outer(_AWAY, rng.standard_normal(dim)))
    given, owners = rows_of(
        observed.family.family, observed.values, settings, design, offset, prior
    )
    terms: Any = rows_potential(**given)
    rest = Nothing(dim) if prior is not None else observed.rest
    steps = rng.uniform(-1.0, 1.0, size=(4, dim)) * np.minimum(1.0, 2.0 * reach)
    positions = np.vstack([start, start + steps])
    level = _compare(terms, rest, whole, positions)
    _compare_rows(terms, owners, observed.log_likelihoods, positions, rng)
    return SumAndRest(terms, rest, level=level)


def _design(push: Callable[[FloatArray], FloatArray], n_rows: int, dim: int) -> Any:
    """Return the slopes of predictors, shape (n_rows, dim), sparse where most are 0."""
    from scipy import sparse  # late: importing stays fast

    if n_rows * dim > 500_000_000:
        raise NotASumError(
            f"a design of {n_rows} rows and {dim} parameters is too large to look at"
        )
    width = max(1, 4_000_000 // n_rows)
    parts = [
        sparse.csc_array(push(np.eye(dim)[first : first + width]).T)
        for first in range(0, dim, width)
    ]
    whole = sparse.hstack(parts, format="csr")
    return whole if whole.nnz < 0.2 * n_rows * dim else np.ascontiguousarray(whole.toarray())


def _check_straight(
    observed: Observed, z: FloatArray, along: FloatArray, design: Any, offset: FloatArray
) -> None:
    expected, found = design @ along, observed.slopes(z, along[None])[0]
    size, most = np.abs(offset + design @ z), max(1.0, np.abs(expected).max())
    close = np.abs(found - expected) <= _STRAIGHT * most
    beyond = ~np.isfinite(found) & (size > _FINITE)
    if observed.family.link != "identity":
        beyond |= size > _CLEAN
    if not (close | beyond).all():
        raise NotASumError(
            f"the predictor of {observed.name!r} is not linear in the unconstrained parameters, or "
            f"not in the form that {observed.family.family!r} has"
        )


def _check_constant(observed: Observed, z: FloatArray, settings: Mapping[str, Any]) -> None:
    for name, numbers in observed.settings(z).items():
        if not np.allclose(numbers, settings[name], rtol=1e-12, atol=0.0):
            raise NotASumError(
                f"the {name} of {observed.name!r} depends on parameters, and bounds of its "
                "derivatives are not known"
            )


def _normal(rest: Rest, positions: FloatArray) -> GaussianPrior | None:
    """Return a rest as a normal prior of independent numbers; None if it is none."""
    dim = positions.shape[1]
    at = np.vstack([np.zeros(dim), np.ones(dim), positions])
    with np.errstate(all="ignore"):
        gradients = rest.value_and_gradient(at)[1]
    precision = gradients[1] - gradients[0]
    expected = gradients[0] + at * precision
    size = np.abs(gradients[0]) + np.abs(at * precision)
    if not (precision > 0.0).all() or not (np.abs(gradients - expected) <= _AGREES * size).all():
        return None
    return GaussianPrior(mean=-gradients[0] / precision, sd=precision**-0.5)


def rows_of(
    family: str,
    values: FloatArray,
    settings: Mapping[str, Any],
    design: Any,
    offset: FloatArray,
    prior: Any,
) -> tuple[dict[str, Any], IntArray]:
    """Return observed numbers as what :func:`surrokit.rows_potential` takes, and owners of terms.

    ``settings`` are those of the family by name, with a number for each row: ``total`` of
    ``"binomial"``, whose numbers are two terms each, weighted successes and failures. ``offset``
    are predictors at the origin, ``prior`` None for none.

    Raises
    ------
    NotASumError
        If a setting differs between rows that is to be one number.
    """
    known, weights = {name: np.asarray(each) for name, each in settings.items()}, None
    owners, response = np.arange(len(values)), values
    if family == "binomial":
        totals = known.pop("total")
        won, lost = np.flatnonzero(values > 0.0), np.flatnonzero(values < totals)
        owners, response = np.concatenate([won, lost]), np.repeat([1.0, 0.0], [len(won), len(lost)])
        weights = np.concatenate([values[won], totals[lost] - values[lost]])
        family, design, offset = "logistic", design[owners], offset[owners]
    elif family == "gaussian" and np.ptp(known["scale"]) > 0.0:
        weights = known.pop("scale") ** -2.0
    uneven = [name for name, numbers in known.items() if np.ptp(numbers) > 0.0]
    if uneven:
        raise NotASumError(f"{uneven[0]} of its observed numbers differs from row to row")
    given = {
        "offset": offset if offset.any() else None,
        "weights": weights,
        "prior": prior,
        **{name: float(numbers[0]) for name, numbers in known.items()},
    }
    kept = {name: each for name, each in given.items() if each is not None}
    return {"terms": family, "data": design, "response": response, **kept}, owners


def _compare(terms: Sum, rest: Rest, whole: Potential, positions: FloatArray) -> float:
    """Return by which number a sum and its rest differ from the library's own density."""
    theirs, ours = whole.value(positions), SumAndRest(terms, rest).value(positions)
    level = float(theirs[0] - ours[0])
    size = 1.0 + np.abs(theirs) + np.abs(ours)
    if not (np.abs(theirs - ours - level) <= _AGREES * size).all():
        raise NotASumError("the sum of its rows has another density than the model")
    return level


def _compare_rows(
    terms: Sum,
    owners: IntArray,
    log_likelihoods: Callable[[FloatArray], FloatArray],
    positions: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Raise NotASumError unless some rows have the library's own likelihood, up to a number."""
    of_rows = np.array([log_likelihoods(position) for position in positions])
    n_rows = of_rows.shape[1]
    for _ in range(3):
        some = rng.choice(n_rows, max(1, min(n_rows // 2, 50)), replace=False)
        ours = terms.select(np.flatnonzero(np.isin(owners, some))).value(positions)
        expected = -of_rows[:, some].sum(axis=1)
        size = 1.0 + np.abs(expected) + np.abs(ours)
        if not (np.abs(np.diff(ours - expected)) <= _AGREES * (size[1:] + size[:-1])).all():
            raise NotASumError("some of its rows have another likelihood than the model's")
