"""Figure 3: surrogates of a Gaussian in 32 dimensions, trained on more and more points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.contracts.potential import Potential
from surrokit.experiments.contract import Conditions, Finished, Report, Row
from surrokit.settings import not_negative_integer, positive, positive_integer
from surrokit.surrogate.quality import fit_quality
from surrokit_paper.chains.chain import complete
from surrokit_paper.chains.processor_time import SamplingTime
from surrokit_paper.experiment import PaperExperiment
from surrokit_paper.figure_3.report import report
from surrokit_paper.problems.long_gaussian import (
    DIM,
    exact_evaluations,
    noisy_evaluations,
    square_root,
)
from surrokit_paper.problems.several import sizes
from surrokit_paper.surrogates.methods import DEFAULTS, PAPER_GP, Method, solve_seconds, train

SIZE = 1000
"""Nodes of the networks, and inducing points of FITC, in the paper."""

STEP_SIZE, N_STEPS = 0.108, 30
"""As in the authors' code; every path has so many steps."""

RADIAL: Mapping[str, Any] = {
    "draws": "data",
    "widths": "chi-square",
    "width_scale": 1.0,
    "whiten": False,
    "trend": "constant",
    "level": "minimum",
    "train_on": "values",
    "ridge": 1e-6,
    "tail": "full",
    "hold_out": 0.0,
}
"""``rbf-paper`` but for its centres, which are N(0, I): here they are training points. The authors
draw them from N(0, Sigma), and then spread them by Sigma once more."""

HELD_OUT = 1000
"""Fresh draws from the target at which the error of a surrogate is measured."""

METHODS = (
    Method(name="gp", label="GP", surrogate="gp", settings=PAPER_GP),
    Method(
        name="fitc",
        label="FITC",
        surrogate="fitc",
        settings={**PAPER_GP, "n_inducing": SIZE, "inducing": "data"},
    ),
    Method(
        name="additive",
        label="additive nodes",
        surrogate="additive-paper",
        settings={"n_nodes": SIZE},
    ),
    Method(name="rbf", label="radial nodes", surrogate="rbf", settings={"n_nodes": SIZE, **RADIAL}),
    *DEFAULTS,
)
"""The four of the paper, then this project's own settings."""

DRAWN = 0.9
"""At most this part of the training points are inducing points: they are drawn among those that
are left when some are held out to judge the fit."""

EXACT = Method(name="hmc", label="HMC, exact", surrogate="none")
"""For comparison; here the exact potential costs next to nothing."""


@attrs.frozen(kw_only=True)
class Figure3(PaperExperiment):
    """Section 3.4 and figure 3 of Zhang, Shahbaba and Zhao (2017).

    Surrogates are trained on N independent draws from the target, at which U is seen with noise
    N(0, noise_sd^2), and nothing is explored. Then HMC runs on each, with paths of 30 steps of
    0.108, unit masses, from 0, in one chain; the exact U without noise decides every acceptance.

    Parameters
    ----------
    n_points
        N.
    repeats
        Times that everything is done, each with data of its own; smaller data sets are the
        beginnings of larger ones.
    burn_in, draws
        Iterations, and those of them that are kept.
    noise_sd
        Of the values, and of each number of a gradient where a surrogate is shown any.
    """

    name = "figure-3"
    title = "Figure 3: training time, acceptance and efficiency on a Gaussian of 32 dimensions"

    n_points: tuple[int, ...] = attrs.field(
        default=(300, 600, 900, 1500, 2100, 3000), converter=sizes
    )
    repeats: int = attrs.field(default=10, validator=positive_integer)
    burn_in: int = attrs.field(default=400, validator=not_negative_integer)
    draws: int = attrs.field(default=1600, validator=positive_integer)
    noise_sd: float = attrs.field(default=0.1, validator=positive)

    def rows(self) -> list[Row]:
        """Return a row for each repeat, N and surrogate, and one for HMC in each repeat."""
        shared = self.settings_without("n_points", "repeats")
        found = []
        for repeat in range(1, self.repeats + 1):
            pairs = [(EXACT, 0)]
            pairs += [(_at(method, n), n) for n in self.n_points for method in METHODS]
            found += [
                Row(
                    name=f"{method.name}/{n or 'exact'}/{repeat}",
                    settings={"n_points": n, "repeat": repeat, **method.facts(), **shared},
                )
                for method, n in pairs
            ]
        return found

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Train a surrogate, and run HMC on it."""
        target = sk.make("potential", "gaussian-32")
        method, n, repeat = (row.settings[key] for key in ("method", "n_points", "repeat"))
        rng = conditions.generator("row", method, n, repeat)
        if method == EXACT.name:
            return self._sample(target, None, rng)
        data = noisy_evaluations(
            target,
            n,
            self.noise_sd,
            conditions.generator("data", repeat),
            gradients=row.settings["gradients"],
        )
        asked = row.settings["surrogate"], row.settings["surrogate_settings"], data, rng
        fit = train(*asked)
        fresh = exact_evaluations(target, HELD_OUT, conditions.generator("held out", repeat))
        quality = fit_quality(fit.potential, fresh, square_root())
        assert quality is not None
        return {
            "training_seconds": fit.seconds,
            "training_wall_seconds": fit.wall_seconds,
            "solve_seconds": solve_seconds(fit, *asked),
            "error": float(np.sqrt(quality.variance)),
            "gradient_error": quality.gradient_error,
            **self._sample(target, fit.potential, rng),
        }

    def _sample(
        self, target: Potential, surrogate: Potential | None, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Return acceptance, effective draws and seconds of one chain."""
        timed = SamplingTime()
        run = sk.sample(
            target,
            sampler=("hmc", {"metric": "identity", "randomize": False}),
            surrogate=surrogate,
            step_size=STEP_SIZE,
            n_steps=N_STEPS,
            chains=1,
            warmup=self.burn_in,
            draws=self.draws,
            initial=np.zeros(DIM),
            seed=rng,
            progress=False,
            observers=[timed],
        )
        # a chain that never moved has no effective draw
        ess = np.nan_to_num(complete(run).ess("paper"))
        return {
            "acceptance": float(run.acceptance[0]),
            "ess": {"min": ess.min(), "mean": ess.mean(), "max": ess.max()},
            "sampling_seconds": timed.seconds,
            "sampling_wall_seconds": run.seconds["sampling"],
            "mean_ess_per_second": ess.mean() / timed.seconds,
            "min_ess_per_second": ess.min() / timed.seconds,
        }

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return medians and 80 % intervals over repeats, and how training time grows."""
        return report(finished)

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a picture of three panels: training time, acceptance, efficiency."""
        from surrokit_paper.figure_3.picture import picture

        return picture(finished, [*METHODS, EXACT])


def _at(method: Method, n: int) -> Method:
    """Return a method as it is with n points: no more inducing points than can be drawn."""
    if "n_inducing" not in method.settings:
        return method
    n_inducing = min(method.settings["n_inducing"], int(DRAWN * n))
    return attrs.evolve(method, settings={**method.settings, "n_inducing": n_inducing})
