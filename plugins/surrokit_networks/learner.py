"""The learner that every network shares: it keeps all rows, and fits to all of them."""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import CapabilityError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.potentials import Energy, Potential
from surrokit.surrogate.quality import KeepingLearner
from surrokit.surrogate.training import least_points
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.functions import gradient_of_energy
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_networks.border import Border
from surrokit_networks.frame import Frame, LinearPosterior
from surrokit_networks.nodes import Nodes
from surrokit_networks.pilot import (
    N_NODES,
    Candidate,
    Draw,
    best_of,
    candidates,
    default_size,
    fine_size,
    pilot_rows,
    simplest_of,
)
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

_LEAST_WITH_GRADIENTS = 2
"""Points that a fit needs where each comes with its gradient."""


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
        """Return the network, or the emulator, fitted to everything observed.

        Every fit whitens anew: it depends on the seed and the rows, and on no fit before it.

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
        """Return how unsure the weights of the network are that ``fit`` returns.

        For a network that learns the potential itself, and the whole of it. It takes another fit.

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
        """Return the network that ``fit`` returns, and what it was made of.

        For a network that learns the potential itself. Nodes that are not worth their time, which
        ``fit`` leaves out, stay if ``keeps_idle``.

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

    def _prepare(self) -> tuple[Task, Regression, Nodes | None, BoolArray | None]:
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
        """Return how nodes are drawn, and the trend, as small networks of each kind suggest."""
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
