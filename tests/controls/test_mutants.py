"""Every part broken on purpose is caught, by the check named here; unbroken, it passes that check.

A check that no mutant trips may check nothing. Thresholds are those of the suite: a statistical
mutant must be caught at the rate of false alarms that is promised to sound parts, with margin.
"""

import importlib

import numpy as np
import pytest

from mutants.corrections import (
    BoundsHalved,
    FirstFactorLeftOut,
    LinearTermsDropped,
    StayingCountsAsAccepted,
    SurrogateDecides,
)
from mutants.dynamics import (
    AcceptedTooEarly,
    DeterminantLeftOut,
    ForeignSlope,
    LastHalfStepMissing,
    MismatchedMetric,
    MismatchedPositionMetric,
    RefittedInsidePath,
    VolumeChanged,
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
from mutants.potentials import (
    ClaimsConvex,
    DropsCapability,
    ForeignDerivative,
    HalvesRowBounds,
    InventsCapability,
    ShiftedProducts,
    WidensNormal,
)
from mutants.samplers import (
    EndsWhenMoved,
    HidesUnits,
    KineticEnergyLeftOut,
    NetForStuckChains,
    NotPalindromic,
    RefusesFarPoints,
    RejectsIndefinite,
    ShorterWhereStuck,
    SignTurned,
    StopsAtFirstMove,
)
from surrokit.compose import make
from surrokit.testing import (
    CHECK_RATE,
    checks_for,
    corrections,
    dynamics,
    learning,
    plugins,
    potentials,
    rows,
    samplers,
    surrogates,
)
from surrokit.testing.parts import ReferenceCorrection, SubChain, transitions
from surrokit.testing.samplers import ready
from surrokit.testing.targets import Banana, Gaussian, Mixture
from surrokit.testing.wrappers import Wrapped

MARGIN = 1e-3
"""A mutant's p-value is to be so many times below the threshold."""


def hmc(**settings):
    return make("sampler", "hmc", **{"step_size": 0.5, "n_steps": 4, **settings})


def sub_chain(length=1):
    return make("sampler", "sub-chain", kernel=("random-walk", {"step_size": 0.8}), length=length)


def longer_sub_chain():
    return sub_chain(length=4)


def leapfrog():
    return make("integrator", "leapfrog")


def rmhmc(**settings):
    return make("sampler", "rmhmc", **{"step_size": 0.7, "n_steps": 1, **settings})


def generalized_leapfrog():
    return make("integrator", "generalized-leapfrog")


def softabs():
    return make("metric", "softabs")


def check_two_modes_kept(sampler):
    """A fifth of this target lies where its Hessian is not positive definite."""
    target = Mixture(half_distance=1.3)
    verdict = samplers.invariance(
        ready(sampler, target),
        ReferenceCorrection(potential=target),
        target,
        "two modes: ",
        n_chains=6000,
        n_transitions=10,
    )
    verdict.require("exact draws must stay exact draws")


def never():
    return make("schedule", "never")


def once():
    return make("schedule", "once")


def subsampled():
    return make("correction", "subsampled")


def additive():
    # on values: outputs and gradients of a banana are learnt exactly from a handful of rows
    return make("surrogate", "additive", learns="potential", train_on="values")


def mismatched_hmc(sound):
    return hmc(metric=MismatchedMetric(make("metric", "identity")))


def mismatched_rmhmc(sound):
    return rmhmc(metric=MismatchedPositionMetric(softabs()))


def shorter_where_stuck(sound):
    return ShorterWhereStuck(sound, sub_chain())


def calls_exact_target(sound):
    return CallsExactTarget(sound, surrogates.TARGET)


def caught(check, original, *broken):
    """Return mutants of a sound part, made from it, that one check catches."""
    return [(check, original, one) for one in broken]


def metropolis():
    return make("correction", "metropolis")


def identity():
    return make("metric", "identity")


def forgetting():
    return make("schedule", "greville", freeze_after=None)


def wrapped_banana():
    return Wrapped(Banana())


def wrapper():
    return Wrapped


CONTROLS = [
    *caught(corrections.check_exact_draws_kept, metropolis, SurrogateDecides),
    *caught(corrections.check_staying, metropolis, StayingCountsAsAccepted),
    *caught(
        corrections.check_exact_draws_kept,
        subsampled,
        *(BoundsHalved, FirstFactorLeftOut, LinearTermsDropped),
    ),
    *caught(rows.check_row_bounds, rows.Summed, HalvesRowBounds),
    *caught(
        samplers.check_invariant,
        hmc,
        *(KineticEnergyLeftOut, SignTurned, RefusesFarPoints, RejectsIndefinite, mismatched_hmc),
    ),
    *caught(samplers.check_same_proposal, hmc, NetForStuckChains),
    *caught(samplers.check_invariant_on_wrong_surrogate, hmc, NetForStuckChains),
    *caught(samplers.check_invariant, SubChain, lambda sound: StopsAtFirstMove()),
    *caught(samplers.check_invariant, sub_chain, EndsWhenMoved),
    *caught(samplers.check_same_proposal, longer_sub_chain, shorter_where_stuck),
    *caught(
        samplers.check_invariant_on_wrong_surrogate,
        longer_sub_chain,
        *(SignTurned, shorter_where_stuck),
    ),
    *caught(samplers.check_flux, SubChain, lambda sound: NotPalindromic()),
    *caught(samplers.check_invariant_on_wrong_surrogate, SubChain, lambda sound: NotPalindromic()),
    *caught(check_two_modes_kept, rmhmc, RejectsIndefinite, mismatched_rmhmc),
    *caught(samplers.check_caches_declared, rmhmc, HidesUnits),
    *caught(dynamics.check_reversible, leapfrog, LastHalfStepMissing, RefittedInsidePath),
    *caught(dynamics.check_volume, leapfrog, VolumeChanged),
    *caught(dynamics.check_reversible, generalized_leapfrog, AcceptedTooEarly),
    *caught(dynamics.check_volume, generalized_leapfrog, ForeignSlope),
    *caught(dynamics.check_momenta, identity, MismatchedMetric),
    *caught(dynamics.check_momenta, softabs, MismatchedPositionMetric),
    *caught(dynamics.check_kinetic_energy, softabs, DeterminantLeftOut),
    *caught(learning.check_learning_ends, never, NeverFreezes),
    *caught(learning.check_learning_ends, forgetting, NeverVanishes),
    *caught(learning.check_frozen_stays, once, DeploysAfterFreezing),
    *caught(learning.check_frozen_far_on, once, RefitsNowAndThen),
    *caught(surrogates.check_snapshot_frozen, additive, LiveSnapshot),
    *caught(surrogates.check_no_exact_call, additive, calls_exact_target),
    *caught(surrogates.check_row_order, additive, OnlyFirstRows),
    *caught(potentials.check_hessian_derivative, wrapped_banana, ForeignDerivative),
    *caught(potentials.check_metric_derivative, wrapped_banana, ForeignDerivative),
    *caught(potentials.check_hessian_product, wrapped_banana, ShiftedProducts),
    *caught(potentials.check_hessian_diagonal, wrapped_banana, ShiftedProducts),
    *caught(potentials.check_metric_matrix, wrapped_banana, ShiftedProducts),
    *caught(potentials.check_convex, Gaussian, lambda sound: ClaimsConvex(Mixture())),
    *caught(potentials.check_gaussian, Gaussian, WidensNormal),
    *caught(plugins.check_capabilities_kept, wrapper, lambda sound: DropsCapability),
    *caught(plugins.check_capabilities_kept, wrapper, lambda sound: InventsCapability),
]


def named(broken):
    """Return the name of a mutant, or all that a function which makes one refers to."""
    return broken.__name__ if isinstance(broken, type) else " ".join(broken.__code__.co_names)


IDS = [f"{named(one)} of {sound.__name__} ({check.__name__})" for check, sound, one in CONTROLS]


@pytest.mark.parametrize(("check", "original", "broken"), CONTROLS, ids=IDS)
def test_mutant_is_caught(check, original, broken, p_values):
    with pytest.raises(AssertionError):
        check(lambda: broken(original()))

    assert all(p_value < MARGIN * CHECK_RATE for p_value in p_values)


REGISTERED = (hmc, subsampled, leapfrog, generalized_leapfrog, softabs, never, once)
"""These pass the check with all registered parts."""

ORIGINALS = dict.fromkeys((check, sound) for check, sound, _ in CONTROLS if sound not in REGISTERED)


@pytest.mark.parametrize(("check", "original"), ORIGINALS)
def test_original_passes(check, original):
    check(original)


def test_every_mutant_has_a_control():
    used = " ".join(named(one) for _, _, one in CONTROLS).split()
    modules = ("corrections", "dynamics", "learning", "potentials", "samplers")
    known = {
        name
        for module in modules
        for name, value in vars(importlib.import_module(f"mutants.{module}")).items()
        if isinstance(value, type) and value.__module__ == f"mutants.{module}"
    }
    assert sorted(name for name in known - set(used) if not name.startswith("_")) == []


def test_quick_checks_of_a_kernel_do_not_see_a_bias():
    # why statistical checks are there at all
    for check in samplers.CHECKS:
        if (
            check.level == "quick"
            and check.name != "check_path_quantities"
            and check.applies(hmc())
        ):
            check.function(lambda: KineticEnergyLeftOut(hmc()))


@pytest.mark.parametrize(
    ("broken", "sound"), [(VolumeChanged, leapfrog), (ForeignSlope, generalized_leapfrog)]
)
def test_volume_is_the_only_check_that_sees_a_change_of_volume(broken, sound):
    for check in dynamics.INTEGRATOR_CHECKS:
        if check.function not in (dynamics.check_volume, dynamics.check_order):
            check.function(lambda: broken(sound()))


def test_a_fifth_of_the_target_with_two_modes_has_an_indefinite_hessian():
    target = Mixture(half_distance=1.3)
    hessian = target.hessian(target.sample(np.random.default_rng(0), 20_000))

    assert np.mean(np.linalg.eigvalsh(hessian)[:, 0] <= 0) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(("scale", "low", "high"), [(0.5, 0.9, 0.97), (2.4, 1.2, 1.3)])
def test_stopping_at_the_first_move_changes_the_spread(scale, low, high):
    target = Gaussian(mean=(0.0, 0.0), covariance=((1.0, 0.0), (0.0, 1.0)))
    eager = StopsAtFirstMove(length=50, scale=scale).bind(target)
    rng = np.random.default_rng(0)
    positions, _ = transitions(
        eager, ReferenceCorrection(potential=target), target.sample(rng, 10_000), 40, rng
    )

    assert low < np.square(positions).mean() < high  # where it should be 1


def test_a_sampler_that_says_it_is_not_reversible_is_not_asked_for_flux():
    class Declared(NotPalindromic):
        reversible = False

    names = [case.check.name for case in checks_for(Declared)]

    assert "check_flux" not in names
    assert "check_invariant" in names
