"""Figure 2: forces and paths of HMC and of a surrogate on a banana-shaped posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.experiments.contract import Conditions, Finished, Report, Row
from surrokit.settings import not_negative_integer, positive, positive_integer
from surrokit.types import FloatArray
from surrokit_paper.chains.chain import complete
from surrokit_paper.chains.leapfrog_paths import leapfrog_paths
from surrokit_paper.experiment import PaperExperiment
from surrokit_paper.figure_2.report import report
from surrokit_paper.surrogates.methods import Method, train

EXACT = Method(name="hmc", label="HMC, exact", surrogate="none", random=False)
"""Beside the surrogates, and where their training points come from."""

GRID = (np.linspace(-3.25, 2.25, 12), np.linspace(-2.1, 2.1, 13))
"""Where forces are kept: coordinates of both parameters."""

PATHS = 3
"""Paths that are kept, all from one start."""


@attrs.frozen(kw_only=True)
class Figure2(PaperExperiment):
    """Section 3.4 and figure 2 of Zhang, Shahbaba and Zhao (2017).

    A chain of exact HMC from 0 pays for the training points: its states after a burn-in,
    repetitions included, as in the authors' code. Surrogates are fitted to them once, and HMC goes
    on from there, exactly and on each surrogate, with the same random numbers. Every path has the
    same number of steps, masses are one, and the exact potential decides every acceptance.

    Parameters
    ----------
    repeats
        Times that everything is done, each with a chain and nodes of its own.
    burn_in
        Iterations that nothing is learnt from.
    n_states
        Iterations after them, whose states are learnt from.
    draws
        Iterations over which acceptance is averaged.
    n_nodes, ridge
        Of the paper's network.
    step_size, n_steps
        Of every path. The paper says neither; these give HMC the paper's acceptance of 0.97.
    """

    name = "figure-2"
    title = "Figure 2: forces, paths and acceptance on a banana-shaped posterior"

    repeats: int = attrs.field(default=30, validator=positive_integer)
    burn_in: int = attrs.field(default=100, validator=not_negative_integer)
    n_states: int = attrs.field(default=400, validator=positive_integer)
    draws: int = attrs.field(default=500, validator=positive_integer)
    n_nodes: int = attrs.field(default=40, validator=positive_integer)
    ridge: float = attrs.field(default=1e-6, validator=positive)
    step_size: float = attrs.field(default=0.065, validator=positive)
    n_steps: int = attrs.field(default=25, validator=positive_integer)

    def rows(self) -> list[Row]:
        """Return a row for each repeat and method; those of the first repeat are drawn too."""
        shared = self.settings_without("repeats")
        return [
            Row(
                name=f"{method.name}/{repeat}",
                settings={"repeat": repeat, "drawn": repeat == 1, **shared, **method.facts()},
            )
            for repeat in range(1, self.repeats + 1)
            for method in self._methods()
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run a chain for training points, fit a surrogate, and go on with it."""
        target = sk.make("potential", "banana")
        method, repeat = row.settings["method"], row.settings["repeat"]
        before = conditions.generator("training", repeat)
        training = self._chain(target, None, np.zeros(target.dim), before, self.burn_in)
        states = training.draws[0]
        surrogate = None
        if method != EXACT.name:
            surrogate = self._surrogate(
                target, row, states, conditions.generator("row", method, repeat)
            )
        after = conditions.generator("chain", repeat)
        run = self._chain(target, surrogate, states[-1], after, None)
        # a chain that never moved has no effective draw
        ess = np.nan_to_num(run.ess("bulk"))
        found: dict[str, Any] = {
            "acceptance": float(run.kept.acceptance.mean()),
            "accepted": float(run.acceptance[0]),
            "ess": float(ess.min()),
        }
        if row.settings["drawn"]:
            paths = conditions.generator("paths", repeat)
            found["drawn"] = self._draw(target, surrogate, states, paths)
        return found

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return acceptances over repeats, and those of the paths that are drawn."""
        return report(finished)

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a picture of four panels: forces, and paths of each method."""
        from surrokit_paper.figure_2.picture import picture

        return picture(finished, sk.make("potential", "banana"))

    def _methods(self) -> tuple[Method, ...]:
        return (
            EXACT,
            Method(
                name="paper",
                label="the paper's network, values alone",
                surrogate="additive-paper",
                settings={"n_nodes": self.n_nodes, "ridge": self.ridge},
            ),
            Method(
                name="defaults",
                label="surrokit's defaults, gradients too",
                surrogate="additive",
                gradients=True,
            ),
        )

    def _chain(
        self,
        target: Potential,
        surrogate: Potential | None,
        start: FloatArray,
        rng: np.random.Generator,
        burn_in: int | None,
    ) -> sk.Run:
        """Return a chain: for training points after a burn-in, or without one for acceptance."""
        run = sk.sample(
            target,
            sampler=("hmc", {"metric": "identity", "randomize": False}),
            surrogate=surrogate,
            step_size=self.step_size,
            n_steps=self.n_steps,
            chains=1,
            warmup=0 if burn_in is None else burn_in,
            draws=self.draws if burn_in is None else self.n_states,
            initial=start,
            seed=rng,
            progress=False,
        )
        return complete(run)

    def _surrogate(
        self, target: Potential, row: Row, states: FloatArray, rng: np.random.Generator
    ) -> Potential:
        values, gradients = with_gradient(target).value_and_gradient(states)
        evaluations = sk.Evaluations(
            positions=states,
            values=values,
            gradients=gradients if row.settings["gradients"] else None,
        )
        settings = row.settings["surrogate_settings"]
        return train(row.settings["surrogate"], settings, evaluations, rng).potential

    def _draw(
        self,
        target: Potential,
        surrogate: Potential | None,
        states: FloatArray,
        rng: np.random.Generator,
    ) -> dict[str, Any]:
        """Return forces on a grid, and a few paths, as plain data."""
        potential = target if surrogate is None else surrogate
        points = np.stack(np.meshgrid(*GRID), axis=-1).reshape(-1, target.dim)
        momenta = rng.standard_normal((PATHS, target.dim))
        paths = leapfrog_paths(
            target, potential, states[-1], momenta, step_size=self.step_size, n_steps=self.n_steps
        )
        return {
            "points": points.tolist(),
            "forces": (-with_gradient(potential).value_and_gradient(points)[1]).tolist(),
            "states": states.tolist(),
            "paths": paths.positions.tolist(),
            "acceptance": paths.acceptance.tolist(),
        }
