"""The targets by name: a density, its bounds, and a step size that suits it."""

from __future__ import annotations

import attrs
import numpy as np

import surrokit as sk
from exact_starts.densities import Betas, CutNormals, Funnel, Gammas, Hole, Step
from surrokit.coordinates.parameters import Bounds, Parameters
from surrokit.coordinates.transforms import Transform
from surrokit.potentials import Potential
from surrokit.targets.bounds import with_bounds
from surrokit.testing.targets import Banana, Gaussian, HalfPlane, Mixture, Student, Target
from surrokit.types import Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Case:
    """A target with exact draws.

    Parameters
    ----------
    name, attacks
        What it is, and what it is hard on.
    density
        In the user's coordinates.
    bounds
        Of the two numbers there, of which chains never see anything: they move in z.
    step_size
        Of moves, in units of the target's covariance in z.
    """

    name: str
    attacks: str
    density: Target
    bounds: tuple[Bounds | None, Bounds | None] = (None, None)
    step_size: float = 0.7

    @property
    def parameters(self) -> dict[str, Bounds | None]:
        """Names and bounds, as a user declares them."""
        return dict(zip(("first", "second"), self.bounds, strict=True))

    @property
    def transform(self) -> Transform:
        """From z to the user's coordinates."""
        return Transform.of(Parameters.declare(self.parameters))

    def exact(self, needs: Capabilities) -> Potential:
        """Return U of z, from two plain functions as a user has them, unless more is needed."""
        density = self.density
        plain = sk.potential(
            density.value, density.gradient, parameters=self.parameters, batched=True
        )
        if needs <= plain.capabilities:
            return plain
        return with_bounds(density, Parameters.declare(self.parameters))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return exact draws of z, shape (n, 2)."""
        return self.transform.to_unbounded(self.density.sample(rng, n))

    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return independent standard normals, shape (n, 2), if positions are draws of z."""
        return self.density.to_normals(self.transform.to_bounded(positions))


def _rotated(angle: float, variances: tuple[float, float]) -> Gaussian:
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return Gaussian(mean=(0.0, 0.0), covariance=turn @ np.diag(variances) @ turn.T)


CASES = (
    Case(
        name="t, 3 degrees of freedom",
        attacks="heavy tails: far chains move slowly, and no surrogate is right out there",
        density=Student(degrees=3.0),
    ),
    Case(
        name="Neal's funnel",
        attacks="scales that differ by a factor of thousands from place to place",
        density=Funnel(),
        step_size=0.3,
    ),
    Case(
        name="banana",
        attacks="a thin curved ridge",
        density=Banana(sd=0.3),
        step_size=0.4,
    ),
    Case(
        name="two normals",
        attacks="a valley between modes, with an indefinite Hessian in it",
        density=Mixture(half_distance=2.0),
        step_size=0.6,
    ),
    Case(
        name="normals cut by bounds",
        attacks="the change of variables and its Jacobian, with one bound and with two",
        density=CutNormals(),
        bounds=((0.0, None), (0.0, 1.0)),
    ),
    Case(
        name="normal cut by inf",
        attacks="proposals that end where the density is zero, and paths that cross it",
        density=HalfPlane(),
    ),
    Case(
        name="Gamma(0.3)",
        attacks="an infinite density at a bound: in z a long exponential tail",
        density=Gammas(0.3),
        bounds=((0.0, None), (0.0, None)),
    ),
    Case(
        name="Beta(0.3, 5)",
        attacks="the same between two bounds",
        density=Betas(0.3, 5.0),
        bounds=((0.0, 1.0), (0.0, 1.0)),
    ),
    Case(
        name="Beta(1/2, 1/2)",
        attacks="infinite densities at both bounds, the upper one where floats are sparse",
        density=Betas(0.5, 0.5),
        bounds=((0.0, 1.0), (0.0, 1.0)),
    ),
    Case(
        name="a step in U",
        attacks="a discontinuity that no gradient shows",
        density=Step(),
    ),
    Case(
        name="a hole of NaN",
        attacks="a region that cannot be evaluated; the target is what lies around it",
        density=Hole(),
    ),
    Case(
        name="rotated normal",
        attacks="variances that differ by 10^6, along no axis",
        density=_rotated(0.6, (1.0, 1e-6)),
    ),
)
"""All of them."""
