"""The frozen records that travel between the parts, gathered for import."""

from surrokit.contracts.explorer import Findings
from surrokit.interfaces import (
    ChainState,
    Decision,
    Evaluations,
    Excursion,
    LearningProblem,
    Moment,
    Phase,
    Proposal,
    Stage,
    Status,
    StepInfo,
    Tuning,
)
from surrokit.progress import IterationInfo, RunInfo

__all__ = [
    # schedule
    "Stage",
    "Moment",
    "Decision",
    # dynamics
    "Status",
    "Phase",
    # learner
    "Evaluations",
    "LearningProblem",
    # sampler
    "ChainState",
    "Excursion",
    "Proposal",
    "StepInfo",
    "Tuning",
    # explorer
    "Findings",
    # observation
    "RunInfo",
    "IterationInfo",
]
