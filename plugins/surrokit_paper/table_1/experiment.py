"""Table 1: four methods on four problems, and this project's own beside them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs
import numpy as np

import surrokit as sk
from surrokit.contracts.potential import GradientPotential, Potential
from surrokit.experiments.contract import Conditions, Finished, Report, Row
from surrokit.settings import (
    not_negative_integer,
    one_of,
    optional_positive_integer,
    positive_integer,
)
from surrokit_paper.chains.call_seconds import seconds_of_calls
from surrokit_paper.chains.chain import one_chain
from surrokit_paper.chains.completed import completed
from surrokit_paper.chains.processor_time import SamplingTime
from surrokit_paper.measures.measured_run import measured
from surrokit_paper.problems.problems import PROBLEMS, PaperProblem, chosen_names, paper_problems
from surrokit_paper.table_1.methods import METHODS, Sizes, TableMethod, chosen_methods
from surrokit_paper.table_1.report import report


@attrs.frozen(kw_only=True)
class Table1:
    """Section 5 and table 1 of Zhang, Shahbaba and Zhao (2017).

    HMC, RMHMC, RNS-HMC and RNS-RMHMC as the paper sets them up, one chain from 0 with unit masses
    and given step sizes; then methods of this project that the paper does not have. Each row is a
    run of one method on one problem, burn-in and training included, and times single calls of the
    target as well.

    Parameters
    ----------
    problems, methods
        Names.
    repeats
        Runs of each; figures are averaged.
    burn_in, discard
        Iterations of exact HMC before the kept draws, and how many of them nothing is learnt from.
    draws
        Kept draws, of all chains together.
    settling
        Iterations of exact HMC from 0 that bring RMHMC to where it starts.
    riemannian_burn_in, riemannian_draws
        Iterations of exact RMHMC, which take half a second each. The paper has 5000 and 5000.
    surrogate_riemannian_draws
        Kept draws of RNS-RMHMC.
    warmup
        Of ``trend``, ``gradients`` and ``hmc-tuned``; None for what comes by default.
    n_nodes
        Of the paper's network; None for s as in the paper.
    convex_metric
        Of RNS-RMHMC on the logistic regressions: ``"hessian"`` as in the paper, which ends with an
        error where the network is not convex, or ``"softabs"``.
    n_rows, dim
        Of the simulated data.
    mesh
        Squares along either side of the elliptic problem.
    """

    problems: tuple[str, ...] = attrs.field(default=PROBLEMS, converter=chosen_names)
    methods: tuple[str, ...] = attrs.field(default=tuple(METHODS), converter=chosen_methods)
    repeats: int = attrs.field(default=1, validator=positive_integer)
    burn_in: int = attrs.field(default=5000, validator=positive_integer)
    discard: int = attrs.field(default=1000, validator=not_negative_integer)
    draws: int = attrs.field(default=5000, validator=positive_integer)
    settling: int = attrs.field(default=300, validator=not_negative_integer)
    riemannian_burn_in: int = attrs.field(default=50, validator=not_negative_integer)
    riemannian_draws: int = attrs.field(default=300, validator=positive_integer)
    surrogate_riemannian_draws: int = attrs.field(default=2000, validator=positive_integer)
    warmup: int | None = attrs.field(default=None, validator=optional_positive_integer)
    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    convex_metric: str = attrs.field(default="hessian", validator=one_of("hessian", "softabs"))
    n_rows: int = attrs.field(default=100_000, validator=positive_integer)
    dim: int = attrs.field(default=50, validator=positive_integer)
    mesh: int = attrs.field(default=30, validator=positive_integer)

    @property
    def name(self) -> str:
        """As it is registered."""
        return "table-1"

    @property
    def title(self) -> str:
        """What it shows."""
        return "Table 1: acceptance, effective draws and seconds of four methods on four problems"

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings."""
        return attrs.asdict(self)

    def rows(self) -> list[Row]:
        """Return a row for each problem, repeat, and method that is for it."""
        known = self._known()
        found = []
        for problem in (known[name] for name in self.problems):
            for repeat in range(1, self.repeats + 1):
                found += [
                    self._row(problem, METHODS[name], repeat)
                    for name in self.methods
                    if problem.name in METHODS[name].problems
                ]
        return found

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one method on one problem."""
        problem = self._known()[row.settings["problem"]]
        method = METHODS[row.settings["method"]]
        keys = (problem.name, method.name, row.settings["repeat"])
        target = problem.forward_target(conditions)
        if not method.sees_outputs:
            target = problem.target(conditions)
        arguments, began = dict(row.settings["arguments"]), time.process_time()
        calls: Mapping[str, int] = {}
        if method.of_paper:
            arguments["initial"] = np.zeros(target.dim)
        if row.settings["settling"]:
            settled = self._settled(target, problem, conditions.generator("settling", *keys))
            arguments["initial"], calls = settled.draws[0, -1], settled.calls
        if method.of_paper and "surrogate" in arguments:
            arguments["safety"] = sk.Safety(rescues=0)  # an algorithm of the paper as it is
        timed = SamplingTime()
        rng = conditions.generator("row", *keys)
        run = completed(sk.sample(target, **arguments, seed=rng, progress=False, observers=[timed]))
        result = measured(run)
        result["seconds"] = {
            "sampling": timed.seconds,
            "training": run.seconds["training"],
            "all": timed.ended - began,
        }
        result["calls"] = {kind: n + calls.get(kind, 0) for kind, n in result["calls"].items()}
        result["call_seconds"] = seconds_of_calls(cast(GradientPotential, target), run.draws[0])
        return result

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return the table, with the paper's figures, honest costs and posteriors compared."""
        return report(finished)

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a picture of effective draws a second, with a panel for each problem."""
        from surrokit_paper.table_1.picture import picture

        return picture(finished)

    def _known(self) -> dict[str, PaperProblem]:
        return paper_problems(self.n_rows, self.dim, self.mesh)

    def _row(self, problem: PaperProblem, method: TableMethod, repeat: int) -> Row:
        name = f"{problem.name}/{method.name}"
        return Row(
            name=name if self.repeats == 1 else f"{name}/{repeat}",
            settings={
                **problem.facts(),
                "method": method.name,
                "repeat": repeat,
                "settling": self.settling if method.settles else 0,
                "arguments": method.arguments(problem, self._sizes()),
            },
        )

    def _sizes(self) -> Sizes:
        return Sizes(**{field.name: getattr(self, field.name) for field in attrs.fields(Sizes)})

    def _settled(
        self, target: Potential, problem: PaperProblem, rng: np.random.Generator
    ) -> sk.Run:
        """Return exact HMC from 0, whose last state RMHMC starts from."""
        start = np.zeros(target.dim)
        return one_chain(target, problem, start, rng, warmup=0, draws=self.settling)
