"""Which learner a problem calls for."""

from __future__ import annotations

import numpy as np

from surrokit.errors import CapabilityError
from surrokit.records import LearningProblem
from surrokit_networks.learner import NetworkLearner
from surrokit_networks.pilot import Draw
from surrokit_networks.training import Training


def learner_of(
    problem: LearningProblem,
    rng: np.random.Generator,
    *,
    n_nodes: int | None,
    draws: tuple[Draw, ...],
    training: Training,
) -> NetworkLearner:
    """Return the learner of a network; the seed of its nodes is drawn here.

    Parameters
    ----------
    problem
        What is to be learnt.
    rng
        Draws the seed.
    n_nodes : int, optional
        How many nodes; None to choose.
    draws
        Ways to draw them once there are points.
    training
        How they are trained.

    Raises
    ------
    CapabilityError
        If outputs are to be learnt of a target that has none.
    """
    if training.learns == "outputs" and problem.energy is None:
        raise CapabilityError(
            "learns='outputs' needs a target with a forward map, which this one has not; make it "
            "with surrokit.forward_potential, or use learns='auto'"
        )
    return NetworkLearner(
        dim=problem.dim,
        seed=int(rng.integers(2**53)),
        n_nodes=n_nodes,
        draws=draws,
        training=training,
        energy=None if training.learns == "potential" else problem.energy,
    )
