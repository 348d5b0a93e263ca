"""Of what form a number of a graph is, as a function of the position on the line.

The forms are those that predictors of regressions come in: linear (with a constant part), the
exponential of something linear, and its logistic function. A graph is read from its inputs on; what
follows by no rule is of no known form. So a form is proved, and not tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class Form(Enum):
    """The form of a number, or of all numbers of an array."""

    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    LOGISTIC = "logistic"
    OTHER = "other"


def _among(forms: set[Form], *known: Form) -> bool:
    return forms <= {Form.CONSTANT, *known}


def join(forms: Iterable[Form]) -> Form:
    """Return the form of an array that is put together of others, such as by a choice."""
    found = set(forms)
    if found <= {Form.CONSTANT}:
        return Form.CONSTANT
    for form in (Form.LINEAR, Form.EXPONENTIAL):
        if _among(found, form):
            return form
    return Form.LOGISTIC if found == {Form.LOGISTIC} else Form.OTHER


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
    if _among(set(found), Form.EXPONENTIAL) and Form.EXPONENTIAL in found:
        return Form.EXPONENTIAL
    return contract(found)


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
