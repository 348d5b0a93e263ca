"""A target of which parameters are tied together, on the whole line."""

from __future__ import annotations

from typing import cast

import attrs

from surrokit import capabilities as can
from surrokit.contracts.forward import Energy, ForwardPotential
from surrokit.coordinates.blocks import Blocks
from surrokit.targets.bounded.energy import LiftedEnergy
from surrokit.targets.bounded.lifted import LiftedPotential
from surrokit.types import Capabilities

_KEPT = frozenset({can.GRADIENT, can.GRADIENT_ALONE, can.INITIAL, can.FORWARD})
_KEPT |= {can.JACOBIAN, can.VJP}


@attrs.frozen(eq=False)
class ConstrainedPotential(LiftedPotential):
    """A potential of constrained arrays q, as one of unbounded z, Jacobian included.

    Values, gradients and forward maps are passed on, second derivatives are not.
    """

    transform: Blocks = attrs.field(init=False)

    @transform.default
    def _transform(self) -> Blocks:
        return Blocks(self.parameters)

    @property
    def dim(self) -> int:
        """Numbers in a position on the line."""
        return self.transform.n_line

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers, less second derivatives and all that needs them."""
        return self.inner.capabilities & _KEPT

    @property
    def energy(self) -> Energy:
        """The inner potential's energy, of outputs and positions on the line."""
        return LiftedEnergy(cast(ForwardPotential, self.inner).energy, self.transform)
