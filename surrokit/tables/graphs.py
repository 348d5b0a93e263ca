"""Regressions in models of other libraries as sums over rows, proved on the library's graph.

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
from surrokit.potentials import Potential
from surrokit.tables.rows import rows_potential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import Nothing, SumAndRest
from surrokit.types import FloatArray

ENOUGH_ROWS = 1000
"""Rows from which on a model becomes a sum by default, and ten for each parameter."""

LARGEST = 10**8
"""Numbers of a design at most."""


class Form(Enum):
    """The form of all numbers of an array."""

    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    LOGISTIC = "logistic"
    OTHER = "other"


_LINKS = {"exp": Form.EXPONENTIAL, "logistic": Form.LOGISTIC}


def form_of(rule: str | None, forms: Sequence[Form]) -> Form:
    """Return the form of what an operation with a rule makes of arguments with forms.

    Rules are ``exp`` and ``logistic`` of one array; ``same`` for its numbers at places that
    constants give; ``join``, ``add``, ``multiply`` and ``contract`` (sums of products) of several;
    ``divide`` of two; None for none.
    """
    moving = [form for form in forms if form is not Form.CONSTANT]
    if not moving:
        return Form.CONSTANT
    one, is_alone = moving[0], len(moving) == 1
    if len(set(moving)) > 1:
        return Form.OTHER
    is_linear, is_first = one is Form.LINEAR, is_alone and forms[0] is one
    if rule in _LINKS:
        return _LINKS[rule] if is_linear else Form.OTHER
    fits = {
        "same": is_first,
        "join": is_linear or one is Form.EXPONENTIAL,
        "add": is_linear,
        "contract": is_linear and is_alone,
        "multiply": one is Form.EXPONENTIAL or (is_linear and is_alone),
        "divide": is_linear and is_first,
    }
    return one if fits.get(rule or "", False) else Form.OTHER


def predictor_of(argument: Any, form: Form, library: Any) -> Any:
    """Return the predictor in an argument of a form, by functions of the library."""
    if form is Form.EXPONENTIAL:
        return library.log(argument)
    if form is Form.LOGISTIC:
        return library.log(argument) - library.log1p(-argument)
    return argument


@attrs.frozen(kw_only=True, eq=False)
class Regression:
    """A model's one observed variable, of a known family, and the normal prior of its parameters.

    Parameters
    ----------
    form
        What the distribution's ``argument`` must be of the predictor.
    values
        What was observed, shape (n_rows,).
    forms
        Those of ``argument``, ``scale`` (of a normal response), and of ``mean`` and ``sd`` of the
        prior.
    culprit
        The operation from which on something is of no known form, if any.
    at
        Returns ``predictor`` and ``scale``, shape (n_rows,), and ``mean`` and ``sd`` at a position
        (dim,).
    """

    name: str
    family: str
    form: Form
    values: FloatArray
    forms: Mapping[str, Form]
    culprit: str | None
    at: Callable[[FloatArray], Mapping[str, FloatArray]]

    def as_sum(self, whole: Potential, start: FloatArray) -> SumAndRest:
        """Return the model, which is ``whole`` on the line and starts at (dim,), as a sum.

        Its density is the library's own, with which it is compared. NotASumError is raised if it is
        not known to be one.
        """
        self._check()
        n_rows, dim = len(self.values), len(start)
        if n_rows * dim > LARGEST:
            raise NotASumError(f"a design of {n_rows} rows and {dim} parameters is too large")
        origin = self.at(np.zeros(dim))
        offset = origin["predictor"]
        design = np.empty((n_rows, dim))
        for column, unit in zip(design.T, np.eye(dim), strict=True):
            column[:] = self.at(unit)["predictor"] - offset
        weights = {"weights": origin["scale"] ** -2.0} if "scale" in origin else {}
        terms = rows_potential(
            self.family,
            design,
            self.values,
            offset=offset,
            prior=GaussianPrior(mean=origin["mean"], sd=origin["sd"]),
            **weights,
        )
        return confirm(terms, whole, design, start)

    def _check(self) -> None:
        if self.forms["argument"] not in (self.form, Form.CONSTANT):
            through = f", as it passes through {self.culprit}" if self.culprit else ""
            raise NotASumError(
                f"the predictor of {self.name!r} is not linear in the unconstrained parameters, or "
                f"not in the form that {self.family!r} has{through}"
            )
        if self.forms.get("scale", Form.CONSTANT) is not Form.CONSTANT:
            raise NotASumError(
                f"the scale of {self.name!r} depends on parameters, and bounds of its "
                "derivatives are not known"
            )
        if {self.forms["mean"], self.forms["sd"]} != {Form.CONSTANT}:
            raise NotASumError("the mean or scale of a prior depends on other parameters")


def confirm(terms: Any, whole: Potential, design: FloatArray, start: FloatArray) -> SumAndRest:
    """Return a sum, whose density is the library's own up to a number that is added.

    The densities are compared at positions about ``start (dim,)``. NotASumError is raised if they
    differ by more than rounding.
    """
    rng, agrees, dim = np.random.default_rng(20190601), 1e-10, len(start)
    largest = np.abs(design).max(axis=0)
    n_used = max(1, int((largest > 0.0).sum()))
    with np.errstate(divide="ignore"):  # predictors change by about 2
        reach = np.minimum(1.0, 2.0 / (largest * np.sqrt(n_used)))
    positions = np.vstack([start, start + rng.uniform(-1.0, 1.0, size=(4, dim)) * reach])
    theirs, ours = whole.value(positions), terms.value(positions)
    level = float(theirs[0] - ours[0])
    size = 1.0 + np.abs(theirs) + np.abs(ours)
    if not (np.abs(theirs - ours - level) <= agrees * size).all():
        raise NotASumError("the sum in its graph has another density than the model")
    return SumAndRest(terms, Nothing(dim), level=level)


def sum_if_safe(
    wanted: bool | None,
    n_rows: int,
    whole: Potential,
    start: FloatArray,
    read: Callable[[], Regression],
) -> tuple[SumAndRest | None, str]:
    """Return a model as a sum over rows, or None and the reason why it is none.

    Whatever ``read`` raises is a reason. ``wanted`` is None for where a sum is safe and worth it:
    n_rows are the model's observed numbers. ConfigurationError is raised if it is to be one, and is
    not known to be.
    """
    if wanted not in (None, True, False):
        raise ConfigurationError(f"rows must be True, False or None, got {wanted!r}")
    if wanted is False:
        return None, "the model is sampled whole, as rows=False or gradient=False was given"
    dim = len(start)
    try:
        if wanted is None and n_rows < max(ENOUGH_ROWS, 10 * dim):
            raise NotASumError(
                f"a sum over rows is faster from {ENOUGH_ROWS} observed numbers on, 10 for each "
                f"parameter, and it has {n_rows} for {dim}"
            )
        return read().as_sum(whole, start), ""
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
