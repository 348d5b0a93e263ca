"""The contracts between the parts, gathered for import."""

from surrokit.contracts.dynamics import Integrator, Metric, PositionMetric
from surrokit.contracts.explorer import Explorer
from surrokit.contracts.forward import CurvedEnergy, Energy, ForwardPotential
from surrokit.contracts.learner import Learner, Surrogate
from surrokit.contracts.matrices import (
    HessianDerivativePotential,
    HessianPotential,
    MetricPotential,
)
from surrokit.contracts.potential import (
    GradientAlonePotential,
    GradientPotential,
    InitialPotential,
    Potential,
)
from surrokit.contracts.sampler import Correction, Decider, Kernel, Sampler
from surrokit.contracts.schedule import Schedule

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
]
