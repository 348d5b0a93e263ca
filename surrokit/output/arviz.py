"""Draws in the form of the ArviZ project."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from surrokit.errors import MissingDependencyError
from surrokit.output.groups import Group, attributes_of, groups_of
from surrokit.types import FloatArray

_INSTALL = "python -m pip install 'surrokit[arviz]'"


@attrs.frozen(kw_only=True, eq=False)
class Draws:
    """The draws of a run as they are written.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        In the user's coordinates.
    labels
        One for each of the ``dim`` numbers.
    groups
        Groups of arrays, by ArviZ's names of the groups.
    attributes
        Attributes of ArviZ's object.
    """

    draws: FloatArray
    labels: Sequence[str]
    groups: Mapping[str, Group]
    attributes: Mapping[str, Any]

    @classmethod
    def of(cls, run: Any) -> Draws:
        """Return those of a :class:`~surrokit.result.run.Run`."""
        return cls(
            draws=run.draws,
            labels=run.labels,
            groups=groups_of(run),
            attributes=attributes_of(run),
        )


def to_arviz(draws: Draws) -> Any:
    """Return a DataTree (ArviZ 1 and later) or InferenceData (before).

    Raises
    ------
    MissingDependencyError
        If ArviZ is not installed.
    """
    with warnings.catch_warnings():
        # with fewer draws than chains ArviZ warns of swapped axes
        warnings.filterwarnings("ignore", category=UserWarning, message=".*chain.*")
        converted = _convert(draws.groups)
    converted.attrs.update(draws.attributes)
    return converted


def _convert(groups: Mapping[str, Group]) -> Any:
    try:
        from arviz_base import from_dict
    except ImportError:
        pass
    else:
        return from_dict(groups, save_warmup=True)
    try:
        import arviz
    except ImportError as error:
        raise MissingDependencyError(
            f"ArviZ is needed for this and is not installed; run {_INSTALL}"
        ) from error
    return arviz.from_dict(**groups, save_warmup=True)
