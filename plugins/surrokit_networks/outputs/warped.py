"""A network with many outputs in warped coordinates, and its derivatives in the plain ones."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.forward import Energy
from surrokit.contracts.learner import Evaluations
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.outputs.network import LinearisedNetwork, OutputNetwork
from surrokit_networks.outputs.warp import Warp


def warp_evaluations(warp: Warp, evaluations: Evaluations) -> Evaluations:
    """Return evaluations as functions of warped coordinates."""
    slopes = warp.slopes(evaluations.positions)
    gradients, jacobians = evaluations.gradients, evaluations.jacobians
    with np.errstate(all="ignore"):
        return Evaluations(
            positions=warp.apply(evaluations.positions),
            values=evaluations.values,
            gradients=None if gradients is None else gradients / slopes,
            outputs=evaluations.outputs,
            jacobians=None if jacobians is None else jacobians / slopes[:, None, :],
        )


@attrs.frozen(kw_only=True, eq=False)
class WarpedEnergy:
    """An energy as a function of outputs and warped positions, for the units of a fit.

    Parameters
    ----------
    energy
        The exact one.
    warp
        The change of coordinates.
    """

    energy: Energy
    warp: Warp

    @property
    def capabilities(self) -> Capabilities:
        """None beyond gradients."""
        return frozenset()

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self.energy.value(outputs, self.warp.undo(positions))

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""
        plain = self.warp.undo(positions)
        value, by_outputs, by_positions = self.energy.value_and_gradients(outputs, plain)
        return value, by_outputs, by_positions / self.warp.slopes(plain)


@attrs.frozen(kw_only=True, eq=False)
class WarpedNetwork:
    """f(t(q)): a network of warped coordinates as one of plain ones.

    Parameters
    ----------
    network
        f.
    warp
        t.
    """

    network: OutputNetwork
    warp: Warp

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.network.dim

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m), at positions of shape (n, dim)."""
        return self.network.value(self.warp.apply(positions))

    def linearise(self, positions: FloatArray) -> LinearisedWarped:
        """Return the outputs and their derivatives at positions of shape (n, dim)."""
        return LinearisedWarped(
            inner=self.network.linearise(self.warp.apply(positions)),
            slopes=self.warp.slopes(positions),
            bends=self.warp.bends(positions),
        )


@attrs.frozen(kw_only=True, eq=False)
class LinearisedWarped:
    """A warped network at some positions; see :class:`LinearisedNetwork`.

    Parameters
    ----------
    inner
        The network at the warped positions.
    slopes, bends : ndarray of shape (n, dim)
        dt/dq and d^2t/dq^2.
    """

    inner: LinearisedNetwork
    slopes: FloatArray
    bends: FloatArray

    @property
    def outputs(self) -> FloatArray:
        """The outputs, shape (n, m)."""
        return self.inner.outputs

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        return self.inner.pull_back(by_outputs) * self.slopes

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""
        return self.inner.push(vectors * self.slopes)

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""
        return np.asarray(self.inner.jacobian() * self.slopes[:, None, :])

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k f_m, shape (n, dim), for W (n, m, dim)."""
        along: FloatArray = np.einsum("nmk,nmk->nk", weights, self.inner.jacobian())
        inside = self.inner.hessian_product(weights * self.slopes[:, None, :])
        return np.asarray(inside * self.slopes + along * self.bends)

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        inside = self.inner.hessian_form(by_outputs, vectors * self.slopes)
        return inside * self.slopes + self.inner.pull_back(by_outputs) * vectors * self.bends
