"""What changed in the course of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from surrokit.contracts.explorer import Searches


@attrs.frozen(kw_only=True)
class Rescue:
    """One repair of a surrogate.

    Parameters
    ----------
    iteration
        Iteration of the run, counted from 1, after which it began.
    reason
        What was wrong, in words.
    """

    iteration: int
    reason: str


@attrs.frozen(kw_only=True)
class Stray:
    """A chain that was found far above the others in warm-up.

    Parameters
    ----------
    iteration
        Iteration of the run, counted from 1, after which it was found.
    chain
        Which one.
    above
        Nats by which the least potential it had lately seen exceeded the others' median.
    begun_again
        Whether it was begun again where another chain was; else it stays, as it sits in a mode of
        its own.
    """

    iteration: int
    chain: int
    above: float
    begun_again: bool


@attrs.frozen(kw_only=True)
class Adaptation:
    """What changed in the course of a run.

    Parameters
    ----------
    deployments
        Iterations, counted from 1 over the whole run, after which a new surrogate was deployed.
    training_rows
        Exact evaluations that the learner observed.
    frozen_before_draws
        Whether every kept draw had the same kernel, which no schedule could have changed. If not,
        draws were kept under adaptation, and are exact only in the limit of vanishing adaptation.
        The run sees this for itself, whatever the schedule says.
    rescues
        Repairs of the surrogate by the safety net, in warm-up.
    restarts
        Repairs at which the draws so far became warm-up, and draws began again.
    strays
        Chains that were far above the others in warm-up.
    mix
        Probability with which a kept iteration was an exact transition.
    missed
        Places at which, when the exploration ended, the target went on where the surrogate's mass
        ended.
    recalled
        Whether chains went on from draws of an earlier run, and nothing was explored.
    deployed_though_frozen
        Iterations after which the schedule deployed a surrogate though it had said that it was
        frozen.
    searches
        Where searches for modes ended; None where none was made.
    """

    deployments: tuple[int, ...]
    training_rows: int
    frozen_before_draws: bool
    rescues: tuple[Rescue, ...] = ()
    restarts: tuple[Rescue, ...] = ()
    strays: tuple[Stray, ...] = ()
    mix: float = 0.0
    missed: int = 0
    recalled: bool = False
    deployed_though_frozen: tuple[int, ...] = ()
    searches: Searches | None = None

    @classmethod
    def of_dict(cls, data: Mapping[str, Any]) -> Adaptation:
        """Return what ``attrs.asdict`` made plain data of."""
        records = {"rescues": Rescue, "restarts": Rescue, "strays": Stray}
        found: dict[str, Any] = {
            name: tuple(of(**each) for each in data[name]) for name, of in records.items()
        }
        numbers = ("deployments", "deployed_though_frozen")
        found |= {name: tuple(data[name]) for name in numbers}
        if data["searches"] is not None:
            found["searches"] = Searches(
                **{**data["searches"], "ended": tuple(data["searches"]["ended"])}
            )
        return cls(**{**data, **found})

    @property
    def last_deployment(self) -> int | None:
        """The iteration of the last deployment; None if there was none."""
        return self.deployments[-1] if self.deployments else None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, the number of deployments and the last of them as plain data."""
        return {
            **attrs.asdict(self),
            "n_deployments": len(self.deployments),
            "last_deployment": self.last_deployment,
        }
