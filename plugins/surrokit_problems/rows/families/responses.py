"""What the responses of a family can be."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import BoolArray, FloatArray

Responses: TypeAlias = Literal["real", "binary", "count", "positive", "time"]
"""Any numbers; zeros and ones; whole numbers from 0; positive ones; and times to an event.

Times are positive where the event came, and negative where it had not come yet: minus the time of
censoring.
"""

_EXPECTED: dict[Responses, tuple[str, str]] = {
    "binary": ("zeros and ones", "recode the two classes as 0 and 1"),
    "count": ("whole numbers of at least 0", "give counts"),
    "positive": ("positive", "drop zeros, or shift them, knowing what that means"),
    "time": (
        "times other than 0",
        "give the time of each event, and minus the time where there was none until then",
    ),
}


def check_responses(kind: Responses, response: FloatArray) -> None:
    """Raise unless all responses are of a kind.

    Parameters
    ----------
    kind
        What they are to be.
    response : ndarray of shape (n_rows,)
        Finite numbers.

    Raises
    ------
    ConfigurationError
        If one is not.
    """
    if kind == "real":
        return
    fine = _fits(kind, response)
    if not fine.all():
        expected, remedy = _EXPECTED[kind]
        row = int(np.flatnonzero(~fine)[0])
        raise ConfigurationError(
            f"response must be {expected}, got {response[row]:g} in row {row}; {remedy}"
        )


def _fits(kind: Responses, y: FloatArray) -> BoolArray:
    if kind == "binary":
        return np.isin(y, (0.0, 1.0))
    if kind == "count":
        return np.asarray((y >= 0.0) & (y == np.floor(y)))
    return np.asarray(y > 0.0 if kind == "positive" else y != 0.0)
