"""The contract of policies, which pick the parts of a run that nobody names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from surrokit.plan.recipe import Recipe
from surrokit.registry.composer import Composer

if TYPE_CHECKING:  # so that importing the package stays fast
    from surrokit.cost.measuring import Costs
    from surrokit.cost.recording import RecordingPotential


class Policy(Protocol):
    """Picks the parts of a run where its user names neither a sampler nor a surrogate.

    It is told what the target offers and what its calls cost, and finds parts by the purposes that
    their components name (:meth:`surrokit.registry.catalogue.Catalogue.serving`).
    """

    def choose(
        self,
        composer: Composer,
        recipe: Recipe,
        target: RecordingPotential,
        costs: Costs,
        rng: np.random.Generator,
    ) -> Recipe:
        """Return a recipe with its parts picked; the run pays for the calls made for that.

        The policy may also set ``exploration``, the limit of what the search for a surrogate may
        cost, and ``fallback``, the exact kernel that replaces a surrogate not worth its cost.

        Parameters
        ----------
        composer
            Knows what is registered, and makes it.
        recipe
            Holds the parts that the user has named, which stay as they are; its ``initial`` holds
            the starts of the chains, the best first.
        target
            The exact potential, which counts the policy's calls.
        costs
            Measured costs of calls.
        rng
            Generator.
        """

    def plain(self, composer: Composer, recipe: Recipe, reason: str) -> Recipe:
        """Return a recipe with an exact kernel that suits its target, without any measurement.

        Parameters
        ----------
        composer
            Knows what is registered.
        recipe
            Holds the settings of the sampler that the user has named.
        reason
            Why there is no surrogate.
        """
