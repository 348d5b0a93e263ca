"""The contract of policies, which pick the parts of a run that nobody names."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from surrokit.cost.measuring import Costs
from surrokit.cost.recording import RecordingPotential
from surrokit.plan.recipe import Recipe
from surrokit.registry.composer import Composer


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
        """Return a recipe with its parts picked; what the target is asked for is paid by the run.

        Beside the parts it may set the ``exploration``, what looking for a surrogate may cost, and
        the ``fallback``, the exact kernel to go on with where the surrogate is not worth it.

        Parameters
        ----------
        composer
            Knows what is registered, and makes it.
        recipe
            What the user has named, which stays as it is; its ``initial`` is where chains start,
            the best first.
        target
            Counts what is paid to decide.
        costs
            Measured.
        rng
            Generator.
        """

    def plain(self, composer: Composer, recipe: Recipe, reason: str) -> Recipe:
        """Return a recipe with an exact kernel that its target allows for, picked unmeasured.

        Parameters
        ----------
        composer
            Knows what is registered.
        recipe
            What the user has named of the sampler's settings.
        reason
            Why there is no surrogate.
        """
