"""The fit that takes in rows without keeping them: ARNS-HMC's, Algorithm 4 of the paper."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.surrogate.quality import FitQuality
from surrokit.types import FloatArray
from surrokit_networks.greville import Greville
from surrokit_networks.least_squares import (
    Equations,
    Spectrum,
    expected_error,
    normal_equations,
    triangle_of,
    write_out,
)
from surrokit_networks.potentials import FittedNetwork
from surrokit_networks.training import Frame, Training
from surrokit_networks.training_rows import TrainingRows


@attrs.define(kw_only=True, eq=False)
class OnlineFit:
    """The least-squares fit of one frame to rows that come in blocks and are not kept.

    A position is a row for its value and ``dim`` rows for its gradient, each times the root of its
    weight. Equations are taken in when a network is asked for, by Proposition 1; where there is a
    ridge and rows are many, they go into the sums, and these are solved: that takes less time.

    ``judged (n, 3)`` are V - U, |L^T grad(V - U)|^2 and |L^T grad U|^2 of the last rows before they
    were learnt from, NaN where no gradient is known, and ``first`` is the error of the first fit.
    The ridge was chosen from ``chosen_at`` equations, and ``deployed (k,)`` were the coefficients
    when a network was last asked for.
    """

    training: Training
    frame: Frame
    engine: Greville | None = None
    count: float = 0.0
    total_weight: float = 0.0
    n_points: int = 0
    judged: FloatArray = attrs.field(factory=lambda: np.empty((0, 3)))
    first: FitQuality | None = None
    chosen_at: float = 0.0
    deployed: FloatArray | None = None
    pending: list[Equations] = attrs.field(factory=list, repr=False)

    def absorb(self, rows: TrainingRows) -> None:
        """Take in rows; SurrogateFitError is raised if they cannot be fitted."""
        if not len(rows):
            return
        equations = self.frame.less(self.frame.equations(rows, self.training))
        self.pending.append(equations)
        self.count += equations.count
        self.total_weight += equations.total_weight
        self.n_points += len(rows)
        self.chosen_at = self.chosen_at or self.count
        if self.frame.border is not None:
            self.frame = attrs.evolve(self.frame, border=self.frame.border.widen(rows))
        if self.engine is None or sum(map(len, self.pending)) >= 512:
            self.take_in()

    def take_in(self) -> None:
        """Take in what is pending; SurrogateFitError is raised if it cannot be fitted."""
        if not self.pending:
            return
        equations, self.pending = Equations.join(self.pending), []
        basis, ridge, engine = self.frame.basis, self.frame.ridge, self.engine
        how: dict[str, Any] = {"n_free": basis.n_free, "ridge": ridge}
        # Sums over gradients do without a factor of dim, but cost half the digits: first equations
        # are summed up where they are very many, and ridges chosen from sums bear it.
        n = equations.n_rows
        many = n * len(basis) ** 2 > 2e10 if engine is None else 3 * n > len(basis)
        try:
            if ridge > 0.0 and many:
                sums = normal_equations(basis, equations)
                self.engine = Greville.of_sums(
                    sums if engine is None else engine.sums + sums, **how
                )
            elif engine is None:
                triangle = triangle_of(write_out(basis, equations))
                self.engine = Greville.of_rows(triangle[:, :-1], triangle[:, -1], **how)
            else:
                for rows in write_out(basis, equations):
                    engine.update(rows[:, :-1], rows[:, -1])
        except np.linalg.LinAlgError as error:
            raise _unsolved(error) from error

    def judge(self, rows: TrainingRows) -> None:
        """Compare the last network with rows outside the far tail, before they are taken in.

        This is the prequential rule (Dawid 1984, J. R. Stat. Soc. A 147(2)). The network changes,
        so the estimate lags behind it by some of its latest 200 rows.
        """
        rows = rows.take(rows.trust == 1.0)
        if not len(rows) or self.deployed is None:
            return
        values, slopes = self.frame.network(self.deployed[:, None]).value_and_gradient(
            rows.positions
        )
        lengths = (
            np.square(part @ self.frame.whitening.factor).sum(axis=1)
            for part in (slopes - rows.gradients, rows.gradients)
        )
        more = np.column_stack([values - rows.values, *lengths])
        self.judged = np.concatenate([self.judged, more])[-200:]

    @property
    def quality(self) -> FitQuality | None:
        """The error at the last rows; that of the first fit as long as there are few."""
        if len(self.judged) < 10:
            return self.first
        known = self.judged[np.isfinite(self.judged[:, 1:]).all(axis=1), 1:].sum(axis=0)
        return FitQuality(
            variance=float(np.var(self.judged[:, 0])),
            gradient_error=float(np.sqrt(known[0] / known[1])) if known[1] > 0.0 else None,
            n_points=len(self.judged),
        )

    def network(self) -> FittedNetwork:
        """Return the network that fits everything so far best.

        SurrogateFitError is raised if its weights are not finite.
        """
        self.take_in()
        assert self.engine is not None
        if self.training.ridge is None and self.count >= 2.0 * self.chosen_at:
            self.choose_ridge()
        engine = self.engine
        if engine.unchecked:
            engine.check()
        if not np.isfinite(engine.solution).all():
            raise _unsolved("weights are not finite")
        self.deployed = engine.solution
        return FittedNetwork(
            network=self.frame.network(self.deployed[:, None]),
            n_points=self.n_points,
            ridge=self.frame.ridge,
            degrees=engine.degrees,
            gcv_error=expected_error(
                self.count, self.total_weight, engine.squared_error, engine.degrees
            ),
            border=self.frame.border,
            quality=self.quality,
        )

    def choose_ridge(self) -> None:
        """Choose the ridge anew from the sums, by generalised cross-validation.

        Few rows want a larger ridge than many do. Measured on a logistic posterior in 20
        dimensions, in the frame of 160 values: with 650 values Var(V - U) is 0.13 where the ridge
        follows, and 0.29 where it does not; with 1300 values 0.09 and 0.14.
        """
        assert self.engine is not None
        self.chosen_at = self.count
        sums, n_free = self.engine.sums, self.frame.basis.n_free
        try:
            ridge = Spectrum.of_sums(sums, n_free, self.total_weight).cross_validated(self.count)
            self.engine = Greville.of_sums(sums, n_free=n_free, ridge=ridge)
        except np.linalg.LinAlgError:
            return  # it stays what it was
        self.frame = attrs.evolve(self.frame, ridge=ridge)


def _unsolved(why: object) -> SurrogateFitError:
    return SurrogateFitError(
        f"the online least-squares problem of the network could not be solved ({why}); use "
        "updates='refit', whiten=True and ridge=None, or rescale the parameters"
    )
