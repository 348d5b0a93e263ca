"""Every part broken on purpose is caught, by the check named here; unbroken, it passes that check.

A check that no mutant trips may check nothing. Thresholds are those of the suite: a statistical
mutant must be caught at the rate of false alarms that is promised to sound parts, with margin.
"""

from functools import partial
from itertools import count

import numpy as np
import pytest

import mutants as mu
from surrokit.capabilities import CONVEX
from surrokit.compose import make
from surrokit.testing import (
    CHECK_RATE,
    corrections,
    dynamics,
    learning,
    potentials,
    rows,
    samplers,
    surrogates,
)
from surrokit.testing.checks import CHECKS, Check
from surrokit.testing.parts import ReferenceCorrection, SubChain
from surrokit.testing.samplers import ready
from surrokit.testing.targets import Banana, Gaussian, Mixture
from surrokit.testing.wrappers import Wrapped

MARGIN = 1e-3
"""A mutant's p-value is to be so many times below the threshold."""

RANDOM_WALK = ("random-walk", {"step_size": 0.8})

SOUND = {
    "hmc": lambda **other: make("sampler", "hmc", **{"step_size": 0.5, "n_steps": 4, **other}),
    "rmhmc": lambda **other: make("sampler", "rmhmc", step_size=0.7, n_steps=1, **other),
    "longer sub-chain": lambda: make("sampler", "sub-chain", kernel=RANDOM_WALK, length=4),
    "plain sub-chain": SubChain,
    "metropolis": lambda: make("correction", "metropolis"),
    "subsampled": lambda: make("correction", "subsampled"),
    "leapfrog": lambda: make("integrator", "leapfrog"),
    "generalized leapfrog": lambda: make("integrator", "generalized-leapfrog"),
    "identity": lambda: make("metric", "identity"),
    "softabs": lambda: make("metric", "softabs"),
    "never": lambda: make("schedule", "never"),
    "once": lambda: make("schedule", "once"),
    "forgetting": lambda: make("schedule", "greville", freeze_after=None),
    # on values: outputs and gradients of a banana are learnt exactly from a handful of rows
    "additive": lambda: make("surrogate", "additive", learns="potential", train_on="values"),
    "rows": rows.Summed,
    "adjoint banana": lambda: Wrapped(Banana(adjoint=True)),
    "normal": Gaussian,
}

# They pass the check with all registered parts.
REGISTERED = ("hmc", "subsampled", "leapfrog", "generalized leapfrog", "softabs", "never", "once")


def all_well(proposal):
    return {"status": np.zeros_like(proposal.status)}


def all_moved(proposal):
    return {"moved": np.ones_like(proposal.moved)}


def stale_cache(proposal):
    return {"cache": {name: 1.01 * array for name, array in proposal.cache.items()}}


def single(function, positions):
    found = function(positions)
    return np.float32(found) if isinstance(found, np.ndarray) else found


CALLS = count()


def drifts(function, positions):
    found = function(positions)
    return found + 1e-6 * next(CALLS) if isinstance(found, np.ndarray) else found


def of_the_batch(function, positions):
    return function(positions - 1e-3 * positions.mean(axis=0))


def of_any_shape(function, positions):
    return function(np.resize(positions, (2, 2)))


def nan_far_out(function, positions):
    values = function(positions)
    return np.where(np.abs(positions).max(axis=1) > 100.0, np.nan, values)


def answers(change):
    return [partial(mu.Answers, change=change)]


def says(broken, *changes):
    return [partial(broken, says=change) for change in changes]


def has(**attributes):
    return [partial(mu.Passing, **attributes)]


def changed(**methods):
    return [partial(mu.changed, **methods)]


def remainders_twice(expansion):
    return mu.changed(expansion, remainders=lambda of, *given: 2.0 * of.remainders(*given))


def claims_convex(sound):
    return mu.Passing(Mixture(), capabilities=Mixture().capabilities | {CONVEX})


def hmc_of_two_metrics(sound):
    return SOUND["hmc"](metric=mu.MismatchedMetric(make("metric", "identity")))


def rmhmc_of_two_metrics(sound):
    return SOUND["rmhmc"](metric=mu.MismatchedPositionMetric(make("metric", "softabs")))


def shifted(*methods):
    return [partial(mu.Shifted, method=method) for method in methods]


def _keeps_two_modes(sampler):
    """A fifth of this target lies where its Hessian is not positive definite."""
    target = Mixture(half_distance=1.3)
    kernel, decider = ready(sampler, target), ReferenceCorrection(potential=target)
    sizes = {"n_chains": 6000, "n_transitions": 10}
    verdict = samplers.invariance(kernel, decider, target, "two modes: ", **sizes)
    verdict.require("exact draws must stay exact draws")


check_two_modes_kept = Check(_keeps_two_modes)
on_wrong_surrogate = samplers.check_invariant_on_wrong_surrogate

CONTROLS = {
    corrections.check_exact_draws_kept: {
        "metropolis": [mu.SurrogateDecides],
        "subsampled": [mu.BoundsHalved, mu.AllAccepted, mu.LinearTermsDropped],
    },
    corrections.check_staying: {
        "metropolis": [
            partial(mu.StayingCountsAsAccepted, method=name) for name in ("accepted", "acceptance")
        ]
    },
    corrections.check_decision: {"metropolis": [mu.OldCacheKept]},
    corrections.check_failures_rejected: {"metropolis": says(mu.Mistold, all_well)},
    corrections.check_cost: {"metropolis": says(mu.Mistold, all_well, all_moved)},
    rows.check_row_bounds: {
        "rows": changed(row_bounds=lambda of, factor: 0.5 * of.row_bounds(factor))
    },
    rows.check_selected: {"rows": changed(select=lambda of, rows: of.select(np.unique(rows)))},
    rows.check_expansion: {
        "rows": changed(expand=lambda of, centre: mu.WithoutLinearTerms(of.expand(centre)))
    },
    rows.check_remainders: {
        "rows": changed(expand=lambda of, centre: remainders_twice(of.expand(centre)))
    },
    samplers.check_invariant: {
        "hmc": [
            *(mu.KineticEnergyLeftOut, mu.SignTurned, mu.RefusesFarPoints, mu.RejectsIndefinite),
            hmc_of_two_metrics,
        ],
        "plain sub-chain": [lambda sound: mu.StopsAtFirstMove()],
    },
    samplers.check_same_proposal: {
        "hmc": [mu.NetForStuckChains],
    },
    on_wrong_surrogate: {
        "hmc": [mu.NetForStuckChains],
        "longer sub-chain": [mu.SignTurned],
        "plain sub-chain": [lambda sound: mu.NotPalindromic()],
    },
    check_two_modes_kept: {"rmhmc": [mu.RejectsIndefinite, rmhmc_of_two_metrics]},
    samplers.check_binding: {"rmhmc": has(caches_metric=False)},
    samplers.check_proposal: {"hmc": has(tunes=frozenset({"temper"}))},
    samplers.check_path_quantities: {"hmc": says(mu.Misproposed, stale_cache)},
    samplers.check_failures_flagged: {"hmc": says(mu.Misproposed, all_well)},
    samplers.check_tuning: {"hmc": has(tunes=frozenset({"step_size"}))},
    dynamics.check_chains_alone: {"leapfrog": [mu.OneLengthForAll]},
    dynamics.check_metric_derivatives: {"softabs": [mu.Torn]},
    dynamics.check_reversible: {
        "leapfrog": [mu.LastHalfStepMissing, mu.RefittedInsidePath],
        "generalized leapfrog": [mu.AcceptedTooEarly],
    },
    dynamics.check_volume: {
        "leapfrog": [mu.VolumeChanged],
        "generalized leapfrog": [mu.ForeignSlope],
    },
    dynamics.check_momenta: {
        "identity": [mu.MismatchedMetric],
        "softabs": [mu.MismatchedPositionMetric],
    },
    dynamics.check_kinetic_energy: {"softabs": [mu.DeterminantLeftOut]},
    learning.check_learns: {"once": has(learns=False)},
    learning.check_learning_ends: {"never": [mu.NeverFreezes], "forgetting": [mu.NeverVanishes]},
    learning.check_frozen: {"once": [mu.RefitsNowAndThen]},
    surrogates.check_snapshot_frozen: {"additive": [mu.LiveSnapshot]},
    surrogates.check_same_fit: {"additive": [mu.OnlyFirstRows]},
    surrogates.check_learner_survives: {"additive": [mu.EndsWhenRestored]},
    surrogates.check_empty_learner: {"additive": [mu.FitsToNothing]},
    potentials.check_capabilities: {"normal": answers(single)},
    potentials.check_same_answer: {"normal": answers(drifts)},
    potentials.check_rows: {"normal": answers(of_the_batch)},
    potentials.check_wrong_shape: {"normal": answers(of_any_shape)},
    potentials.check_far_values: {"normal": answers(nan_far_out)},
    potentials.check_gradient: {"adjoint banana": shifted("value_and_gradient", "gradient")},
    potentials.check_hessian: {
        "adjoint banana": shifted(
            *("hessian", "hessian_trace_gradient", "hessian_form_gradient", "hessian_product"),
            *("hessian_diagonal", "hessian_diagonal_gradient"),
        )
    },
    potentials.check_metric_matrix: {
        "adjoint banana": shifted("metric_trace_gradient", "metric_form_gradient", "metric_product")
    },
    potentials.check_forward: {
        "adjoint banana": shifted("forward_and_jacobian", "forward_and_gradient")
    },
    potentials.check_energy: {"adjoint banana": shifted("forward")},
    potentials.check_convex: {"normal": [claims_convex]},
    potentials.check_gaussian: {"normal": has(factor=1.01 * Gaussian().factor)},
}
"""Check to the names of sound parts, and to what is broken of each."""


def named(broken):
    """Return the name of a mutant, or all that a function which makes one refers to."""
    if isinstance(broken, partial):
        words = [getattr(each, "__name__", each) for each in broken.keywords.values()]
        words = [word for word in words if isinstance(word, str)]
        return " ".join([broken.func.__name__, *broken.keywords, *words])
    return broken.__name__ if isinstance(broken, type) else " ".join(broken.__code__.co_names)


CASES = [
    pytest.param(check, sound, broken, id=f"{named(broken)} of {sound} ({check.name})")
    for check, parts in CONTROLS.items()
    for sound, several in parts.items()
    for broken in several
]


@pytest.mark.parametrize(("check", "sound", "broken"), CASES)
def test_mutant_is_caught(check, sound, broken, p_values):
    with pytest.raises(AssertionError):
        check(lambda: broken(SOUND[sound]()))

    assert all(p_value < MARGIN * CHECK_RATE for p_value in p_values)


ORIGINALS = [
    pytest.param(check, sound, id=f"{check.name} of {sound}")
    for check, parts in CONTROLS.items()
    for sound in parts
    if sound not in REGISTERED
]


@pytest.mark.parametrize(("check", "sound"), ORIGINALS)
def test_original_passes(check, sound):
    check(SOUND[sound])


def test_quick_checks_of_a_kernel_do_not_see_a_bias():
    # why statistical checks are there at all
    hmc = SOUND["hmc"]
    for check in CHECKS["sampler"]:
        seen = check.level != "quick" or check is samplers.check_path_quantities
        if not seen and check.applies(hmc()):
            check(lambda: mu.KineticEnergyLeftOut(hmc()))
