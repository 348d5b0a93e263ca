"""Sizes and settings that cannot work, each with what to do about it."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit import arguments as settings
from surrokit.errors import ConfigurationError, SamplingWarning


class Unused:
    """A target that must not be evaluated."""

    dim = 2
    capabilities = frozenset({"gradient"})

    def value(self, positions):
        pytest.fail("the target was evaluated before the settings were checked")

    value_and_gradient = value


def hmc(name):
    return lambda value: {"sampler": ("hmc", {name: value})}


NUMBERS = [-1, 2.5, "3", True, np.nan]
REFUSED = [
    (lambda value: {"chains": value}, [*NUMBERS, 0, None], "chains must be a whole number of at"),
    (lambda value: {"warmup": value}, NUMBERS, "warmup must be a whole number of at least 0, got"),
    (lambda value: {"draws": value}, [*NUMBERS, 0], "draws must be a whole number of at least 1"),
    (
        hmc("step_size"),
        [0, 0.0, -0.1, np.nan, np.inf, "0.1", True, [0.1]],
        "step_size must be a positive finite number",
    ),
    (hmc("n_steps"), [*NUMBERS, 0], "n_steps must be a whole number of at least 1"),
    (
        hmc("target_acceptance"),
        [0, 1, -0.1, 1.5, np.nan, "0.8", True],
        "target_acceptance must be a number between 0 and 1",
    ),
    (lambda value: {"seed": value}, [-1, "a", 1.5], "seed must be a whole number of at least 0"),
    (
        lambda value: {"compute": value},
        [3, "processes", {"workers": 2}, sk.Compute, sk.Budget()],
        r"compute must be a surrokit.Compute\(...\), got .*; pass compute=sk.Compute\(workers",
    ),
    (
        lambda value: {"compute": sk.Compute(on_error=value)},
        ["ignore", None, True],
        "on_error must be 'reject', 'raise' or 'retry', got",
    ),
    (
        lambda value: {"surrogate": sk.batch_surrogate(lambda e, rng: None), "warmup": value},
        [1],
        "nothing is left to learn from; raise warmup",
    ),
]


@pytest.mark.parametrize(
    ("options", "value", "message"),
    [(options, value, message) for options, values, message in REFUSED for value in values],
)
def test_sizes_and_settings_are_refused_by_name_before_any_call(options, value, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.sample(Unused(), progress=False, **options(value))


def test_numpy_integers_are_whole_numbers_and_no_warm_up_warns():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=1)
    with pytest.warns(SamplingWarning, match="no warm-up to tune the step size in"):
        run = sk.sample(
            target, chains=np.int64(2), warmup=np.int32(0), draws=np.int8(3), seed=1, progress=False
        )
    assert run.draws.shape == (2, 3, 1)


class Named:
    name = "rate"


VALIDATORS = {
    settings.positive: (
        [1, 0.5, np.float64(2), np.int64(3)],
        [0, -1, np.inf, np.nan, True, "1", None],
    ),
    settings.optional_positive: ([None, 0.1], [0, -1, np.inf, True, "1"]),
    settings.not_negative: ([0, 0.0, 2], [-1e-9, np.inf, np.nan, False, None]),
    settings.fraction: ([0.5, 1e-9], [0, 1, 2, np.nan, True, None]),
    settings.positive_integer: ([1, np.int64(5)], [0, 1.0, -1, True, None, "1"]),
    settings.optional_positive_integer: ([None, 3], [0, 1.5, False]),
}


@pytest.mark.parametrize(
    ("validate", "good", "bad"),
    [(validate, *both) for validate, both in VALIDATORS.items()],
    ids=lambda x: getattr(x, "expected", ""),
)
def test_validators_take_what_is_good_and_refuse_the_rest_by_name(validate, good, bad):
    for value in good:
        assert validate(None, Named, value) is None
    for value in bad:
        with pytest.raises(ConfigurationError, match=r"rate must be .*, got"):
            validate(None, Named, value)
