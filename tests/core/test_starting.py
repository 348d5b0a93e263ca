"""Where chains start, and what is said when they cannot."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ShapeError, TargetError
from surrokit.mode.starts import (
    ATTEMPTS,
    draw_positions,
    given_positions,
    reach_of,
    spread_positions,
)

ONE = {"chains": 3, "warmup": 0, "draws": 1, "seed": 1, "progress": False}
STILL = {**ONE, "sampler": ("random-walk", {"step_size": 1e-9})}
"""A run whose draws are its starts."""


def target(**options):
    return sk.potential(
        lambda q: 0.5 * np.square(np.log(q[0])) + 0.5 * q[1] ** 2,
        parameters={"rate": (0, None), "slope": None},
        **options,
    )


def starts(exact, initial=None, **options):
    return sk.sample(exact, initial=initial, **STILL, **options).draws[:, 0]


OWN = [[1.0, 0.0], [2.0, 1.0], [3.0, 2.0]]


@pytest.mark.parametrize(
    ("initial", "expected"),
    [
        ([2.0, 0.5], [[2.0, 0.5]] * 3),
        (OWN, OWN),
        ({"slope": 0.5, "rate": 2.0}, [[2.0, 0.5]] * 3),
        ({"rate": [1.0, 2.0, 3.0], "slope": [0.0, 1.0, 2.0]}, OWN),
        ({"rate": [1.0, 2.0, 3.0], "slope": 0.5}, [[1.0, 0.5], [2.0, 0.5], [3.0, 0.5]]),
    ],
)
def test_positions_are_of_all_chains_or_of_each_and_may_be_given_by_name(initial, expected):
    assert_allclose(starts(target(), initial), expected, rtol=1e-6, atol=1e-6)
    on_the_line = np.array(expected)
    on_the_line[:, 0] = np.log(on_the_line[:, 0])
    assert_allclose(given_positions(initial, target(), 3), on_the_line)


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 2), (3, 3), (1, 3, 2), ()])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ShapeError, match=r"shape \(2,\) for all chains or \(3, 2\) for each, got"):
        given_positions(np.ones(shape), target(), 3)


@pytest.mark.parametrize("initial", ["ab", [["x", "y"]], {"rate": "x", "slope": 1.0}])
def test_what_is_no_number_is_refused(initial):
    with pytest.raises(ShapeError, match=r"initial|numbers|rate"):
        given_positions(initial, target(), 3)


def test_unknown_names_are_refused():
    with pytest.raises(ShapeError, match="must be given for rate, slope, got rate, slop"):
        given_positions({"rate": 1.0, "slop": 1.0}, target(), 3)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_a_number_outside_its_bounds_is_named(bad):
    initial = [[1.0, 0.0], [bad, 0.0], [1.0, 0.0]]
    message = r"'rate' in chain 1 is .*; it must be finite strictly between 0 and inf"
    with pytest.raises(TargetError, match=message):
        given_positions(initial, target(), 3)


@pytest.mark.parametrize("bad", [1.0, 2.0])
def test_a_number_on_or_above_its_upper_bound_is_named(bad):
    below = sk.potential(lambda q: q @ q, parameters={"share": (0, 1)})
    message = rf"'share' in chain 0 is {bad}; it must be finite strictly between 0 and 1"
    with pytest.raises(TargetError, match=message):
        given_positions([bad], below, 2)


def test_a_number_that_is_not_finite_is_named_without_bounds():
    free = sk.potential(lambda q: q @ q, dim=2)
    with pytest.raises(TargetError, match=r"'q\[1\]' in chain 0 is nan; it must be finite$"):
        given_positions([0.0, np.nan], free, 1)


def test_bad_starts_cost_no_exact_call():
    calls = []
    exact = sk.potential(lambda q: calls.append(1) or 0.0, parameters={"rate": (0, None)})
    with pytest.raises(TargetError):
        sk.sample(exact, initial=[-1.0], **STILL)
    assert not calls


# --- a target that is not finite at the start ---


def nowhere(q):
    return np.inf


@pytest.mark.parametrize(
    ("declared", "initial", "said"),
    [
        ({"parameters": {"rate": (0, None)}}, [2.0], r"chain 0 \(rate = 2\)"),
        ({"dim": 1}, [[0.0], [0.5], [3.0]], r"chain 2 \(q\[0\] = 3\)"),
    ],
)
def test_a_start_outside_the_support_is_refused_with_its_numbers(declared, initial, said):
    exact = sk.potential(lambda q: np.inf if q[0] > 1 else 0.0, **declared)
    with pytest.raises(TargetError, match=f"potential inf at the start of {said}"):
        sk.sample(exact, initial=initial, **STILL)


def test_a_gradient_that_is_not_finite_is_named():
    exact = sk.potential(
        lambda q: 0.5 * q @ q, lambda q: np.array([q[0], np.nan]), parameters={"a": None, "b": None}
    )
    sampler = ("hmc", {"step_size": 1e-9, "n_steps": 1, "metric": "identity"})
    with pytest.raises(TargetError, match=r"gradient is not finite in b at the start of chain 0"):
        sk.sample(exact, sampler=sampler, initial=[1.0, 2.0], **ONE)


@pytest.mark.parametrize("surrogate", [None, "additive"])
def test_a_target_that_is_nowhere_finite_is_given_up(surrogate):
    options = {**ONE, "warmup": 20}
    exact = sk.potential(nowhere, lambda q: q, dim=1)
    with pytest.raises(TargetError, match=f"no start was found in {ATTEMPTS} attempts") as caught:
        sk.sample(exact, surrogate=surrogate, **options)
    assert "pass initial=..." in str(caught.value)


def test_a_target_that_always_raises_is_given_up():
    def broken(q):
        raise ValueError("broken")

    with pytest.raises(TargetError, match=r"no start was found.*broken"):
        sk.sample(sk.potential(broken, dim=1), **STILL)


def test_only_chains_without_a_start_draw_again():
    seen = []

    def positive_only(q):
        seen.append(q[0])
        return 0.0 if q[0] > 0 else np.inf

    found = starts(sk.potential(positive_only, dim=1))
    assert (found > 0).all()
    first = np.array(seen[:3])
    assert (first < 0).any()
    assert_allclose(found[first > 0, 0], first[first > 0], atol=1e-6)


# --- drawn starts ---


def test_starts_are_uniform_on_the_whole_line(rng):
    positions = draw_positions(target(), rng, 2000)
    assert positions.shape == (2000, 2)
    assert abs(positions).max() <= 2.0
    assert abs(positions).max(axis=0).min() > 1.9
    assert_allclose(positions.std(axis=0), 4 / np.sqrt(12), rtol=0.05)


def test_a_target_may_draw_its_own_starts():
    class Own:
        dim = 1
        capabilities = frozenset({"initial"})

        def value(self, q):
            return np.where(np.abs(q[:, 0] - 50) < 1, 0.0, np.inf)

        def initial(self, rng, n):
            return np.full((n, 1), 50.0)

    assert_array_equal(np.round(starts(Own())), 50.0)


def test_starts_depend_on_the_seed_only():
    assert_array_equal(starts(target()), starts(target()))


# --- spread more widely ---


def test_widely_spread_positions_come_in_mirrored_pairs_on_several_scales():
    exact = sk.potential(lambda q: 0.0, parameters={"a": None, "b": (0, None), "p": (2, 3)})
    found = spread_positions(RecordingPotential(exact, keep=False), np.random.default_rng(1), 4000)
    assert_array_equal(found[::2], -found[1::2])
    for scale, rows in ((4.0, found[::4]), (8.0, found[2::4])):
        assert 0.95 * scale < np.abs(rows[:, :2]).max() <= scale
    between = ndtr(found[:, 2])
    assert_allclose(np.quantile(between, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.03)


def test_where_a_mode_lies_beyond_all_starts_others_are_looked_for_as_far_away():
    exact = sk.potential(lambda q: 0.0, parameters={"a": None, "b": None, "p": (2, 3)})
    starts = np.zeros((4, 3))
    near, far = np.array([[4.0, 1.0, 9.0], [-30.0, 0.0, 9.0]])  # p lies between its bounds
    assert reach_of(exact, starts, near[None]) is None
    reach = reach_of(exact, starts, np.array([near, far]))
    assert_allclose(reach, [45.0, 8.0, 8.0])
    found = np.abs(spread_positions(exact, np.random.default_rng(1), 400, starts, reach))
    assert np.all(found[:, :2].max(axis=0) > 0.9 * reach[:2])
    assert np.all(found[:, :2] <= reach[:2])
    own = np.array([[30.0, 28.0, 28.0]])
    assert reach_of(exact, starts + 28.0, own) is None  # the user's own


def test_a_target_that_draws_its_own_starts_has_them_spread_about_their_mean():
    exact = sk.make("potential", "lynx-hare")
    found = spread_positions(exact, np.random.default_rng(1), 200)
    own = exact.initial(np.random.default_rng(2), 2000)
    assert_allclose(found.mean(axis=0), own.mean(axis=0), rtol=0.05)
    assert_allclose(found[::4].std(axis=0), own.std(axis=0), rtol=0.5)
    assert_allclose(found[2::4].std(axis=0), 2.0 * own.std(axis=0), rtol=0.5)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_there_are_so_many_of_them(n):
    assert spread_positions(target(), np.random.default_rng(1), n).shape == (n, 2)


@pytest.mark.filterwarnings("ignore:the target raised")
@pytest.mark.parametrize("sampler", ["hmc", None])
def test_what_the_target_raised_at_every_start_is_in_the_message(sampler):
    def mismatched(q):
        return float(q @ np.ones(3))

    target = sk.potential(mismatched, lambda q: q, dim=2)
    with pytest.raises(TargetError, match=r"at the start .* \(it raised ValueError: .* mismatch"):
        sk.sample(target, sampler=sampler, seed=1, progress=False)
