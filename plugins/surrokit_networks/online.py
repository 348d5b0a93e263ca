"""The learner that takes in rows without keeping them: ARNS-HMC's, Algorithm 4 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.training import are_finite
from surrokit.surrogate.whitening import Whitening
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.border import Border
from surrokit_networks.equations import (
    Basis,
    Equations,
    NormalEquations,
    join,
    normal_equations,
    write_out,
)
from surrokit_networks.frame import Frame
from surrokit_networks.greville import Greville, RowSums
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.least_squares import Projected, expected_error, triangle_of
from surrokit_networks.network import Network
from surrokit_networks.potentials import FittedNetwork
from surrokit_networks.regression import Regression
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

_PENDING = 512
"""Positions that are kept at most until they are taken in together."""

_KEPT, _LEAST_JUDGED = 200, 10
"""Rows that the estimate of the error looks back on, and below which there is none."""

_MANY_ROWS = 3
"""Part of the columns in rows from which on solving sums takes less time than updates."""

_MANY = 2e10
"""Operations from which on first equations are summed up, although that costs half the digits:
sums over gradients do without a factor of dim, and ridges that are chosen from sums are no smaller
than these can bear."""

_NUMBERS: Mapping[str, Any] = {
    "count": float,
    "total_weight": float,
    "n_points": int,
    "chosen_at": float,
}


@attrs.define(kw_only=True, eq=False)
class OnlineFit:
    """The least-squares fit of one frame to rows that come in blocks and are not kept.

    A position is a row for its value and ``dim`` rows for its gradient, each times the root of its
    weight. Equations are taken in when a network is asked for: the first by orthogonal
    transformations, later ones by Proposition 1 (:class:`~surrokit_networks.greville.Greville`).
    Where there is a ridge and rows are many, which gradients soon make, they go into the sums that
    it keeps, and these are solved: that takes less time.

    Parameters
    ----------
    n_points
        Points; one that comes again in a later block counts again.
    judged : ndarray of shape (n, 3)
        Of the last rows V - U, |L^T grad(V - U)|^2 and |L^T grad U|^2, before they were learnt
        from; NaN where no gradient is known.
    first
        The error of the first fit, until enough rows were judged.
    chosen_at
        Independent equations from which the ridge was chosen.
    deployed : ndarray of shape (1 + k,) or None
        Level and coefficients of the last network that was asked for.
    """

    regression: Regression
    frame: Frame
    engine: Greville | None = None
    count: float = 0.0
    total_weight: float = 0.0
    n_points: int = 0
    judged: FloatArray = attrs.field(factory=lambda: np.empty((0, 3)))
    first: FitQuality | None = None
    chosen_at: float = 0.0
    deployed: FloatArray | None = None
    _pending: list[Equations] = attrs.field(factory=list, init=False, repr=False)

    @property
    def _lead(self) -> int:
        return int(self.regression.trains_level)

    def absorb(self, rows: TrainingRows) -> None:
        """Take in rows.

        Raises
        ------
        SurrogateFitError
            If the first of them cannot be fitted.
        """
        if not len(rows):
            return
        frame = self.frame
        left = self.regression.equations(rows, frame.whitening, float(frame.origin[0]))
        equations = frame.less(left)
        self._pending.append(equations)
        self.count += equations.count
        self.total_weight += equations.total_weight
        self.n_points += len(rows)
        self.chosen_at = self.chosen_at or self.count
        if frame.border is not None:
            self.frame = attrs.evolve(frame, border=frame.border.widen(rows))
        if self.engine is None or sum(map(len, self._pending)) >= _PENDING:
            self._take_in()

    def _take_in(self) -> None:
        if not self._pending:
            return
        equations, self._pending = join(self._pending), []
        basis = self.frame.basis
        try:
            if self.engine is None:
                self.engine = self._start(equations)
            elif self.frame.ridge > 0.0 and _MANY_ROWS * equations.n_rows > len(basis):
                sums = self.engine.sums.plus(self._sums(equations))
                self.engine = Greville.of_sums(sums)
            else:
                for rows in write_out(basis, equations):
                    self.engine.update(np.ascontiguousarray(rows[:, :-1]), rows[:, -1])
        except np.linalg.LinAlgError as error:
            raise _unsolved(error) from error

    def _start(self, equations: Equations) -> Greville:
        basis, ridge = self.frame.basis, self.frame.ridge
        n_free = self._lead + basis.n_trend
        if ridge > 0.0 and equations.n_rows * len(basis) ** 2 > _MANY:
            return Greville.of_sums(self._sums(equations))
        triangle = triangle_of(write_out(basis, equations))
        return Greville.of_rows(triangle[:, :-1], triangle[:, -1], n_free=n_free, ridge=ridge)

    def _sums(self, equations: Equations) -> RowSums:
        normal = normal_equations(self.frame.basis, equations)
        n_free = self._lead + self.frame.basis.n_trend
        return RowSums.of(normal, n_free=n_free, ridge=self.frame.ridge)

    def judge(self, rows: TrainingRows) -> None:
        """Compare the last network with rows outside the far tail, before they are taken in.

        This is the prequential rule (Dawid 1984, J. R. Stat. Soc. A 147(2)). The network changes,
        so the estimate lags behind it by some of the rows that it looks back on.
        """
        rows = rows.take(rows.trust == 1.0)
        if not len(rows) or self.deployed is None:
            return
        values, slopes = self._map(self.deployed).value_and_gradient(rows.positions)
        lengths = (
            np.square(part @ self.frame.whitening.factor).sum(axis=1)
            for part in (slopes - rows.gradients, rows.gradients)
        )
        more = np.column_stack([values - rows.values, *lengths])
        self.judged = np.concatenate([self.judged, more])[-_KEPT:]

    @property
    def quality(self) -> FitQuality | None:
        """The error at the last rows; that of the first fit as long as there are few."""
        if len(self.judged) < _LEAST_JUDGED:
            return self.first
        known = self.judged[np.isfinite(self.judged[:, 1:]).all(axis=1), 1:].sum(axis=0)
        return FitQuality(
            variance=float(np.var(self.judged[:, 0])),
            gradient_error=float(np.sqrt(known[0] / known[1])) if known[1] > 0.0 else None,
            n_points=len(self.judged),
        )

    def network(self) -> FittedNetwork:
        """Return the network that fits everything so far best.

        Raises
        ------
        SurrogateFitError
            If its weights are not finite.
        """
        self._take_in()
        assert self.engine is not None
        if self.regression.ridge is None and self.count >= 2.0 * self.chosen_at:
            self.choose_ridge()
        if self.engine.unchecked:
            self.engine.check()
        engine = self.engine
        # a level that is not fitted comes first, too
        found = np.concatenate([np.zeros(1 - self._lead), engine.solution])
        if not np.isfinite(found).all():
            raise _unsolved("weights are not finite")
        self.deployed = found
        squares = engine.sums.squared_error(engine.solution)
        return FittedNetwork(
            network=self._map(found),
            n_points=self.n_points,
            ridge=self.frame.ridge,
            degrees=engine.degrees,
            gcv_error=expected_error(self.count, self.total_weight, squares, engine.degrees),
            border=self.frame.border,
            quality=self.quality,
        )

    def _map(self, found: FloatArray) -> Network:
        """Return the map with a level and coefficients (1 + k,)."""
        parts = np.split(found[:, None], [1, 1 + self.frame.basis.n_trend])
        return self.frame.network(parts[0][0], *parts[1:])

    def choose_ridge(self) -> None:
        """Choose the ridge anew from the sums, by generalised cross-validation.

        Few rows want a larger ridge than many do. Measured on a logistic posterior in 20
        dimensions, in the frame of 160 values: with 650 values Var(V - U) is 0.13 where the ridge
        follows, and 0.29 where it does not; with 1300 values 0.09 and 0.14.
        """
        assert self.engine is not None
        self.chosen_at = self.count
        sums, lead = self.engine.sums, self._lead
        whole = sums.whole_gram()
        normal = NormalEquations(
            gram=whole,
            right=sums.right[:, None],
            squares=np.array([sums.squares]),
            mass=float(whole[0, 0]) if lead else 0.0,
        )
        try:
            projected = Projected.of(normal, self.frame.basis.n_trend, bool(lead))
            ridge = projected.spectrum().cross_validated(self.count)
            self.engine = Greville.of_sums(attrs.evolve(sums, ridge=ridge))
        except np.linalg.LinAlgError:
            return  # it stays what it was
        self.frame = attrs.evolve(self.frame, ridge=ridge)

    def state(self) -> dict[str, Any]:
        """Return all that changes, as plain arrays and numbers."""
        self._take_in()
        assert self.engine is not None
        state: dict[str, Any] = {name: getattr(self, name) for name in _NUMBERS}
        return {
            **state,
            "judged": self.judged.copy(),
            "deployed": None if self.deployed is None else self.deployed.copy(),
            "first": None if self.first is None else attrs.asdict(self.first),
            "engine": self.engine.state(),
        }

    @classmethod
    def restore(cls, regression: Regression, frame: Frame, state: Mapping[str, Any]) -> Self:
        """Return a fit that goes on from what ``state`` returned."""
        deployed, first = state["deployed"], state["first"]
        return cls(
            regression=regression,
            frame=frame,
            **{name: kind(state[name]) for name, kind in _NUMBERS.items()},
            judged=np.array(state["judged"], dtype=np.float64),
            deployed=None if deployed is None else np.array(deployed, dtype=np.float64),
            first=None if first is None else FitQuality(**first),
            engine=Greville.restore(state["engine"]),
        )


def _unsolved(why: object) -> SurrogateFitError:
    return SurrogateFitError(
        f"the online least-squares problem of the network could not be solved ({why}); use "
        "updates='refit', whiten=True and ridge=None, or rescale the parameters"
    )


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
    more seldom. Otherwise nothing but the weights changes. Rows in the far tail count less, by
    their excess over the least value known when they arrive; what was taken in before a lower value
    came keeps its weight. A point that comes twice in two blocks counts as two.

    ``online`` is the fit that takes in rows, None as long as everything is kept and refitted.
    ``quality`` of a network is its error at the last 200 rows outside the tail, each judged before
    it was learnt from; that of the first fit's twin until there are ten.

    Parameters
    ----------
    refits
        Makes the first fit; those after it too, with ``updates="auto"``, while points are few.
    updates
        ``"greville"``, or ``"auto"`` for that once there are 25 points for each dimension, or 6
        with gradients, those in the far tail counted as little as they weigh: before that a first
        whitening is not to be trusted. Until then a network is fitted anew when there are a fifth
        more rows than the last one was fitted to.
    """

    refits: NetworkLearner
    updates: Literal["auto", "greville"]
    online: OnlineFit | None = attrs.field(default=None, init=False, repr=False)
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

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations; rows without a finite value are ignored.

        Raises
        ------
        ShapeError
            If the positions have another dimension than the problem.
        ConfigurationError
            If a value is NaN, or a position that has a value; the message names the row.
        """
        if self.online is None:
            self.refits.observe(evaluations)
            return
        rows = self.weigh(self.refits.check(evaluations))
        self.online.judge(rows)
        self.online.absorb(rows)

    def fit(self) -> FittedNetwork:
        """Return the network fitted to everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        if self.online is not None:
            return self.online.network()
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
        self.online = online
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
        if self.online is None:
            return {**state, "online": None}
        assert self._bound is not None
        return {
            **state,
            "online": {
                "bound": attrs.asdict(self._bound),
                "trend": self.online.regression.trend,
                "frame": _write(self.online.frame),
                "fit": self.online.state(),
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
        learner.online = OnlineFit.restore(regression, self._read(written["frame"]), written["fit"])
        learner._bound = TailBound(**written["bound"])
        return learner

    def _read(self, written: Mapping[str, Any]) -> Frame:
        def array(name: str) -> FloatArray:
            return np.array(written[name], dtype=np.float64)

        dim = len(written["mean"])
        whitening = Whitening(mean=array("mean"), factor=array("factor"))
        drawn = self.refits.draws[0](np.zeros((1, dim)), 1, np.random.default_rng(0))
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
