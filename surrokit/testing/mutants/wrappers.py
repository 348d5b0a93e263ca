"""Broken wrappers of potentials."""

from __future__ import annotations

from surrokit.capabilities import HESSIAN
from surrokit.testing.counting import Wrapped
from surrokit.types import Capabilities


class DropsCapability(Wrapped):
    """Forgets that the potential inside has Hessians."""

    @property
    def capabilities(self) -> Capabilities:
        """All but ``hessian``."""
        return self.inner.capabilities - {HESSIAN}


class InventsCapability(Wrapped):
    """Claims Hessians, whatever is inside."""

    @property
    def capabilities(self) -> Capabilities:
        """Those inside and ``hessian``."""
        return self.inner.capabilities | {HESSIAN}
