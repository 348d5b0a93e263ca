"""The first points of an exploration in rounds: about its modes, or spread over a box."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from surrokit.capabilities import INITIAL
from surrokit.contracts.explorer import Modes
from surrokit.errors import SurrogateFitError
from surrokit.potentials import InitialPotential, Potential
from surrokit.types import FloatArray
from surrokit_learning.region.box import Box
from surrokit_learning.region.design import (
    Design,
    box_design,
    covariance_of_gradients,
    inverse_curvature,
    mixed_design,
    normal_design,
)
from surrokit_learning.region.region import find_region
from surrokit_learning.rounds.state import RoundsState

INITIAL_DRAWS = 500
"""Starting positions that the target is asked for, to learn where it expects itself to be."""

BOX_SPREAD = 3.0**0.5
"""Half the box's width in standard deviations of those: uniform points then spread as they do."""


@attrs.frozen(kw_only=True, eq=False)
class FirstPoints:
    """Where the target is evaluated before a surrogate can say where.

    Parameters
    ----------
    exact
        The target.
    in_box
        Whether the points are spread over a box; else they lie about the mode, or all of several.
    with_gradients
        Whether they are evaluated with their gradients.
    batch
        Points at a time.
    box
        The box; None for one where the target expects itself to be, or else about the best start.
    scale
        Half the width of the latter.
    """

    exact: Potential
    in_box: bool
    with_gradients: bool
    batch: int
    box: Box | None
    scale: float

    def enough(self, modes: Modes | None = None) -> int:
        """Return how many points a surrogate needs before its draws mean anything."""
        dim = self.exact.dim
        if self.with_gradients:
            return max(self._several, (dim + 5) * (1 if modes is None else len(modes)))
        return max(self.batch, min((dim + 1) * (dim + 2) // 2 + 5, 4 * dim))

    @property
    def _several(self) -> int:
        """Points at a time; beside the search by gradients half a batch tells enough."""
        return max(self.batch // 2, 1) if self.with_gradients else self.batch

    def queue(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        """Return the state with more of the first points in its queue."""
        modes = state.several
        left = max(self.enough(modes) - state.n_design, self._several)
        if self.in_box:
            state = self._box(state, rng)
            assert state.corners is not None
            return with_design(state, box_design(*state.corners, left, rng))
        if modes is not None:
            state = attrs.evolve(state, covariance=modes.covariance)
            return with_design(state, mixed_design(modes.positions, modes.covariances, left, rng))
        if state.hessian is None:  # the covariance is better known with every batch
            left = self._several
        covariance = self._covariance(state)
        state = attrs.evolve(state, covariance=covariance)
        return with_design(state, normal_design(state.best, covariance, left, rng))

    def queue_nearby(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        """Return the state with points in its queue about the best ones so far."""
        try:
            region = find_region(state.seen, state.covariance, by_values=not self.with_gradients)
        except SurrogateFitError:
            return self.queue(state, rng)
        return with_design(state, normal_design(region.centre, region.covariance, self.batch, rng))

    def _covariance(self, state: RoundsState) -> FloatArray:
        """Return that of a Laplace approximation, or what gradients make of it."""
        if state.hessian is not None:
            return inverse_curvature(state.hessian)
        gradients = state.seen.gradients
        if gradients is not None:
            with np.errstate(over="ignore"):  # far from a mode
                rows = state.seen.take(np.asarray(np.isfinite(np.square(gradients)).all(axis=1)))
            if len(rows) >= 2 and rows.gradients is not None:
                try:
                    return covariance_of_gradients(rows.positions, rows.values, rows.gradients)
                except SurrogateFitError:
                    pass
        if state.covariance is not None:
            return state.covariance
        if state.modes is not None:
            return np.asarray(state.modes.covariances[0])
        return np.asarray(np.square(self.scale) * np.eye(self.exact.dim))

    def _box(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        if state.corners is not None:
            return state
        lower, upper = self._corners(state, rng)
        covariance = np.diag(np.square(upper - lower) / 12.0)
        return attrs.evolve(state, corners=(lower, upper), covariance=covariance)

    def _corners(
        self, state: RoundsState, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        if self.box is not None:
            return self.box.corners(self.exact.dim)
        if INITIAL in self.exact.capabilities:
            draws = cast(InitialPotential, self.exact).initial(rng, INITIAL_DRAWS)
            centre, half = draws.mean(axis=0), BOX_SPREAD * draws.std(axis=0)
            if (half > 0).all():
                return centre - half, centre + half
        return state.best - self.scale, state.best + self.scale


def with_design(state: RoundsState, design: Design) -> RoundsState:
    """Return the state with a design in its queue."""
    return attrs.evolve(state, queue=state.queue.refill(design.positions, design.potentials))
