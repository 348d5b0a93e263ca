"""Objects and functions of users, which share no array with the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import unmasked


def isolate(given: Any) -> Any:
    """Return a copy of an array, or of all arrays in a tuple; anything else as it is.

    Numbers that a mask hides become NaN.
    """
    if isinstance(given, tuple):
        return tuple(isolate(each) for each in given)
    return np.array(unmasked(given)) if isinstance(given, np.ndarray) else given


@attrs.frozen(eq=False)
class Isolated:
    """An object of a user's whose methods are called with copies, and whose results are copies.

    What a method does to its arguments, or later to what it has returned, then changes nothing.

    Parameters
    ----------
    inner
        The object.
    """

    inner: Any

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the object."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        found = getattr(self.inner, name)
        return partial(_call, found) if callable(found) else found


def _call(method: Callable[..., Any], *given: Any, **named: Any) -> Any:
    named = {name: isolate(each) for name, each in named.items()}
    return isolate(method(*map(isolate, given), **named))
