"""The contracts between the parts, gathered for import."""

from surrokit.contracts.explorer import Exploration, ExplorationState, Explorer
from surrokit.interfaces import (
    Correction,
    Decider,
    Integrator,
    Kernel,
    Learner,
    Metric,
    PositionMetric,
    Sampler,
    Schedule,
    Surrogate,
)
from surrokit.potentials import (
    CurvedEnergy,
    Energy,
    ForwardPotential,
    GradientAlonePotential,
    GradientPotential,
    HessianDerivativePotential,
    HessianPotential,
    InitialPotential,
    MetricPotential,
    Potential,
)

__all__ = [
    # potential
    "Potential",
    "GradientPotential",
    "GradientAlonePotential",
    "InitialPotential",
    # matrices
    "HessianPotential",
    "HessianDerivativePotential",
    "MetricPotential",
    # forward
    "Energy",
    "CurvedEnergy",
    "ForwardPotential",
    # learner
    "Learner",
    "Surrogate",
    # dynamics
    "Metric",
    "Integrator",
    "PositionMetric",
    # sampler
    "Sampler",
    "Kernel",
    "Correction",
    "Decider",
    # schedule
    "Schedule",
    # explorer
    "Explorer",
    "Exploration",
    "ExplorationState",
]
