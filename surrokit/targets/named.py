"""A potential whose numbers have names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from surrokit.contracts.potential import Potential
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ShapeError
from surrokit.model.model import Wrapper
from surrokit.shown.target import ShownTarget
from surrokit.types import Capabilities, FloatArray


@attrs.frozen(eq=False)
class NamedPotential(Wrapper, ShownTarget):
    """A potential of unbounded numbers, each of which is a parameter with a name.

    It does all that the inner potential does, by the same methods.

    Parameters
    ----------
    inner
        The potential.
    parameters
        Names; no bounds.
    predictor
        Makes predictions of draws, by these names' data; None for nothing.

    Raises
    ------
    ShapeError
        If there are not as many names as the potential takes numbers.
    """

    inner: Potential
    parameters: Parameters
    predictor: Any = attrs.field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.parameters.dim != self.inner.dim:
            raise ShapeError(
                f"there are {self.parameters.dim} names, but the potential takes {self.inner.dim} "
                "numbers; give one name for each"
            )

    @classmethod
    def of(cls, inner: Potential, names: Sequence[str], predictor: Any = None) -> NamedPotential:
        """Return the potential with these names.

        Raises
        ------
        ShapeError
            If there are not as many names as numbers.
        """
        return cls(inner, Parameters.declare({name: Parameter() for name in names}), predictor)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers."""
        return self.inner.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        return self.inner.value(positions)

    def __getattr__(self, name: str) -> Any:
        """Return what else the inner potential has."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)
