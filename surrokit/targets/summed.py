"""Sums over rows of data, with a remainder beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Protocol, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions, check_vectors
from surrokit.errors import ConfigurationError, NotASumError, ShapeError
from surrokit.potentials import (
    USUAL_ORDER,
    Ball,
    GradientPotential,
    HessianPotential,
    HessianProductPotential,
    Potential,
    RowExpansion,
    SummedPotential,
    WrappedExpansion,
    of_order,
    unnormalized_of,
)
from surrokit.types import Capabilities, FloatArray, IntArray


class Form(Enum):
    """The form of a number, or of all numbers of an array."""

    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    LOGISTIC = "logistic"
    OTHER = "other"


def join(forms: Iterable[Form]) -> Form:
    """Return the form of an array that is put together of others, such as by a choice."""
    found = set(forms)
    moving = found - {Form.CONSTANT}
    if not moving:
        return Form.CONSTANT
    logistic_or_constant = len(found) > 1 and Form.LOGISTIC in found
    return Form.OTHER if len(moving) > 1 or logistic_or_constant else moving.pop()


def add(forms: Iterable[Form]) -> Form:
    """Return the form of a sum or difference."""
    found = join(forms)
    return found if found in (Form.CONSTANT, Form.LINEAR) else Form.OTHER


def contract(forms: Iterable[Form]) -> Form:
    """Return the form of sums of products, one factor of each array."""
    found = sorted(forms, key=lambda form: form is not Form.CONSTANT)
    last = found[-1] if found else Form.CONSTANT
    if any(form is not Form.CONSTANT for form in found[:-1]):
        return Form.OTHER
    return last if last in (Form.CONSTANT, Form.LINEAR) else Form.OTHER


def multiply(forms: Iterable[Form]) -> Form:
    """Return the form of products of numbers."""
    found = list(forms)
    return Form.EXPONENTIAL if join(found) is Form.EXPONENTIAL else contract(found)


def divide(above: Form, below: Form) -> Form:
    """Return the form of a quotient."""
    if below is Form.CONSTANT:
        return multiply([above, below])
    return Form.EXPONENTIAL if multiply([above, below]) is Form.EXPONENTIAL else Form.OTHER


def raise_to(base: Form, power: Form) -> Form:
    """Return the form of a power."""
    if power is not Form.CONSTANT:
        return Form.OTHER
    return base if base in (Form.CONSTANT, Form.EXPONENTIAL) else Form.OTHER


_OF_ONE = {
    "exp": {Form.LINEAR: Form.EXPONENTIAL},
    "log": {Form.EXPONENTIAL: Form.LINEAR},
    "logistic": {Form.LINEAR: Form.LOGISTIC},
    "sum": {Form.LINEAR: Form.LINEAR},
    "root": {Form.EXPONENTIAL: Form.EXPONENTIAL},
}


def apply(function: str, form: Form) -> Form:
    """Return the form of ``exp``, ``log``, ``logistic``, ``sum`` or ``root`` of something."""
    return form if form is Form.CONSTANT else _OF_ONE[function].get(form, Form.OTHER)


_SHARED: Capabilities = frozenset({can.GRADIENT, can.HESSIAN, can.CONVEX})


class Sum(GradientPotential, HessianPotential, HessianProductPotential, Protocol):
    """A summed potential with gradients, and with Hessians if its capabilities have them."""

    @property
    def n_rows(self) -> int:
        """Number of terms."""

    def expand(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return the expansions of all terms."""

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return bounds of all terms, shape (n_rows,)."""

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone."""


class Rest(GradientPotential, HessianPotential, Protocol):
    """A cheap potential with gradients, and with Hessians if its capabilities have them.

    It is infinite outside of the support.
    """


@attrs.frozen(eq=False)
class SumAndRest:
    """U(q) = a sum over rows of data + a rest, which need be no quadratic.

    The rest is a prior, the logarithm of a Jacobian, or what all rows have in common. It is
    infinite outside of the support. Expansions leave it as it is. The sum may have a normal prior
    of its own.

    Raises
    ------
    ShapeError
        If they take different numbers of numbers.
    """

    terms: Sum
    rest: Rest

    def __attrs_post_init__(self) -> None:
        if self.terms.dim != self.rest.dim:
            raise ShapeError(
                f"the sum takes {self.terms.dim} numbers and the rest {self.rest.dim}; give a rest "
                "of the same position"
            )

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.terms.dim

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return self.terms.n_rows

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of the sum may lack its normalising constant; a rest is what it is."""
        return unnormalized_of(self.terms)

    @property
    def capabilities(self) -> Capabilities:
        """What both offer, and all that concerns rows."""
        offered = self.terms.capabilities
        shared = offered & self.rest.capabilities & _SHARED
        more = {can.GRADIENT_ALONE} & offered if can.GRADIENT in shared else set()
        more |= {can.HESSIAN_PRODUCT} & offered if can.HESSIAN in shared else set()
        return shared | more | (offered & can.OF_ROWS)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return np.asarray(self.terms.value(positions) + self.rest.value(positions))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = self.terms.value_and_gradient(positions)
        more, slope = self.rest.value_and_gradient(positions)
        return value + more, gradient + slope

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        alone: Any = self.terms
        gradient = alone.gradient(positions)
        return np.asarray(gradient + self.rest.value_and_gradient(positions)[1])

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        return np.asarray(self.terms.hessian(positions) + self.rest.hessian(positions))

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        more = np.einsum("nij,nj->ni", self.rest.hessian(positions), u)
        return np.asarray(self.terms.hessian_product(positions, u) + more)

    def column_moments(self, rows: IntArray | None = None) -> FloatArray | None:
        """Return those of the sum, shape (dim, dim); None where it has none."""
        found: Callable[[IntArray | None], FloatArray] | None
        found = getattr(self.terms, "column_moments", None)
        return None if found is None else found(rows)

    def expand(self, centre: FloatArray, order: int = USUAL_ORDER) -> ExpansionAndRest:
        """Return the expansions of all terms at ``centre (dim,)``, and the rest."""
        return ExpansionAndRest(self.terms.expand(centre, **of_order(order)), self.rest)

    def row_bounds(
        self, factor: FloatArray, order: int = USUAL_ORDER, ball: Ball | None = None
    ) -> FloatArray:
        """Return the bounds of all terms, shape (n_rows,); the rest has no part in them."""
        return self.terms.row_bounds(factor, **of_order(order, ball))

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some terms alone, without the rest."""
        return self.terms.select(rows)


@attrs.frozen(eq=False)
class ExpansionAndRest(WrappedExpansion):
    """Expansions of all terms at one point, with the rest as it is."""

    rest: Rest

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return np.asarray(self.inner.value(positions) + self.rest.value(positions))


@attrs.frozen(eq=False)
class Raised:
    """A rest and one number, in nats; the number alone where the rest is None."""

    dim: int
    number: float
    rest: Rest | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Those of the rest; the derivatives of a number are 0."""
        return _SHARED if self.rest is None else self.rest.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        """Return both, shape (n,)."""
        if self.rest is None:
            return np.full(len(check_positions(positions, self.dim)), self.number)
        return np.asarray(self.rest.value(positions) + self.number)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both, shape (n,), and the gradient, shape (n, dim)."""
        if self.rest is None:
            return self.value(positions), np.zeros(positions.shape)
        value, gradient = self.rest.value_and_gradient(positions)
        return value + self.number, gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        if self.rest is None:
            return np.zeros((len(check_positions(positions, self.dim)), self.dim, self.dim))
        return self.rest.hessian(positions)


_MOST_NUMBERS = 500_000_000  # of a design that is looked at, 0 among them
_AT_ONCE = 4_000_000  # of these
_SPARSE = 0.2  # share of numbers that are not 0, below which a design is sparse


@attrs.frozen(kw_only=True, eq=False)
class ModelRows:
    """A model of its observed numbers as the terms of a regression.

    Parameters
    ----------
    family
        Of :func:`surrokit.rows_potential`.
    response : ndarray of shape (n_terms,)
        As the family takes it.
    design : array or sparse array of shape (n_terms, dim)
        Slopes of the predictors in the position on the line.
    offset : ndarray of shape (n_terms,)
        Predictors at the origin.
    weights : ndarray of shape (n_terms,), optional
        How often each term counts.
    settings
        Of the family.
    owners : ndarray of int, shape (n_terms,)
        The observed number that each term belongs to.
    each : callable
        Log likelihood of each observed number at a position (dim,), shape (n_rows,), by the
        library.
    """

    family: str
    response: FloatArray
    design: Any
    offset: FloatArray
    weights: FloatArray | None = None
    settings: Mapping[str, float] = attrs.field(factory=dict)
    owners: IntArray
    each: Callable[[FloatArray], FloatArray]

    @property
    def arguments(self) -> dict[str, Any]:
        """What :func:`surrokit.rows_potential` takes beside the family, design and response."""
        given = {"offset": self.offset if self.offset.any() else None, "weights": self.weights}
        arrays = {name: array for name, array in given.items() if array is not None}
        return {**arrays, **self.settings}


def rows_of(
    family: str,
    values: FloatArray,
    constants: Mapping[str, FloatArray],
    design: Any,
    offset: FloatArray,
    each: Callable[[FloatArray], FloatArray],
) -> ModelRows:
    """Return the terms of observed numbers; the parameters are those of :class:`ModelRows`.

    ``constants`` holds the family's settings by name, with a number for each row: ``total`` of
    ``"binomial"``, whose numbers are two terms each.

    Raises
    ------
    NotASumError
        If a setting differs between rows that is to be one number.
    """
    if family == "binomial":
        return _of_trials(values, constants["total"], design, offset, each)
    weights, known = None, dict(constants)
    if family == "gaussian" and np.ptp(known["scale"]) > 0.0:
        weights = known.pop("scale") ** -2.0
    uneven = [name for name, numbers in known.items() if np.ptp(numbers) > 0.0]
    if uneven:
        raise NotASumError(f"{uneven[0]} of its observed numbers differs from row to row")
    return ModelRows(
        family=family,
        response=values,
        design=design,
        offset=offset,
        weights=weights,
        settings={name: float(numbers[0]) for name, numbers in known.items()},
        owners=np.arange(len(values)),
        each=each,
    )


def _of_trials(
    values: FloatArray,
    totals: FloatArray,
    design: Any,
    offset: FloatArray,
    each: Callable[[FloatArray], FloatArray],
) -> ModelRows:
    """Return successes as terms of 1, and failures as terms of 0, weighted by their numbers."""
    won, lost = np.flatnonzero(values > 0.0), np.flatnonzero(values < totals)
    owners = np.concatenate([won, lost])
    return ModelRows(
        family="logistic",
        response=np.repeat([1.0, 0.0], [len(won), len(lost)]),
        design=design[owners],
        offset=offset[owners],
        weights=np.concatenate([values[won], totals[lost] - values[lost]]),
        owners=owners,
        each=each,
    )


def design_of(push: Callable[[FloatArray], FloatArray], n_rows: int, dim: int) -> Any:
    """Return the slopes of linear predictors, shape (n_rows, dim), sparse where most are 0.

    ``push`` takes directions (k, dim) to the changes of the predictors, shape (k, n_rows).

    Raises
    ------
    NotASumError
        If there are too many to look at.
    """
    from scipy import sparse  # late: importing stays fast

    if n_rows * dim > _MOST_NUMBERS:
        raise NotASumError(
            f"a design of {n_rows} rows and {dim} parameters is too large to look at"
        )
    width = max(1, _AT_ONCE // n_rows)
    parts = [
        sparse.csc_array(push(np.eye(dim)[start : start + width]).T)
        for start in range(0, dim, width)
    ]
    whole = sparse.hstack(parts, format="csr")
    return whole if whole.nnz < _SPARSE * n_rows * dim else np.ascontiguousarray(whole.toarray())


ENOUGH_ROWS = 1000
"""Rows from which on a model becomes a sum by default."""

ENOUGH_FOR_ONE = 10
"""And as many for each parameter, since rows with parameters of their own stand for no others."""

_POSITIONS, _SUBSETS, _IN_A_SUBSET = 4, 3, 50
_REACH = 2.0  # by which predictors change where densities are compared
_AGREES = 1e-10  # relative


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
    """Raise NotASumError if a model has too few rows to be looked at by default."""
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

    ``terms`` are the sum that ``rows`` make, with the prior where there is no ``rest`` of what U
    has beside the observed numbers. Densities are compared with the library's own U on the line,
    ``whole``, about ``start (dim,)``.

    Raises
    ------
    NotASumError
        If both densities, or some rows of them, differ by more than rounding.
    """
    rng = np.random.default_rng(20190601)
    positions = _positions(rows.design, start, rng)
    summed = cast(Sum, terms)  # regressions have derivatives
    plain = SumAndRest(summed, Raised(terms.dim, 0.0) if rest is None else rest)
    theirs, ours = whole.value(positions), plain.value(positions)
    level = float(theirs[0] - ours[0])
    size = 1.0 + np.abs(theirs) + np.abs(ours)
    if not (np.abs(theirs - ours - level) <= _AGREES * size).all():
        raise NotASumError("the sum in its graph has another density than the model")
    _confirm_rows(rows, summed, positions, rng)
    return SumAndRest(summed, Raised(terms.dim, level, rest))


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
