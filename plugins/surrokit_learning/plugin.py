"""What surrokit_learning offers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from surrokit.components import Component, Part
from surrokit.markers import hookimpl

if TYPE_CHECKING:
    import numpy.typing as npt

    from surrokit.protocols import Correction, Explorer, Sampler
    from surrokit.training import LearnFrom
    from surrokit_learning.greville import FreezeAfter, Greville
    from surrokit_learning.rates import Rate
    from surrokit_learning.rounds import Rounds, Start
    from surrokit_learning.sampler_explorer import SamplerExplorer
    from surrokit_learning.schedules import Never, Once

BURST = (
    "sampler",
    {"sampler": "random-walk", "correction": "metropolis", "iterations": 20},
)
"""An explorer inside another, for the examples."""

_PAPER = "Zhang, Shahbaba and Zhao (2017), arXiv:1506.05555"


def never() -> Never:
    """Make the schedule that learns nothing."""
    from surrokit_learning.schedules import Never

    return Never()


def once() -> Once:
    """Make the schedule of Algorithm 3."""
    from surrokit_learning.schedules import Once

    return Once()


def greville(
    *,
    rate: str | Rate = "power",
    kappa: float = 0.6,
    freeze_after: FreezeAfter = "warmup",
    derivatives: Literal["warmup", "never"] = "warmup",
    learn_from: LearnFrom = "all",
) -> Greville:
    """Make the schedule of Algorithm 4."""
    from surrokit_learning.greville import Greville

    return Greville(
        rate=rate,
        kappa=kappa,
        freeze_after=freeze_after,
        derivatives=derivatives,
        learn_from=learn_from,
    )


def sampler(
    *,
    sampler: Sampler,
    correction: Correction,
    iterations: int | None = None,
    evaluations: int | None = None,
    discard: int = 0,
    learn_from: LearnFrom = "all",
) -> SamplerExplorer:
    """Make the explorer of Algorithm 3."""
    from surrokit_learning.sampler_explorer import SamplerExplorer

    return SamplerExplorer(
        sampler=sampler,
        correction=correction,
        iterations=iterations,
        evaluations=evaluations,
        discard=discard,
        learn_from=learn_from,
    )


def rounds(
    *,
    sampler: Sampler,
    correction: Correction,
    tuned: Sampler,
    burst: Explorer,
    start: Start = "auto",
    gradients: bool | None = None,
    evaluations: int | None = None,
    batch: int = 20,
    acceptance: float = 0.9,
    searches: int | None = None,
    patience: int | None = None,
    transitions: int = 60,
    box: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    scale: float = 2.0,
) -> Rounds:
    """Make the explorer that goes where the surrogate has its mass."""
    from surrokit_learning.rounds import Rounds

    return Rounds(
        sampler=sampler,
        correction=correction,
        tuned=tuned,
        burst=burst,
        start=start,
        gradients=gradients,
        evaluations=evaluations,
        batch=batch,
        acceptance=acceptance,
        searches=searches,
        patience=patience,
        transitions=transitions,
        box=box,
        scale=scale,
    )


@hookimpl
def surrokit_register_schedules() -> list[Component]:
    """Offer schedules."""
    return [
        Component(
            kind="schedule",
            name="never",
            factory=never,
            summary="Learn nothing: plain HMC and its kin",
            references=(f"{_PAPER}, Algorithm 1",),
        ),
        Component(
            kind="schedule",
            name="once",
            factory=once,
            summary="Fit once when the exploration ends, then freeze",
            references=(f"{_PAPER}, Algorithm 3",),
        ),
        Component(
            kind="schedule",
            name="greville",
            factory=greville,
            summary="Learn all along, deploy with a probability that vanishes",
            references=(
                f"{_PAPER}, Algorithm 4",
                "Roberts and Rosenthal (2007), Coupling and ergodicity of adaptive MCMC",
            ),
            examples=(
                {},
                {"freeze_after": 200, "kappa": 1.0, "learn_from": "states"},
                {"freeze_after": None, "derivatives": "never"},
                {"freeze_after": None, "rate": "logarithmic"},
            ),
        ),
    ]


@hookimpl
def surrokit_register_explorers() -> list[Component]:
    """Offer explorers."""
    return [
        Component(
            kind="explorer",
            name="sampler",
            factory=sampler,
            summary="The exact sampler's own burn-in",
            references=(f"{_PAPER}, Algorithm 3",),
            parts={"sampler": Part("sampler"), "correction": Part("correction")},
            examples=(
                {"sampler": "hmc", "correction": "metropolis", "iterations": 30},
                {
                    "sampler": "random-walk",
                    "correction": "metropolis",
                    "evaluations": 40,
                    "learn_from": "states",
                },
                {
                    "sampler": "hmc",
                    "correction": "metropolis",
                    "iterations": 30,
                    "discard": 5,
                    "learn_from": "accepted",
                },
            ),
        ),
        _rounds(),
    ]


def _rounds() -> Component:
    return Component(
        kind="explorer",
        name="rounds",
        factory=rounds,
        summary="A search for the mode, then rounds of evaluations where the surrogate points",
        references=("Liu (1996), Metropolized independent sampling, doi:10.1007/BF00162521",),
        parts={
            "sampler": Part("sampler"),
            "correction": Part("correction", "metropolis"),
            "tuned": Part("sampler"),
            "burst": Part("explorer", "sampler"),
        },
        examples=(
            {"sampler": "hmc", "tuned": "hmc", "burst": BURST},
            {
                "sampler": "hmc",
                "tuned": "random-walk",
                "burst": BURST,
                "gradients": False,
                "box": (-3.0, 3.0),
                "acceptance": 0.99,
                "evaluations": 150,
            },
            {"sampler": "random-walk", "tuned": "hmc", "burst": BURST, "start": "burst"},
        ),
    )
