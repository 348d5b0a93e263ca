"""Models of other libraries as sums over rows, by what is proved on the library's graph.

Each array of a graph has a form in the unconstrained parameters: constant, linear, the exponential
or the logistic function of something linear, or another one. Each operation has a rule by which the
form of its result follows from those of its arguments; one without a rule makes another form.
Nothing is guessed from numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, NotASumError
from surrokit.potentials import GradientPotential, Potential
from surrokit.tables.rows import rows_potential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import Nothing, SumAndRest
from surrokit.types import FloatArray

ENOUGH_ROWS = 1000
"""Rows from which on a model becomes a sum by default."""

ENOUGH_FOR_ONE = 10
"""And as many for each parameter, since rows with parameters of their own stand for no others."""


class Form(Enum):
    """The form of all numbers of an array."""

    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    LOGISTIC = "logistic"
    OTHER = "other"


_OF_ONE: dict[str, dict[Form, Form]] = {
    "exp": {Form.LINEAR: Form.EXPONENTIAL},
    "log": {Form.EXPONENTIAL: Form.LINEAR},
    "logistic": {Form.LINEAR: Form.LOGISTIC},
    "sum": {Form.LINEAR: Form.LINEAR},
    "root": {Form.EXPONENTIAL: Form.EXPONENTIAL},
    "same": {form: form for form in Form if form is not Form.CONSTANT},
}


def form_of(rule: str | None, forms: Sequence[Form]) -> Form:
    """Return the form of what an operation with a rule makes of arguments with forms.

    Rules are ``exp``, ``log``, ``logistic``, ``sum`` and ``root`` (any known power) of one array;
    ``same`` for its numbers at places that constants give; ``join``, ``add``, ``multiply`` and
    ``contract`` (sums of products) of several; ``choose`` between several by a constant; ``divide``
    and ``power`` of two; None for none.
    """
    moving = [form for form in forms if form is not Form.CONSTANT]
    if not moving:
        return Form.CONSTANT
    if rule == "choose":
        return form_of("join", forms[1:]) if forms[0] is Form.CONSTANT else Form.OTHER
    one, is_alone = moving[0], len(moving) == 1
    if rule is None or len(set(moving)) > 1:
        return Form.OTHER
    if rule in _OF_ONE:
        return _OF_ONE[rule].get(forms[0], Form.OTHER) if is_alone else Form.OTHER
    is_linear, is_exponential = one is Form.LINEAR, one is Form.EXPONENTIAL
    fits = {
        "join": is_linear or is_exponential,
        "add": is_linear,
        "contract": is_linear and is_alone,
        "multiply": is_exponential or (is_linear and is_alone),
        "divide": is_exponential or (is_linear and forms[-1] is Form.CONSTANT),
        "power": is_exponential and forms[-1] is Form.CONSTANT,
    }
    return one if fits[rule] else Form.OTHER


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

    def predictors(self, given: Any, log: Callable[[Any], Any], log1p: Callable[[Any], Any]) -> Any:
        """Return the predictors in an argument, by functions of the library."""
        if self.form is Form.EXPONENTIAL:
            return -log(given) if self.reciprocal else log(given)
        return log(given) - log1p(-given) if self.form is Form.LOGISTIC else given


@attrs.frozen(kw_only=True, eq=False)
class Regression:
    """A model's one observed variable, whose distribution is of a known family.

    Parameters
    ----------
    values
        What was observed, shape (n_rows,).
    read
        Returns the forms of the distribution's arguments, and the operation from which on something
        is of no known form, if any.
    arguments
        Returns the predictors and then the family's constants at a position (dim,), shape (n_rows,)
        each.
    prior
        Returns the prior of all numbers on the line if it is normal and known, else None.
    rest
        Returns what U has beside this variable.
    """

    name: str
    family: Family
    values: FloatArray
    read: Callable[[], tuple[Mapping[Any, Form], str | None]]
    arguments: Callable[[FloatArray], Sequence[FloatArray]]
    prior: Callable[[], GaussianPrior | None]
    rest: Callable[[], GradientPotential]

    def as_sum(self, whole: Potential, start: FloatArray, wanted: bool | None) -> SumAndRest:
        """Return the model, which is ``whole`` on the line and starts at (dim,), as a sum.

        Raises
        ------
        NotASumError
            If it is not known to be one, or has too few rows to be looked at by default.
        """
        n_rows, dim = len(self.values), len(start)
        if wanted is None and n_rows < max(ENOUGH_ROWS, ENOUGH_FOR_ONE * dim):
            raise NotASumError(
                f"a sum over rows pays from {ENOUGH_ROWS} observed numbers on, {ENOUGH_FOR_ONE} "
                f"for each parameter, and it has {n_rows} for {dim}"
            )
        self._check()
        if n_rows * dim > 500_000_000:
            raise NotASumError(
                f"a design of {n_rows} rows and {dim} parameters is too large to look at"
            )
        offset, *constants = self.arguments(np.zeros(dim))
        slopes = _design(lambda unit: self.arguments(unit)[0] - offset, n_rows, dim)
        settings = dict(zip(self.family.constants.values(), constants, strict=True))
        given = _rows_of(self.family.family, self.values, settings, slopes, offset)
        prior = self.prior()
        rest = self.rest() if prior is None else Nothing(dim)
        return confirm(rows_potential(**given, prior=prior), rest, whole, slopes, start)

    def _check(self) -> None:
        forms, culprit = self.read()
        if forms[self.family.argument] not in (self.family.form, Form.CONSTANT):
            through = f", as it passes through {culprit}" if culprit else ""
            raise NotASumError(
                f"the predictor of {self.name!r} is not linear in the unconstrained parameters, or "
                f"not in the form that {self.family.family!r} has{through}"
            )
        for argument, setting in self.family.constants.items():
            if forms[argument] is not Form.CONSTANT:
                raise NotASumError(
                    f"the {setting} of {self.name!r} depends on parameters, and bounds of its "
                    "derivatives are not known"
                )


def _design(slope: Callable[[FloatArray], FloatArray], n_rows: int, dim: int) -> Any:
    """Return slopes along all parameters, shape (n_rows, dim), sparse where most are 0."""
    from scipy import sparse  # late: importing stays fast

    columns = []
    for i in range(dim):
        unit = np.zeros(dim)
        unit[i] = 1.0
        columns.append(sparse.csc_array(slope(unit)[:, None]))
    whole = sparse.hstack(columns, format="csr")
    return whole if whole.nnz < 0.2 * n_rows * dim else np.ascontiguousarray(whole.toarray())


def _rows_of(
    family: str,
    values: FloatArray,
    settings: dict[str, FloatArray],
    design: Any,
    offset: FloatArray,
) -> dict[str, Any]:
    """Return what :func:`surrokit.rows_potential` takes, from settings of each row."""
    given: dict[str, Any] = {}
    if family == "binomial":  # two terms a row: weighted successes and failures
        totals = settings.pop("total")
        won, lost = np.flatnonzero(values > 0.0), np.flatnonzero(values < totals)
        given["weights"] = np.concatenate([values[won], totals[lost] - values[lost]])
        both, values = np.concatenate([won, lost]), np.repeat([1.0, 0.0], [len(won), len(lost)])
        family, design, offset = "logistic", design[both], offset[both]
    elif family == "gaussian" and np.ptp(settings["scale"]) > 0.0:
        given["weights"] = settings.pop("scale") ** -2.0
    for name, numbers in settings.items():
        if np.ptp(numbers) > 0.0:
            raise NotASumError(f"{name} of its observed numbers differs from row to row")
        given[name] = float(numbers[0])
    if offset.any():
        given["offset"] = offset
    return {"terms": family, "data": design, "response": values, **given}


def confirm(
    terms: Any, rest: GradientPotential, whole: Potential, design: Any, start: FloatArray
) -> SumAndRest:
    """Return a sum and its rest, whose density is the library's own up to a number that is added.

    The densities are compared at positions about ``start (dim,)``. NotASumError is raised if they
    differ by more than rounding.
    """
    rng, agrees = np.random.default_rng(20190601), 1e-10
    largest = abs(design).max(axis=0)
    largest = np.ravel(largest.toarray() if hasattr(largest, "toarray") else largest)
    n_used = max(1, int((largest > 0.0).sum()))
    with np.errstate(divide="ignore"):  # predictors change by about 2
        reach = np.minimum(1.0, 2.0 / (largest * np.sqrt(n_used)))
    positions = np.vstack([start, start + rng.uniform(-1.0, 1.0, size=(4, len(start))) * reach])
    theirs, ours = whole.value(positions), SumAndRest(terms, rest).value(positions)
    level = float(theirs[0] - ours[0])
    size = 1.0 + np.abs(theirs) + np.abs(ours)
    if not (np.abs(theirs - ours - level) <= agrees * size).all():
        raise NotASumError("the sum in its graph has another density than the model")
    return SumAndRest(terms, rest, level=level)


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
