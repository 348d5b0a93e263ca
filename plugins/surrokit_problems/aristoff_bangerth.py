"""The benchmark of Aristoff and Bangerth (2023): 64 coefficients of a diffusion, from 169 data."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import ClassVar

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions, one_of
from surrokit.model.model import Model
from surrokit.targets.functions import PotentialOfOutputs
from surrokit.targets.gaussian import GaussianEnergy, GaussianPrior
from surrokit.types import Capabilities, FloatArray
from surrokit_problems.diffusion import Diffusion, SquareMesh, interpolation
from surrokit_problems.elliptic_pde import FlowSolutions

_PRIOR = GaussianPrior(mean=4.0, sd=2.0)
_NOISE_SD = 0.05


@attrs.frozen(kw_only=True, eq=False)
class AristoffBangerth(PotentialOfOutputs):
    """U of the logarithms of 64 coefficients, in nats.

    u solves -div(theta grad u) = 10 on the unit square with u = 0 on its boundary. theta is
    constant on each of 8 x 8 blocks, and a position is x = log theta, with the block's place
    along x1 running fastest. The forward map gives u at the points (k / 14, l / 14) with k and l
    from 1 to 13, by k and then l. The 169 measurements have normal errors of standard deviation
    0.05. The authors' prior density of theta is proportional to exp(-sum x_k^2 / 8), so that
    x_k ~ N(4, 2^2).

    Methods raise :class:`~surrokit.errors.ShapeError` unless positions are rows of 64 numbers, and
    :class:`~surrokit.errors.EvaluationError` at positions, far outside the prior, where the
    linear system is not positive definite to rounding.

    Parameters
    ----------
    jacobian
        Whether the Jacobian of the forward map is offered, beside gradients by the adjoint.

    Notes
    -----
    A value takes one banded Cholesky factorisation; with it the gradient takes one more solve, by
    the adjoint, and the Jacobian 64.

    Raises
    ------
    ConfigurationError
        If a setting makes no sense.
    """

    dim: ClassVar[int] = 64
    """Numbers in a position."""

    jacobian: bool = attrs.field(default=True, validator=one_of(True, False))
    diffusion: Diffusion = attrs.field(init=False, repr=False)
    energy: GaussianEnergy = attrs.field(init=False, repr=False)
    model: Model = attrs.field(init=False, repr=False)

    @diffusion.default
    def _diffusion(self) -> Diffusion:
        return block_diffusion(32, 8, source=10.0, observed=np.arange(1, 14) / 14)

    @energy.default
    def _energy(self) -> GaussianEnergy:
        return GaussianEnergy(data=read_measurements(), noise_sd=_NOISE_SD, prior=_PRIOR)

    @model.default
    def _model(self) -> Model:
        solutions = FlowSolutions(self.diffusion, self.energy, self.dim)
        return Model(solutions, self.dim, outputs=[len(self.energy.data)])

    @property
    def capabilities(self) -> Capabilities:
        """Adjoint and ``initial``, and with ``jacobian`` the Jacobian and Gauss-Newton matrix."""
        offered = {can.INITIAL, can.FORWARD, can.GRADIENT, can.VJP}
        return frozenset(offered | ({can.JACOBIAN, can.METRIC} if self.jacobian else set()))

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the solutions where observed, and the gradient of U, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        outputs, gradients = self.model.evaluate("forward_and_gradient", q)
        return outputs, gradients

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return draws from the prior, shape (n, dim)."""
        return _PRIOR.mean + _PRIOR.sd * rng.standard_normal((n, self.dim))


def block_diffusion(cells: int, blocks: int, *, source: float, observed: FloatArray) -> Diffusion:
    """Return a diffusion with u = 0 on the boundary and coefficients by blocks.

    There are ``blocks`` x ``blocks`` of these, numbered with x1 running fastest, on ``cells`` x
    ``cells`` squares. The solution is observed at k^2 places, whose coordinates along either axis
    are ``observed (k,)``.
    """
    along = np.arange(cells) // (cells // blocks)
    block_of = np.tile((along[:, None] + blocks * along[None, :]).ravel(), 4)
    return Diffusion(
        mesh=SquareMesh(cells, closed=True),
        modes=np.asarray(np.arange(blocks**2)[:, None] == block_of, dtype=np.float64),
        lift=np.zeros((cells + 1, cells + 1)),
        observation=interpolation(cells, observed),
        source=source / cells**2,
    )


@cache
def read_measurements() -> FloatArray:
    """Return the 169 measurements, in the order of the forward map."""
    data = resources.files("surrokit_problems").joinpath("aristoff-bangerth.txt")
    with data.open(encoding="utf-8") as lines:
        measurements: FloatArray = np.loadtxt(lines).ravel()
    measurements.setflags(write=False)
    return measurements
