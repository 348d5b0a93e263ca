"""The acceptance of proposals on a surrogate, from draws of the target."""

from __future__ import annotations

import warnings
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.contracts.potential import GradientPotential, Potential
from surrokit.errors import SamplingWarning
from surrokit.types import FloatArray
from surrokit_paper.chains.chain import complete

_WIDEST = 3.0  # the tuned step size is within this factor of the one that is looked for
_HALVINGS = 12
_NEAR_ENOUGH = 0.01  # of an acceptance probability
_BLOCK = 500  # iterations of the chain that pays for training points


@attrs.frozen(kw_only=True, eq=False)
class Trial:
    """A target, places to start from, and one step size for the exact HMC and every surrogate.

    All trials of surrogates take the same starts, numbers of steps, and momenta where chains have
    not parted yet, so that they differ by the surrogate.

    Parameters
    ----------
    target
        What is sampled.
    starts : ndarray of shape (chains, dim)
        Draws of the target.
    step_size, n_steps
        Of the leapfrog integrator; the number of steps is drawn from {1, ..., n_steps} in each
        iteration.
    iterations
        Of each chain.
    seed
        Of momenta and decisions.
    """

    target: GradientPotential
    starts: FloatArray
    step_size: float
    n_steps: int
    iterations: int
    seed: int

    @classmethod
    def prepare(
        cls,
        target: GradientPotential,
        *,
        acceptance: float,
        n_steps: int,
        burn_in: int,
        chains: int,
        iterations: int,
        rng: np.random.Generator,
    ) -> Trial:
        """Run exact HMC from 0, and find the step size at which it accepts so much.

        Parameters
        ----------
        target
            What is sampled.
        acceptance
            Mean acceptance probability of exact HMC.
        n_steps, chains, iterations
            Of a trial.
        burn_in
            Exact iterations of each chain before a trial starts.
        rng
            Draws everything.

        Raises
        ------
        KeyboardInterrupt
            If somebody ended it.
        """
        run = complete(
            sk.sample(
                target,
                sampler=("hmc", {"metric": "identity", "target_acceptance": acceptance}),
                n_steps=n_steps,
                chains=chains,
                warmup=burn_in,
                draws=1,
                initial=np.zeros(target.dim),
                seed=rng,
                progress=False,
            )
        )
        trial = cls(
            target=target,
            starts=run.draws[:, -1],
            step_size=float(run.kept.step_size[-1]),
            n_steps=n_steps,
            iterations=iterations,
            seed=int(rng.integers(2**32)),
        )
        return trial.accepting(acceptance)

    def accepting(self, acceptance: float) -> Trial:
        """Return a trial with the step size at which exact HMC accepts so much.

        Found by halving an interval around the present step size, on a logarithmic scale, until
        the mean acceptance probability is within 0.01.
        """
        low, high = self.step_size / _WIDEST, self.step_size * _WIDEST
        trial = self
        for _ in range(_HALVINGS):
            found = trial.acceptance()
            if abs(found - acceptance) < _NEAR_ENOUGH:
                break
            low, high = (trial.step_size, high) if found > acceptance else (low, trial.step_size)
            trial = attrs.evolve(trial, step_size=float(np.sqrt(low * high)))
        return trial

    def acceptance(self, surrogate: Potential | None = None) -> float:
        """Return the mean acceptance probability of proposals, the exact potential deciding.

        Parameters
        ----------
        surrogate
            On which proposals are made; None for the exact potential.

        Raises
        ------
        KeyboardInterrupt
            If somebody ended it.
        """
        with warnings.catch_warnings():
            # that next to nothing is accepted is what is looked for here
            warnings.simplefilter("ignore", SamplingWarning)
            run = self._run(
                self.starts,
                self.iterations,
                np.random.default_rng(self.seed),
                surrogate="none" if surrogate is None else surrogate,
                safety=sk.Safety(rescues=0),
            )
        return float(run.kept.acceptance.mean())

    def training_points(self, n: int, rng: np.random.Generator) -> sk.Evaluations:
        """Return the first new states of one exact chain, with values and gradients.

        New states are accepted proposals, which is what Algorithm 3 of the paper collects. The
        chain starts at one of the starts.

        Parameters
        ----------
        n
            How many.
        rng
            Draws the chain.

        Raises
        ------
        KeyboardInterrupt
            If somebody ended it.
        """
        blocks: list[FloatArray] = []
        start, found = self.starts[-1:], 0
        while found < n:
            run = self._run(start, _BLOCK, rng, surrogate="none")
            blocks.append(run.draws[0][run.kept.accepted[0]])
            start, found = run.draws[:, -1], found + len(blocks[-1])
        positions = np.concatenate(blocks)[:n]
        values, gradients = self.target.value_and_gradient(positions)
        return sk.Evaluations(positions=positions, values=values, gradients=gradients)

    def _run(
        self, starts: FloatArray, draws: int, rng: np.random.Generator, **settings: Any
    ) -> sk.Run:
        return complete(
            sk.sample(
                self.target,
                sampler=("hmc", {"metric": "identity"}),
                step_size=self.step_size,
                n_steps=self.n_steps,
                chains=len(starts),
                warmup=0,
                draws=draws,
                initial=starts,
                seed=rng,
                progress=False,
                **settings,
            )
        )
