"""What the additive surrogate makes of few evaluations with gradients, on three regressions.

Each surrogate is judged at draws from the Laplace approximation that it was not fitted to, by the
relative error of its gradient in whitened coordinates and by Var(V - U), and by the acceptance of
HMC that moves on it and is decided on exactly. That is set against exact HMC of the same starts
and seed, with the step size and path length of the paper, and printed as a part of it.

Training points are independent draws from the Laplace approximation, whose own cost is not
counted, or, for the rows named "exploration", whatever an exact sampler paid for on its way from
zero, tuning of the step size included.

    python benchmarks/few_points.py --bank path/to/bank-additional-full.csv --a9a path/to/a9a
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import click
import numpy as np

import surrokit as sk
from surrokit.interfaces import LearningProblem
from surrokit.potentials import Potential
from surrokit.surrogate.quality import FitQuality, fit_quality
from surrokit.types import FloatArray

N_JUDGING, CHAINS, NEWTON_STEPS, AT_ONCE, LAST_PATH = 300, 100, 30, 64, 50
TRAINING, JUDGING, STARTS, RESAMPLING = 1, 2, 3, 4  # streams of random numbers


@attrs.frozen(kw_only=True, eq=False)
class Setting:
    """A target with the settings that the paper samples it with."""

    name: str  # what is sampled
    target: Potential
    step_size: float  # of HMC in section 5 of the paper
    n_steps: int
    mode: FloatArray  # (dim,): where U is least
    factor: FloatArray  # (dim, dim): cholesky factor of the inverse Hessian there

    @classmethod
    def of(cls, name: str, target: Potential, step_size: float, n_steps: int) -> Setting:
        """Find the Laplace approximation by Newton's method."""
        mode = np.zeros(target.dim)
        for _ in range(NEWTON_STEPS):
            mode = mode - np.linalg.solve(
                target.hessian(mode[None])[0], target.gradient(mode[None])[0]
            )
        root = np.linalg.cholesky(target.hessian(mode[None])[0])
        return cls(
            name=name,
            target=target,
            step_size=step_size,
            n_steps=n_steps,
            mode=mode,
            factor=np.linalg.inv(root).T,
        )

    def draws(self, n: int, *key: int) -> FloatArray:
        """Draw from the Laplace approximation; the same for the same key."""
        normals = np.random.default_rng(key).standard_normal((n, self.target.dim))
        return self.mode + normals @ self.factor.T

    def starts(self, n: int, *key: int) -> FloatArray:
        """Draw from the target: resample draws from the Laplace approximation by weight."""
        draws = self.draws(2 * n, *key)
        normals = np.linalg.solve(self.factor, (draws - self.mode).T)
        log_weights = 0.5 * np.square(normals).sum(axis=0) - self.target.value(draws)
        weights = np.exp(log_weights - log_weights.max())
        rng = np.random.default_rng((*key, RESAMPLING))
        return draws[rng.choice(2 * n, n, p=weights / weights.sum())]

    def evaluations(self, n: int, *key: int) -> sk.Evaluations:
        """Evaluate U and its gradient at draws from the Laplace approximation."""
        positions = self.draws(n, *key)
        parts = [
            self.target.value_and_gradient(positions[start : start + AT_ONCE])
            for start in range(0, n, AT_ONCE)
        ]
        values, gradients = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sk.Evaluations(positions=positions, values=values, gradients=gradients)

    def acceptance(self, surrogate: Potential | None, iterations: int, seed: int) -> float:
        """Follow single paths with the paper's settings on a surrogate, or on the target itself.

        Starts, momenta, lengths and uniforms depend on the seed alone, so that two potentials can
        be compared path by path; acceptance varies more between starts than between them.
        """
        rates = []
        for batch in range(max(iterations // CHAINS, 1)):
            run = sk.sample(
                self.target,
                sampler=(
                    "hmc",
                    {"metric": "identity", "step_size": self.step_size, "n_steps": self.n_steps},
                ),
                surrogate=surrogate,
                chains=CHAINS,
                warmup=0,
                draws=1,
                initial=self.starts(CHAINS, seed, STARTS, batch),
                seed=seed + batch,
                progress=False,
            )
            rates.append(run.acceptance.mean())
        return float(np.mean(rates))

    def fit(self, name: str, settings: dict[str, Any], points: int, seed: int) -> Potential:
        """Fit a surrogate to draws from the Laplace approximation."""
        problem = LearningProblem(dim=self.target.dim, capabilities=self.target.capabilities)
        surrogate = sk.make("surrogate", name, **settings)
        learner = surrogate.learner(problem, np.random.default_rng(seed))
        learner.observe(self.evaluations(points, seed, TRAINING))
        return learner.fit()


@attrs.define
class Deployed:
    """Keeps the first surrogate that a run deploys."""

    surrogate: Potential | None = None

    def surrokit_surrogate_deployed(
        self, run: object, surrogate: Potential, evaluations: int, reason: str
    ) -> None:
        """Keep the surrogate, if it is the first."""
        if self.surrogate is None:
            self.surrogate = surrogate


def explored(setting: Setting, budget: int, chains: int, seed: int) -> tuple[Potential | None, int]:
    """Explore exactly from zero, with everything tuned; return the surrogate and what it cost.

    An exploration ends with the path on which its budget is reached, so it is told a bit less.
    """
    kept = Deployed()
    run = sk.sample(
        setting.target,
        sampler="hmc",
        surrogate="additive",
        explorer=("sampler", {"evaluations": budget - LAST_PATH}),
        chains=chains,
        warmup=budget,
        draws=1,
        initial=np.zeros(setting.target.dim),
        seed=seed,
        progress=False,
        observers=(kept,),
    )
    # Once there is a surrogate nothing but values is paid, so these are the exploration's.
    return kept.surrogate, run.calls["gradient"]


def settings_of(bank: str | None, a9a: str | None) -> Iterator[Setting]:
    """Yield the targets whose data are there."""
    yield Setting.of("simulated", sk.make("potential", "simulated-logistic"), 0.045, 6)
    if bank is not None:
        yield Setting.of("bank", sk.make("potential", "bank", path=bank), 0.012, 45)
    if a9a is not None:
        yield Setting.of("a9a", sk.make("potential", "a9a", path=a9a, projected=60), 0.012, 10)


def line(
    setting: Setting,
    what: str,
    cost: int,
    surrogate: Potential,
    held_out: sk.Evaluations,
    exact: float,
    iterations: int,
    seed: int,
) -> str:
    """Return one line of the table."""
    quality: FitQuality | None = fit_quality(surrogate, held_out, setting.factor)
    assert quality is not None
    assert quality.gradient_error is not None
    acceptance = setting.acceptance(surrogate, iterations, seed)
    own = getattr(surrogate, "quality", None)
    told = "" if own is None or own.gradient_error is None else f"{own.gradient_error:.4f}"
    return (
        f"{setting.name:10s} {what:34s} {cost:5d} {quality.gradient_error:9.4f} {told:>8s} "
        f"{quality.variance:9.2e} {acceptance:10.3f} {acceptance / exact:8.3f}"
    )


@click.command()
@click.option("--bank", type=click.Path(exists=True, dir_okay=False), help="Bank Marketing file.")
@click.option("--a9a", type=click.Path(exists=True, dir_okay=False), help="a9a file.")
@click.option("--iterations", default=2000, show_default=True, help="Of HMC for an acceptance.")
@click.option("--budget", default=600, show_default=True, help="Evaluations of an exploration.")
@click.option("--seed", default=1, show_default=True)
def main(bank: str | None, a9a: str | None, iterations: int, budget: int, seed: int) -> None:
    """Fit to few evaluations, and print how good the fits are."""
    print(
        f"{'target':10s} {'surrogate':34s} {'calls':>5s} {'gradient':>9s} {'own est.':>8s} "
        f"{'Var(V-U)':>9s} {'acceptance':>10s} {'of exact':>8s}"
    )
    for setting in settings_of(bank, a9a):
        held_out = setting.evaluations(N_JUDGING, seed, JUDGING)
        exact = setting.acceptance(None, iterations, seed)
        print(f"{setting.name:10s} {'exact HMC':34s} {'':33s} {exact:10.3f}", flush=True)

        def show(what: str, cost: int, surrogate: Potential) -> None:
            print(
                line(setting, what, cost, surrogate, held_out, exact, iterations, seed),  # noqa: B023
                flush=True,
            )

        if setting.name == "simulated":
            alone = {"n_nodes": 2000, "trend": "constant"}
            show("network alone, 2000 nodes", 500, setting.fit("additive", alone, 500, seed))
        for points in (60, 100, 150):
            show("additive", points, setting.fit("additive", {}, points, seed))
        show("quadratic", 150, setting.fit("quadratic", {}, 150, seed))
        for chains in (1, 4):
            surrogate, calls = explored(setting, budget, chains, seed)
            if surrogate is None:
                print(
                    f"{setting.name:10s} exploration, chains: {chains}: no surrogate was deployed"
                )
                continue
            show(f"exploration, chains: {chains}", calls, surrogate)


if __name__ == "__main__":
    main()
