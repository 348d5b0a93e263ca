"""Figure 8: error of the mean against running time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.experiments.contract import Conditions, Finished, Report, Row
from surrokit.settings import (
    not_negative_integer,
    one_of,
    optional_positive_integer,
    positive,
    positive_integer,
)
from surrokit.types import FloatArray
from surrokit_paper.chains.chain import burnt_in, one_chain
from surrokit_paper.chains.stop_at import FOREVER, StopAt
from surrokit_paper.figure_8.report import HMC, REFERENCE, report
from surrokit_paper.measures.reference_mean import reference_mean
from surrokit_paper.measures.running_means import means_at
from surrokit_paper.problems.experiment import ProblemExperiment
from surrokit_paper.problems.problems import PaperProblem
from surrokit_paper.surrogates.schemes import (
    PAPER,
    SCHEMES,
    UPDATES,
    Scheme,
    choose_schemes,
    vanishing,
)

_FIRST = 1e-3  # of the time of a run: where the curves begin


@attrs.frozen(kw_only=True)
class Figure8(ProblemExperiment):
    """Section 5.3 and figure 8 of Zhang, Shahbaba and Zhao (2017).

    |mean of the draws up to t - E q| / |E q| against t, for HMC, for RNS-HMC, whose surrogate is
    trained once, and for ARNS-HMC, whose surrogate learns on the way. Each runs one chain for the
    same time, training included; both of the latter begin as exact HMC, and those draws count.
    All chains of a repeat start from one place, where exact HMC came in a burn-in that costs none
    of them anything. Step size and number of steps are the paper's; masses are one.

    Parameters
    ----------
    schemes
        ``"paper"``: its network, values alone; ARNS-HMC starts from 500 values and never freezes,
        RNS-HMC learns from ``rns_values``. ``"defaults"``: this project's surrogate, schedules and
        explorers as they come, with a warm-up of 1000 iterations, whose draws count too.
        ``"emulator"``: the same where the target has a forward map, of which they learn.
    repeats
        Runs of each.
    seconds
        Length of a run, in processor seconds.
    n_times
        Times at which errors are known, at equal distances of their logarithms.
    burn_in
        Exact iterations from 0, with a tuned step size, in which nothing is learnt.
    rns_values
        Training points of RNS-HMC in the paper's scheme.
    n_nodes
        Of the paper's network; None for s as in the paper.
    updates
        How the paper's network takes in points. ``"greville"`` is Proposition 1; ``"auto"``
        refits while points are few, and then goes on by that.
    kappa
        ARNS-HMC deploys with probability (1 + t)^-kappa. The paper does not say its rate.
    reference_draws
        Of each of four chains, from which E q comes, with the gradient as control variates.
    """

    name = "figure-8"
    title = "Figure 8: relative error of the mean against running time"

    schemes: tuple[str, ...] = attrs.field(default=tuple(SCHEMES), converter=choose_schemes)
    repeats: int = attrs.field(default=10, validator=positive_integer)
    seconds: float = attrs.field(default=60.0, validator=positive)
    n_times: int = attrs.field(default=40, validator=positive_integer)
    burn_in: int = attrs.field(default=500, validator=not_negative_integer)
    rns_values: int = attrs.field(default=4000, validator=positive_integer)
    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    updates: str = attrs.field(default="auto", validator=one_of(*UPDATES))
    kappa: float = attrs.field(default=0.6, validator=vanishing)
    reference_draws: int = attrs.field(default=10_000, validator=positive_integer)

    @property
    def times(self) -> FloatArray:
        """Times at which errors are known, in seconds, shape (n_times,)."""
        return np.geomspace(_FIRST * self.seconds, self.seconds, self.n_times)

    def rows(self) -> list[Row]:
        """Return a reference for each problem, and a row for each repeat and method."""
        found = []
        for problem in self.choose_problems():
            reference = {"method": REFERENCE, "draws": self.reference_draws}
            found.append(
                Row(name=f"{problem.name}/reference", settings={**problem.facts(), **reference})
            )
            shared = {
                **problem.facts(),
                "burn_in": self.burn_in,
                "seconds": self.seconds,
                "n_times": self.n_times,
            }
            # repeat by repeat, so that whatever else the machine does falls on all methods
            for repeat in range(1, self.repeats + 1):
                found += [
                    Row(
                        name=f"{problem.name}/{facts['method']}/{repeat}",
                        settings={"repeat": repeat, **shared, **facts},
                    )
                    for facts in self._methods(problem)
                ]
        return found

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one chain, or the reference."""
        problem = self.problem(row.settings["problem"])
        method = row.settings["method"]
        if method == REFERENCE:
            rng = conditions.generator(REFERENCE, problem.name)
            whole, target = problem.forward_target(conditions), problem.target(conditions)
            return reference_mean(whole, target, self.reference_draws, rng)
        repeat = row.settings["repeat"]
        before = conditions.generator("burn-in", problem.name, repeat)
        # the same target for all methods, so that they start from the same place to the last digit
        start = burnt_in(problem.target(conditions), problem, self.burn_in, before)
        stop = StopAt(seconds=self.seconds)
        scheme = SCHEMES[row.settings["scheme"] or PAPER.name]
        run = one_chain(
            scheme.target(problem, conditions),
            problem,
            start,
            conditions.generator("row", method, problem.name, repeat),
            stop=stop,
            draws=FOREVER,
            **_parts(row.settings),
        )
        return _means(run, np.array(stop.elapsed), self.times)

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return how long ARNS-HMC's median error is below HMC's."""
        return report(finished)

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a picture with a panel for each problem and scheme."""
        from surrokit_paper.figure_8.picture import picture

        return picture(finished)

    def _methods(self, problem: PaperProblem) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = [{"method": HMC, "scheme": None}]
        for scheme in self._applying(problem):
            surrogate, settings = scheme.surrogate(self.n_nodes or problem.n_nodes, self.updates)
            for kind, plan in (("rns", self._once(scheme)), ("arns", self._adaptive(scheme))):
                facts = {"surrogate": surrogate, "surrogate_settings": settings, **plan}
                found.append({"method": f"{kind}-{scheme.name}", "scheme": scheme.name, **facts})
        return found

    def _applying(self, problem: PaperProblem) -> list[Scheme]:
        schemes = [SCHEMES[name] for name in self.schemes]
        return [scheme for scheme in schemes if scheme.applies(problem)]

    def _once(self, scheme: Scheme) -> dict[str, Any]:
        points = None if scheme.gradients else self.rns_values
        return {
            "schedule": "once",
            "schedule_settings": {},
            "points": points,
            "warmup": points or _WARMUP,
            "rescues": scheme.gradients,
        }

    def _adaptive(self, scheme: Scheme) -> dict[str, Any]:
        schedule, settings = scheme.adaptive(self.kappa, "warmup" if scheme.gradients else None)
        points = 50 if scheme.gradients else 500
        return {
            "schedule": schedule,
            "schedule_settings": settings,
            "points": points,
            "warmup": _WARMUP if scheme.gradients else points,
            "rescues": scheme.gradients,
        }


_WARMUP = 1000
"""This project's default."""


def _parts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run is made of, from the settings of its row."""
    if facts["method"] == HMC:
        return {"warmup": 0}
    points = facts["points"]
    return {
        "surrogate": (facts["surrogate"], facts["surrogate_settings"]),
        "schedule": (facts["schedule"], facts["schedule_settings"]),
        "explorer": None if points is None else ("sampler", {"evaluations": points}),
        "warmup": facts["warmup"],
        # an algorithm of the paper is shown as it is; the defaults come with their net
        "safety": None if facts["rescues"] else sk.Safety(rescues=0),
    }


def _means(run: sk.Run, seconds: FloatArray, times: FloatArray) -> dict[str, Any]:
    """Return means of all draws so far at each time, those of the starting phase included."""
    draws = np.concatenate([run.warmup.draws[0], run.kept.draws[0]])
    accepted = np.concatenate([run.warmup.accepted[0], run.kept.accepted[0]])
    deployed = run.adaptation.deployments
    exact = deployed[0] if deployed else len(draws)
    return {
        "times": times,
        "means": means_at(draws, seconds, times),
        "draws": len(draws),
        "acceptance": float(accepted[exact:].mean()) if exact < len(draws) else None,
        "starting_seconds": float(seconds[exact - 1]) if deployed else None,
        "deployments": len(deployed),
        "rescues": len(run.adaptation.rescues),
        "training_seconds": run.seconds["training"],
    }
