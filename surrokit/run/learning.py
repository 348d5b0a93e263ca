"""What an attempt learns with: its learner, and the surrogate in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.cost.budget import Clock
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Decision, Evaluations, Moment
from surrokit.limits import FITTING, stage, threads_for
from surrokit.modes import Modes
from surrokit.plan.plan import Plan, uses_derivatives
from surrokit.potentials import Potential
from surrokit.run.approximate import Approximation, fit_near, of_surrogate
from surrokit.surrogate.by_modes import fit_by_modes
from surrokit.surrogate.quality import fit_quality_of
from surrokit.types import FloatArray

InUse = tuple[object, ...]
"""The frozen parts that move chains and decide; any change makes another object."""


class Learning:
    """The learner of an attempt, its surrogate in use, and whether draws are under adaptation.

    Draws are kept under adaptation if the kernel changes among them, and also if the schedule
    could have changed it, since that may depend on where the chains go.

    Parameters
    ----------
    plan
        One with a learner, a ready surrogate, or neither.
    clock
        Charged with the time, as training.

    Attributes
    ----------
    surrogate
        The surrogate in use; None before there is one.
    n_observed
        Exact evaluations observed.
    frozen
        Whether the schedule has said that it deploys nothing from then on.
    though_frozen
        Iterations after which the schedule deployed a surrogate all the same.
    under_adaptation
        Whether draws were kept under adaptation.
    """

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self.surrogate: Potential | None = plan.surrogate
        self.n_observed = self._n_numbers = 0
        self.frozen = self.under_adaptation = False
        self.though_frozen: list[int] = []
        self._learner = plan.learner
        self._clock = clock
        self._last: tuple[int, Potential] | None = None
        self._kernel: InUse = ()
        self._before = {} if self._learner is None else self._learner.state()
        # the modes that a surrogate is fitted by, and all rows as long as there may be some
        self._modes: Modes | None = None
        self._rows: list[Evaluations] | None = [] if plan.sampler.needs <= {GRADIENT} else None

    @property
    def learns(self) -> bool:
        """Whether there is anything to learn."""
        return self._learner is not None

    @property
    def uses_derivatives(self) -> bool:
        """Whether it learns from derivatives where there are any."""
        return self._learner is not None and uses_derivatives(self._learner)

    @property
    def uses_jacobians(self) -> bool:
        """Whether it learns from Jacobians of outputs where there are any."""
        learner = self._learner
        return learner is not None and "jacobian" in learner.uses | learner.needs

    def observe(self, rows: Evaluations) -> None:
        """Take in exact evaluations."""
        assert self._learner is not None
        with self._clock.phase("training"):
            if self._modes is None:
                self._learner.observe(rows)
        if self._rows is not None:
            self._rows.append(rows)
        self.n_observed += len(rows)
        self._n_numbers += len(rows) + rows.positions.size

    def fit(self) -> Potential:
        """Return a surrogate of all rows so far; the last surrogate if there are no new rows.

        Raises
        ------
        SurrogateFitError
            If none can be fitted.
        """
        assert self._learner is not None
        if self._last is None or self._last[0] != self.n_observed:
            with self._clock.phase("training"), threads_for(self._n_numbers), stage(FITTING):
                alone = self._modes is None
                found = self._learner.fit() if alone else self._fit_by_modes(self._rows or [])
                self._last = self.n_observed, found
        return self._last[1]

    def fit_with(self, rows: Evaluations, modes: Modes | None = None) -> Potential | None:
        """Observe more rows, and return a surrogate of all; None where none can be fitted.

        It has a part for each of several modes, if some are given by now.
        """
        if modes is not self._modes and self._rows is not None:
            self._modes, self._last = modes, None
        self.observe(rows)
        try:
            return self.fit()
        except SurrogateFitError:
            return None

    def _fit_by_modes(self, blocks: list[Evaluations]) -> Potential:
        assert self._modes is not None
        rows = Evaluations.join(blocks, self._modes.positions.shape[1])
        return fit_by_modes(self._fit_to, rows, self._modes)

    def _fit_to(self, rows: Evaluations, state: Mapping[str, Any] | None = None) -> Potential:
        """Return a fit to some rows, and to nothing else unless in a state."""
        assert self._learner is not None
        learner = self._learner.restore(self._before if state is None else state)
        learner.observe(rows)
        return learner.fit()

    def state(self) -> dict[str, Any]:
        """Return all that is learnt so far."""
        assert self._learner is not None
        return self._learner.state() if self._modes is None else {"rows": [*(self._rows or [])]}

    def fit_from(self, state: Mapping[str, Any], rows: Evaluations) -> Potential:
        """Return a surrogate of what was learnt in a state and of some rows; nothing is observed.

        Raises
        ------
        SurrogateFitError
            If none can be fitted.
        """
        assert self._learner is not None
        with self._clock.phase("training"), threads_for(self._n_numbers):
            if self._modes is not None:
                return self._fit_by_modes([*state["rows"], rows])
            return self._fit_to(rows, state)

    def fit_to(self, rows: Evaluations) -> Potential:
        """Return a surrogate of some rows alone; nothing is observed.

        Raises
        ------
        SurrogateFitError
            If none can be fitted.
        """
        return self.fit_from({"rows": []} if self._modes is not None else self._before, rows)

    def approximate(
        self,
        plan: Plan,
        rows: Evaluations,
        covariance: FloatArray | None,
        rng: np.random.Generator,
    ) -> Approximation | None:
        """Return draws of the surrogate, or of one that is learnt from rows by now.

        Parameters
        ----------
        covariance : ndarray of shape (dim, dim), optional
            What is known of the target's.
        """
        surrogate = self.surrogate
        if surrogate is None and self._learner is not None:
            surrogate, rows = fit_near(self.fit_to, rows)
        if surrogate is None:
            return None
        self.surrogate = surrogate
        return of_surrogate(
            surrogate,
            plan.sampler,
            plan.correction,
            rows=rows,
            covariance=covariance,
            chains=plan.recipe.chains,
            rng=rng,
        )

    def predicted(self, otherwise: float) -> float:
        """Return the acceptance that the fit predicts; another where it does not."""
        quality = None if self.surrogate is None else fit_quality_of(self.surrogate)
        return otherwise if quality is None else quality.acceptance

    def begin_draws(self, kernel: InUse) -> None:
        """Take note of the kernel that the draws begin with."""
        self._kernel = kernel

    def note(self, moment: Moment, decision: Decision, kernel: InUse) -> None:
        """Take note of a schedule's decision, and of the kernel in use from here on."""
        if decision.deploy and self.frozen:
            self.though_frozen.append(moment.iteration)
        self.frozen = self.frozen or decision.frozen
        if moment.stage == "sampling":
            might_change = decision.deploy or not decision.frozen
            self.under_adaptation |= might_change or not _same(kernel, self._kernel)


def _same(kernel: InUse, other: InUse) -> bool:
    same = (one is another for one, another in zip(kernel, other, strict=False))
    return len(kernel) == len(other) and all(same)
