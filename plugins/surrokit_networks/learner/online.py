"""The learner that takes in rows without keeping them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs
import numpy as np

from surrokit.contracts.forward import Energy
from surrokit.contracts.learner import Evaluations
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.learner.learner import Fit, NetworkLearner
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.nodes import Nodes
from surrokit_networks.nodes.rbf import RbfNodes
from surrokit_networks.online.fit import OnlineFit
from surrokit_networks.online.updates import cheaper
from surrokit_networks.regression.border import Border
from surrokit_networks.regression.fitted import FittedNetwork
from surrokit_networks.regression.frame import Frame
from surrokit_networks.regression.training_rows import TailBound, TrainingRows
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.trend import Trend, TrendFeatures

_LEAST_VALUES, _LEAST_GRADIENTS = 25, 6
"""Points for each dimension, without and with gradients, from which on a whitening is trusted. The
points of a few paths have another covariance than the target: from 10 values for each dimension on
the paper's simulated regression the acceptance stayed at three quarters of what refits reached."""

_FEW_NODES = 400
"""Nodes, at most, of the fits before that, where there are gradients: from 400 on the error hardly
falls, and the time of a fit grows with the cube."""

_GROWTH = 1.2
"""By how much rows must have grown before everything is fitted anew."""


@attrs.define(kw_only=True, eq=False)
class OnlineLearner:
    """Fits a network once to all there is, and from then on takes in rows at O(s^2) each.

    The first fit is that of :class:`~surrokit_networks.learner.learner.NetworkLearner`, solved once
    more by the engine, which changes it by rounding errors only. It fixes whitening, nodes, the
    matrix of the trend, the origin of values and the ridge. Its rows, and all that are observed
    later, go into the engine and are dropped: memory does not grow with them. Each fit after that
    is the least-squares solution in the same frame to all rows so far.

    A ridge that is left to the data (``ridge=None``) is chosen again, by generalised
    cross-validation of the sums over rows, once there are twice as many equations: O(s^3), and ever
    more seldom. Otherwise nothing but the weights changes.

    Rows in the far tail count less, by their excess over the least value known when they arrive;
    what was taken in before a lower value came keeps its weight. A point that comes twice in two
    blocks counts as two.

    ``quality`` of a network is its error at the last 200 rows outside the tail, each judged before
    it was learnt from; that of the first fit's twin until there are ten.

    Parameters
    ----------
    refits
        Makes the first fit; those after it too, with ``updates="auto"``, while points are few.
    updates
        ``"greville"``, ``"moments"``, or ``"auto"`` for the cheaper one, once there are 25 points
        for each dimension, or 6 with gradients, those in the far tail counted as little as they
        weigh: before that a first whitening is not to be trusted with all that follows. Until
        then a network is fitted anew when there are a fifth more rows than the last one saw.
    rate
        Expected deployments for each evaluation.
    """

    refits: NetworkLearner
    updates: Literal["auto", "greville", "moments"]
    rate: float = 0.0
    _online: OnlineFit | None = attrs.field(default=None, init=False, repr=False)
    _kind: Literal["greville", "moments"] | None = attrs.field(default=None, init=False, repr=False)
    _bound: TailBound | None = attrs.field(default=None, init=False, repr=False)
    _n_fitted: int = attrs.field(default=0, init=False, repr=False)
    _last: FittedNetwork | None = attrs.field(default=None, init=False, repr=False)

    @property
    def needs(self) -> frozenset[str]:
        """What the first fit needs."""
        return self.refits.needs

    @property
    def uses(self) -> frozenset[str]:
        """What the first fit uses."""
        return self.refits.uses

    @property
    def provides(self) -> Capabilities:
        """What a fitted network can do."""
        return self.refits.provides

    @property
    def energy(self) -> Energy | None:
        """None: U itself is learnt."""
        return self.refits.energy

    @property
    def engine(self) -> Literal["greville", "moments"] | None:
        """What takes in rows; None as long as everything is kept and refitted."""
        return self._kind

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations; rows without a finite value are ignored.

        Raises
        ------
        ShapeError
            If the positions have another dimension than the problem.
        ConfigurationError
            If a value is NaN, or a position that has a value; the message names the row.
        """
        if self._online is None:
            self.refits.observe(evaluations)
            return
        rows = self._weight(self.refits.check(evaluations))
        self._online.judge(rows)
        self._online.absorb(rows)

    def fit(self) -> FittedNetwork:
        """Return the network fitted to everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        if self._online is not None:
            return self._online.network()
        n = len(self.refits.join_observed())
        if n < _GROWTH * self._n_fitted:
            return self._refit_last()
        rows = self.refits.rows()
        if not self._settles(rows):
            self._n_fitted, self._last = n, self._refit(self.refits.join_observed())
            return self._last
        fit = self.refits.make_fit()
        kind = self._engine_for(fit)
        # What the engine makes of the first rows, so that the next fit is the same to the last bit.
        online = self._start(fit, kind)
        network = online.network()
        self._online, self._kind = online, kind
        self.refits.forget()
        self._n_fitted, self._last = 0, None
        return network

    def _refit_last(self) -> FittedNetwork:
        """Return the last fit; made again by a learner that was written down since."""
        if self._last is None:
            self._last = self._refit(self.refits.join_observed().take(slice(0, self._n_fitted)))
        return self._last

    def _refit(self, evaluations: Evaluations) -> FittedNetwork:
        with_gradients = evaluations.gradients is not None
        bounded = attrs.evolve(self.refits, most_nodes=_FEW_NODES if with_gradients else None)
        network = bounded.of_rows(evaluations).fit()
        assert isinstance(network, FittedNetwork)
        return network

    def _settles(self, rows: TrainingRows) -> bool:
        """Return whether a fit to these rows may fix a frame for all that follow."""
        if self.updates != "auto":
            return True
        with_gradients = rows.trust[rows.with_gradient].sum()
        enough = with_gradients >= _LEAST_GRADIENTS * self.refits.dim
        return bool(enough or rows.trust.sum() >= _LEAST_VALUES * self.refits.dim)

    def _engine_for(self, fit: Fit) -> Literal["greville", "moments"]:
        if self.updates != "auto":
            return self.updates
        gradients = fit.regression.uses_gradients and bool(fit.rows.with_gradient.any())
        return cheaper(len(fit.frame.basis) + 1, self.refits.dim, gradients, self.rate)

    def _start(self, fit: Fit, kind: Literal["greville", "moments"]) -> OnlineFit:
        online = OnlineFit.of(kind, fit.regression, fit.frame)
        online.absorb(fit.rows)
        online.first = fit.network.quality
        observed = self.refits.join_observed()
        known = np.isfinite(observed.values) & np.isfinite(observed.positions).all(axis=1)
        self._bound = TailBound.of(observed.values[known], self.refits.dim)
        return online

    def _weight(self, evaluations: Evaluations) -> TrainingRows:
        assert self._bound is not None
        known = np.isfinite(evaluations.values) & np.isfinite(evaluations.positions).all(axis=1)
        self._bound = self._bound.lower(evaluations.values[known])
        return TrainingRows.of(evaluations, self.refits.training.tail, bound=self._bound)

    def state(self) -> dict[str, Any]:
        """Return all that has been learnt, and what the first fit has fixed."""
        state: dict[str, Any] = {
            "refits": self.refits.state(),
            "fitted": self._n_fitted,
            "online": None,
        }
        if self._online is not None:
            assert self._bound is not None
            assert self._kind is not None
            state["online"] = {
                "kind": self._kind,
                "bound": attrs.asdict(self._bound),
                "trend": self._online.regression.trend,
                "frame": _write(self._online.frame),
                "fit": self._online.state(),
            }
        return state

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = attrs.evolve(self, refits=self.refits.restore(state["refits"]))
        learner._n_fitted = int(state["fitted"])
        written = state["online"]
        if written is None:
            return learner
        kind: Literal["greville", "moments"] = written["kind"]
        trend: Trend = written["trend"]
        regression = attrs.evolve(self.refits.training.regression, trend=trend)
        online = OnlineFit.of(kind, regression, self._read(written["frame"]))
        online.restore(written["fit"])
        learner._online, learner._kind = online, kind
        learner._bound = TailBound(**written["bound"])
        return learner

    def _read(self, written: Mapping[str, Any]) -> Frame:
        mean = np.array(written["mean"], dtype=np.float64)
        network = self._nodes(written["nodes"], len(mean))
        trend = TrendFeatures(dim=len(mean), degree=1 if written["linear"] else 0)
        matrix, border = written["matrix"], written["border"]
        whitening = Whitening(mean=mean, factor=np.array(written["factor"], dtype=np.float64))
        return Frame(
            whitening=whitening,
            basis=Basis(trend=trend, network=network),
            matrix=None if matrix is None else np.array(matrix, dtype=np.float64),
            origin=float(written["origin"]),
            ridge=float(written["ridge"]),
            border=None if border is None else Border(whitening=whitening, **border),
        )

    def _nodes(self, arrays: Mapping[str, FloatArray], dim: int) -> Nodes:
        """Return nodes of the learner's own kind with the parameters that were written down."""
        drawn = self.refits.draws[0](np.zeros((1, dim)), 1, np.random.default_rng(0))
        known = {name: np.array(array, dtype=np.float64) for name, array in arrays.items()}
        if isinstance(drawn, AdditiveNodes):
            return attrs.evolve(drawn, directions=known["directions"], biases=known["biases"])
        return RbfNodes(centres=known["centres"], square_widths=known["square_widths"])


def _write(frame: Frame) -> dict[str, Any]:
    nodes, border = frame.basis.network, frame.border
    if isinstance(nodes, AdditiveNodes):
        arrays = {"directions": nodes.directions, "biases": nodes.biases}
    else:
        assert isinstance(nodes, RbfNodes)
        arrays = {"centres": nodes.centres, "square_widths": nodes.square_widths}
    return {
        "mean": frame.whitening.mean,
        "factor": frame.whitening.factor,
        "linear": frame.basis.trend.degree == 1,
        "nodes": arrays,
        "matrix": frame.matrix,
        "origin": frame.origin,
        "ridge": frame.ridge,
        "border": None if border is None else {"radius": border.radius, "height": border.height},
    }
