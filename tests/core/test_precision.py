"""Targets in single precision: not told from double precision by type, and not called wrong."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import GradientWarning
from surrokit.targets.precision import Precision, single_precision_of

AT = np.array([1.3, -0.7])
HINT = r"seem to be in single precision \(float32\).*jax_enable_x64.*and check again"


def single(q):
    """A right potential of some size, computed as JAX does unless told otherwise."""
    q = np.asarray(q, dtype=np.float32)
    return np.float32(3e4) + np.float32(0.5) * (q @ q)


def single_gradient(q):
    return np.asarray(q, dtype=np.float32)


def double(q):
    return 3e4 + 0.5 * (q @ q)


def double_gradient(q):
    return np.asarray(q)


def as_python_number(q):
    return float(single(q))


FUNCTIONS = [(single, single_gradient), (as_python_number, single_gradient)]


@pytest.mark.parametrize(("value", "gradient"), FUNCTIONS)
@pytest.mark.parametrize("options", [{"dim": 2}, {"parameters": {"a": (-5, 5), "b": None}}])
def test_a_gradient_that_looks_wrong_in_single_precision_has_a_hint(value, gradient, options):
    check = sk.check_gradient(sk.potential(value, gradient, **options), AT)
    assert not check.ok
    assert check.single == {"value", "gradient"}
    assert str(check).splitlines()[-1].startswith("value and gradient seem to be in single")


def test_a_log_density_is_looked_at_too():
    target = sk.potential(
        log_density=lambda q: -single(q), gradient=lambda q: -double_gradient(q), dim=2
    )
    assert sk.check_gradient(target, AT).single == {"value"}


def test_value_and_gradient_in_one_function_are_looked_at_too():
    target = sk.potential(value_and_gradient=lambda q: (single(q), single_gradient(q)), dim=2)
    assert sk.check_gradient(target, AT).single == {"value", "gradient"}


def test_a_forward_map_is_looked_at_too():
    target = sk.forward_potential(
        lambda q: np.float32(300) + np.asarray(q, dtype=np.float32),
        lambda q: np.eye(2, dtype=np.float32) * np.float32(1.1),
        data=[300.0, 300.0],
        noise_sd=0.001,
        dim=2,
    )
    check = sk.check_gradient(target, AT)
    assert not check.ok
    assert check.single == {"forward", "jacobian"}


def test_a_potential_of_ones_own_is_looked_at_too():
    class Own:
        dim, capabilities = 2, frozenset({"gradient"})

        def value(self, q):
            return np.float32(3e4) + 0.5 * np.square(q.astype(np.float32)).sum(axis=1)

        def value_and_gradient(self, q):
            return self.value(q), q

    assert sk.check_gradient(Own(), AT).single == {"value"}


def test_in_double_precision_there_is_no_hint():
    check = sk.check_gradient(sk.potential(double, lambda q: -q, dim=2), AT)
    assert not check.ok
    assert check.single == frozenset()
    assert "precision" not in str(check)


def test_where_all_agrees_there_is_no_hint():
    def small(q):
        return np.float32(0.5) * np.float32(q @ q)

    check = sk.check_gradient(sk.potential(small, single_gradient, dim=2), [0.01, 0.02])
    assert check.ok
    assert check.single == {"value", "gradient"}
    assert "precision" not in str(check)


def test_a_constant_is_not_taken_for_single_precision():
    flat = sk.potential(lambda q: 0.0, lambda q: q, dim=2)
    assert sk.check_gradient(flat, AT).single <= {"gradient"}


@pytest.mark.parametrize(("value", "gradient"), FUNCTIONS)
def test_a_run_that_warns_of_the_gradient_has_the_hint(value, gradient):
    def steep(q):
        return np.float32(1e7) + value(q)

    with pytest.warns(GradientWarning, match=HINT):
        sk.sample(
            sk.potential(steep, gradient, dim=2), sampler="hmc", initial=AT, warmup=20, draws=2,
            seed=1, progress=False,
        )  # fmt: skip


def test_a_run_with_a_wrong_gradient_has_none():
    with pytest.warns(GradientWarning, match=r"check_gradient\(target, position\)$"):
        sk.sample(
            sk.potential(double, lambda q: -q, dim=2), sampler="hmc", initial=AT, warmup=20,
            draws=2, seed=1, progress=False,
        )  # fmt: skip


def test_a_round_gradient_is_not_taken_for_single_precision():
    target = sk.potential(lambda q: 0.5 * (q @ q), lambda q: 2 * q, dim=2)
    check = sk.check_gradient(target, [1.0, 2.0])
    assert not check.ok
    assert check.single == frozenset()


# --- what is noted ---


def test_one_number_of_double_precision_is_enough():
    noted = Precision()
    noted.double("value", 0.5)
    noted.double("value", np.float32(0.1))
    assert noted.single == {"value"}
    noted.double("value", 0.1)
    noted.double("value", 0.5)
    assert noted.single == frozenset()


@pytest.mark.parametrize("nothing", [np.nan, np.inf, 0.0, []])
def test_numbers_without_digits_say_nothing(nothing):
    noted = Precision()
    noted.double("value", nothing)
    assert noted.single == frozenset()


def test_what_is_beyond_single_precision_is_double():
    noted = Precision()
    noted.double("value", 1e300)
    assert noted.single == frozenset()


def test_it_is_found_through_wrappers():
    target = sk.potential(single, dim=2)
    target.value(AT[None])
    assert single_precision_of(target) == {"value"}
    assert single_precision_of(object()) == frozenset()
