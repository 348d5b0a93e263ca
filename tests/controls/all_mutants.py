"""Parts that are broken on purpose: the errors that this field makes.

Most wrap a sound part and spoil one thing, so that they can be made from any. Each truly breaks
the target, or a promise that keeps it; ``test_mutants.py`` says which check catches each.
"""

from mutants.by_position import (
    AcceptedTooEarly,
    DeterminantLeftOut,
    ForeignSlope,
    MismatchedPositionMetric,
)
from mutants.dynamics import (
    LastHalfStepMissing,
    MismatchedMetric,
    RefittedInsidePath,
    VolumeChanged,
)
from mutants.kernels import (
    EndsWhenMoved,
    HidesUnits,
    KineticEnergyLeftOut,
    NetForStuckChains,
    NotPalindromic,
    RefusesFarPoints,
    RejectsIndefinite,
    ShorterWhereStuck,
    SignTurned,
    StayingCountsAsAccepted,
    StopsAtFirstMove,
    SurrogateDecides,
)
from mutants.learning import (
    CallsExactTarget,
    DeploysAfterFreezing,
    LiveSnapshot,
    NeverFreezes,
    NeverVanishes,
    OnlyFirstRows,
    RefitsNowAndThen,
)
from mutants.rows import BoundsHalved, FirstFactorLeftOut, LinearTermsDropped
from mutants.wrappers import (
    ClaimsConvex,
    DropsCapability,
    ForeignDerivative,
    HalvesRowBounds,
    InventsCapability,
    ShiftedProducts,
    WidensNormal,
)

__all__ = [
    # integrators and metrics
    "AcceptedTooEarly",
    "DeterminantLeftOut",
    "ForeignSlope",
    "MismatchedPositionMetric",
    "LastHalfStepMissing",
    "MismatchedMetric",
    "RefittedInsidePath",
    "VolumeChanged",
    # samplers and corrections
    "EndsWhenMoved",
    "HidesUnits",
    "KineticEnergyLeftOut",
    "NetForStuckChains",
    "NotPalindromic",
    "RefusesFarPoints",
    "RejectsIndefinite",
    "ShorterWhereStuck",
    "SignTurned",
    "StayingCountsAsAccepted",
    "StopsAtFirstMove",
    "SurrogateDecides",
    # corrections that look at rows of data
    "BoundsHalved",
    "FirstFactorLeftOut",
    "LinearTermsDropped",
    # learners and schedules
    "CallsExactTarget",
    "DeploysAfterFreezing",
    "LiveSnapshot",
    "NeverFreezes",
    "NeverVanishes",
    "OnlyFirstRows",
    "RefitsNowAndThen",
    # potentials
    "ClaimsConvex",
    "DropsCapability",
    "ForeignDerivative",
    "HalvesRowBounds",
    "InventsCapability",
    "ShiftedProducts",
    "WidensNormal",
]
