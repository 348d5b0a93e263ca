"""The learner that takes in rows without keeping them: ARNS-HMC's, Algorithm 4 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.potentials import Energy
from surrokit.surrogate.training import are_finite
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.border import Border
from surrokit_networks.equations import Basis
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.online_fit import OnlineFit
from surrokit_networks.pilot import Draw
from surrokit_networks.potentials import FittedNetwork
from surrokit_networks.regression import Frame
from surrokit_networks.training import Training
from surrokit_networks.training_rows import TailBound, TrainingRows
from surrokit_networks.trend import Trend, TrendColumns

_LEAST_VALUES, _LEAST_GRADIENTS = 25, 6
"""Points for each dimension, without and with gradients, from which on a whitening is trusted. The
points of a few paths have another covariance than the target: from 10 values for each dimension on
the paper's simulated regression the acceptance stayed at three quarters of what refits reached."""

_FEW_NODES = 400
"""Nodes, at most, of the fits before that, where there are gradients: from 400 on the error hardly
falls, and the time of a fit grows with the cube."""

_GROWTH = 1.2
"""By how much rows must have grown before everything is fitted anew."""


def learner_of(
    problem: LearningProblem,
    rng: np.random.Generator,
    *,
    n_nodes: int | None,
    draws: tuple[Draw, ...],
    training: Training,
) -> NetworkLearner | OnlineLearner:
    """Return the learner of a network as its ``updates`` and the problem want it.

    An emulator of a forward map is always refitted; ``updates="auto"`` refits where the schedule
    deploys once.

    Parameters
    ----------
    problem
        What is to be learnt, and how often it is deployed.
    rng, n_nodes, draws, training
        See :meth:`NetworkLearner.of`.

    Raises
    ------
    CapabilityError
        If outputs are to be learnt of a target that has none.
    ConfigurationError
        If online updates are asked for where outputs are learnt.
    """
    learner = NetworkLearner.of(problem, rng, n_nodes=n_nodes, draws=draws, training=training)
    if learner.energy is not None and training.updates == "greville":
        raise ConfigurationError(
            "updates='greville' is for networks that learn the potential, but this one learns "
            "the outputs of a forward map; use learns='potential', or updates='refit'"
        )
    once = learner.energy is not None or problem.deployment_rate == 0.0
    if training.updates == "refit" or (training.updates == "auto" and once):
        return learner
    return OnlineLearner(refits=learner, updates=training.updates)


@attrs.define(kw_only=True, eq=False)
class OnlineLearner:
    """Fits a network once to all there is, and from then on takes in rows at O(s^2) each.

    The first fit is that of :class:`~surrokit_networks.learner.NetworkLearner`, solved once more by
    the engine, which changes it by rounding errors only. It fixes whitening, nodes, the matrix of
    the trend, the origin of values and the ridge. Its rows, and all that are observed later, go
    into the engine and are dropped: memory does not grow with them. Each fit after that is the
    least-squares solution in the same frame to all rows so far.

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
        ``"greville"``, or ``"auto"`` for that once there are 25 points for each dimension, or 6
        with gradients, those in the far tail counted as little as they weigh: before that a first
        whitening is not to be trusted with all that follows. Until then a network is fitted anew
        when there are a fifth more rows than the last one was fitted to.
    """

    refits: NetworkLearner
    updates: Literal["auto", "greville"]
    _online: OnlineFit | None = attrs.field(default=None, init=False, repr=False)
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
    def online(self) -> OnlineFit | None:
        """The fit that takes in rows; None as long as everything is kept and refitted."""
        return self._online

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
        rows = self.weigh(self.refits.check(evaluations))
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
        observed = self.refits.join_observed()
        n = len(observed)
        if n < _GROWTH * self._n_fitted:
            if self._last is None:  # in a learner that was restored since
                self._last = self._refit(observed.take(slice(0, self._n_fitted)))
            return self._last
        if not self._settles(self.refits.rows()):
            self._n_fitted, self._last = n, self._refit(observed)
            return self._last
        fit = self.refits.make_fit()
        online = OnlineFit(regression=fit.regression, frame=fit.frame, first=fit.network.quality)
        online.absorb(fit.rows)
        # What the engine makes of the first rows, so that the next fit is the same to the last bit.
        network = online.network()
        self._bound = TailBound.of(observed.values[are_finite(observed)], self.refits.dim)
        self._online = online
        self.refits.forget()
        self._n_fitted, self._last = 0, None
        return network

    def _refit(self, evaluations: Evaluations) -> FittedNetwork:
        with_gradients = evaluations.gradients is not None
        bounded = attrs.evolve(self.refits, most_nodes=_FEW_NODES if with_gradients else None)
        network = bounded.of_rows(evaluations).fit()
        assert isinstance(network, FittedNetwork)
        return network

    def _settles(self, rows: TrainingRows) -> bool:
        """Return whether a fit to these rows may fix a frame for all that follow."""
        if self.updates == "greville":
            return True
        with_gradients = rows.trust[rows.with_gradient].sum()
        enough = with_gradients >= _LEAST_GRADIENTS * self.refits.dim
        return bool(enough or rows.trust.sum() >= _LEAST_VALUES * self.refits.dim)

    def weigh(self, evaluations: Evaluations) -> TrainingRows:
        """Return rows with their weights by the least value known, theirs included."""
        assert self._bound is not None
        self._bound = self._bound.lower(evaluations.values[are_finite(evaluations)])
        return TrainingRows.of(evaluations, self.refits.training.tail, bound=self._bound)

    def state(self) -> dict[str, Any]:
        """Return all that has been learnt, and what the first fit has fixed."""
        state: dict[str, Any] = {"refits": self.refits.state(), "fitted": self._n_fitted}
        if self._online is None:
            return {**state, "online": None}
        assert self._bound is not None
        return {
            **state,
            "online": {
                "bound": attrs.asdict(self._bound),
                "trend": self._online.regression.trend,
                "frame": _write(self._online.frame),
                "fit": self._online.state(),
            },
        }

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = attrs.evolve(self, refits=self.refits.restore(state["refits"]))
        learner._n_fitted = int(state["fitted"])
        written = state["online"]
        if written is None:
            return learner
        trend: Trend = written["trend"]
        regression = attrs.evolve(self.refits.training.regression, trend=trend)
        learner._online = OnlineFit(regression=regression, frame=self._read(written["frame"]))
        learner._online.restore(written["fit"])
        learner._bound = TailBound(**written["bound"])
        return learner

    def _read(self, written: Mapping[str, Any]) -> Frame:
        def array(name: str) -> FloatArray:
            return np.array(written[name], dtype=np.float64)

        dim = len(written["mean"])
        whitening = Whitening(mean=array("mean"), factor=array("factor"))
        drawn = self.refits.draws[0](np.zeros((1, dim)), 1, np.random.default_rng(0))
        assert drawn is not None
        nodes = attrs.evolve(
            drawn,
            vectors=array("vectors"),
            offsets=array("offsets"),
            curvatures=None if written["curvatures"] is None else array("curvatures"),
        )
        trend, border = TrendColumns(dim=dim, degree=written["degree"]), written["border"]
        return Frame(
            whitening=whitening,
            basis=Basis(trend=trend, network=nodes),
            matrix=None if written["matrix"] is None else array("matrix"),
            origin=array("origin"),
            ridge=float(written["ridge"]),
            border=None if border is None else Border(whitening=whitening, **border),
        )


def _write(frame: Frame) -> dict[str, Any]:
    nodes, border = frame.basis.network, frame.border
    assert nodes is not None
    return {
        "mean": frame.whitening.mean,
        "factor": frame.whitening.factor,
        "degree": frame.basis.trend.degree,
        "vectors": nodes.vectors,
        "offsets": nodes.offsets,
        "curvatures": nodes.curvatures,
        "matrix": frame.matrix,
        "origin": frame.origin,
        "ridge": frame.ridge,
        "border": None if border is None else {"radius": border.radius, "height": border.height},
    }
