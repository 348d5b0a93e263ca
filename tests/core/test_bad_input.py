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


def refused(**options):
    return sk.sample(Unused(), **{"progress": False, **options})


@pytest.mark.parametrize(("name", "least"), [("chains", 1), ("warmup", 0), ("draws", 1)])
@pytest.mark.parametrize("value", [-1, 2.5, "3", True, np.nan])
def test_sizes_are_whole_numbers(name, least, value):
    message = f"{name} must be a whole number of at least {least}, got {value!r}"
    with pytest.raises(ConfigurationError, match=message):
        refused(**{name: value})


def test_chains_cannot_be_left_open():
    with pytest.raises(ConfigurationError, match="chains must be a whole number of at least 1"):
        refused(chains=None)


@pytest.mark.parametrize("name", ["chains", "draws"])
def test_sizes_are_not_zero(name):
    with pytest.raises(ConfigurationError, match=f"{name} must be a whole number of at least 1"):
        refused(**{name: 0})


def test_numpy_integers_are_whole_numbers():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=1)
    run = sk.sample(
        target, chains=np.int64(2), warmup=np.int32(20), draws=np.int8(3), seed=1, progress=False
    )
    assert run.draws.shape == (2, 3, 1)


@pytest.mark.parametrize("value", [0, 0.0, -0.1, np.nan, np.inf, "0.1", True, [0.1]])
def test_the_step_size_is_a_positive_number(value):
    with pytest.raises(ConfigurationError, match="step_size must be a positive finite number"):
        refused(sampler=("hmc", {"step_size": value}))


@pytest.mark.parametrize("value", [0, -1, 2.5, np.nan, "3", True])
def test_the_number_of_steps_is_a_positive_whole_number(value):
    with pytest.raises(ConfigurationError, match="n_steps must be a whole number of at least 1"):
        refused(sampler=("hmc", {"n_steps": value}))


@pytest.mark.parametrize("value", ["ignore", None, True])
def test_what_to_do_on_an_error_is_one_of_two(value):
    with pytest.raises(
        ConfigurationError, match="on_error must be 'reject', 'raise' or 'retry', got"
    ):
        sk.Compute(on_error=value)


@pytest.mark.parametrize("given", [3, "processes", {"workers": 2}, sk.Compute, sk.Budget()])
def test_how_calls_are_made_is_a_compute(given):
    message = r"compute must be a surrokit.Compute\(...\), got .*; pass compute=sk.Compute\(workers"
    with pytest.raises(ConfigurationError, match=message):
        refused(compute=given)


@pytest.mark.parametrize("seed", [-1, "a", 1.5])
def test_a_seed_is_a_whole_number_or_a_generator(seed):
    with pytest.raises(ConfigurationError, match="seed must be a whole number of at least 0"):
        refused(seed=seed)


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, np.nan, "0.8", True])
def test_the_target_acceptance_is_a_fraction(value):
    with pytest.raises(
        ConfigurationError, match="target_acceptance must be a number between 0 and 1"
    ):
        sk.make("sampler", "hmc", target_acceptance=value)


def test_a_tuned_run_without_warm_up_warns():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=1)
    with pytest.warns(SamplingWarning, match="no warm-up to tune the step size in"):
        sk.sample(target, warmup=0, draws=2, seed=1, progress=False)


def test_a_warm_up_too_short_to_explore_is_refused():
    surrogate = sk.batch_surrogate(lambda evaluations, rng: None)
    with pytest.raises(ConfigurationError, match="nothing is left to learn from; raise warmup"):
        refused(surrogate=surrogate, warmup=1)


# --- the validators themselves ---


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
    ("validate", "value"),
    [(v, value) for v, (good, _) in VALIDATORS.items() for value in good],
    ids=lambda x: getattr(x, "expected", getattr(x, "__name__", repr(x))),
)
def test_good_settings_pass(validate, value):
    assert validate(None, Named, value) is None


@pytest.mark.parametrize(
    ("validate", "value"),
    [(v, value) for v, (_, bad) in VALIDATORS.items() for value in bad],
    ids=lambda x: getattr(x, "expected", getattr(x, "__name__", repr(x))),
)
def test_bad_settings_are_refused_by_name(validate, value):
    with pytest.raises(ConfigurationError, match=r"rate must be .*, got"):
        validate(None, Named, value)
