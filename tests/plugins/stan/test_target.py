"""Models in Stan by a model with BridgeStan's face: names, values, starts and derivatives."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import cloudpickle
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from toy_stan import CONSTANT, ToyStan

import surrokit as sk
import surrokit_stan
from surrokit.errors import (
    ConfigurationError,
    EvaluationError,
    MissingDependencyError,
    SamplingWarning,
    TargetError,
)
from surrokit_stan import from_stan

QUICK = {"sampler": "hmc", "warmup": 60, "draws": 20, "chains": 2, "seed": 1, "progress": False}
START = {"rate": 2.0, "m": np.arange(6.0).reshape(2, 3)}


@pytest.fixture
def target():
    return from_stan(ToyStan())


@pytest.fixture
def z():
    return np.random.default_rng(3).normal(size=(4, 7))


def test_draws_come_back_by_stans_names(target):
    run = sk.sample(target, **QUICK)
    assert list(run.parameters.specs) == ["rate", "m", "twice", "one", "noise", "pair:2"]
    assert run["m"].shape == (2, 20, 2, 3)
    assert run.labels[:4] == ["rate", "m[1,1]", "m[1,2]", "m[1,3]"]
    assert_allclose(run["twice"][..., 1], 2.0 * run["m"][..., 0, 0], rtol=1e-12)
    assert "m[2,3]" in str(run.summary())


def test_matrices_are_read_column_by_column(target, z):
    reported = target.parameters.split(target.transform.to_bounded(z))
    assert_array_equal(reported["m"], z[:, 1:].reshape(4, 3, 2).transpose(0, 2, 1))
    assert_array_equal(target.transform.read(START, 2)[0, 1:], [0.0, 3.0, 1.0, 4.0, 2.0, 5.0])
    assert_allclose(target.transform.to_unbounded(target.transform.to_bounded(z)), z, atol=1e-12)


def test_the_density_is_the_models_with_all_its_constants(target, z):
    expected = np.exp(z[:, 0]) - z[:, 0] + 0.5 * np.square(z[:, 1:]).sum(axis=1) - CONSTANT
    assert_allclose(target.value(z), expected, rtol=1e-12)
    assert_array_equal(target.value_and_gradient(z)[0], target.value(z))


def test_derivatives_agree_with_differences(target, z):
    assert sk.check_gradient(target, target.transform.to_bounded(z)[0]).ok
    step, vectors = 1e-6, np.random.default_rng(1).normal(size=z.shape)
    ahead, behind = (target.value_and_gradient(z + sign * vectors)[1] for sign in (step, -step))
    assert_allclose(target.hessian_product(z, vectors), (ahead - behind) / (2 * step), atol=1e-7)
    product = np.einsum("nij,nj->ni", target.hessian(z), vectors)
    assert_allclose(target.hessian_product(z, vectors), product, rtol=1e-12)


def test_a_model_without_second_derivatives_offers_none(target):
    class Plain(ToyStan):
        log_density_hessian = None
        log_density_hessian_vector_product = None

    assert {"gradient", "hessian", "hessian-product"} == target.capabilities
    assert from_stan(Plain()).capabilities == {"gradient"}


def test_random_quantities_belong_to_their_draw(target, z):
    noise = target.parameters.split(target.transform.to_bounded(z))["noise"]
    assert_array_equal(target.transform.to_bounded(z[2:])[:, -2], noise[2:])
    assert len(set(noise.tolist())) == 4
    other = from_stan(ToyStan(), seed=1)
    assert other.transform.to_bounded(z)[0, -2] != noise[0]
    # of 2000 independent ones, a correlation beyond 0.11 has a probability of one in a million
    z = np.random.default_rng(4).normal(size=(2000, 7))
    noise = target.parameters.split(target.transform.to_bounded(z))["noise"]
    assert abs(noise.mean()) < 0.11
    assert abs(np.corrcoef(noise, z[:, 0])[0, 1]) < 0.11
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.11


def test_quantities_that_fail_are_nan_and_told(z):
    target = from_stan(ToyStan(broken=0.5))
    z = np.vstack([z] * 4 + [0.1 * z])
    with pytest.warns(SamplingWarning, match=r"cannot be computed at \d+ of 20 draws .* Scale"):
        reported = target.parameters.split(target.transform.to_bounded(z))
    assert 0 < np.isnan(reported["noise"]).sum() < 20
    assert_array_equal(np.isnan(reported["noise"]), np.isnan(reported["pair:2"][:, 0]))
    assert np.isfinite(reported["twice"]).all()


def test_constant_numbers_are_known_and_chains_start_where_they_are_told(target):
    varies = target.parameters.split(target.parameters.varies)
    assert not varies["one"]
    assert not varies["pair:2"].any()
    assert varies["rate"]
    assert varies["m"].all()
    z = target.transform.read(START, 2)
    reported = target.parameters.split(target.transform.to_bounded(z))
    assert_allclose(reported["m"][1], START["m"])
    with pytest.raises(TargetError, match=r"cannot take the initial values .* Lower bounded"):
        sk.sample(target, initial={**START, "rate": -1.0}, **QUICK)


def test_a_position_at_which_stan_raises_fails_alone(target, z):
    z[1, 1] = 2000.0
    with pytest.raises(EvaluationError, match=r"1 of 4 .* Random variable is too large") as caught:
        target.value_and_gradient(z)
    assert np.isfinite(caught.value.results[0][[0, 2, 3]]).all()


@pytest.mark.parametrize(("threads", "most"), [("false", 1), ("true", 4)])
def test_calls_take_turns_unless_stan_was_compiled_for_threads(threads, most):
    together, inside = threading.Barrier(most), []

    class Watched(ToyStan):
        def log_density(self, theta_unc, *, propto=True, jacobian=True):
            inside.append(1)
            together.wait(timeout=30.0)  # all four are here, or one alone
            time.sleep(0.01)
            seen.append(len(inside))
            inside.pop()
            return 0.0

    seen = []
    target = from_stan(Watched(f"STAN_THREADS={threads}"))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(target.value, np.zeros((4, 1, 7))))
    assert max(seen) == most


class Loaded(ToyStan):
    """As BridgeStan's model: it knows its file, and cannot be pickled."""

    def __init__(self, path, data, *, seed=1234, warn=True):
        super().__init__()
        self.lib_path, self.data, self.seed, self.warn = path, data, seed, warn

    def __reduce__(self):
        raise TypeError("ctypes objects containing pointers cannot be pickled")


def test_a_copy_elsewhere_loads_the_compiled_model(monkeypatch, z):
    bridgestan = pytest.importorskip("bridgestan", reason="BridgeStan is optional: tox -e adapters")
    monkeypatch.setattr(bridgestan, "StanModel", Loaded)
    target = from_stan(Loaded("/models/toy.so", '{"n": 3}', seed=5))
    copy = pickle.loads(cloudpickle.dumps(target))
    model = copy.inner.model.source.model.model
    assert (model.lib_path, model.data, model.seed) == ("/models/toy.so", '{"n": 3}', 5)
    assert not model.warn
    assert_array_equal(copy.value(z), target.value(z))
    assert_array_equal(copy.transform.to_bounded(z), target.transform.to_bounded(z))


class Nothing(ToyStan):
    def param_unc_num(self):
        return 0


@pytest.mark.parametrize(
    ("model", "more", "message"),
    [
        (Nothing(), {}, "no parameter, so there is nothing to draw"),
        (object(), {}, "must be a bridgestan.StanModel.* got object, which lacks param_unc_num"),
        (ToyStan(), {"data": {"n": 1}}, "has its data already"),
        (ToyStan(), {"seed": -1}, "seed must be a whole number"),
    ],
)
def test_what_is_no_model_is_refused(model, more, message):
    with pytest.raises(ConfigurationError, match=message):
        from_stan(model, **more)


def test_a_file_that_is_none_is_refused(tmp_path):
    pytest.importorskip("bridgestan", reason="BridgeStan is optional: tox -e adapters")
    with pytest.raises(ConfigurationError, match=r"BridgeStan cannot load .*none\.stan"):
        from_stan(tmp_path / "none.stan")
    (tmp_path / "broken.so").write_text("no library")
    with pytest.raises(ConfigurationError, match=r"BridgeStan cannot load .*broken\.so"):
        from_stan(str(tmp_path / "broken.so"))


# --- where BridgeStan is absent ---


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bridgestan", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[stan\]'"):
        surrokit_stan.from_stan("model.stan")
    with pytest.raises(AttributeError, match="from_cmdstan"):
        _ = surrokit_stan.from_cmdstan
