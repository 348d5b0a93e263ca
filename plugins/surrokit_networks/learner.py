"""The learner that every network shares: it keeps all rows, and fits to all of them.

Size, scale and trend are chosen by small networks that go ahead. Fits to the same rows in the same
coordinates are comparable by their generalised cross-validation errors. Measured on targets with
two modes, heavy tails, curved ridges and none of these: the choice comes within a factor of two of
the best scale and trend, where a fixed one can be a thousand times worse; it beats one held-out
fifth. Six networks of 300 nodes take some tenths of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import CapabilityError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.potentials import Energy, Potential
from surrokit.surrogate.quality import KeepingLearner, expected_acceptance
from surrokit.surrogate.training import least_points
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.functions import gradient_of_energy
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_networks.border import Border
from surrokit_networks.frame import Frame, LinearPosterior
from surrokit_networks.nodes import Nodes
from surrokit_networks.potentials import (
    CAPABILITIES,
    NORMAL,
    FittedEmulator,
    FittedNetwork,
    emulator_capabilities,
)
from surrokit_networks.regression import Regression
from surrokit_networks.training import Training
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import Trend

_LEAST_WITH_GRADIENTS = 2
"""Points that a fit needs where each comes with its gradient."""

Draw = Callable[[FloatArray, int, np.random.Generator], Nodes]
"""From whitened training positions (n, dim), a number of nodes, and a generator."""

N_NODES = 300
"""Nodes of a small network."""

FINE_SIZES = (400, 3000)
"""Nodes that learn outputs at least and at most, where accuracy is worth more than speed."""

_FLAT = 2.0
"""Handicap of a linear trend."""

_EQUATIONS = 10_000
"""Equations that a small network is fitted to, at most."""

_GAIN = 0.02
"""Acceptance that nodes have to bring where outputs are learnt: a fiftieth."""

_GOOD = 0.9
"""Acceptance of a trend alone from which on it is under all nodes that are tried."""


def default_size(dim: int, n_values: int, n_gradients: int) -> int:
    """Return how many nodes a network gets, by default.

    Measured at fixed points on logistic, quartic and banana targets. On values alone, with the
    ridge chosen from the data, more nodes than points are always better, by a factor of two in the
    gradient's error from s = 2 n / 3 to s = 4 n / 3. With gradients the trend takes most of the
    work, and from 400 nodes on the error hardly falls; what nodes cost is the leapfrog's time.
    """
    if n_gradients:
        return int(np.clip(100 * dim, 400, 1000))
    return min(200 * dim, int(np.clip(2 * n_values, 1000, 2000)))


def fine_size(n_equations: int) -> int:
    """Return how many nodes learn outputs where accuracy is worth more than speed.

    Measured on the elliptic equation with 20 parameters: from 295 points with Jacobians the sd of
    V - U is 0.096 nats by a trend alone, and 0.072, 0.046 and 0.032 with 1,000, 2,000 and 3,000
    nodes. A gradient for 32 positions then takes 0.1, 0.4, 0.7 and 1.1 milliseconds. Equations are
    those of each output: points, and their derivatives.
    """
    return int(np.clip(n_equations // 2, *FINE_SIZES))


@attrs.frozen(kw_only=True, eq=False)
class Candidate:
    """A way to draw nodes, and a trend under them.

    A trend that does not grow in every direction lets paths run off, and must be better by its
    handicap, a factor on its error.
    """

    draw: Draw
    trend: Trend
    handicap: float = 1.0


def candidates(draws: Sequence[Draw], trend: Trend) -> list[Candidate]:
    """Return every pair of a way to draw nodes and a trend; ``"auto"`` gives two trends."""
    if trend != "auto":
        return [Candidate(draw=draw, trend=trend) for draw in draws]
    flat = [Candidate(draw=draw, trend="linear", handicap=_FLAT) for draw in draws]
    return [Candidate(draw=draw, trend="auto") for draw in draws] + flat


def pilot_rows(rows: TrainingRows, n_equations: int, rng: np.random.Generator) -> TrainingRows:
    """Return rows for small networks: all, or a random part where they make many equations."""
    share = _EQUATIONS / n_equations
    if share >= 1.0:
        return rows
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[rng.permutation(len(rows))[: max(2, int(share * len(rows)))]] = True
    return rows.take(chosen)


def best_of(ways: Sequence[Candidate], error: Callable[[Candidate], float]) -> Candidate:
    """Return the way with the least error; the first of them where none can be fitted.

    The error is that of a small network, and may raise SurrogateFitError.
    """
    return ways[0] if len(ways) == 1 else _best_of(ways, error)[0]


def simplest_of(
    ways: Sequence[Candidate], trend: Trend, variance: Callable[[Candidate], float]
) -> Candidate:
    """Return the trend alone where nodes hardly raise the acceptance, else the best of the ways.

    A trend alone is fitted in a hundredth of the time, and its gradients take a third. The variance
    is that of V - U which a small network leads to expect, and may raise SurrogateFitError.
    """
    alone = Candidate(draw=no_nodes, trend=trend)
    accepted = expected_acceptance(_or_infinite(alone, variance))
    if accepted >= 1.0 - _GAIN:
        return alone
    if accepted >= _GOOD:  # then nodes need not do without that trend
        ways = [way for way in ways if way.trend == trend] or ways
    best, error = _best_of(ways, variance)
    return best if expected_acceptance(error) >= accepted + _GAIN else alone


def no_nodes(whitened: FloatArray, size: int, rng: np.random.Generator) -> Nodes:
    """Return no nodes: a way to draw them that leaves the trend alone."""
    del size, rng
    return Nodes.none(whitened.shape[1])


def _best_of(
    ways: Sequence[Candidate], error: Callable[[Candidate], float]
) -> tuple[Candidate, float]:
    errors = [way.handicap * _or_infinite(way, error) for way in ways]
    best = int(np.argmin(errors))
    return ways[best], errors[best] / ways[best].handicap


def _or_infinite(way: Candidate, error: Callable[[Candidate], float]) -> float:
    try:
        return error(way)
    except SurrogateFitError:
        return float("inf")


class KnownPart(Protocol):
    """A part of U that is taken as it is."""

    @property
    def capabilities(self) -> Capabilities:
        """What it offers."""

    def part(self, whitening: Whitening) -> tuple[Potential | None, FloatArray]:
        """Return it, None for nothing, and the matrix (dim, dim) that the rest is to have."""


@attrs.frozen(kw_only=True, eq=False)
class Fit:
    """A network of U, and what it was made of."""

    regression: Regression
    frame: Frame
    network: FittedNetwork
    rows: TrainingRows


@attrs.frozen(kw_only=True, eq=False)
class Task:
    """What there is to fit, U or what a known part leaves of it, and in which coordinates."""

    rows: TrainingRows
    whitening: Whitening
    known: Potential | None = None
    expected: FloatArray | None = None


@attrs.define(kw_only=True, eq=False)
class NetworkLearner(KeepingLearner):
    """Fits a network to all that was observed; the seed draws the same nodes at every fit.

    Parameters
    ----------
    n_nodes
        How many nodes; None to choose by dimension and data. With more values there may be
        more nodes; those that were there before stay.
    draws
        Ways to draw the nodes; with several the best one is chosen.
    energy
        Of a forward potential whose outputs are learnt; None to learn U itself.
    convex
        Whether every network fitted is a positive definite quadratic, without any node.
    most_nodes
        A bound on the nodes where their number is left to the learner.
    known
        What is taken of U as it is; the network is fitted to the rest, and both are added.
    bordered
        Whether nodes are used near the rows alone, where U is learnt as a whole; see
        :class:`~surrokit_networks.border.Border`.
    fine
        Whether accuracy is worth more than speed, where outputs are learnt and all is left to the
        learner: there are nodes in any case, and more of them with more points.
    """

    n_nodes: int | None
    draws: tuple[Draw, ...]
    training: Training
    energy: Energy | None = None
    convex: bool = False
    most_nodes: int | None = None
    known: KnownPart | None = None
    bordered: bool = False
    fine: bool = False

    @classmethod
    def of(
        cls,
        problem: LearningProblem,
        rng: np.random.Generator,
        *,
        n_nodes: int | None,
        draws: tuple[Draw, ...],
        training: Training,
        convex: bool = False,
        known: KnownPart | None = None,
    ) -> NetworkLearner:
        """Return a learner for a problem; the seed of its nodes is drawn here.

        Raises
        ------
        CapabilityError
            If outputs are to be learnt of a target that has none.
        """
        energy = None if training.learns == "potential" else problem.energy
        if training.learns == "outputs" and energy is None:
            raise CapabilityError(
                "learns='outputs' needs a target with a forward map, which this one has not; make "
                "it with surrokit.forward_potential, or use learns='auto'"
            )
        has = problem.capabilities
        if training.learns == "auto" and can.GRADIENT in has and can.JACOBIAN not in has:
            energy = None
        return cls(
            dim=problem.dim,
            seed=int(rng.integers(2**53)),
            n_nodes=n_nodes,
            draws=draws,
            training=training,
            energy=energy,
            convex=convex and energy is None,
            known=known,
            bordered=problem.is_density and training.whiten,
            fine=problem.is_weighed,
        )

    @property
    def needs(self) -> frozenset[str]:
        """Values, or outputs; and their derivatives where it trains on nothing else."""
        train_on = self.training.regression.train_on
        needed = {"value"} if self.energy is None else {"value", "outputs"}
        return frozenset(needed | (set() if train_on in ("auto", "values") else self._derivatives))

    @property
    def uses(self) -> frozenset[str]:
        """What it needs, and derivatives where there are any, unless it trains on values alone."""
        return self.needs | (
            self._derivatives if self.training.regression.uses_gradients else frozenset()
        )

    @property
    def provides(self) -> Capabilities:
        """What a fitted network, or an emulator of a forward map, can do."""
        if self.energy is not None:
            return emulator_capabilities(self.energy)
        own = CAPABILITIES | NORMAL if self.convex else CAPABILITIES
        return own if self.known is None else own & self.known.capabilities

    @property
    def _derivatives(self) -> frozenset[str]:
        return frozenset({"gradient"} if self.energy is None else {"jacobian"})

    def fit(self) -> FittedNetwork | FittedEmulator:
        """Return the network, or the emulator, fitted anew to everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        if self.energy is None:
            return self.make_fit(keeps_idle=False).network
        task, regression, nodes, held = self._prepare()
        return regression.fit_outputs(self.energy, nodes, task.whitening, task.rows, held)

    def posterior(self) -> LinearPosterior:
        """Return how unsure the weights of the fitted network are; it takes another fit.

        For a network that learns the potential itself, and the whole of it.

        Raises
        ------
        SurrogateFitError
            As :meth:`fit`.
        """
        fit = self.make_fit(keeps_idle=False)
        origin = float(fit.frame.origin[0])
        equations = fit.regression.equations(fit.rows, fit.frame.whitening, origin)
        return LinearPosterior.of(fit.frame, equations, fit.network.degrees)

    def make_fit(self, *, keeps_idle: bool = True) -> Fit:
        """Return the network of the potential itself that ``fit`` returns, and what it was made of.

        Nodes that are not worth their time, which ``fit`` leaves out, stay if ``keeps_idle``.

        Raises
        ------
        SurrogateFitError
            As :meth:`fit`.
        """
        assert self.energy is None
        task, regression, nodes, held = self._prepare()
        frame, network = regression.fit(
            nodes, task.whitening, task.rows, held, keeps_idle=keeps_idle
        )
        bordered = self.bordered and self.known is None
        border = Border.about(task.whitening, task.rows) if bordered else None
        most = None if self.known is None else self.known.capabilities
        network = attrs.evolve(
            network, convex=self.convex, border=border, known=task.known, most=most
        )
        frame = attrs.evolve(frame, border=border)
        return Fit(regression=regression, frame=frame, network=network, rows=task.rows)

    def _prepare(self) -> tuple[Task, Regression, Nodes, BoolArray | None]:
        """Return what there is to fit and how, the nodes, and which rows are held out."""
        rows = self.rows()
        task = Task(rows=rows, whitening=self.training.whitening(rows))
        if self.known is not None:
            known, matrix = self.known.part(task.whitening)
            left = rows if known is None else rows.less(known)
            task = attrs.evolve(task, rows=left, known=known, expected=matrix)
        way = self._choose(task)
        whitened = task.whitening.apply(task.rows.positions)
        nodes = way.draw(whitened, self._size(task.rows), np.random.default_rng(self.seed))
        held = self.training.choose_held_out(task.rows, np.random.default_rng([self.seed, 1]))
        return task, self._regression(way, task), nodes, held

    def _choose(self, task: Task) -> Candidate:
        """Return how nodes are drawn, and the trend, by small networks of each kind."""
        rows, whitening = task.rows, task.whitening
        n_equations = len(rows) + self.dim * int(self._with_derivatives(rows).sum())
        size = min(self._size(rows), N_NODES)
        part = pilot_rows(rows, n_equations, np.random.default_rng([self.seed, 2]))
        whitened = whitening.apply(part.positions)

        def error(way: Candidate) -> float:
            nodes = way.draw(whitened, size, np.random.default_rng(self.seed))
            regression = self._regression(way, task)
            if self.energy is not None:
                return regression.expected_variance(self.energy, nodes, whitening, part)
            return regression.fit(nodes, whitening, part)[1].gcv_error

        trend = self.training.trend
        ways = candidates(self.draws, trend)
        given = (self.n_nodes, self.training.regression.ridge)
        if self.energy is not None and given == (None, None) and not self.fine:
            return simplest_of(ways, trend, error)
        return best_of(ways, error)

    def _size(self, rows: TrainingRows) -> int:
        if self.n_nodes is not None:
            return self.n_nodes
        n_derivatives = int(self._with_derivatives(rows).sum())
        size = default_size(self.dim, len(rows), n_derivatives)
        if self.fine and self.energy is not None and n_derivatives:
            size = fine_size(len(rows) + self.dim * n_derivatives)
        return size if self.most_nodes is None else min(size, self.most_nodes)

    def _regression(self, way: Candidate, task: Task) -> Regression:
        regression = self.training.regression
        return attrs.evolve(regression, trend=way.trend, expected=task.expected)

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return what is used alone: Jacobians of large maps take memory."""
        derivatives, maps = self.training.regression.uses_gradients, self.energy is not None
        return Evaluations(
            positions=evaluations.positions,
            values=evaluations.values,
            gradients=self._gradients(evaluations) if derivatives else None,
            outputs=evaluations.outputs if maps else None,
            jacobians=evaluations.jacobians if maps and derivatives else None,
            weights=evaluations.weights,
        )

    def _gradients(self, evaluations: Evaluations) -> FloatArray | None:
        """Return gradients of U, made from Jacobians where none was handed over."""
        outputs, jacobians = evaluations.outputs, evaluations.jacobians
        if self.energy is None or outputs is None or jacobians is None:
            return evaluations.gradients
        with np.errstate(all="ignore"):
            _, made = gradient_of_energy(self.energy, outputs, jacobians, evaluations.positions)
        if evaluations.gradients is None:
            return made
        return np.where(np.isfinite(evaluations.gradients), evaluations.gradients, made)

    def _with_derivatives(self, rows: TrainingRows) -> BoolArray:
        return rows.with_gradient if self.energy is None else rows.with_jacobian

    def rows(self) -> TrainingRows:
        """Return what a fit would learn from.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value.
        """
        observed = self.join_observed()
        if self.energy is not None and observed.outputs is None:
            raise SurrogateFitError(
                "a network that learns the outputs of a forward map got no evaluations with "
                "outputs; pass such, or learn the potential: learns='potential'"
            )
        rows = TrainingRows.of(observed, self.training.tail, needs_outputs=self.energy is not None)
        known = np.count_nonzero(self._with_derivatives(rows))
        enough = _LEAST_WITH_GRADIENTS
        rows.demand_enough(enough if known >= enough else least_points(self.dim), len(observed))
        return rows
