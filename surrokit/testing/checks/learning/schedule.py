"""Checks of schedules: equal histories give equal decisions, and learning ends."""

from __future__ import annotations

import numpy as np

from surrokit.interfaces import Decision, Moment, Stage
from surrokit.testing.measures.demands import demand
from surrokit.testing.results import Check, Factory

N_EXPLORATION = 60
"""Iterations of exploration in the histories shown to a schedule."""

N_WARMUP = 60
"""Iterations of warm-up after it."""

N_SAMPLING = 6000
"""Kept iterations of a history."""

NEAR, FAR = 10**6, 10**12
"""Kept iterations at which two stretches of a very long run begin. Even slow rates fall between
them: (1 + t)^-0.1 to a quarter."""

FALLEN = 0.8
"""Largest ratio of deployments in the far stretch to those in the near one."""


def history(
    n_exploration: int = N_EXPLORATION, n_warmup: int = N_WARMUP, n_sampling: int = N_SAMPLING
) -> list[Moment]:
    """Return the moments of a run, in order; ``explored`` is true at the end of exploration."""
    lengths: tuple[tuple[Stage, int], ...] = (
        ("exploration", n_exploration),
        ("warmup", n_warmup),
        ("sampling", n_sampling),
    )
    moments: list[Moment] = []
    for stage, length in lengths:
        moments += [_moment(stage, len(moments) + i, n_exploration) for i in range(1, length + 1)]
    return moments


def _moment(stage: Stage, iteration: int, n_exploration: int = N_EXPLORATION) -> Moment:
    return Moment(
        stage=stage,
        iteration=iteration,
        explored=iteration == n_exploration,
        since_explored=max(iteration - n_exploration, -1),
        draws_follow=stage == "warmup" and iteration == n_exploration + N_WARMUP,
    )


def stretch(begin: int) -> list[Moment]:
    """Return the moments of :data:`N_SAMPLING` kept iterations, after ``begin`` others."""
    first = N_EXPLORATION + N_WARMUP + begin
    return [_moment("sampling", first + i) for i in range(N_SAMPLING)]


def round_moments() -> list[Moment]:
    """Return moments next to round numbers of iterations, of the run and since its phases."""
    rounded = [digit * 10**power for power in range(3, 13) for digit in (1, 2, 5)]
    begins = (0, N_EXPLORATION, N_EXPLORATION + N_WARMUP)
    iterations = {begin + n + i for begin in begins for n in rounded for i in (-1, 0, 1)}
    return [_moment("sampling", iteration) for iteration in sorted(iterations)]


def decisions(make: Factory, moments: list[Moment], seed: int) -> list[Decision]:
    """Return the decisions of a schedule along a history."""
    schedule, rng = make(), np.random.default_rng([1603, seed])
    return [schedule.decide(moment, rng) for moment in moments]


def check_decisions(make: Factory) -> None:
    """Decisions are records of truth values."""
    for moment, decision in zip(history(), decisions(make, history(), 0), strict=True):
        for name in ("observe", "deploy", "frozen", "derivatives"):
            value = getattr(decision, name)
            demand(
                isinstance(value, bool | np.bool_),
                f"{name} must be True or False, got {value!r} at iteration {moment.iteration}",
            )


def check_same_history(make: Factory) -> None:
    """The same history and generator give the same decisions; a schedule keeps no memory."""
    moments = history(n_sampling=200)
    first = decisions(make, moments, 1)
    demand(decisions(make, moments, 1) == first, "two schedules decided differently on one history")
    schedule = make()
    for attempt in range(2):
        rng = np.random.default_rng([1603, 1])
        again = [schedule.decide(moment, rng) for moment in moments]
        demand(
            again == first,
            f"one schedule decided differently when it saw a history for time {attempt + 1}; what "
            "lives across iterations must not hide in a schedule",
        )


def check_learns(make: Factory) -> None:
    """``learns`` says whether anything is ever deployed; observations precede deployments."""
    schedule = make()
    made = decisions(make, history(), 2)
    deploys = [i for i, decision in enumerate(made) if decision.deploy]
    demand(
        bool(deploys) == bool(schedule.learns),
        f"learns is {schedule.learns}, but {len(deploys)} of {len(made)} iterations deploy",
    )
    if deploys:
        demand(
            any(decision.observe for decision in made[: deploys[0] + 1]),
            f"iteration {deploys[0] + 1} deploys a surrogate, though nothing was observed",
        )


def check_frozen_stays(make: Factory) -> None:
    """Once frozen, a schedule stays frozen and deploys nothing."""
    for seed in range(3):
        made = decisions(make, history(), seed)
        frozen_at = next((i for i, decision in enumerate(made) if decision.frozen), None)
        if frozen_at is None:
            continue
        for i, decision in enumerate(made[frozen_at + 1 :], frozen_at + 2):
            demand(
                decision.frozen,
                f"frozen at iteration {frozen_at + 1}, but no longer at iteration {i}; what is "
                "frozen stays so",
            )
            demand(
                not decision.deploy,
                f"frozen at iteration {frozen_at + 1}, but iteration {i} deploys a surrogate: "
                "kept draws would depend on their past",
            )


def check_frozen_far_on(make: Factory) -> None:
    """A schedule that is frozen when draws are kept deploys nothing at round numbers of them."""
    moments = history(n_sampling=1)
    made = decisions(make, moments, 4)
    if not made[-1].frozen:
        return
    far = round_moments()
    for moment, decision in zip(far, decisions(make, far, 4), strict=True):
        demand(
            decision.frozen and not decision.deploy,
            f"frozen at iteration {moments[-1].iteration}, and at iteration {moment.iteration} "
            f"frozen={decision.frozen}, deploy={decision.deploy}: kept draws would depend on "
            "their past, and the run would report it; freeze for good, or say frozen=False",
        )


def check_learning_ends(make: Factory) -> None:
    """Deployments among the kept draws stop, or become rarer and rarer."""
    first = N_EXPLORATION + N_WARMUP
    kept = 0
    for seed in range(3):
        made = decisions(make, history(), seed)
        deployed = sum(decision.deploy for decision in made[first:])
        kept += deployed
        demand(
            deployed == 0 or not made[first - 1].frozen,
            "kept iterations deploy surrogates although the schedule was frozen before them",
        )
        near, far = (
            sum(decision.deploy for decision in decisions(make, stretch(begin), seed))
            for begin in (NEAR, FAR)
        )
        demand(
            far <= FALLEN * near,
            f"{near} surrogates are deployed in {N_SAMPLING} iterations from kept iteration "
            f"{NEAR:.0e} on and {far} in as many from {FAR:.0e} on; adaptation must stop, or its "
            "rate fall to zero, or the draws are not from the target",
        )
    demand(
        made[-1].frozen or kept > 0,
        "nothing is deployed among the kept draws, but the schedule never says that it is "
        "frozen; the result reports draws kept under adaptation",
    )


def check_deployment_rate(make: Factory) -> None:
    """``deployment_rate`` is a probability, above 0 where surrogates are deployed again."""
    rate = make().deployment_rate
    demand(0 <= rate <= 1, f"deployment_rate must be from 0 to 1, got {rate!r}")
    deployed = sum(decision.deploy for decision in decisions(make, history(), 3))
    demand(
        rate > 0 or deployed <= 1,
        f"deployment_rate is 0, that of at most one surrogate, but {deployed} are deployed",
    )


def check_exploration(make: Factory) -> None:
    """``exploration`` is a positive number of rows, or None."""
    for gradients in (False, True):
        rows = make().exploration(gradients)
        demand(
            rows is None or (isinstance(rows, int) and rows >= 1),
            f"exploration({gradients}) must be None or a whole number of at least 1, got {rows!r}",
        )


CHECKS: tuple[Check, ...] = (
    Check(check_decisions),
    Check(check_same_history),
    Check(check_learns),
    Check(check_frozen_stays),
    Check(check_frozen_far_on),
    Check(check_learning_ends),
    Check(check_deployment_rate),
    Check(check_exploration),
)
"""For every schedule."""
