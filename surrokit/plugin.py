"""All that a plugin is made of, for one import: ``from surrokit import plugin as sp``.

A plugin's author needs no other module. The protocols say what each kind of part has to offer, the
records are what parts hand to one another, and the functions are those that parts often need.
"""

from surrokit.arguments import fraction, not_negative, one_of, positive, positive_integer
from surrokit.capabilities import FORWARD, GRADIENT, HESSIAN, JACOBIAN, METRIC, ROWS, VJP
from surrokit.errors import (
    CapabilityError,
    ConfigurationError,
    NumericalError,
    ShapeError,
    SurrogateFitError,
    SurrokitError,
)
from surrokit.interfaces import (
    ChainState,
    Correction,
    Decider,
    Decision,
    Evaluations,
    Excursion,
    Explored,
    Explorer,
    Findings,
    Integrator,
    Kernel,
    Learner,
    LearningProblem,
    Metric,
    Moment,
    Past,
    Phase,
    PositionMetric,
    Proposal,
    Sampler,
    Schedule,
    Stage,
    Start,
    Status,
    StepInfo,
    Surrogate,
    Tuning,
)
from surrokit.kernel.hamiltonian import carry_out, metropolis, proposed_values, state_at
from surrokit.potentials import (
    CurvedEnergy,
    Energy,
    FullPotential,
    GradientPotential,
    Potential,
    with_gradient,
)
from surrokit.progress import IterationInfo, RunInfo
from surrokit.registry.components import Component, Part
from surrokit.registry.hooks import hookimpl
from surrokit.surrogate.batch import batch_surrogate
from surrokit.targets.functions import potential

# protocols of parts
__all__ = ["Sampler", "Kernel", "Correction", "Decider", "Surrogate", "Learner", "Explorer"]
__all__ += ["Schedule", "Metric", "PositionMetric", "Integrator"]
# protocols of potentials, and of the energies of forward maps
__all__ += ["Potential", "GradientPotential", "FullPotential", "Energy", "CurvedEnergy"]
# records that travel between parts
__all__ += ["ChainState", "Proposal", "StepInfo", "Status", "Phase", "Tuning", "Excursion"]
__all__ += ["Evaluations", "LearningProblem", "Start", "Explored", "Findings", "Past", "Stage"]
__all__ += ["Moment", "Decision", "RunInfo", "IterationInfo"]
# what potentials may offer
__all__ += ["GRADIENT", "HESSIAN", "METRIC", "FORWARD", "JACOBIAN", "VJP", "ROWS"]
# functions of parts
__all__ += ["potential", "with_gradient", "batch_surrogate", "metropolis", "carry_out"]
__all__ += ["proposed_values", "state_at"]
# settings
__all__ += ["positive", "positive_integer", "not_negative", "fraction", "one_of"]
# registration
__all__ += ["Component", "Part", "hookimpl"]
# errors
__all__ += ["SurrokitError", "ConfigurationError", "CapabilityError", "NumericalError"]
__all__ += ["ShapeError", "SurrogateFitError"]
