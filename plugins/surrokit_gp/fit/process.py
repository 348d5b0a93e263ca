"""The frame of full and sparse processes as surrogates."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import one_of, positive, positive_integer
from surrokit.interfaces import LearningProblem
from surrokit.surrogate.shown import ShownSurrogate
from surrokit.surrogate.training import Tail
from surrokit_gp.data.mean_functions import Mean
from surrokit_gp.fit.learner import ProcessLearner
from surrokit_gp.fit.search import KernelScales, Search
from surrokit_gp.fit.space import MAX_SIGNAL
from surrokit_gp.fit.training import Training
from surrokit_gp.kernel.hyperparameters import (
    Hyperparameters,
    check_hyperparameters,
    check_noise,
    check_one_noise,
    given_hyperparameters,
)
from surrokit_gp.posterior.model import Model


@attrs.frozen(kw_only=True)
class Process(ShownSurrogate):
    """Kernel, mean function and noise of a process, and the search for its hyperparameters.

    Parameters
    ----------
    kernel_scales
        ``"isotropic"`` for one length scale, ``"per-dimension"`` for one in each coordinate.
    mean
        ``"zero"``, ``"constant"``, ``"linear"`` or ``"quadratic"``; ``"auto"`` for a
        quadratic one with three equations for each coefficient, else a linear one with ten, else
        a constant.
    noise : float, optional
        Standard deviation of the noise of a value in nats; None to find it with the
        hyperparameters.
    whiten
        Whether the kernel sees whitened positions, or the positions themselves.
    hyperparameters : Hyperparameters or mapping, optional
        Those to use; None to find them.
    n_starts
        Starts of the search.
    max_iterations
        Most iterations from each.
    max_signal
        Largest standard deviation of the process that the search looks at, in standard deviations
        of the values. A process far above it is close to a polynomial, and loses digits.
    tail
        ``"down-weighted"``: rows far above the least U have noise of their own; ``"full"``: they
        count as any other.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    kernel_scales: KernelScales = attrs.field(
        default="isotropic", validator=one_of("isotropic", "per-dimension")
    )
    mean: Mean = attrs.field(
        default="auto", validator=one_of("auto", "zero", "constant", "linear", "quadratic")
    )
    noise: float | None = attrs.field(default=None, validator=check_noise)
    whiten: bool = attrs.field(default=True, validator=one_of(True, False))
    hyperparameters: Hyperparameters | None = attrs.field(
        default=None, converter=given_hyperparameters, validator=check_hyperparameters
    )
    n_starts: int = attrs.field(default=3, validator=positive_integer)
    max_iterations: int = attrs.field(default=50, validator=positive_integer)
    max_signal: float = attrs.field(default=MAX_SIGNAL, validator=positive)
    tail: Tail = attrs.field(default="down-weighted", validator=one_of("down-weighted", "full"))

    def __attrs_post_init__(self) -> None:
        check_one_noise(self.noise, self.hyperparameters)

    def learner_on(
        self,
        model: Model,
        problem: LearningProblem,
        rng: np.random.Generator,
        *,
        needs: set[str],
        uses: set[str],
        **most: int | None,
    ) -> ProcessLearner:
        """Return a learner for a problem; its seed is drawn here.

        Raises
        ------
        ConfigurationError
            If the hyperparameters are those of another dimension.
        """
        if self.hyperparameters is not None:
            self.hyperparameters.scales(problem.dim)
        search = Search(
            kernel_scales=self.kernel_scales,
            noise=self.noise,
            n_starts=self.n_starts,
            max_iterations=self.max_iterations,
            max_signal=self.max_signal,
        )
        training = Training(
            model=model, search=search, mean=self.mean, hyperparameters=self.hyperparameters, **most
        )
        return ProcessLearner(
            dim=problem.dim,
            seed=int(rng.integers(2**53)),
            training=training,
            whiten=self.whiten,
            tail=self.tail,
            needs=frozenset(needs),
            uses=frozenset(uses),
        )
