"""Figure 7: acceptance of HMC on a surrogate that learns on the way, as training points grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.experiments.contract import Conditions, Finished, Report, Row
from surrokit.settings import (
    not_negative_integer,
    one_of,
    optional_positive_integer,
    positive_integer,
)
from surrokit.types import FloatArray
from surrokit_paper.chains.chain import burnt_in, evaluations_paid, one_chain
from surrokit_paper.chains.stop_at import StopAt
from surrokit_paper.figure_7.report import report
from surrokit_paper.measures.acceptance_curve import binned_acceptance
from surrokit_paper.problems.experiment import ProblemExperiment
from surrokit_paper.problems.problems import PaperProblem
from surrokit_paper.problems.several import rising_pair
from surrokit_paper.surrogates.schemes import SCHEMES, UPDATES, Scheme, vanishing

HMC = "hmc"
"""The exact sampler, in names of rows."""

_POINTS = {"paper": "paper_points", "defaults": "default_points", "emulator": "emulator_points"}


@attrs.frozen(kw_only=True)
class Figure7(ProblemExperiment):
    """Section 5.3 and figure 7 of Zhang, Shahbaba and Zhao (2017).

    A chain of exact HMC, past its burn-in, pays for the first training points. From then on
    proposals are made on the surrogate, which observes each evaluation and is deployed anew ever
    more rarely (Algorithm 4). Acceptance is averaged in bins of training points. Step size and
    number of steps are those of HMC; masses are one. No safety net intervenes.

    Parameters
    ----------
    repeats
        Runs.
    paper_points, default_points, emulator_points
        Training points at the start and at the end: of the paper's network, which sees values of U
        alone; of this project's defaults, which see gradients too; and of the same where they learn
        a forward map, with Jacobians.
    n_bins
        Of training points, in each curve.
    burn_in
        Exact iterations from 0, with a tuned step size, that nothing is learnt from.
    draws
        Iterations of HMC, for its average acceptance.
    n_nodes
        Of the paper's network; None for s as in the paper.
    updates
        How the paper's network takes in points. ``"greville"`` is Proposition 1; ``"auto"``
        refits while points are few, and then goes on by that.
    kappa
        Deployments happen with probability (1 + t)^-kappa. The paper does not say its rate.
    """

    name = "figure-7"
    title = "Figure 7: acceptance of ARNS-HMC against the number of training points"

    repeats: int = attrs.field(default=10, validator=positive_integer)
    paper_points: tuple[int, int] = attrs.field(default=(500, 6000), converter=rising_pair)
    default_points: tuple[int, int] = attrs.field(default=(50, 600), converter=rising_pair)
    emulator_points: tuple[int, int] = attrs.field(default=(20, 200), converter=rising_pair)
    n_bins: int = attrs.field(default=22, validator=positive_integer)
    burn_in: int = attrs.field(default=500, validator=not_negative_integer)
    draws: int = attrs.field(default=1000, validator=positive_integer)
    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    updates: str = attrs.field(default="auto", validator=one_of(*UPDATES))
    kappa: float = attrs.field(default=0.6, validator=vanishing)

    def rows(self) -> list[Row]:
        """Return a row for each problem, repeat and method: HMC, and all schemes that apply."""
        found = []
        for problem in self.choose_problems():
            for repeat in range(1, self.repeats + 1):
                shared = {**problem.facts(), "repeat": repeat, "burn_in": self.burn_in}
                methods = [(HMC, {"draws": self.draws})]
                methods += [
                    (scheme.name, self._facts(scheme, problem))
                    for scheme in SCHEMES.values()
                    if scheme.applies(problem)
                ]
                found += [
                    Row(
                        name=f"{problem.name}/{method}/{repeat}",
                        settings={"method": method, **shared, **facts},
                    )
                    for method, facts in methods
                ]
        return found

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one chain."""
        problem = self.problem(row.settings["problem"])
        repeat = row.settings["repeat"]
        target = problem.target(conditions)
        before = conditions.generator("burn-in", problem.name, repeat)
        start = burnt_in(target, problem, self.burn_in, before)
        rng = conditions.generator("row", row.settings["method"], problem.name, repeat)
        if row.settings["method"] == HMC:
            run = one_chain(target, problem, start, rng, warmup=0, draws=self.draws)
            return {
                "acceptance": float(run.kept.acceptance.mean()),
                "seconds": float(run.kept.seconds[-1]),
            }
        first, last = row.settings["points"]
        run = one_chain(
            SCHEMES[row.settings["method"]].target(problem, conditions),
            problem,
            start,
            rng,
            surrogate=(row.settings["surrogate"], row.settings["surrogate_settings"]),
            schedule=("greville", row.settings["schedule_settings"]),
            explorer=("sampler", {"evaluations": first}),
            safety=sk.Safety(rescues=0),
            stop=StopAt(evaluations=last),
            warmup=2 * last,
            draws=1,
        )
        return _learnt(run, np.linspace(first, last, self.n_bins + 1))

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return after how many points 0.9 times HMC's acceptance was reached."""
        return report(finished)

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a picture with a panel for each problem."""
        from surrokit_paper.figure_7.picture import picture

        return picture(finished)

    def _facts(self, scheme: Scheme, problem: PaperProblem) -> dict[str, Any]:
        surrogate, settings = scheme.surrogate(self.n_nodes or problem.n_nodes, self.updates)
        _, schedule = scheme.adaptive(self.kappa, "warmup")
        return {
            "surrogate": surrogate,
            "surrogate_settings": settings,
            "schedule_settings": schedule,
            "points": getattr(self, _POINTS[scheme.name]),
            "n_bins": self.n_bins,
        }


def _learnt(run: sk.Run, edges: FloatArray) -> dict[str, Any]:
    """Return acceptance on the surrogate in bins of training points."""
    if not run.adaptation.deployments:
        raise SurrogateFitError(
            f"no surrogate could be fitted within {edges[-1]:.0f} training points; give more"
        )
    first, trace = run.adaptation.deployments[0], run.warmup
    paid = evaluations_paid(trace)
    return {
        "edges": edges,
        # what was known when a proposal was made is what had been paid for before it
        "acceptance": binned_acceptance(paid[first - 1 : -1], trace.acceptance[0, first:], edges),
        "path_acceptance": binned_acceptance(
            paid[first - 1 : -1], trace.path_acceptance[0, first:], edges
        ),
        "starting_points": int(paid[first - 1]),
        "starting_iterations": int(first),
        "points": int(paid[-1]),
        "deployments": len(run.adaptation.deployments),
        "seconds": float(trace.seconds[-1]),
        "training_seconds": run.seconds["training"],
    }
