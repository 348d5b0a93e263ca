"""Potentials and kernels on warped coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import ChainState, Kernel, Proposal, Tuning
from surrokit.marginals import Warp
from surrokit.potentials import Potential, with_gradient, with_gradient_alone
from surrokit.types import Cache, Capabilities, FloatArray


@attrs.frozen(eq=False)
class Warped:
    """U of x as a potential of z, which counts the volume: U - sum log dx/dz.

    It offers values, and gradients where the potential does.
    """

    potential: Potential
    warp: Warp

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """Gradients, alone or with values, as the potential offers them."""
        return self.potential.capabilities & {GRADIENT, GRADIENT_ALONE}

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the potential at z, shape (n,), of positions z (n, dim)."""
        value = self.potential.value(self.warp.bend(positions))
        return np.asarray(value - self.warp.log_volume(positions))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient by z, shape (n, dim)."""
        gradient = with_gradient_alone(self.potential).gradient(self.warp.bend(positions))
        return self.warp.pull(gradient, positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both, shapes (n,) and (n, dim)."""
        x = self.warp.bend(positions)
        value, gradient = with_gradient(self.potential).value_and_gradient(x)
        straight = self.straighten({"value": value, "gradient": gradient}, positions)
        return straight["value"], straight["gradient"]

    # --- what is kept for positions ---

    def straighten(self, cache: Cache, straight: FloatArray) -> Cache:
        """Return value and gradient by z at z (n, dim), from those by x."""
        return {
            "value": cache["value"] - self.warp.log_volume(straight),
            "gradient": self.warp.pull(cache["gradient"], straight),
        }

    def bend(self, cache: Cache, straight: FloatArray) -> Cache:
        """Return value and gradient by x at z (n, dim), from those by z."""
        return {
            "value": cache["value"] + self.warp.log_volume(straight),
            "gradient": self.warp.push(cache["gradient"], straight),
        }


@attrs.frozen(kw_only=True, eq=False)
class WarpedKernel(Kernel):
    """Moves of a kernel on a warped potential, in the coordinates of the potential.

    The inner kernel accepts where log u < W(z) - W(z') + c, with W = U - log |dx/dz|. In x that is
    U(x) - U(x') + c + log |dx'/dz'| - log |dx/dz|: the volume joins its log correction, and the
    target stays invariant whatever the warp, as long as it stays the same.

    Parameters
    ----------
    inner
        Bound to ``warped``. It keeps ``"value"`` and ``"gradient"`` for its positions, and no
        more.
    """

    inner: Kernel
    warped: Warped

    @property
    def potential(self) -> Potential:
        """The potential in x."""
        return self.warped.potential

    @property
    def step(self) -> float | None:
        """The step size in use, in z."""
        return self.inner.step

    def cache(self, positions: FloatArray) -> Cache:
        """Return value and gradient at positions x (n, dim)."""
        straight = self.warped.warp.straighten(positions)
        return self.warped.bend(self.inner.cache(straight), straight)

    def draw_shared(self, rng: np.random.Generator) -> Self:
        """Return a copy in which the inner kernel has drawn what its chains share."""
        inner: Any = self.inner
        draw = getattr(inner, "draw_shared", None)
        return self if draw is None else attrs.evolve(self, inner=draw(rng))

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Move every chain once."""
        with np.errstate(all="ignore"):  # a path that overflows is a status, not a warning
            start = self.warped.warp.straighten(state.positions)
            cache = self.warped.straighten(state.cache, start)
            values = state.values + cache["value"] - state.cache["value"]
            proposal = self.inner.propose(
                ChainState(positions=start, values=values, cache=cache), rng
            )
            return self._bent(proposal, state.cache["value"] - cache["value"])

    def _bent(self, proposal: Proposal, log_volume: FloatArray) -> Proposal:
        """Return a proposal in x, from one in z and log |dx/dz|, shape (n,), at its start."""
        end = proposal.positions
        cache = self.warped.bend(proposal.cache, end)
        gained = cache["value"] - proposal.cache["value"] - log_volume
        return attrs.evolve(
            proposal,
            positions=self.warped.warp.bend(end),
            log_correction=proposal.log_correction + np.where(proposal.moved, gained, 0.0),
            cache=cache,
            source=self.potential,
        )


def bind_warped(
    bind: Callable[[Potential, Tuning], Kernel], potential: Potential, tuning: Tuning
) -> Kernel:
    """Return the kernel that a function binds, in the coordinates that tuning has, if any."""
    if tuning.warp is None:
        return bind(potential, tuning)
    warped = Warped(potential, tuning.warp)
    straight = attrs.evolve(tuning, covariance=tuning.warp.covariance)
    return WarpedKernel(inner=bind(warped, straight), warped=warped)
