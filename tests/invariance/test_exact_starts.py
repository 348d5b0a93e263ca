"""Chains from exact draws of hard targets stay such, whatever sampler moves them, and on whatever.

Each item joins the comparisons of one sampler on one target, on the exact potential and on four
wrong surrogates. It raises a false alarm with a probability of at most ``CHECK_RATE``, and all of
them together with at most their number times that: less than 3e-4.
"""

import numpy as np
import pytest

from exact_starts.broken import CONTROLS
from exact_starts.densities import CASES
from exact_starts.trying import KERNELS, LONG, POTENTIALS, SHORT, settings, tried
from surrokit.registry.catalogue import default_catalogue
from surrokit.testing.samplers import LEAST_ACCEPTANCE
from surrokit.testing.statistics import CHECK_RATE, Verdict

MARGIN = 1e-3
"""A mutant's p-value is to be so many times below the threshold."""

pytestmark = pytest.mark.statistical

IN_SHORT = [kernel for kernel in KERNELS if not kernel.long]
SLOW = {("walnuts", "Neal's funnel"), ("walnuts", "a step in U")}
"""Where steps are halved many times."""


def named(things):
    return [pytest.param(thing, id=thing.name) for thing in things]


def check_kept(case, kernel, size):
    found = tried(case, kernel, size)
    assert found, f"{kernel.name} can move on nothing for {case.name}"
    stuck = [f"{one.potential}: {one.acceptance:.3f}" for one in found if not one.tells]
    assert not stuck, f"mean acceptance below {LEAST_ACCEPTANCE}, so nothing is tested: {stuck}"
    Verdict.join([one.verdict for one in found]).require("exact draws stay exact draws")


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        pytest.param(
            kernel,
            case,
            id=f"{kernel.name}-{case.name}",
            marks=[pytest.mark.long] if (kernel.name, case.name) in SLOW else [],
        )
        for kernel in IN_SHORT
        for case in CASES
    ],
)
def test_exact_starts(kernel, case):
    check_kept(case, kernel, SHORT)


@pytest.mark.long
@pytest.mark.parametrize("case", named(CASES))
@pytest.mark.parametrize("kernel", named(KERNELS))
def test_exact_starts_at_length(case, kernel):
    check_kept(case, kernel, LONG)


@pytest.mark.parametrize("control", named(CONTROLS))
def test_what_is_broken_is_seen(control):
    assert control.outcome(broken=True).verdict.p_value < MARGIN * CHECK_RATE
    assert not control.outcome(broken=False).verdict.rejected


def test_every_registered_sampler_moves_on_every_potential_that_it_can():
    registered = {
        entry.name
        for entry in default_catalogue()
        if entry.kind == "sampler" and entry.plugin.startswith("surrokit[")
    }
    assert {kernel.sampler for kernel in IN_SHORT} == registered
    normal = CASES[-1]
    for kernel in KERNELS:
        expected = {"gaussian": ("exact", "quadratic"), "random-walk": ("exact",)}
        by_gradients = POTENTIALS[:-1] if kernel.by_position else POTENTIALS
        moved_on = tuple(name for name, *_ in settings(normal, kernel))
        assert moved_on == expected.get(kernel.name, by_gradients)


@pytest.mark.parametrize("case", named(CASES))
def test_draws_and_potential_are_of_one_target(case, differences):
    normals = np.random.default_rng(8).standard_normal((200, 2))
    positions = case.transform.to_unbounded(case.density.from_normals(normals))
    np.testing.assert_allclose(case.to_normals(positions), normals, atol=1e-6)

    # the density of z is that of the normals times the Jacobian of the map
    exact = case.exact(frozenset())
    jacobian = np.linalg.slogdet(differences(case.to_normals, positions))[1]
    constant = exact.value(positions) - 0.5 * np.square(normals).sum(axis=1) + jacobian
    np.testing.assert_allclose(constant, np.median(constant), atol=2e-4)


def test_items_fit_in_the_rate_that_is_stated():
    items = len(CASES) * (len(IN_SHORT) + len(KERNELS)) + 2 * len(CONTROLS)

    assert items * CHECK_RATE < 3e-4
