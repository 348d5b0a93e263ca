"""The learner that every network shares."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.contracts.forward import Energy
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.potential import Potential
from surrokit.errors import SurrogateFitError
from surrokit.surrogate.distinct import least_points
from surrokit.surrogate.keeping import KeepingLearner
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.outputs import gradient_of_energy
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_networks.learner.exact_rows import ExactRows
from surrokit_networks.learner.fitted_sum import FittedSum, sum_capabilities
from surrokit_networks.learner.pilot import (
    N_NODES,
    Candidate,
    Draw,
    best_of,
    candidates,
    leanest_of,
    pilot_rows,
)
from surrokit_networks.learner.size import TRAINED_SIZE, default_size, fine_size
from surrokit_networks.learner.training import Training
from surrokit_networks.nodes.nodes import Nodes
from surrokit_networks.outputs.emulator import FittedEmulator, emulator_capabilities
from surrokit_networks.outputs.regression import OutputRegression
from surrokit_networks.regression.border import Border
from surrokit_networks.regression.fitted import CAPABILITIES, NORMAL, FittedNetwork
from surrokit_networks.regression.frame import Frame
from surrokit_networks.regression.posterior import LinearPosterior
from surrokit_networks.regression.regression import Regression
from surrokit_networks.regression.training_rows import LEAST_POINTS_WITH_GRADIENTS, TrainingRows


@attrs.frozen(kw_only=True, eq=False)
class Fit:
    """A fitted network, and what it was made of.

    Parameters
    ----------
    regression
        How.
    frame
        What more rows can be fitted in.
    network
        The potential.
    rows
        What it was fitted to.
    """

    regression: Regression
    frame: Frame
    network: FittedNetwork
    rows: TrainingRows


@attrs.frozen(kw_only=True, eq=False)
class Task:
    """What there is to fit, and where.

    Parameters
    ----------
    rows
        What is to be fitted: of U, or of what a known part leaves of it.
    whitening
        From raw to whitened positions; that of U as a whole.
    known : Potential or None
        The part of U that is taken as it is.
    expected : ndarray of shape (dim, dim) or None
        The trend's matrix before any equation; None for the identity.
    """

    rows: TrainingRows
    whitening: Whitening
    known: Potential | None = None
    expected: FloatArray | None = None


@attrs.define(kw_only=True, eq=False)
class NetworkLearner(KeepingLearner):
    """Fits a network to all that was observed; the seed draws the same nodes at every fit.

    Parameters
    ----------
    n_nodes : int, optional
        How many nodes; None to choose by dimension and data. With more values there may be
        more nodes; those that were there before stay.
    draws
        Ways to draw the nodes; with several the best one is chosen.
    training
        How they are trained.
    energy : Energy, optional
        Of a forward potential whose outputs are learnt; None to learn U itself.
    convex
        Whether every network fitted is a positive definite quadratic, without any node.
    most_nodes : int, optional
        A bound on the nodes where their number is left to the learner.
    known : ExactRows, optional
        What is taken of U as it is; the network is fitted to the rest, and both are added.
    bordered
        Whether nodes are believed near the rows alone, where U is learnt as a whole; see
        :class:`~surrokit_networks.regression.border.Border`.
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
    known: ExactRows | None = None
    bordered: bool = False
    fine: bool = False

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
        return own if self.known is None else sum_capabilities(self.known.capabilities, own)

    @property
    def _derivatives(self) -> frozenset[str]:
        return frozenset({"gradient"} if self.energy is None else {"jacobian"})

    def fit(self) -> FittedNetwork | FittedEmulator | FittedSum:
        """Return the network, or the emulator, fitted to everything observed.

        With a ``known`` part, the sum of that part and the network.

        Every fit whitens anew: it depends on the seed and the rows, and on no fit before it.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        task = self._task()
        way = self._choose(task)
        nodes, held = self._draw(task, way)
        fitted = self._regression(way, task).fit(nodes, task.whitening, task.rows, held)
        if not isinstance(fitted, FittedNetwork):
            return fitted
        network = attrs.evolve(fitted, convex=self.convex)
        if self.known is None:
            return attrs.evolve(network, border=self._border(task))
        return FittedSum(known=task.known, network=network, capabilities=self.provides)

    def posterior(self) -> LinearPosterior:
        """Return how unsure the weights of the network are that ``fit`` returns.

        For a network that learns the potential itself, and the whole of it. It takes another fit.

        Raises
        ------
        SurrogateFitError
            As :meth:`fit`.
        """
        fit = self.make_fit(keeps_idle=False)
        equations = fit.regression.equations(fit.rows, fit.frame.whitening, fit.frame.origin)
        return LinearPosterior.of(fit.frame, equations, fit.network.degrees)

    def make_fit(self, *, keeps_idle: bool = True) -> Fit:
        """Return the network that ``fit`` returns, and what it was made of.

        For a network that learns the potential itself, and the whole of it. Nodes that are not
        worth their time, which ``fit`` leaves out, stay if ``keeps_idle``.

        Raises
        ------
        SurrogateFitError
            As :meth:`fit`.
        """
        task = self._task()
        way = self._choose(task)
        nodes, held = self._draw(task, way)
        regression = self._regression(way, task)
        assert isinstance(regression, Regression)
        assert task.known is None
        frame, network = regression.fit_frame(
            nodes, task.whitening, task.rows, held, keeps_idle=keeps_idle
        )
        border = self._border(task)
        return Fit(
            regression=regression,
            frame=attrs.evolve(frame, border=border),
            network=attrs.evolve(network, border=border),
            rows=task.rows,
        )

    def _border(self, task: Task) -> Border | None:
        return Border.about(task.whitening, task.rows) if self.bordered else None

    def _task(self) -> Task:
        rows = self.rows()
        whitening = self.training.whitening(rows)
        if self.known is None:
            return Task(rows=rows, whitening=whitening)
        part = self.known.part(whitening)
        return Task(
            rows=rows if part.potential is None else rows.less(part.potential),
            whitening=whitening,
            known=part.potential,
            expected=part.matrix,
        )

    def _draw(self, task: Task, way: Candidate) -> tuple[Nodes | None, BoolArray | None]:
        """Return the nodes, and which rows are held out."""
        whitened = task.whitening.apply(task.rows.positions)
        nodes = way.draw(whitened, self._size(task.rows), np.random.default_rng(self.seed))
        return nodes, self.training.choose_held_out(
            task.rows, np.random.default_rng([self.seed, 1])
        )

    def _choose(self, task: Task) -> Candidate:
        """Return how nodes are drawn, and the trend, as small networks of each kind suggest."""
        rows, whitening = task.rows, task.whitening
        n_equations = len(rows) + self.dim * int(self._with_derivatives(rows).sum())
        size = min(self._size(rows), N_NODES)
        part = pilot_rows(rows, n_equations, np.random.default_rng([self.seed, 2]))
        whitened = whitening.apply(part.positions)

        def error(way: Candidate) -> float:
            nodes = way.draw(whitened, size, np.random.default_rng(self.seed))
            regression = self._regression(way, task, hidden="random")
            if isinstance(regression, OutputRegression):
                return regression.expected_variance(nodes, whitening, part)
            return regression.fit(nodes, whitening, part).gcv_error

        trend = self.training.trend
        ways = candidates(self.draws, trend)
        if self._nodes_are_optional:
            return leanest_of(ways, trend, error)
        return best_of(ways, error)

    @property
    def _nodes_are_optional(self) -> bool:
        """Whether outputs may be learnt by a trend alone, as all is left to the learner."""
        given = (self.n_nodes, self.training.regression.ridge)
        return self.energy is not None and given == (None, None) and not self.fine

    def _size(self, rows: TrainingRows) -> int:
        if self.n_nodes is not None:
            return self.n_nodes
        n_derivatives = int(self._with_derivatives(rows).sum())
        size = default_size(self.dim, len(rows), n_derivatives)
        if self.fine and self.energy is not None and n_derivatives:
            size = fine_size(len(rows) + self.dim * n_derivatives)
        if self.most_nodes is not None:
            size = min(size, self.most_nodes)
        trained = self.training.regression.hidden == "trained"
        return min(size, TRAINED_SIZE) if trained else size

    def _regression(
        self, way: Candidate, task: Task, **changes: Any
    ) -> Regression | OutputRegression:
        regression = attrs.evolve(
            self.training.regression, trend=way.trend, expected=task.expected, **changes
        )
        if self.energy is None:
            return regression
        return OutputRegression(regression=regression, energy=self.energy)

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
        enough = (
            LEAST_POINTS_WITH_GRADIENTS
            if np.count_nonzero(self._with_derivatives(rows)) >= LEAST_POINTS_WITH_GRADIENTS
            else least_points(self.dim)
        )
        rows.demand_enough(enough, len(observed))
        return rows
