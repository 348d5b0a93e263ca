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
from surrokit.settings import positive_integer
from surrokit_paper.chains.call_seconds import seconds_of_calls
from surrokit_paper.chains.chain import complete, one_chain
from surrokit_paper.chains.processor_time import SamplingTime
from surrokit_paper.measures.measured_run import measure
from surrokit_paper.problems.problems import PaperProblem
from surrokit_paper.table_1.methods import METHODS, Sizes, TableMethod, choose_methods
from surrokit_paper.table_1.report import report


@attrs.frozen(kw_only=True)
class Table1(Sizes):
    """Section 5 and table 1 of Zhang, Shahbaba and Zhao (2017).

    HMC, RMHMC, RNS-HMC and RNS-RMHMC as the paper sets them up, one chain from 0 with unit masses
    and given step sizes; then methods of this project that the paper does not have. Each row is a
    run of one method on one problem, burn-in and training included, and times single calls of the
    target as well.

    Parameters
    ----------
    methods
        Names of the methods.
    repeats
        Runs of each; figures are averaged.
    """

    name = "table-1"
    title = "Table 1: acceptance, effective draws and seconds of four methods on four problems"

    methods: tuple[str, ...] = attrs.field(default=tuple(METHODS), converter=choose_methods)
    repeats: int = attrs.field(default=1, validator=positive_integer)

    def rows(self) -> list[Row]:
        """Return a row for each problem, repeat, and method that is for it."""
        found = []
        for problem in self.choose_problems():
            for repeat in range(1, self.repeats + 1):
                found += [
                    self._row(problem, METHODS[name], repeat)
                    for name in self.methods
                    if problem.name in METHODS[name].problems
                ]
        return found

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one method on one problem."""
        problem = self.problem(row.settings["problem"])
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
            settled = self._settle(target, problem, conditions.generator("settling", *keys))
            arguments["initial"], calls = settled.draws[0, -1], settled.calls
        if method.of_paper and "surrogate" in arguments:
            arguments["safety"] = sk.Safety(rescues=0)  # an algorithm of the paper as it is
        timed = SamplingTime()
        rng = conditions.generator("row", *keys)
        run = complete(sk.sample(target, **arguments, seed=rng, progress=False, observers=[timed]))
        result = measure(run)
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

    def _row(self, problem: PaperProblem, method: TableMethod, repeat: int) -> Row:
        name = f"{problem.name}/{method.name}"
        return Row(
            name=name if self.repeats == 1 else f"{name}/{repeat}",
            settings={
                **problem.facts(),
                "method": method.name,
                "repeat": repeat,
                "settling": self.settling if method.settles else 0,
                "arguments": method.arguments(problem, self),
            },
        )

    def _settle(self, target: Potential, problem: PaperProblem, rng: np.random.Generator) -> sk.Run:
        """Return exact HMC from 0, whose last state RMHMC starts from."""
        start = np.zeros(target.dim)
        return one_chain(target, problem, start, rng, warmup=0, draws=self.settling)
