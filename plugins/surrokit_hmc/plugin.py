"""What surrokit_hmc offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surrokit.components import Component, Part
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    import numpy.typing as npt

    from surrokit.protocols import Integrator, Metric
    from surrokit_hmc.hmc import HMC
    from surrokit_hmc.leapfrog import Leapfrog
    from surrokit_hmc.metrics import DenseMetric, DiagonalMetric, IdentityMetric
    from surrokit_hmc.random_walk import RandomWalk

_PAPER = "Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555"


def hmc(
    *,
    integrator: Integrator,
    metric: Metric,
    step_size: float | None = None,
    n_steps: int | None = None,
    randomize: bool = True,
    target_acceptance: float = 0.8,
) -> HMC:
    """Make the sampler of Algorithm 1."""
    from surrokit_hmc.hmc import HMC

    return HMC(
        integrator=integrator,
        metric=metric,
        step_size=step_size,
        n_steps=n_steps,
        randomize=randomize,
        target_acceptance=target_acceptance,
    )


def random_walk(*, step_size: float | None = None, target_acceptance: float = 0.234) -> RandomWalk:
    """Make a random-walk Metropolis sampler."""
    from surrokit_hmc.random_walk import RandomWalk

    return RandomWalk(step_size=step_size, target_acceptance=target_acceptance)


def leapfrog() -> Leapfrog:
    """Make the leapfrog integrator."""
    from surrokit_hmc.leapfrog import Leapfrog

    return Leapfrog()


def identity() -> IdentityMetric:
    """Make the identity mass matrix."""
    from surrokit_hmc.metrics import IdentityMetric

    return IdentityMetric()


def diagonal(*, inverse_mass: npt.ArrayLike | None = None) -> DiagonalMetric:
    """Make a diagonal mass matrix."""
    from surrokit_hmc.metrics import DiagonalMetric

    return DiagonalMetric(inverse_mass)


def dense(*, inverse_mass: npt.ArrayLike | None = None) -> DenseMetric:
    """Make a dense mass matrix."""
    from surrokit_hmc.metrics import DenseMetric

    return DenseMetric(inverse_mass)


@hookimpl
def surrokit_register_samplers() -> list[Component]:
    """Offer samplers."""
    return [
        Component(
            kind="sampler",
            name="hmc",
            factory=hmc,
            summary="Hamiltonian Monte Carlo: Algorithm 1, and with a surrogate RNS-HMC",
            references=(f"{_PAPER}, Algorithms 1 and 3", "Neal (2011), arXiv:1206.1901"),
            parts={
                "integrator": Part("integrator", "leapfrog"),
                "metric": Part("metric", "dense"),
            },
            examples=(
                {"step_size": 0.5, "n_steps": 4},
                {"step_size": 0.4, "n_steps": 3, "randomize": False, "metric": "identity"},
                {"step_size": 0.5, "n_steps": 4, "metric": "diagonal"},
                {},
            ),
        ),
        Component(
            kind="sampler",
            name="random-walk",
            factory=random_walk,
            summary="Random-walk Metropolis, for targets without a gradient",
            references=("Roberts, Gelman and Gilks (1997), doi:10.1214/aoap/1034625254",),
            examples=({"step_size": 0.8}, {}),
        ),
    ]


@hookimpl
def surrokit_register_integrators() -> list[Component]:
    """Offer integrators."""
    return [
        Component(
            kind="integrator",
            name="leapfrog",
            factory=leapfrog,
            summary="Leapfrog with merged half steps: one gradient a step",
            references=(f"{_PAPER}, Algorithm 1",),
        )
    ]


@hookimpl
def surrokit_register_metrics() -> list[Component]:
    """Offer mass matrices."""
    references = ("Neal (2011), arXiv:1206.1901, section 5.4.1",)
    return [
        Component(
            kind="metric",
            name="identity",
            factory=identity,
            summary="Unit masses, as in the paper's experiments",
            references=(f"{_PAPER}, section 2.1",),
        ),
        Component(
            kind="metric",
            name="diagonal",
            factory=diagonal,
            summary="A diagonal mass matrix, tuned in warm-up unless given",
            examples=({}, {"inverse_mass": (0.5, 2.0)}),
            references=references,
        ),
        Component(
            kind="metric",
            name="dense",
            factory=dense,
            summary="A full mass matrix, tuned in warm-up unless given",
            examples=({}, {"inverse_mass": ((1.0, 0.3), (0.3, 2.0))}),
            references=references,
        ),
    ]
