"""The grid of figures 4 and 5: surrogates of simulated logistic regressions of many sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

import surrokit as sk
from surrokit.experiments.contract import Conditions, Row
from surrokit.settings import fraction, not_negative, positive_integer
from surrokit_paper.experiment import PaperExperiment
from surrokit_paper.measures.acceptance_trial import Trial
from surrokit_paper.problems.several import dim_sizes, gradient_sizes, node_sizes, sizes
from surrokit_paper.surrogates.methods import Method, train

PAPER = Method(name="paper", label="the paper's network, values alone", surrogate="additive-paper")
"""Raw coordinates, no trend, a fixed ridge; s is given."""

VALUES = Method(
    name="additive-default", label="surrokit's defaults, values alone", surrogate="additive"
)
"""This project's surrogate as it comes; it chooses s itself."""

GRADIENTS = Method(
    name="additive-gradients",
    label="surrokit's defaults, gradients too",
    surrogate="additive",
    gradients=True,
)
"""The same, with a gradient at each point."""

METHODS = (PAPER, VALUES, GRADIENTS)
"""In the order of tables and legends."""


@attrs.frozen(kw_only=True)
class AcceptanceGrid(PaperExperiment):
    """Surrogates of simulated logistic regressions, and how often proposals on them are accepted.

    For each number of parameters exact HMC, past its burn-in, gets the step size at which it
    accepts 70 % of its proposals. The new states of one exact chain are the training points.
    Networks with s nodes are fitted to the first N of them. Short chains of HMC then run on each
    from draws of the target, with the step size of the exact one, and the exact potential decides.

    Parameters
    ----------
    dims
        d: numbers of parameters.
    n_nodes
        s: nodes of the paper's network.
    n_points
        N: training points that it sees, values alone.
    gradient_points
        Training points that this project's defaults see with gradients.
    repeats
        Runs, each with chains and networks of its own; the data are the same.
    n_rows
        Rows of the simulated data, which the paper does not say.
    ridge
        Of the paper's network.
    acceptance
        Of exact HMC.
    n_steps
        Longest path; the number of steps is drawn from {1, ..., n_steps} in each iteration.
    burn_in
        Exact iterations from 0, with a step size that is tuned.
    chains, iterations
        Over which acceptance probabilities are averaged.
    """

    dims: tuple[int, ...] = attrs.field(default=(32,), converter=dim_sizes)
    n_nodes: tuple[int, ...] = attrs.field(default=(2000,), converter=node_sizes)
    n_points: tuple[int, ...] = attrs.field(default=(4000,), converter=sizes)
    gradient_points: tuple[int, ...] = attrs.field(default=(200,), converter=gradient_sizes)
    repeats: int = attrs.field(default=10, validator=positive_integer)
    n_rows: int = attrs.field(default=10_000, validator=positive_integer)
    ridge: float = attrs.field(default=1e-6, validator=not_negative)
    acceptance: float = attrs.field(default=0.7, validator=fraction)
    n_steps: int = attrs.field(default=6, validator=positive_integer)
    burn_in: int = attrs.field(default=100, validator=positive_integer)
    chains: int = attrs.field(default=50, validator=positive_integer)
    iterations: int = attrs.field(default=20, validator=positive_integer)

    def rows(self) -> list[Row]:
        """Return a row for each number of parameters in each repeat."""
        shared = self.settings_without("dims", "repeats")
        return [
            Row(name=f"{dim}/{repeat}", settings={"dim": dim, "repeat": repeat, **shared})
            for repeat in range(1, self.repeats + 1)
            for dim in self.dims
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run exact HMC, fit all surrogates to what it paid for, and try each."""
        dim, repeat = row.settings["dim"], row.settings["repeat"]
        trial = Trial.prepare(
            sk.make("potential", "simulated-logistic", n_rows=self.n_rows, dim=dim),
            acceptance=self.acceptance,
            n_steps=self.n_steps,
            burn_in=self.burn_in,
            chains=self.chains,
            iterations=self.iterations,
            rng=conditions.generator("trial", dim, repeat),
        )
        points = trial.training_points(
            max(self.n_points + self.gradient_points), conditions.generator("chain", dim, repeat)
        )
        return {
            "hmc_acceptance": trial.acceptance(),
            "step_size": trial.step_size,
            "cells": [
                _try_surrogate(
                    trial, points, method, n_nodes, n, conditions.generator("fit", dim, repeat)
                )
                for method, n_nodes, n in self._cells()
            ],
        }

    def _cells(self) -> Iterator[tuple[Method, int | None, int]]:
        for n in self.n_points:
            for n_nodes in self.n_nodes:
                settings = {"n_nodes": n_nodes, "ridge": self.ridge}
                yield attrs.evolve(PAPER, settings=settings), n_nodes, n
            yield VALUES, None, n
        for n in self.gradient_points:
            yield GRADIENTS, None, n


def _try_surrogate(
    trial: Trial, points: sk.Evaluations, method: Method, n_nodes: int | None, n: int, rng: Any
) -> dict[str, Any]:
    """Fit a surrogate to the first points, and return its acceptance."""
    shown = sk.Evaluations(
        positions=points.positions[:n],
        values=points.values[:n],
        gradients=points.gradients[:n]
        if method.gradients and points.gradients is not None
        else None,
    )
    fit = train(method.surrogate, method.settings, shown, rng)
    return {
        "method": method.name,
        "n_nodes": n_nodes,
        "n_points": n,
        "nodes_used": getattr(fit.potential, "n_nodes", None),
        "acceptance": trial.acceptance(fit.potential),
        "training_seconds": fit.seconds,
    }
