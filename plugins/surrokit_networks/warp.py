"""A monotone change of each coordinate, after which outputs of a forward map change evenly.

Many outputs saturate in a parameter: a block of a medium that conducts well hardly cares whether it
conducts twice as well. A quadratic cannot follow that. In a coordinate whose slope is the strength
of the dependence, the outputs are nearly linear.
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.forward import Energy
from surrokit.contracts.learner import Evaluations
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.network import Network, NetworkAt
from surrokit_networks.outputs import output_scales
from surrokit_networks.training_rows import TrainingRows

_CENTRES: FloatArray = np.linspace(-3.0, 3.0, 25)
"""Centres to try, in standard deviations from the mean."""

_SPREADS: FloatArray = np.geomspace(0.2, 6.0, 18)
"""Widths to try, in standard deviations."""

_PARAMETERS = 2  # that a warp has more than none
_LEAST_ROWS = 20
_LEAST_STRENGTH = 1e-300


@attrs.frozen(kw_only=True, eq=False)
class Warp:
    """t(q) with slope s((q - c) / w) / s((m - c) / w) in each coordinate, s that of a logistic.

    A coordinate with an infinite width w is left as it is, less m. So t and its slope are 0 and 1
    at m.

    Parameters
    ----------
    origin, centre, width : ndarray of shape (dim,)
        m, c and w.
    """

    origin: FloatArray
    centre: FloatArray
    width: FloatArray

    @classmethod
    def of(cls, positions: FloatArray, strengths: FloatArray, weights: FloatArray) -> Warp:
        """Return the warp whose slopes follow the strengths best.

        A coordinate is left as it is unless a warp explains the strengths better by more than its
        two parameters would by chance (the Bayesian information criterion).

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            Where derivatives are known.
        strengths : ndarray of shape (n, dim)
            Norm of the outputs' derivatives in each coordinate.
        weights : ndarray of shape (n,)
            How much each row counts.
        """
        dim = positions.shape[1]
        if len(positions) < _LEAST_ROWS:
            return cls(origin=np.zeros(dim), centre=np.zeros(dim), width=np.full(dim, np.inf))
        shares = weights / weights.sum()
        mean = shares @ positions
        sd = np.sqrt(shares @ np.square(positions - mean))
        centre, width = mean.copy(), np.full(dim, np.inf)
        logs = np.log(np.maximum(strengths, _LEAST_STRENGTH))
        for k in np.flatnonzero(sd > 0.0):
            best = _best_of((positions[:, k] - mean[k]) / sd[k], logs[:, k], shares)
            if best is not None:
                centre[k], width[k] = mean[k] + sd[k] * best[0], sd[k] * best[1]
        return cls(origin=mean, centre=centre, width=width)

    @classmethod
    def of_jacobians(cls, energy: Energy, rows: TrainingRows) -> Warp:
        """Return the warp that the Jacobians of rows suggest; none where there are few."""
        rows = rows.take(rows.with_jacobian)
        if rows.outputs is None or rows.jacobians is None:
            return cls.of(rows.positions[:0], rows.positions[:0], rows.weights[:0])
        scales = output_scales(energy, rows.outputs, rows.positions, rows.weights)
        strengths = np.sqrt(np.square(rows.jacobians / scales[:, None]).sum(axis=1))
        return cls.of(rows.positions, strengths, rows.weights)

    @property
    def warps(self) -> bool:
        """Whether any coordinate changes."""
        return bool(np.isfinite(self.width).any())

    def apply(self, positions: FloatArray) -> FloatArray:
        """Return t, shape (n, dim), at positions of shape (n, dim)."""
        scaled, at_origin = self._scaled(positions), self._scaled(self.origin)
        with np.errstate(all="ignore"):
            # differences of logistic functions, which do not cancel far from the centre
            moved = np.exp(_log_logistic(scaled) + _log_logistic(-at_origin))
            moved -= np.exp(_log_logistic(at_origin) + _log_logistic(-scaled))
            warped = self.width * moved / np.exp(_log_slope(at_origin))
        return np.where(np.isfinite(self.width), warped, positions - self.origin)

    def undo(self, warped: FloatArray) -> FloatArray:
        """Return the positions (n, dim) whose t is ``warped (n, dim)``, up to rounding."""
        at_origin = self._scaled(self.origin)
        with np.errstate(all="ignore"):
            level = np.exp(_log_logistic(at_origin))
            level = level + warped * np.exp(_log_slope(at_origin)) / self.width
            level = np.clip(level, np.finfo(float).tiny, 1.0 - np.finfo(float).eps)
            scaled = np.log(level) - np.log1p(-level)
            back = self.centre + self.width * scaled
        return np.where(np.isfinite(self.width), back, self.origin + warped)

    def slopes(self, positions: FloatArray) -> FloatArray:
        """Return dt/dq, shape (n, dim)."""
        relative = _log_slope(self._scaled(positions)) - _log_slope(self._scaled(self.origin))
        return np.asarray(np.where(np.isfinite(self.width), np.exp(relative), 1.0))

    def seconds(self, positions: FloatArray) -> FloatArray:
        """Return d^2t/dq^2, shape (n, dim)."""
        scaled = self._scaled(positions)
        turn = np.exp(_log_logistic(-scaled)) - np.exp(_log_logistic(scaled))
        return np.asarray(self.slopes(positions) * turn / self.width)

    def evaluations(self, exact: Evaluations) -> Evaluations:
        """Return evaluations as functions of warped coordinates."""
        slopes = self.slopes(exact.positions)
        gradients, jacobians = exact.gradients, exact.jacobians
        with np.errstate(all="ignore"):
            return attrs.evolve(
                exact,
                positions=self.apply(exact.positions),
                gradients=None if gradients is None else gradients / slopes,
                jacobians=None if jacobians is None else jacobians / slopes[:, None, :],
            )

    def _scaled(self, positions: FloatArray) -> FloatArray:
        """Return (q - c) / w: 0 for coordinates that stay as they are."""
        return (positions - self.centre) / self.width


def _best_of(
    scaled: FloatArray, logs: FloatArray, shares: FloatArray
) -> tuple[float, float] | None:
    """Return the centre and width that explain log strengths best; None if none is worth it."""
    scaled = (scaled[:, None, None] - _CENTRES[:, None]) / _SPREADS
    left = logs[:, None, None] - _log_slope(scaled)
    left -= np.einsum("n,ncs->cs", shares, left)
    errors = np.einsum("n,ncs->cs", shares, np.square(left))
    plain = float(shares @ np.square(logs - shares @ logs))
    c, s = np.unravel_index(int(errors.argmin()), errors.shape)
    n = 1.0 / float(np.square(shares).sum())
    if not plain > 0.0 or n * np.log(plain / errors[c, s]) <= _PARAMETERS * np.log(n):
        return None
    return float(_CENTRES[c]), float(_SPREADS[s])


def _log_logistic(x: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x))))


def _log_slope(x: FloatArray) -> FloatArray:
    """Return the logarithm of the logistic function's slope."""
    return _log_logistic(x) + _log_logistic(-x)


@attrs.frozen(kw_only=True, eq=False)
class WarpedEnergy:
    """An energy as a function of outputs and warped positions, for the units of a fit."""

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
    """f(t(q)): a network f of warped coordinates as one of plain ones."""

    network: Network
    warp: Warp

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.network.dim

    @property
    def n_nodes(self) -> int:
        """Nodes."""
        return self.network.n_nodes

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m), at positions of shape (n, dim)."""
        return self.network.value(self.warp.apply(positions))

    def at(self, positions: FloatArray) -> WarpedAt:
        """Return the outputs and their derivatives at positions of shape (n, dim)."""
        return WarpedAt(
            inner=self.network.at(self.warp.apply(positions)),
            slopes=self.warp.slopes(positions),
            seconds=self.warp.seconds(positions),
        )


@attrs.frozen(kw_only=True, eq=False)
class WarpedAt:
    """A warped network at n positions; the methods are those of :class:`NetworkAt`.

    Parameters
    ----------
    inner
        The network at the warped positions.
    slopes, seconds : ndarray of shape (n, dim)
        dt/dq and d^2t/dq^2.
    """

    inner: NetworkAt
    slopes: FloatArray
    seconds: FloatArray

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
        return np.asarray(inside * self.slopes + along * self.seconds)

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        inside = self.inner.hessian_form(by_outputs, vectors * self.slopes)
        return inside * self.slopes + self.inner.pull_back(by_outputs) * vectors * self.seconds
