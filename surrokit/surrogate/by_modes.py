"""The surrogate of several modes: one fitted near each, joined where they meet."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.interfaces import Evaluations
from surrokit.kernel.jumps import Jumps
from surrokit.modes import Modes
from surrokit.potentials import Potential, with_gradient
from surrokit.types import BoolArray, Capabilities, FloatArray

SHARED = 0.01
"""Share of a mode in the density at a row, by Laplace approximations, from which on its part is
fitted to the row, too."""

FAINT = 40.0
"""Nats below the largest share from which on a part is not evaluated."""


@attrs.frozen(kw_only=True, eq=False)
class ByModes:
    """V = -log sum_m w_m exp(-V_m), where V_m learnt from the evaluations about mode m.

    The weights w_m of a position are the shares of the modes' Laplace approximations in the density
    there. Their sum is one: where parts agree V is what they are, so that nothing counts twice, and
    what a part is far from its own mode does not count. All parts are on the scale of U, and the
    masses of modes are what they make them.
    """

    parts: tuple[Potential, ...]
    modes: Modes

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.parts[0].dim

    @property
    def capabilities(self) -> Capabilities:
        """A gradient, if every part has one."""
        return frozenset({GRADIENT}).intersection(*(part.capabilities for part in self.parts))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self.join(self.terms(positions))

    def terms(self, positions: FloatArray) -> FloatArray:
        """Return V_m - log w_m, shape (k, n); infinite where it cannot count."""
        terms = -self.modes.log_shares(positions)
        for k, part in enumerate(self.parts):
            near = terms[k] < FAINT
            terms[k, ~near] = np.inf
            if near.any():
                terms[k, near] += part.value(positions[near])
        return terms

    @staticmethod
    def join(terms: FloatArray) -> FloatArray:
        """Return V, shape (n,), from its terms."""
        return np.asarray(-np.logaddexp.reduce(-terms, axis=0))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        logs = self.modes.log_shares(positions)
        pulls = np.stack([self.modes.pull(k, positions) for k in range(len(self.modes))])
        shares, terms, slopes = np.exp(logs), -logs, np.zeros_like(pulls)
        common = np.einsum("kn,knd->nd", shares, pulls)
        for k, part in enumerate(self.parts):
            near = terms[k] < FAINT
            terms[k, ~near] = np.inf
            if near.any():
                value, slope = with_gradient(part).value_and_gradient(positions[near])
                terms[k, near] += value
                slopes[k, near] = slope + pulls[k, near] - common[near]
        values = self.join(terms)
        with np.errstate(invalid="ignore"):
            counts = np.nan_to_num(np.exp(values - terms))
        return values, np.asarray(np.einsum("kn,knd->nd", counts, slopes))

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which positions (n, dim) lie beyond what the part at the nearest mode knows."""
        nearest, beyond = self.modes.nearest(positions), np.zeros(len(positions), dtype=bool)
        for k, part in enumerate(self.parts):
            own, asked = nearest == k, getattr(part, "is_beyond", None)
            if own.any() and asked is not None:
                beyond[own] = asked(positions[own])
        return beyond

    @cached_property
    def jumps(self) -> Jumps | None:
        """Jumps between the parts."""
        return Jumps.to(self.modes, self.terms)


def fit_by_modes(
    fit: Callable[[Evaluations], Potential], rows: Evaluations, modes: Modes
) -> ByModes:
    """Return the surrogate of several modes: a fit at each, to the rows about it.

    Raises
    ------
    SurrogateFitError
        If there are no rows about a mode that can be fitted.
    """
    shares = np.exp(modes.log_shares(rows.positions))
    parts = [fit(rows.take(np.asarray(share >= SHARED))) for share in shares]
    return ByModes(parts=tuple(parts), modes=modes)
