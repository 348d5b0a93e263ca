"""Targets that are evaluated one position at a time."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit.capabilities import METHODS
from surrokit.errors import EvaluationError
from surrokit.testing.targets import Gaussian

Q = np.random.default_rng(0).standard_normal((5, 3))
SIZES = {"sampler": "hmc", "warmup": 50, "draws": 20, "seed": 1, "progress": False}


def rows(q):
    """U of rows, with a note of how many came."""
    SEEN.append(len(q))
    return np.sum(q**2, axis=1) / 2


SEEN: list[int] = []


def test_functions_of_rows_are_called_with_single_rows():
    target = sk.one_by_one(sk.potential(rows, lambda q: q, dim=3, batched=True))
    SEEN.clear()
    values, gradients = target.value_and_gradient(Q)
    assert SEEN == [1] * 5
    np.testing.assert_array_equal(gradients, Q)
    np.testing.assert_allclose(values, (Q**2).sum(axis=1) / 2, rtol=1e-15)


def test_bounds_and_differences_are_kept():
    names = {"a": (0, None), "b": None, "c": (0, 1)}
    whole = sk.potential(rows, "differences", parameters=names, batched=True)
    single = sk.one_by_one(whole)
    assert type(single) is type(whole)
    np.testing.assert_allclose(single.value(Q), whole.value(Q), rtol=1e-14)


def test_a_forward_map_of_rows():
    def build():
        return sk.forward_potential(
            lambda q: np.stack([q[:, 0] * q[:, 1], q[:, 2]], axis=1),
            vjp=lambda q, w: np.stack([w[:, 0] * q[:, 1], w[:, 0] * q[:, 0], w[:, 1]], axis=1),
            data=[1.0, 2.0],
            noise_sd=0.5,
            dim=3,
            batched=True,
        )

    single = sk.one_by_one(build())
    for name in ("forward_and_gradient", "value_and_gradient"):
        for one, other in zip(getattr(single, name)(Q), getattr(build(), name)(Q), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)


def test_every_method_of_a_potential():
    whole, single = Gaussian(), sk.one_by_one(Gaussian())
    q = Q[:, : whole.dim]
    factors = {"vectors": q, "matrices": q[:, :, None] * q[:, None, :]}
    tried = 0
    for method in METHODS:
        if method.capability is not None and method.capability not in whole.capabilities:
            continue
        more = () if method.factor is None else (factors[method.factor],)
        one, other = (getattr(p, method.name)(q, *more) for p in (single, whole))
        pairs = zip(one, other, strict=True) if isinstance(one, tuple) else [(one, other)]
        for a, b in pairs:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        tried += 1
    assert tried > 4


def test_what_is_single_already_stays():
    target = sk.potential(lambda q: q @ q, dim=3)
    assert sk.one_by_one(target) is target
    wrapped = sk.one_by_one(Gaussian())
    assert sk.one_by_one(wrapped) is wrapped


def test_calls_are_counted_as_ever():
    def target():
        return sk.potential(rows, lambda q: q, dim=3, batched=True)

    calls = [sk.sample(t, **SIZES).calls for t in (target(), sk.one_by_one(target()))]
    assert calls[0] == calls[1]
    calls = [sk.sample(t, **SIZES).calls for t in (Gaussian(), sk.one_by_one(Gaussian()))]
    assert calls[0] == calls[1]


def test_a_row_that_fails_is_told_by_its_own_exception():
    class Failing(Gaussian):
        def value(self, positions):
            if positions[0, 0] > 0:
                raise EvaluationError({0: ArithmeticError("no")}, (), n=1)
            return super().value(positions)

    q = np.array([[1.0, 0.0], [-1.0, 0.0]])
    with pytest.raises(EvaluationError) as caught:
        sk.one_by_one(Failing()).value(q)
    assert {row: str(cause) for row, cause in caught.value.causes.items()} == {0: "no"}
    assert np.isfinite(caught.value.results[0][1])


def test_no_rows():
    assert sk.one_by_one(Gaussian()).value(np.empty((0, 2))).shape == (0,)
