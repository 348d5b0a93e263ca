"""The learners that every network shares: one keeps all rows, and one learns online.

The scale of the nodes is chosen by small networks that go ahead. Fits to the same rows in the same
coordinates are comparable by their generalised cross-validation errors. Measured on targets with
two modes, heavy tails, curved ridges and none of these: the choice comes within a factor of two of
the best scale, where a fixed one can be a thousand times worse; it beats one held-out fifth. Three
networks of 300 nodes take a tenth of a second.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, TypeAlias

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import CapabilityError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.potentials import Energy, Potential
from surrokit.surrogate.quality import KeepingLearner, expected_acceptance
from surrokit.surrogate.training import are_finite, least_points
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.functions import gradient_of_energy
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_networks.border import Border
from surrokit_networks.nodes import Nodes
from surrokit_networks.online import OnlineFit
from surrokit_networks.potentials import (
    CAPABILITIES,
    NORMAL,
    FittedEmulator,
    FittedNetwork,
    emulator_capabilities,
)
from surrokit_networks.training import Frame, Training
from surrokit_networks.training_rows import TailBound, TrainingRows

Draw: TypeAlias = Callable[[int, int, np.random.Generator], Nodes]
"""From the dimension, a number of nodes, and a generator."""

KnownPart: TypeAlias = Callable[[Whitening], tuple[Potential | None, FloatArray]]
"""A part of U that is taken as it is, None for nothing, and the matrix (dim, dim) that the rest is
to have in the whitened coordinates."""

Fit: TypeAlias = tuple[Frame, FittedNetwork | FittedEmulator]
"""What a network was fitted in, and the network."""


def default_size(dim: int, n_values: int, n_gradients: int, fine: bool = False) -> int:
    """Return how many nodes a network gets, by default.

    On values alone more nodes than points are always better, by a factor of two in the gradient's
    error from s = 2 n / 3 to s = 4 n / 3. With gradients the trend takes most of the work, and what
    nodes cost is the leapfrog's time. Where accuracy is worth more (``fine``), as of outputs under
    weights: on the elliptic equation with 20 parameters the sd of V - U from 295 Jacobians is 0.096
    nats by a trend alone, and 0.072, 0.046 and 0.032 with 1,000, 2,000 and 3,000 nodes. In few
    dimensions many evaluations, as of earlier questions, do not make many nodes worth their time.
    """
    if n_gradients and fine:
        most = int(np.clip(150 * dim, 400, 3000))
        return int(np.clip((n_values + dim * n_gradients) // 2, 400, most))
    if n_gradients:
        return int(np.clip(100 * dim, 400, 1000))
    return min(200 * dim, int(np.clip(2 * n_values, 1000, 2000)))


def no_nodes(dim: int, size: int, rng: np.random.Generator) -> Nodes:  # noqa: ARG001
    """Return no nodes at all: what leaves the trend alone."""
    return Nodes.none(dim)


@attrs.define(kw_only=True, eq=False)
class NetworkLearner(KeepingLearner):
    """Fits a network to all that was observed; the seed draws the same nodes at every fit.

    Parameters
    ----------
    n_nodes
        None to choose by dimension and data.
    draws
        Ways to draw the nodes; the best is chosen. By default there is the trend alone.
    known, most
        What is taken of U as it is, and all that its sum with a network may offer.

    Attributes
    ----------
    energy
        Of a forward potential whose outputs are learnt; None to learn U itself.

    Raises
    ------
    CapabilityError
        If outputs are to be learnt of a target that has none.
    """

    problem: LearningProblem
    training: Training
    n_nodes: int | None = 1
    draws: tuple[Draw, ...] = (no_nodes,)
    known: KnownPart | None = None
    most: Capabilities | None = None
    energy: Energy | None = attrs.field(init=False)

    @energy.default
    def _energy_to_learn_under(self) -> Energy | None:
        learns, energy, has = self.training.learns, self.problem.energy, self.problem.capabilities
        if learns == "outputs" and energy is None:
            raise CapabilityError(
                "learns='outputs' needs a target with a forward map, which this one has not; make "
                "it with surrokit.forward_potential, or use learns='auto'"
            )
        slopes_alone = can.GRADIENT in has and can.JACOBIAN not in has
        of_potential = learns == "potential" or (learns == "auto" and slopes_alone)
        return None if of_potential else energy

    @classmethod
    def of(cls, problem: LearningProblem, rng: np.random.Generator, **settings: Any) -> Self:
        """Return a learner for a problem; its seed is drawn here."""
        return cls(dim=problem.dim, seed=int(rng.integers(2**53)), problem=problem, **settings)

    @property
    def needs(self) -> frozenset[str]:
        """Values, and outputs where these are learnt."""
        return frozenset({"value"} if self.energy is None else {"value", "outputs"})

    @property
    def uses(self) -> frozenset[str]:
        """What it needs, and derivatives where there are any, unless it trains on values alone."""
        derivative = "gradient" if self.energy is None else "jacobian"
        return self.needs | ({derivative} if self.training.uses_gradients else frozenset())

    @property
    def provides(self) -> Capabilities:
        """What a fitted network, or an emulator of a forward map, can do."""
        if self.energy is not None:
            return emulator_capabilities(self.energy)
        bowl = self.draws == (no_nodes,) and self.training.trend == "quadratic"
        own = CAPABILITIES | NORMAL if bowl else CAPABILITIES
        return own if self.most is None else own & self.most

    def fit(self) -> FittedNetwork | FittedEmulator:
        """Return the network, or the emulator, fitted anew to everything observed.

        SurrogateFitError is raised if there are too few points with a finite value, or they cannot
        be fitted; so it is by all methods that fit.
        """
        return self.make_fit()[1]

    def make_fit(self, *, keeps_idle: bool = False) -> Fit:
        """Return the fit with its frame.

        Nodes that are not worth their time, which ``fit`` leaves out, stay if ``keeps_idle``.
        """
        rows, known, expected = self.rows(), None, None
        whitening = self.training.whitening(rows)
        if self.known is not None:
            known, expected = self.known(whitening)
            rows = rows if known is None else rows.less(known)
        held = self.training.choose_held_out(rows, np.random.default_rng([self.seed, 1]))

        def fit(draw: Draw, some: TrainingRows, held: BoolArray | None, size: int = 0) -> Fit:
            nodes = draw(self.dim, size, np.random.default_rng(self.seed))
            return self.training.fit(
                nodes, whitening, some, held, energy=self.energy, expected=expected
            )

        frame, found = self._fit_best(fit, rows, held, keeps_idle)
        if isinstance(found, FittedEmulator):
            return frame, found
        bordered = self.problem.is_density and self.training.whiten and self.known is None
        border = Border.about(whitening, rows) if bordered else None
        found = attrs.evolve(found, capabilities=self.provides, border=border, known=known)
        return attrs.evolve(frame, border=border), found

    def _fit_best(
        self, fit: Callable[..., Fit], rows: TrainingRows, held: BoolArray | None, keeps_idle: bool
    ) -> Fit:
        """Return the fit with the nodes that suit the rows.

        Where the ridge is left to the data, so are the nodes: unless they raise the acceptance that
        is to be expected by a fiftieth, the network is the trend alone, many times cheaper.
        """
        if self.draws == (no_nodes,):
            return fit(no_nodes, rows, held)
        alone: Fit | None = None
        # weighted draws of a map are worth every node
        spares = not (keeps_idle or (self.energy is not None and self.problem.is_weighed))
        if self.training.ridge is None and spares:
            with contextlib.suppress(SurrogateFitError):
                alone = fit(no_nodes, rows, held)
        accepted = 0.0 if alone is None else self._acceptance(alone, rows)
        if alone is not None and accepted >= 0.98:
            return alone
        made = fit(self._choose(fit, rows), rows, held, self._size(rows))
        if alone is None:
            return made
        judged = [each.quality.acceptance for _, each in (alone, made) if each.quality]
        # noise that many nodes follow between few values shows at the rows held out
        explodes = len(judged) == 2 and judged[1] < judged[0] - 0.1
        return alone if explodes or self._acceptance(made, rows) < accepted + 0.02 else made

    def _choose(self, fit: Callable[..., Fit], rows: TrainingRows) -> Draw:
        """Return how to draw nodes, by small networks."""
        if len(self.draws) == 1:
            return self.draws[0]
        # a random part of the rows where they make very many equations
        share = 10_000 / (len(rows) + self.dim * int(rows.with_slopes.sum()))
        if share < 1.0:
            order = np.random.default_rng([self.seed, 2]).permutation(len(rows))
            rows = rows.take(order < max(2, int(share * len(rows))))
        errors = np.full(len(self.draws), np.inf)
        for i, draw in enumerate(self.draws):
            with contextlib.suppress(SurrogateFitError):
                errors[i] = fit(draw, rows, None, min(self._size(rows), 300))[1].gcv_error
        return self.draws[int(np.argmin(errors))]

    def _acceptance(self, fit: Fit, rows: TrainingRows) -> float:
        # In whitened coordinates the squared error of a gradient bounds the variance of that of the
        # value (the inequality of Poincare for a normal density).
        by_gradients = self.training.uses_gradients and rows.with_slopes.any()
        return expected_acceptance(fit[1].gcv_error * (self.dim if by_gradients else 1))

    def _size(self, rows: TrainingRows) -> int:
        if self.n_nodes is not None:
            return self.n_nodes
        fine = self.problem.is_weighed and self.energy is not None
        return default_size(self.dim, len(rows), int(rows.with_slopes.sum()), fine)

    def keep_used(self, evaluations: Evaluations) -> Evaluations:
        """Return what is used alone: Jacobians of large maps take memory."""
        derivatives, maps = self.training.uses_gradients, self.energy is not None
        return attrs.evolve(
            evaluations,
            gradients=self._gradients(evaluations) if derivatives else None,
            outputs=evaluations.outputs if maps else None,
            jacobians=evaluations.jacobians if maps and derivatives else None,
        )

    def _gradients(self, evaluations: Evaluations) -> FloatArray | None:
        """Return gradients of U, made from Jacobians where there are none."""
        outputs, jacobians = evaluations.outputs, evaluations.jacobians
        if self.energy is None or outputs is None or jacobians is None:
            return evaluations.gradients
        with np.errstate(all="ignore"):
            _, made = gradient_of_energy(self.energy, outputs, jacobians, evaluations.positions)
        if evaluations.gradients is None:
            return made
        return np.where(np.isfinite(evaluations.gradients), evaluations.gradients, made)

    def rows(self) -> TrainingRows:
        """Return what a fit would learn from."""
        observed = self.join_observed()
        if self.energy is not None and observed.outputs is None:
            raise SurrogateFitError(
                "a network that learns the outputs of a forward map got no evaluations with "
                "outputs; pass such, or learn the potential: learns='potential'"
            )
        rows = TrainingRows.of(observed, self.training.tail, of_outputs=self.energy is not None)
        # two points are enough where each comes with its gradient
        least = 2 if np.count_nonzero(rows.with_slopes) >= 2 else least_points(self.dim)
        if len(rows) < least:
            raise SurrogateFitError(
                f"a network in {self.dim} dimensions needs at least {least} distinct points with "
                f"a finite value, got {len(rows)} ({len(observed)} rows were observed); explore "
                "for longer, or pass evaluations that are already made"
            )
        return rows


@attrs.define(kw_only=True, eq=False)
class OnlineLearner:
    """Fits a network once to all there is, and from then on takes in rows at O(s^2) each.

    The first fit is that of :class:`NetworkLearner`, which fixes whitening, nodes, the matrix of
    the trend and the origin of values. Its rows, and all that are observed later, go into
    ``online`` and are dropped. Each fit after that is the least-squares solution in the same frame
    to all rows so far. Rows in the far tail count less, by their excess over the least value known
    when they arrive. A point that comes twice in two blocks counts as two.

    Parameters
    ----------
    refits
        Makes the first fit; with ``updates="auto"`` also those after it, each fifth more rows,
        until there are 25 points for each dimension, or 6 with gradients, those in the far tail
        counted by their weight. Before that a first whitening is not to be trusted, as the points
        of a few paths have another covariance than the target.
    """

    refits: NetworkLearner
    updates: Literal["auto", "greville"]
    online: OnlineFit | None = attrs.field(default=None, init=False, repr=False)
    bound: TailBound | None = attrs.field(default=None, init=False, repr=False)
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
        """Take in exact evaluations; rows without a finite value are ignored."""
        if self.online is None:
            self.refits.observe(evaluations)
            return
        rows = self.weigh(self.refits.check(evaluations))
        self.online.judge(rows)
        self.online.absorb(rows)

    def fit(self) -> FittedNetwork:
        """Return the network fitted to everything observed.

        SurrogateFitError is raised if there are too few points, or they cannot be fitted.
        """
        if self.online is not None:
            return self.online.network()
        observed = self.refits.join_observed()
        n = len(observed)
        if n < 1.2 * self._n_fitted:
            if self._last is None:  # in a learner that was restored since
                self._last = self._refit(observed.take(slice(0, self._n_fitted)))
            return self._last
        rows = self.refits.rows()
        if not self._fixes(rows):
            self._n_fitted, self._last = n, self._refit(observed)
            return self._last
        frame, first = self.refits.make_fit(keeps_idle=True)
        online = OnlineFit(training=self.refits.training, frame=frame, first=first.quality)
        online.absorb(rows)
        # What the engine makes of the first rows, so that the next fit is the same to the last bit.
        network = online.network()
        self.bound = TailBound.of(observed.values[are_finite(observed)], self.refits.dim)
        self.online = online
        self.refits.forget()
        self._n_fitted, self._last = 0, None
        return network

    def _refit(self, evaluations: Evaluations) -> FittedNetwork:
        network = self.refits.of_rows(evaluations).fit()
        assert isinstance(network, FittedNetwork)
        return network

    def _fixes(self, rows: TrainingRows) -> bool:
        if self.updates == "greville":
            return True
        dim, with_gradients = self.refits.dim, rows.trust[rows.with_gradient].sum()
        return bool(with_gradients >= 6 * dim or rows.trust.sum() >= 25 * dim)

    def weigh(self, evaluations: Evaluations) -> TrainingRows:
        """Return rows with their weights by the least value known, theirs included."""
        assert self.bound is not None
        self.bound = self.bound.lower(evaluations.values[are_finite(evaluations)])
        return TrainingRows.of(evaluations, self.refits.training.tail, bound=self.bound)

    def state(self) -> dict[str, Any]:
        """Return all that has been learnt, and what the first fit has fixed."""
        if self.online is not None:
            self.online.take_in()
        return {
            "refits": self.refits.state(),
            "fitted": self._n_fitted,
            "bound": self.bound,
            "online": copy.deepcopy(self.online),
        }

    def restore(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = attrs.evolve(self, refits=self.refits.restore(state["refits"]))
        learner._n_fitted, learner.bound = state["fitted"], state["bound"]
        learner.online = copy.deepcopy(state["online"])
        return learner
