"""The learner that both kinds of network share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, Self

import attrs
import numpy as np

from surrokit.errors import ShapeError
from surrokit.records import Evaluations
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.fitted import CAPABILITIES, FittedNetwork
from surrokit_networks.nodes import Nodes
from surrokit_networks.regression import Level, Regression
from surrokit_networks.training_rows import Tail, TrainingRows
from surrokit_networks.whitening import Whitening

_VALUE = frozenset({"value"})


class NetworkSettings(Protocol):
    """What both kinds of network set."""

    @property
    def level(self) -> Level:
        """Whether the output bias is trained."""
        ...

    @property
    def ridge(self) -> float | None:
        """A fixed ridge; None to choose it from the data."""
        ...

    @property
    def whiten(self) -> bool:
        """Whether nodes see whitened positions."""
        ...

    @property
    def tail(self) -> Tail:
        """What far-tail rows count."""
        ...

    def draw(self, dim: int, n_points: int, rng: np.random.Generator) -> Nodes:
        """Return nodes for a dimension and a number of points."""
        ...


@attrs.define(kw_only=True, eq=False)
class NetworkLearner:
    """Keeps every value observed, and fits a network to all of them when asked.

    Parameters
    ----------
    dim
        Numbers in a position.
    seed
        From which the nodes are drawn: the same nodes at every fit.
    draw
        Returns nodes for a number of points, from a generator. With more points there may be
        more nodes; those that were there before stay.
    regression
        How weights are found.
    whiten
        Whether nodes see whitened positions.
    tail
        What far-tail rows count.
    """

    dim: int
    seed: int
    draw: Callable[[int, np.random.Generator], Nodes]
    regression: Regression
    whiten: bool
    tail: Tail
    _positions: list[FloatArray] = attrs.field(factory=list, init=False, repr=False)
    _values: list[FloatArray] = attrs.field(factory=list, init=False, repr=False)
    _whitening: Whitening | None = attrs.field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, settings: NetworkSettings, dim: int, rng: np.random.Generator) -> Self:
        """Return the learner that settings call for; the seed of its nodes is drawn here."""
        return cls(
            dim=dim,
            seed=int(rng.integers(2**53)),
            draw=partial(settings.draw, dim),
            regression=Regression(level=settings.level, ridge=settings.ridge),
            whiten=settings.whiten,
            tail=settings.tail,
        )

    @property
    def needs(self) -> frozenset[str]:
        """Values."""
        return _VALUE

    @property
    def uses(self) -> frozenset[str]:
        """Values."""
        return _VALUE

    @property
    def provides(self) -> Capabilities:
        """What a fitted network can do."""
        return CAPABILITIES

    def observe(self, evaluations: Evaluations) -> None:
        """Take in exact evaluations; rows without a finite value are ignored when fitting.

        Raises
        ------
        ShapeError
            If the positions have another dimension than the problem.
        """
        if evaluations.positions.shape[1] != self.dim:
            raise ShapeError(
                f"positions of evaluations must have shape (n, {self.dim}), "
                f"got {evaluations.positions.shape}; pass evaluations of the same target"
            )
        self._positions.append(evaluations.positions)
        self._values.append(evaluations.values)

    def fitted(self) -> FittedNetwork:
        """Return the network fitted to everything observed.

        The first fit fixes the whitening.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        rows = TrainingRows.of(*self._observed(), self.tail)
        if self._whitening is None:
            self._whitening = (
                Whitening.of(rows.positions, rows.weights)
                if self.whiten
                else Whitening.identity(self.dim)
            )
        nodes = self.draw(len(rows), np.random.default_rng(self.seed))
        return self.regression.fitted(nodes, self._whitening, rows)

    def state(self) -> dict[str, Any]:
        """Return the seed of the nodes, all rows observed, and the whitening once it is fixed."""
        positions, values = self._observed()
        state: dict[str, Any] = {"seed": self.seed, "positions": positions, "values": values}
        if self._whitening is not None:
            state["whitening_mean"] = self._whitening.mean
            state["whitening_factor"] = self._whitening.factor
        return state

    def restored(self, state: Mapping[str, Any]) -> Self:
        """Return a learner with the same settings that goes on from what ``state`` returned."""
        learner = attrs.evolve(self, seed=int(state["seed"]))
        learner._positions = [np.asarray(state["positions"], dtype=np.float64)]
        learner._values = [np.asarray(state["values"], dtype=np.float64)]
        if "whitening_mean" in state:
            learner._whitening = Whitening(
                mean=np.asarray(state["whitening_mean"], dtype=np.float64),
                factor=np.asarray(state["whitening_factor"], dtype=np.float64),
            )
        return learner

    def _observed(self) -> tuple[FloatArray, FloatArray]:
        if not self._values:
            return np.empty((0, self.dim)), np.empty(0)
        if len(self._values) > 1:
            # Joined once, so that the next call finds one block.
            self._positions = [np.concatenate(self._positions)]
            self._values = [np.concatenate(self._values)]
        return self._positions[0], self._values[0]
