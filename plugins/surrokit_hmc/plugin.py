"""What surrokit_hmc offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surrokit.components import Component, Part
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    import numpy.typing as npt

    from surrokit.protocols import Integrator, Metric, Sampler
    from surrokit_hmc.gaussian import GaussianMoves
    from surrokit_hmc.hmc import HMC
    from surrokit_hmc.leapfrog import Leapfrog
    from surrokit_hmc.metrics import DenseMetric, DiagonalMetric, IdentityMetric
    from surrokit_hmc.nuts import NUTS
    from surrokit_hmc.random_walk import RandomWalk
    from surrokit_hmc.sub_chain import SubChain

_PAPER = "Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555"


def hmc(
    *,
    integrator: Integrator,
    metric: Metric,
    step_size: float | None = None,
    n_steps: int | None = None,
    randomize: bool = True,
    shortest: float = 0.0,
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
        shortest=shortest,
        target_acceptance=target_acceptance,
    )


def random_walk(*, step_size: float | None = None, target_acceptance: float = 0.234) -> RandomWalk:
    """Make a random-walk Metropolis sampler."""
    from surrokit_hmc.random_walk import RandomWalk

    return RandomWalk(step_size=step_size, target_acceptance=target_acceptance)


def nuts(
    *,
    integrator: Integrator,
    metric: Metric,
    step_size: float | None = None,
    max_depth: int = 10,
    target_acceptance: float = 0.8,
) -> NUTS:
    """Make the no-U-turn sampler."""
    from surrokit_hmc.nuts import NUTS

    return NUTS(
        integrator=integrator,
        metric=metric,
        step_size=step_size,
        max_depth=max_depth,
        target_acceptance=target_acceptance,
    )


def gaussian(*, step_size: float | None = None, target_acceptance: float = 0.35) -> GaussianMoves:
    """Make a sampler that draws from a normal surrogate."""
    from surrokit_hmc.gaussian import GaussianMoves

    return GaussianMoves(step_size=step_size, target_acceptance=target_acceptance)


def sub_chain(*, kernel: Sampler, length: int | None = None) -> SubChain:
    """Make sub-chains of another sampler's moves."""
    from surrokit_hmc.sub_chain import SubChain

    return SubChain(kernel=kernel, length=length)


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
        *_reversible_samplers(),
    ]


def _reversible_samplers() -> list[Component]:
    """Return those whose moves are reversible for the potential they move on."""
    return [
        Component(
            kind="sampler",
            name="nuts",
            factory=nuts,
            summary="No-U-turn sampler: Hamiltonian paths of their own length, none to choose",
            references=(
                "Hoffman and Gelman (2014), arXiv:1111.4246",
                "Betancourt (2017), arXiv:1701.02434, appendix A",
            ),
            parts={
                "integrator": Part("integrator", "leapfrog"),
                "metric": Part("metric", "dense"),
            },
            examples=({"step_size": 0.9, "max_depth": 2},),
        ),
        Component(
            kind="sampler",
            name="gaussian",
            factory=gaussian,
            summary="Independent draws from a normal surrogate, or shorter moves",
            references=(
                "Cotter, Roberts, Stuart and White (2013), arXiv:1202.0709",
                "Neal (1999), Regression and classification using Gaussian process priors",
            ),
            examples=({"step_size": 1.0}, {}),
        ),
        Component(
            kind="sampler",
            name="sub-chain",
            factory=sub_chain,
            summary="Many transitions on the surrogate for one exact call",
            references=(
                "Liu (2001), Monte Carlo Strategies in Scientific Computing, section 9.4.3",
                "Christen and Fox (2005), doi:10.1198/106186005X76983",
            ),
            parts={"kernel": Part("sampler", "hmc")},
            examples=(
                {"kernel": ("hmc", {"step_size": 0.7, "n_steps": 2}), "length": 2},
                {"kernel": "random-walk"},
            ),
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
