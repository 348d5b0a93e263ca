"""Figure 6: posterior marginals by HMC and by HMC on a surrogate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.contracts.potential import Potential
from surrokit.errors import ConfigurationError
from surrokit.experiments.contract import Conditions, Finished, Report, Row
from surrokit.settings import (
    not_negative_integer,
    optional_positive_integer,
    positive,
    positive_integer,
)
from surrokit.types import FloatArray
from surrokit_paper.chains.chain import complete, one_chain
from surrokit_paper.experiment import PaperExperiment
from surrokit_paper.figure_6.report import report
from surrokit_paper.measures.marginals import Marginals
from surrokit_paper.problems.problems import PaperProblem, simulate_problem
from surrokit_paper.problems.several import sizes
from surrokit_paper.surrogates.methods import Method

HMC = Method(name="hmc", label="HMC", surrogate="none", random=False)
"""The exact sampler, to which the others are held."""


def _parameters(value: Any) -> tuple[int, ...]:
    return sizes(value, "parameters")


@attrs.frozen(kw_only=True)
class Figure6(PaperExperiment):
    """Section 5.1 and figure 6 of Zhang, Shahbaba and Zhao (2017), on its simulated data.

    HMC and RNS-HMC run as in the paper: one chain from 0, unit masses, step size 0.045, paths of
    up to 6 steps, so many iterations of exact HMC as burn-in, and as many again that are kept. The
    network is fitted once, to the states of the burn-in, as in the authors' code. A third run is
    ``surrokit.sample(target)`` as it comes. No run knows of another, and no random number is
    shared.

    Parameters
    ----------
    burn_in
        Iterations of exact HMC before any draw is kept.
    discard
        Those of them, from the first on, that nothing is learnt from.
    draws
        Kept by HMC and RNS-HMC.
    n_nodes
        Of the paper's network; None for s as in the paper.
    ridge
        Of the paper's network.
    parameters
        Which parameters are drawn, counted from 1.
    n_shown
        About so many draws of these are kept for the picture.
    n_rows, dim
        Of the simulated data.

    Raises
    ------
    ConfigurationError
        If a setting is out of range, or a parameter beyond ``dim``.
    """

    name = "figure-6"
    title = "Figure 6: marginals of the simulated logistic regression by HMC and RNS-HMC"

    burn_in: int = attrs.field(default=5000, validator=positive_integer)
    discard: int = attrs.field(default=1000, validator=not_negative_integer)
    draws: int = attrs.field(default=5000, validator=positive_integer)
    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    ridge: float = attrs.field(default=1e-6, validator=positive)
    parameters: tuple[int, ...] = attrs.field(default=(1, 11, 21, 31, 41), converter=_parameters)
    n_shown: int = attrs.field(default=1600, validator=positive_integer)
    n_rows: int = attrs.field(default=100_000, validator=positive_integer)
    dim: int = attrs.field(default=50, validator=positive_integer)

    def __attrs_post_init__(self) -> None:
        if self.discard >= self.burn_in:
            raise ConfigurationError(
                f"discard must be less than burn_in, which is {self.burn_in}, got {self.discard}"
            )
        if max(self.parameters) > self.dim:
            raise ConfigurationError(
                f"parameters must be numbers from 1 to dim, which is {self.dim}, got "
                f"{self.parameters}; name others with parameters"
            )

    def rows(self) -> list[Row]:
        """Return a row for each method."""
        problem = self._problem()
        shared = {
            **problem.facts(),
            **{name: self.settings[name] for name in ("parameters", "n_shown", "dim", "n_rows")},
        }
        as_in_paper = {
            "step_size": problem.step_size,
            "n_steps": problem.n_steps,
            "burn_in": self.burn_in,
            "draws": self.draws,
        }
        rns, defaults = self._others(problem)
        return [
            Row(name=HMC.name, settings={**shared, **HMC.facts(), **as_in_paper}),
            Row(
                name=rns.name,
                settings={**shared, **rns.facts(), **as_in_paper, "discard": self.discard},
            ),
            Row(name=defaults.name, settings={**shared, **defaults.facts()}),
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one method."""
        problem = self._problem()
        target = problem.target(conditions)
        rng = conditions.generator("row", row.settings["method"])
        if row.settings["method"] == "defaults":
            run = complete(sk.sample(target, seed=rng, progress=False))
        else:
            run = self._as_in_paper(target, problem, row, rng)
        return {
            "choice": run.choice or "",
            "chains": len(run.draws),
            "acceptance": float(run.kept.acceptance.mean()),
            "seconds": dict(run.seconds),
            "calls": {kind: int(number) for kind, number in run.calls.items()},
            **Marginals.of(run.draws).to_dict(),
            **self._draw(run.draws),
        }

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return means and standard deviations, and how far they are from those of HMC."""
        return report(finished)

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a triangle of panels: densities of parameters, and contours of pairs."""
        from surrokit_paper.figure_6.picture import picture

        return picture(finished)

    def _problem(self) -> PaperProblem:
        return simulate_problem(self.n_rows, self.dim)

    def _others(self, problem: PaperProblem) -> tuple[Method, Method]:
        n_nodes = problem.n_nodes if self.n_nodes is None else self.n_nodes
        return (
            Method(
                name="rns",
                label="RNS-HMC",
                surrogate="additive-paper",
                settings={"n_nodes": n_nodes, "ridge": self.ridge},
            ),
            Method(name="defaults", label="surrokit as it comes", surrogate="automatic"),
        )

    def _as_in_paper(
        self, target: Potential, problem: PaperProblem, row: Row, rng: np.random.Generator
    ) -> sk.Run:
        """Return the one chain of HMC, or of RNS-HMC without a safety net."""
        learning: dict[str, Any] = {}
        if row.settings["method"] != HMC.name:
            learning = {
                "surrogate": (row.settings["surrogate"], row.settings["surrogate_settings"]),
                "schedule": "once",
                "explorer": (
                    "sampler",
                    {"iterations": self.burn_in, "discard": self.discard, "learn_from": "states"},
                ),
                "safety": sk.Safety(rescues=0),
            }
        start = np.zeros(target.dim)
        return one_chain(
            target, problem, start, rng, warmup=self.burn_in, draws=self.draws, **learning
        )

    def _draw(self, draws: FloatArray) -> dict[str, Any]:
        """Return of the parameters that are drawn some draws of all chains, and correlations."""
        chosen = draws.reshape(-1, draws.shape[2])[:, [number - 1 for number in self.parameters]]
        every = max(len(chosen) // self.n_shown, 1)
        with np.errstate(invalid="ignore"):  # a parameter that never moved
            correlations = np.atleast_2d(np.corrcoef(chosen.T))
        return {
            "shown": np.round(chosen[::every], 6).tolist(),
            "correlations": correlations.tolist(),
        }
