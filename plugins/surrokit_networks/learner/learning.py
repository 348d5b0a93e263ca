"""The choice of a learner for a problem."""

from __future__ import annotations

import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.learner import LearningProblem
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit_networks.learner.exact_rows import ExactRows
from surrokit_networks.learner.learner import NetworkLearner
from surrokit_networks.learner.online import OnlineLearner
from surrokit_networks.learner.pilot import Draw
from surrokit_networks.learner.training import Training
from surrokit_networks.learner.warped import WarpedLearner


def learner_of(
    problem: LearningProblem,
    rng: np.random.Generator,
    *,
    n_nodes: int | None,
    draws: tuple[Draw, ...],
    training: Training,
) -> NetworkLearner | OnlineLearner:
    """Return the learner of a network as its ``updates`` and the problem want it.

    An emulator of a forward map is always refitted; ``updates="auto"`` refits where the schedule
    deploys once, and where hidden parameters are trained.

    Parameters
    ----------
    problem
        What is to be learnt, and how often it is deployed.
    rng, n_nodes, draws, training
        See :func:`network_learner`.

    Raises
    ------
    CapabilityError
        If outputs are to be learnt of a target that has none.
    ConfigurationError
        If online updates are asked for where outputs are learnt.
    """
    updates = training.updates
    learner = network_learner(problem, rng, n_nodes=n_nodes, draws=draws, training=training)
    if learner.energy is not None and updates in ("greville", "moments"):
        raise ConfigurationError(
            f"updates={updates!r} is for networks that learn the potential, but this one learns "
            "the outputs of a forward map; use learns='potential', or updates='refit'"
        )
    stays = learner.energy is not None or training.regression.hidden == "trained"
    if updates == "refit" or (updates == "auto" and (stays or problem.deployment_rate == 0.0)):
        return learner
    return OnlineLearner(refits=learner, updates=updates, rate=problem.deployment_rate)


def network_learner(
    problem: LearningProblem,
    rng: np.random.Generator,
    *,
    n_nodes: int | None,
    draws: tuple[Draw, ...],
    training: Training,
    convex: bool = False,
    known: ExactRows | None = None,
) -> NetworkLearner:
    """Return a learner that refits; the seed of its nodes is drawn here.

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
    convex
        Whether what is learnt of U itself is a positive definite quadratic, without any node.
    known : ExactRows, optional
        What is taken of U itself as it is.

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
    energy = None if training.learns == "potential" else problem.energy
    if training.learns == "auto" and _tells_more(problem):
        energy = None
    kind = WarpedLearner if training.warp and energy is not None else NetworkLearner
    return kind(
        dim=problem.dim,
        seed=int(rng.integers(2**53)),
        n_nodes=n_nodes,
        draws=draws,
        training=training,
        energy=energy,
        convex=convex and energy is None,
        known=known,
        bordered=problem.is_density and training.whiten,
        fine=problem.is_weighed,
    )


def _tells_more(problem: LearningProblem) -> bool:
    """Return whether gradients of U are to be had, and no derivatives of the outputs."""
    return can.GRADIENT in problem.capabilities and can.JACOBIAN not in problem.capabilities
