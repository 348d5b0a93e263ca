"""Sums over rows of data, with a remainder beside them, and models that are such sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Protocol

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions, check_vectors
from surrokit.errors import ConfigurationError, NotASumError, ShapeError
from surrokit.potentials import (
    USUAL_ORDER,
    GradientPotential,
    HessianPotential,
    Potential,
    RowExpansion,
    Terms,
    WrappedExpansion,
    of_order,
    unnormalized_of,
)
from surrokit.types import Capabilities, FloatArray, IntArray, Pair

_SHARED: Capabilities = frozenset({can.GRADIENT, can.HESSIAN, can.CONVEX})


class Sum(Terms, GradientPotential, HessianPotential, Protocol):
    """A summed potential with gradients, and with Hessians if its capabilities have them."""

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""

    def expand(self, centre: FloatArray, order: int = 2) -> RowExpansion:
        """Return the expansions of all terms."""


class Rest(GradientPotential, HessianPotential, Protocol):
    """A cheap potential with gradients, and with Hessians if its capabilities have them.

    It is infinite outside of the support.
    """


@attrs.frozen(eq=False)
class SumAndRest:
    """U(q) = a sum over rows of data + a rest, which need be no quadratic.

    The rest is a prior, the logarithm of a Jacobian, or what all rows have in common, and a number
    ``level`` in nats. It is infinite outside of the support. Expansions leave it as it is. The sum
    may have a normal prior of its own. ShapeError is raised if their positions differ in size.
    """

    terms: Sum
    rest: Rest
    level: float = attrs.field(default=0.0, kw_only=True)

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

    def __getattr__(self, name: str) -> Any:
        """Return what concerns rows, in which the rest has no part."""
        if name not in ("n_rows", "select", "row_bounds", "row_draws", "column_moments"):
            raise AttributeError(name)
        return getattr(self.terms, name)

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
        value = self.terms.value(positions)
        return np.asarray(value + (self.rest.value(positions) + self.level))

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        value, gradient = self.terms.value_and_gradient(positions)
        more, slope = self.rest.value_and_gradient(positions)
        return value + (more + self.level), gradient + slope

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        alone: Any = self.terms
        return np.asarray(alone.gradient(positions) + self.rest.value_and_gradient(positions)[1])

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        return np.asarray(self.terms.hessian(positions) + self.rest.hessian(positions))

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        u = check_vectors(vectors, check_positions(positions, self.dim))
        more = np.einsum("nij,nj->ni", self.rest.hessian(positions), u)
        return np.asarray(self.terms.hessian_product(positions, u) + more)

    def expand(self, centre: FloatArray, order: int = USUAL_ORDER) -> ExpansionAndRest:
        """Return the expansions of all terms at ``centre (dim,)``, and the rest."""
        inner = self.terms.expand(centre, **of_order(order))
        return ExpansionAndRest(inner, self.rest, self.level)


@attrs.frozen(eq=False)
class ExpansionAndRest(WrappedExpansion):
    """Expansions of all terms at one point, with the rest as it is."""

    rest: Rest
    level: float

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        value = self.inner.value(positions)
        return np.asarray(value + (self.rest.value(positions) + self.level))


@attrs.frozen
class Nothing:
    """A rest of ``dim`` numbers that is 0."""

    dim: int
    capabilities: Capabilities = _SHARED

    def value(self, positions: FloatArray) -> FloatArray:
        """Return zeros, shape (n,)."""
        return np.zeros(len(check_positions(positions, self.dim)))

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        """Return zeros, shapes (n,) and (n, dim)."""
        return self.value(positions), np.zeros(positions.shape)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim, dim)."""
        return np.zeros((len(check_positions(positions, self.dim)), self.dim, self.dim))


# --- models of other libraries, of which a graph is known ---


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


@attrs.frozen
class Family:
    """A family of :func:`surrokit.rows_potential` that a distribution of a library is.

    One argument has the predictor in it, in a form, or one over it; ``constants`` are settings of
    the family. Arguments go by what the library calls them.
    """

    family: str
    argument: Any
    form: Form
    constants: Mapping[Any, str] = attrs.field(factory=dict)
    reciprocal: bool = False

    def check(self, name: str, forms: Mapping[Any, Form], culprit: str | None) -> None:
        """Raise NotASumError unless the arguments of an observed variable have the right forms.

        ``culprit`` is the operation from which on something is of no known form.
        """
        through = f", as it passes through {culprit}" if culprit else ""
        if forms[self.argument] not in (self.form, Form.CONSTANT):
            raise NotASumError(
                f"the predictor of {name!r} is not linear in the unconstrained parameters, or not "
                f"in the form that {self.family!r} has{through}"
            )
        for argument, setting in self.constants.items():
            if forms[argument] is not Form.CONSTANT:
                raise NotASumError(
                    f"the {setting} of {name!r} depends on parameters, and bounds of its "
                    "derivatives are not known"
                )

    def predictors(self, given: Any, log: Callable[[Any], Any], log1p: Callable[[Any], Any]) -> Any:
        """Return the predictors in an argument, by functions of the library."""
        if self.form is Form.EXPONENTIAL:
            return -log(given) if self.reciprocal else log(given)
        return log(given) - log1p(-given) if self.form is Form.LOGISTIC else given


def rows_of(
    family: str,
    values: FloatArray,
    settings: Mapping[str, FloatArray],
    design: Any,
    offset: FloatArray,
    prior: Any,
) -> tuple[dict[str, Any], IntArray]:
    """Return observed numbers as what :func:`surrokit.rows_potential` takes, and owners of terms.

    ``settings`` are those of the family by name, with a number for each row: ``total`` of
    ``"binomial"``, whose numbers are two terms each, weighted successes and failures. ``offset``
    are predictors at the origin, ``prior`` None for none. NotASumError is raised if a setting
    differs between rows that is to be one number.
    """
    known, weights = dict(settings), None
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


def design_of(push: Callable[[FloatArray], FloatArray], n_rows: int, dim: int) -> Any:
    """Return the slopes of linear predictors, shape (n_rows, dim), sparse where most are 0.

    ``push`` takes directions (k, dim) to the changes of the predictors, shape (k, n_rows).
    NotASumError is raised if there are too many to look at.
    """
    from scipy import sparse  # late: importing stays fast

    if n_rows * dim > 500_000_000:
        raise NotASumError(
            f"a design of {n_rows} rows and {dim} parameters is too large to look at"
        )
    width = max(1, 4_000_000 // n_rows)  # numbers at once
    parts = [
        sparse.csc_array(push(np.eye(dim)[start : start + width]).T)
        for start in range(0, dim, width)
    ]
    whole = sparse.hstack(parts, format="csr")
    return whole if whole.nnz < 0.2 * n_rows * dim else np.ascontiguousarray(whole.toarray())


ENOUGH_ROWS = 1000
"""Rows from which on a model becomes a sum by default."""

ENOUGH_FOR_ONE = 10
"""And as many for each parameter, since rows with parameters of their own stand for no others."""


def sum_if_safe(
    wanted: bool | None, recognise: Callable[[], SumAndRest]
) -> tuple[SumAndRest | None, str]:
    """Return a model as a sum over rows, or None and the reason why it is none.

    Whatever ``recognise`` raises is a reason. ``wanted`` is None for where a sum is safe and worth
    it. ConfigurationError is raised if it is to be one, and is not known to be.
    """
    if wanted not in (None, True, False):
        raise ConfigurationError(f"rows must be True, False or None, got {wanted!r}")
    if wanted is False:
        return None, "the model is sampled whole, as rows=False was given"
    try:
        return recognise(), ""
    except NotASumError as error:
        reason = str(error)
    except Exception as error:  # a model is code of the user's, and graphs have many forms
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
    terms: Sum,
    rest: Rest | None,
    whole: Potential,
    design: Any,
    owners: IntArray,
    each: Callable[[FloatArray], FloatArray],
    start: FloatArray,
) -> SumAndRest:
    """Return a sum and its rest, which have the library's own density.

    ``rest`` is what U has beside the observed numbers, None where that is a prior of the terms. The
    densities are compared with the library's own, ``whole`` on the line, and of ``each`` observed
    number at a position (dim,), about ``start (dim,)``. NotASumError is raised if both densities,
    or some rows of them, differ by more than rounding.
    """
    rng, agrees = np.random.default_rng(20190601), 1e-10
    largest = abs(design).max(axis=0)
    largest = np.ravel(largest.toarray() if hasattr(largest, "toarray") else largest)
    n_used = max(1, int((largest > 0.0).sum()))
    with np.errstate(divide="ignore"):  # predictors change by about 2
        reach = np.minimum(1.0, 2.0 / (largest * np.sqrt(n_used)))
    positions = np.vstack([start, start + rng.uniform(-1.0, 1.0, size=(4, len(start))) * reach])
    rest = rest or Nothing(terms.dim)
    theirs, ours = whole.value(positions), SumAndRest(terms, rest).value(positions)
    level = float(theirs[0] - ours[0])
    size = 1.0 + np.abs(theirs) + np.abs(ours)
    if not (np.abs(theirs - ours - level) <= agrees * size).all():
        raise NotASumError("the sum in its graph has another density than the model")
    of_rows = np.array([each(position) for position in positions])
    n_rows = of_rows.shape[1]
    for _ in range(3):
        some = rng.choice(n_rows, max(1, min(n_rows // 2, 50)), replace=False)
        ours = terms.select(np.flatnonzero(np.isin(owners, some))).value(positions)
        theirs = -of_rows[:, some].sum(axis=1)
        size = 1.0 + np.abs(theirs) + np.abs(ours)
        if not (np.abs(np.diff(ours - theirs)) <= agrees * (size[1:] + size[:-1])).all():
            raise NotASumError("some of its rows have another likelihood than the model's")
    return SumAndRest(terms, rest, level=level)
