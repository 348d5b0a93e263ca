"""The frozen records that travel between the parts, gathered for import."""

from surrokit.contracts.dynamics import Phase, Status
from surrokit.contracts.explorer import Explored, Findings, Past, Start
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.contracts.observation import IterationInfo, RunInfo
from surrokit.contracts.sampler import ChainState, Excursion, Proposal, StepInfo, Tuning
from surrokit.contracts.schedule import Decision, Moment, Stage

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
    "Start",
    "Explored",
    "Past",
    # observation
    "RunInfo",
    "IterationInfo",
]
