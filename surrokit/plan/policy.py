"""The contract of policies, which pick the parts of a run that nobody names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import attrs
import numpy as np

from surrokit.cost.budget import Budget
from surrokit.cost.measuring import Costs
from surrokit.cost.recording import RecordingPotential
from surrokit.plan.fallback import Fallback
from surrokit.registry.composer import Composer, named
from surrokit.types import Capabilities, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Fixed:
    """What a user has named, though neither a sampler nor a surrogate.

    Parameters
    ----------
    schedule, explorer, correction
        Names, pairs of name and settings, objects, or None.
    settings
        Those of the sampler that were given.
    learns
        Whether something was given that only a surrogate can use.
    warms_up
        Whether there is a warm-up to learn in.
    """

    schedule: Any = None
    explorer: Any = None
    correction: Any = None
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    learns: bool = False
    warms_up: bool = True


@attrs.frozen(kw_only=True, eq=False)
class Choice:
    """What was picked, and why.

    Parameters
    ----------
    sampler, surrogate, schedule, explorer, correction
        Names, pairs of name and settings, or what the user gave; None as usual.
    reason
        Why, with the figures measured.
    settings
        More settings of the sampler.
    """

    sampler: Any
    surrogate: Any
    schedule: Any
    explorer: Any
    correction: Any
    reason: str
    settings: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def line(self) -> str:
        """What was picked as keyword arguments of ``sample``, and why, in one line."""
        names = ("sampler", "surrogate", "explorer", "schedule", "correction")
        parts = {name: getattr(self, name) for name in names}
        given = ", ".join(f"{name}={_written(spec)}" for name, spec in parts.items() if spec)
        return f"{given}: {self.reason}"


class Policy(Protocol):
    """Picks the parts of a run where its user names neither a sampler nor a surrogate.

    It is told what the target offers and what its calls cost, and finds parts by the purposes that
    their components name (:meth:`surrokit.registry.catalogue.Catalogue.serving`).
    """

    def choose(
        self,
        composer: Composer,
        target: RecordingPotential,
        costs: Costs,
        fixed: Fixed,
        starts: FloatArray,
        rng: np.random.Generator,
    ) -> Choice:
        """Pick parts; what the target is asked for is paid by the run.

        Parameters
        ----------
        composer
            Knows what is registered, and makes it.
        target
            Counts what is paid to decide.
        costs
            Measured.
        fixed
            What the user has named.
        starts : ndarray of shape (chains, dim)
            Where chains start, the best first.
        rng
            Generator.
        """
        ...

    def plain(
        self,
        composer: Composer,
        capabilities: Capabilities,
        settings: Mapping[str, Any],
        reason: str,
    ) -> Choice:
        """Return an exact kernel that a target allows for, where nothing could be measured.

        Parameters
        ----------
        composer
            Knows what is registered.
        capabilities
            What the target offers.
        settings
            Of the sampler.
        reason
            Why there is no surrogate.
        """
        ...

    def fallback(
        self,
        composer: Composer,
        capabilities: Capabilities,
        costs: Costs,
        dim: int,
        draws: int,
        settings: Mapping[str, Any],
    ) -> Fallback | None:
        """Return the exact kernel to go on with where a surrogate is not worth it, if there is one.

        Parameters
        ----------
        composer
            Makes its parts.
        capabilities
            What the target offers.
        costs
            Of the target's calls.
        dim
            Numbers in a position.
        draws
            About independent draws of each chain that are wanted.
        settings
            Of the sampler; for one that takes gradients, as those of paths on a surrogate are.
        """
        ...

    def exploration(self, costs: Costs, chains: int, draws: int) -> Budget:
        """Return what looking for a surrogate may cost.

        Parameters
        ----------
        costs
            Of the target's calls.
        chains, draws
            Sizes.
        """
        ...


def _written(spec: Any) -> str:
    """Return a part as it would be typed, or described where it is an object."""
    return repr(spec) if named(spec) is not None else f"<{type(spec).__name__}>"
