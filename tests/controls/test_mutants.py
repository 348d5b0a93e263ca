"""Every part broken on purpose is caught, by the check named here; unbroken, it passes that check.

A check that no mutant trips may check nothing. Thresholds are those of the suite: a statistical
mutant must be caught at the rate of false alarms that is promised to sound parts, with margin.
"""

import numpy as np
import pytest

import all_mutants as mutants
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
from surrokit.testing.rows import Summed
from surrokit.testing.samplers import ready
from surrokit.testing.statistics import Verdict
from surrokit.testing.surrogates import TARGET
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


CONTROLS = [
    # name, mutant, original, the check that catches it
    (
        "surrogate energy in the acceptance ratio",
        lambda: mutants.SurrogateDecides(inner=make("correction", "metropolis")),
        lambda: make("correction", "metropolis"),
        corrections.check_exact_draws_kept,
    ),
    (
        "proposals to stay counted as accepted",
        lambda: mutants.StayingCountsAsAccepted(inner=make("correction", "metropolis")),
        lambda: make("correction", "metropolis"),
        corrections.check_staying,
    ),
    (
        "rows' bounds half as large as they are",
        lambda: mutants.BoundsHalved(inner=subsampled()),
        subsampled,
        corrections.check_exact_draws_kept,
    ),
    (
        "rows' bounds half as large as they should be declared",
        lambda: mutants.HalvesRowBounds(Summed()),
        Summed,
        rows.check_row_bounds,
    ),
    (
        "first factor of the subsampled correction left out",
        lambda: mutants.FirstFactorLeftOut(inner=subsampled()),
        subsampled,
        corrections.check_exact_draws_kept,
    ),
    (
        "linear terms dropped from the rows' expansions",
        lambda: mutants.LinearTermsDropped(inner=subsampled()),
        subsampled,
        corrections.check_exact_draws_kept,
    ),
    (
        "kinetic energy left out of the log correction",
        lambda: mutants.KineticEnergyLeftOut(hmc()),
        hmc,
        samplers.check_invariant,
    ),
    (
        "sign of the log correction turned",
        lambda: mutants.SignTurned(hmc()),
        hmc,
        samplers.check_invariant,
    ),
    (
        "leapfrog without its last half step",
        lambda: mutants.LastHalfStepMissing(leapfrog()),
        leapfrog,
        dynamics.check_reversible,
    ),
    (
        "surrogate refitted inside a trajectory",
        lambda: mutants.RefittedInsidePath(leapfrog()),
        leapfrog,
        dynamics.check_reversible,
    ),
    (
        "reversible, but volume not preserved",
        lambda: mutants.VolumeChanged(leapfrog()),
        leapfrog,
        dynamics.check_volume,
    ),
    (
        "net switched on by a stuck chain: no proposal may remember",
        lambda: mutants.NetForStuckChains(hmc()),
        hmc,
        samplers.check_same_proposal,
    ),
    (
        "net switched on by a stuck chain: the bias",
        lambda: mutants.NetForStuckChains(hmc()),
        hmc,
        samplers.check_invariant_on_wrong_surrogate,
    ),
    (
        "momenta drawn with one metric, scored with another",
        lambda: mutants.MismatchedMetric(make("metric", "identity")),
        lambda: make("metric", "identity"),
        dynamics.check_momenta,
    ),
    (
        "momenta drawn with one metric, scored with another: the bias",
        lambda: hmc(metric=mutants.MismatchedMetric(make("metric", "identity"))),
        hmc,
        samplers.check_invariant,
    ),
    (
        "sub-chain that stops at its first move",
        mutants.StopsAtFirstMove,
        SubChain,
        samplers.check_invariant,
    ),
    (
        "sub-chain of another sampler that ends when it has moved",
        lambda: mutants.EndsWhenMoved(sub_chain()),
        sub_chain,
        samplers.check_invariant,
    ),
    (
        "sub-chain with the sign of its log correction turned",
        lambda: mutants.SignTurned(longer_sub_chain()),
        longer_sub_chain,
        samplers.check_invariant_on_wrong_surrogate,
    ),
    (
        "length of sub-chains that is not frozen: no proposal may remember",
        lambda: mutants.ShorterWhereStuck(longer_sub_chain(), sub_chain()),
        longer_sub_chain,
        samplers.check_same_proposal,
    ),
    (
        "length of sub-chains that is not frozen: the bias",
        lambda: mutants.ShorterWhereStuck(longer_sub_chain(), sub_chain()),
        longer_sub_chain,
        samplers.check_invariant_on_wrong_surrogate,
    ),
    (
        "sub-chain of two kernels that is not palindromic",
        mutants.NotPalindromic,
        SubChain,
        samplers.check_flux,
    ),
    (
        "sub-chain of two kernels that is not palindromic: the bias",
        mutants.NotPalindromic,
        SubChain,
        samplers.check_invariant_on_wrong_surrogate,
    ),
    (
        "rejecting what is far away",
        lambda: mutants.RefusesFarPoints(hmc()),
        hmc,
        samplers.check_invariant,
    ),
    (
        "rejecting where the Hessian is not positive definite",
        lambda: mutants.RejectsIndefinite(hmc()),
        hmc,
        samplers.check_invariant,
    ),
    (
        "rejecting where the Hessian is not positive definite, in a metric that needs it to be",
        lambda: mutants.RejectsIndefinite(rmhmc()),
        rmhmc,
        check_two_modes_kept,
    ),
    (
        "caches of a metric that are not remade after retuning",
        lambda: mutants.HidesUnits(rmhmc()),
        rmhmc,
        samplers.check_caches_declared,
    ),
    (
        "implicit step accepted before it has converged",
        lambda: mutants.AcceptedTooEarly(generalized_leapfrog()),
        generalized_leapfrog,
        dynamics.check_reversible,
    ),
    (
        "exact metric with the derivative of another",
        lambda: mutants.ForeignSlope(generalized_leapfrog()),
        generalized_leapfrog,
        dynamics.check_volume,
    ),
    (
        "momenta drawn with one metric of positions, scored with another",
        lambda: mutants.MismatchedPositionMetric(softabs()),
        softabs,
        dynamics.check_momenta,
    ),
    (
        "momenta drawn with one metric of positions, scored with another: the bias",
        lambda: rmhmc(metric=mutants.MismatchedPositionMetric(softabs())),
        rmhmc,
        check_two_modes_kept,
    ),
    (
        "log determinant left out of the energy",
        lambda: mutants.DeterminantLeftOut(softabs()),
        softabs,
        dynamics.check_kinetic_energy,
    ),
    (
        "schedule that never freezes",
        lambda: mutants.NeverFreezes(never()),
        never,
        learning.check_learning_ends,
    ),
    (
        "schedule whose rate does not vanish",
        lambda: mutants.NeverVanishes(make("schedule", "greville", freeze_after=None)),
        lambda: make("schedule", "greville", freeze_after=None),
        learning.check_learning_ends,
    ),
    (
        "schedule that deploys after freezing",
        lambda: mutants.DeploysAfterFreezing(once()),
        once,
        learning.check_frozen_stays,
    ),
    (
        "schedule that deploys now and then after freezing",
        lambda: mutants.RefitsNowAndThen(once()),
        once,
        learning.check_frozen_far_on,
    ),
    (
        "snapshot that goes on learning",
        lambda: mutants.LiveSnapshot(additive()),
        additive,
        surrogates.check_snapshot_frozen,
    ),
    (
        "learner that calls the exact target",
        lambda: mutants.CallsExactTarget(additive(), TARGET),
        additive,
        surrogates.check_no_exact_call,
    ),
    (
        "learner for which the order of rows matters",
        lambda: mutants.OnlyFirstRows(additive()),
        additive,
        surrogates.check_row_order,
    ),
    (
        "derivative of the Hessian from another function",
        lambda: mutants.ForeignDerivative(Banana()),
        lambda: Wrapped(Banana()),
        potentials.check_hessian_derivative,
    ),
    (
        "derivative of the metric from another function",
        lambda: mutants.ForeignDerivative(Banana()),
        lambda: Wrapped(Banana()),
        potentials.check_metric_derivative,
    ),
    (
        "product with the Hessian of another position",
        lambda: mutants.ShiftedProducts(Banana()),
        lambda: Wrapped(Banana()),
        potentials.check_hessian_product,
    ),
    (
        "diagonal of the Hessian of another position",
        lambda: mutants.ShiftedProducts(Banana()),
        lambda: Wrapped(Banana()),
        potentials.check_hessian_diagonal,
    ),
    (
        "product with the metric of another position",
        lambda: mutants.ShiftedProducts(Banana()),
        lambda: Wrapped(Banana()),
        potentials.check_metric_product,
    ),
    (
        "potential with two modes that claims to be convex",
        lambda: mutants.ClaimsConvex(Mixture()),
        lambda: Wrapped(Gaussian()),
        potentials.check_convex,
    ),
    (
        "normal potential that is said to be wider than it is",
        lambda: mutants.WidensNormal(Gaussian()),
        lambda: Wrapped(Gaussian()),
        potentials.check_gaussian,
    ),
    (
        "wrapper that drops a capability",
        lambda: mutants.DropsCapability,
        lambda: Wrapped,
        plugins.check_capabilities_kept,
    ),
    (
        "wrapper that invents a capability",
        lambda: mutants.InventsCapability,
        lambda: Wrapped,
        plugins.check_capabilities_kept,
    ),
]
IDS = [f"{name} ({check.__name__})" for name, _, _, check in CONTROLS]


@pytest.fixture
def smallest_p_value(monkeypatch):
    """The p-values of the verdicts that a test has asked for."""
    seen = []
    require = Verdict.require

    def recorded(verdict, claim):
        seen.append(verdict.p_value)
        require(verdict, claim)

    monkeypatch.setattr(Verdict, "require", recorded)
    return seen


@pytest.mark.parametrize(("name", "mutant", "original", "check"), CONTROLS, ids=IDS)
def test_mutant_is_caught(name, mutant, original, check, smallest_p_value):
    with pytest.raises(AssertionError):
        check(mutant)

    assert all(p_value < MARGIN * CHECK_RATE for p_value in smallest_p_value)


ORIGINALS = {
    control[2:]: name
    for name, control in zip(IDS, CONTROLS, strict=True)
    if control[2] not in (hmc, subsampled, leapfrog, generalized_leapfrog, softabs, never, once)
}
"""Each once: several mutants of one part are caught by one check. What is left out is registered,
and passes the check with all registered parts."""


@pytest.mark.parametrize(("original", "check"), ORIGINALS, ids=ORIGINALS.values())
def test_original_passes(original, check):
    check(original)


def test_every_mutant_has_a_control():
    used = "".join(
        repr(value)
        for _, mutant, _, _ in CONTROLS
        for value in (mutant, getattr(mutant, "__code__", None) and mutant.__code__.co_names)
    )

    assert [name for name in mutants.__all__ if name not in used] == []


def test_quick_checks_of_a_kernel_do_not_see_a_bias():
    # why statistical checks are there at all
    for check in samplers.CHECKS:
        if (
            check.level == "quick"
            and check.name != "check_path_quantities"
            and check.applies(hmc())
        ):
            check.function(lambda: mutants.KineticEnergyLeftOut(hmc()))


def test_volume_is_the_only_check_that_sees_a_change_of_volume():
    for check in dynamics.INTEGRATOR_CHECKS:
        if check.function not in (dynamics.check_volume, dynamics.check_order):
            check.function(lambda: mutants.VolumeChanged(leapfrog()))


def test_volume_is_the_only_check_that_sees_a_foreign_derivative():
    for check in dynamics.INTEGRATOR_CHECKS:
        if check.function not in (dynamics.check_volume, dynamics.check_order):
            check.function(lambda: mutants.ForeignSlope(generalized_leapfrog()))


def test_a_fifth_of_the_target_with_two_modes_has_an_indefinite_hessian():
    target = Mixture(half_distance=1.3)
    hessian = target.hessian(target.sample(np.random.default_rng(0), 20_000))

    assert np.mean(np.linalg.eigvalsh(hessian)[:, 0] <= 0) == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize(("scale", "low", "high"), [(0.5, 0.9, 0.97), (2.4, 1.2, 1.3)])
def test_stopping_at_the_first_move_changes_the_spread(scale, low, high):
    target = Gaussian(mean=(0.0, 0.0), covariance=((1.0, 0.0), (0.0, 1.0)))
    eager = mutants.StopsAtFirstMove(length=50, scale=scale).bind(target)
    rng = np.random.default_rng(0)
    positions, _ = transitions(
        eager, ReferenceCorrection(potential=target), target.sample(rng, 10_000), 40, rng
    )

    assert low < np.square(positions).mean() < high  # where it should be 1


def test_a_sampler_that_says_it_is_not_reversible_is_not_asked_for_flux():
    class Declared(mutants.NotPalindromic):
        reversible = False

    names = [case.check.name for case in checks_for(Declared)]

    assert "check_flux" not in names
    assert "check_invariant" in names
