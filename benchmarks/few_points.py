"""What the additive surrogate makes of few evaluations with gradients, on three regressions.

Each surrogate is judged at draws from the Laplace approximation that it was not fitted to, by the
relative error of its gradient in whitened coordinates and by Var(V - U), and by the acceptance of
HMC that moves on it and is decided on exactly. That is set against exact HMC of the same starts
and seed, with the step size and path length of the paper, and printed as a part of it. Training
points are independent draws from the Laplace approximation, whose own cost is not counted.

    python benchmarks/few_points.py --bank path/to/bank-additional-full.csv --a9a path/to/a9a
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import click
import numpy as np

import surrokit as sk
from surrokit.interfaces import LearningProblem
from surrokit.potentials import Potential
from surrokit.surrogate.quality import fit_quality
from surrokit.types import FloatArray

CHAINS = 100
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
        mode = np.zeros((1, target.dim))
        for _ in range(30):
            mode = mode - np.linalg.solve(target.hessian(mode)[0], target.gradient(mode)[0])
        root = np.linalg.cholesky(target.hessian(mode)[0])
        return cls(
            name=name,
            target=target,
            step_size=step_size,
            n_steps=n_steps,
            mode=mode[0],
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
        """Evaluate U and its gradient at draws from the Laplace approximation, 64 at once."""
        positions = self.draws(n, *key)
        parts = [
            self.target.value_and_gradient(positions[start : start + 64])
            for start in range(0, n, 64)
        ]
        values, gradients = (np.concatenate(part) for part in zip(*parts, strict=True))
        return sk.Evaluations(positions=positions, values=values, gradients=gradients)

    def acceptance(self, surrogate: Potential | None, iterations: int, seed: int) -> float:
        """Follow single paths with the paper's settings on a surrogate, or on the target itself.

        Starts, momenta, lengths and uniforms depend on the seed alone, so that two potentials can
        be compared path by path; acceptance varies more between starts than between them.
        """
        path = {"metric": "identity", "step_size": self.step_size, "n_steps": self.n_steps}
        rates = []
        for batch in range(max(iterations // CHAINS, 1)):
            run = sk.sample(
                self.target,
                sampler=("hmc", path),
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

    def fit(self, points: int, seed: int) -> Potential:
        """Fit the surrogate to draws from the Laplace approximation."""
        problem = LearningProblem(dim=self.target.dim, capabilities=self.target.capabilities)
        surrogate = sk.make("surrogate", "additive")
        learner = surrogate.learner(problem, np.random.default_rng(seed))
        learner.observe(self.evaluations(points, seed, TRAINING))
        return learner.fit()


def settings_of(bank: str | None, a9a: str | None) -> Iterator[Setting]:
    """Yield the targets whose data are there."""
    yield Setting.of("simulated", sk.make("potential", "simulated-logistic"), 0.045, 6)
    if bank is not None:
        yield Setting.of("bank", sk.make("potential", "bank", path=bank), 0.012, 45)
    if a9a is not None:
        yield Setting.of("a9a", sk.make("potential", "a9a", path=a9a, projected=60), 0.012, 10)


@click.command()
@click.option("--bank", type=click.Path(exists=True, dir_okay=False), help="Bank Marketing file.")
@click.option("--a9a", type=click.Path(exists=True, dir_okay=False), help="a9a file.")
@click.option("--iterations", default=2000, show_default=True, help="Of HMC for an acceptance.")
@click.option("--seed", default=1, show_default=True)
def main(bank: str | None, a9a: str | None, iterations: int, seed: int) -> None:
    """Fit to few evaluations, and print how good the fits are."""
    for setting in settings_of(bank, a9a):
        held_out = setting.evaluations(300, seed, JUDGING)
        exact = setting.acceptance(None, iterations, seed)
        print(f"{setting.name}: exact HMC accepts {exact:.3f}", flush=True)
        for points in (60, 100, 150):
            surrogate = setting.fit(points, seed)
            quality = fit_quality(surrogate, held_out, setting.factor)
            acceptance = setting.acceptance(surrogate, iterations, seed)
            print(
                f"  {points:4d} evaluations: error of the gradient {quality.gradient_error:.4f}, "
                f"Var(V - U) {quality.variance:.2e}, acceptance {acceptance:.3f}, "
                f"{acceptance / exact:.3f} of exact HMC's",
                flush=True,
            )


if __name__ == "__main__":
    main()
