"""The surrogate of several modes: one fitted near each, joined where they meet."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations
from surrokit.kernel.jumps import Jumps
from surrokit.modes import Modes
from surrokit.potentials import Potential, with_gradient
from surrokit.surrogate.training import are_beyond
from surrokit.types import BoolArray, Capabilities, FloatArray

SHARED = 0.01
"""Share of a mode in the density at a row, by Laplace approximations, from which on its part is
fitted to the row, too."""

FAINTEST = 1e-13
"""Share of a mode at a position up to which its part is not evaluated there."""

HIGH = 10.0
"""Nats above the least row, beside one for each dimension, up to which rows bound a floor."""

BELOW, SLACK = 2.0, 0.5
"""Nats below the least row at which the floor of a part begins, and part of its rise that the rows
allow at most."""


@attrs.frozen(kw_only=True, eq=False)
class ByModes:
    """V = sum_m w_m V_m, where V_m learnt from the evaluations about mode m.

    The weights w_m of a position are the shares of the modes' Laplace approximations in the density
    there. Their sum is one: where parts agree V is what they are, so that nothing counts twice. A
    mean of potentials, and not of densities: a part that is far too low at another mode counts for
    nothing there. All parts are on the scale of U, and the masses of modes are what they make them.

    Where there are no rows a part may be far too low. It counts as no lower than a multiple of the
    mode's quadratic potential, ``lowest (k,)`` at the mode, that all its rows are well above.
    """

    parts: tuple[Potential, ...]
    modes: Modes
    lowest: FloatArray = attrs.Factory(lambda self: np.full(len(self.parts), -np.inf), True)
    rises: FloatArray = attrs.Factory(lambda self: np.zeros(len(self.parts)), True)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.parts[0].dim

    @property
    def capabilities(self) -> Capabilities:
        """A gradient, if every part has one."""
        return frozenset({GRADIENT}).intersection(*(part.capabilities for part in self.parts))

    @property
    def n_gradients(self) -> int | None:
        """Gradients that the parts have learnt from; None where these do not tell."""
        found = [int(getattr(part, "n_gradients", -1)) for part in self.parts]
        return None if min(found) < 0 else sum(found)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        logs, _, squares = self.modes.look(positions)
        return self._mean(np.exp(logs), squares, positions)

    def terms(self, positions: FloatArray) -> FloatArray:
        """Return V - log w_m, shape (k, n): what each mode has of the density."""
        logs, _, squares = self.modes.look(positions)
        return np.asarray(self._mean(np.exp(logs), squares, positions) - logs)

    def _mean(self, shares: FloatArray, squares: FloatArray, positions: FloatArray) -> FloatArray:
        values, floors = np.zeros(len(positions)), self._floors(squares)
        for share, floor, part in zip(shares, floors, self.parts, strict=True):
            near = share > FAINTEST
            if near.any():
                values[near] += share[near] * np.maximum(part.value(positions[near]), floor[near])
        return values

    def _floors(self, squares: FloatArray) -> FloatArray:
        return np.asarray(self.lowest[:, None] + 0.5 * self.rises[:, None] * squares)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        logs, pulls, squares = self.modes.look(positions)
        shares, floors = np.exp(logs), self._floors(squares)
        common = np.einsum("kn,knd->nd", shares, pulls)
        values, gradients = np.zeros(len(positions)), np.zeros_like(positions)
        for k, part in enumerate(self.parts):
            near = shares[k] > FAINTEST
            if near.any():
                share, pull, floor = shares[k, near], pulls[k, near], floors[k, near]
                learnt, slope = with_gradient(part).value_and_gradient(positions[near])
                value = np.maximum(learnt, floor)
                slope = np.where((learnt < floor)[:, None], self.rises[k] * pull, slope)
                values[near] += share * value
                slope = slope + value[:, None] * (common[near] - pull)
                gradients[near] += share[:, None] * slope
        return values, gradients

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which positions (n, dim) lie beyond what the part at the nearest mode knows."""
        nearest, beyond = self.modes.nearest(positions), np.zeros(len(positions), dtype=bool)
        for k, part in enumerate(self.parts):
            own = nearest == k
            if own.any():
                beyond[own] = are_beyond(part, positions[own])
        return beyond

    @cached_property
    def jumps(self) -> Jumps | None:
        """Jumps between the parts."""
        return Jumps.to(self.modes, self.terms)


def fit_by_modes(
    fit: Callable[[Evaluations], Potential], rows: Evaluations, modes: Modes
) -> ByModes:
    """Return the surrogate of several modes: a fit at each, to the rows about it.

    A mode about which there are too few rows for a fit is left out, and the others share them.

    Raises
    ------
    SurrogateFitError
        If the rows can be fitted at no mode.
    """
    parts: list[Potential] = []
    lowest, rises = [], []
    for k, share in enumerate(np.exp(modes.log_shares(rows.positions))):
        own = rows.take(np.asarray(share >= SHARED))
        lowest.append(np.min(own.values, initial=modes.values[k]) - BELOW)
        # rows far above, such as on the way to other modes, have no part in the mass of this one
        low = own.take(np.asarray(own.values <= lowest[k] + BELOW + own.positions.shape[1] + HIGH))
        with np.errstate(divide="ignore"):
            allowed = 2.0 * (low.values - lowest[k]) / modes.squares(k, low.positions)
        rises.append(SLACK * np.min(allowed, initial=1.0))
        try:
            parts.append(fit(own))
        except SurrogateFitError:
            if len(modes) == 1:
                raise
            return fit_by_modes(fit, rows, modes.take(np.arange(len(modes)) != k))
    floors = {"lowest": np.array(lowest), "rises": np.array(rises)}
    return ByModes(parts=tuple(parts), modes=modes, **floors)
