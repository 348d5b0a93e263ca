"""Models of NumPyro: names, values, starts, and draws as good as its own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit_jax import from_numpyro

QUICK = {"sampler": "hmc", "warmup": 60, "draws": 20, "chains": 2, "seed": 1, "progress": False}
START = {"mu": 1.0, "tau": 2.0, "eta": np.linspace(-1.0, 1.0, 8)}


@pytest.fixture
def target(schools):
    model, errors, effects = schools
    return from_numpyro(model, errors, effects=effects)


def test_draws_come_back_by_the_names_of_sites(target):
    run = sk.sample(target, **QUICK)
    assert list(run.observed_data) == ["effects"]
    assert list(run.parameters.specs) == ["mu", "tau", "eta", "theta"]
    assert run["tau"].shape == (2, 20)
    assert (run["tau"] > 0.0).all()
    theta = run["mu"][..., None] + run["tau"][..., None] * run["eta"]
    assert_allclose(run["theta"], theta, rtol=1e-12)
    check = sk.check_gradient(target, run.draws[0, 0])
    assert check.ok
    assert check.labels[:3] == ["mu.unconstrained", "tau.unconstrained", "eta.unconstrained[0]"]


def test_the_density_is_the_models_at_the_starts_that_it_reads(target, schools, numpyro):
    model, errors, effects = schools
    z = target.transform.read(START, 2)
    reported = target.parameters.split(target.transform.to_bounded(z))
    for name, array in START.items():
        assert_allclose(reported[name], np.broadcast_to(array, reported[name].shape), rtol=1e-12)
    of_model, _ = numpyro.infer.util.log_density(model, (errors,), {"effects": effects}, START)
    assert_allclose(target.value(z), -(of_model + np.log(2.0)), rtol=1e-12)


def test_log_likelihoods_and_priors_are_those_of_its_sites(target, schools, numpyro):
    model, errors, effects = schools
    run = sk.sample(target, **QUICK)
    draws = run.draws.reshape(-1, run.draws.shape[2])
    likelihood, priors = run.pointwise(None, draws)
    sites = {name: run[name].reshape(40, *run[name].shape[2:]) for name in ("mu", "tau", "eta")}
    own = numpyro.infer.log_likelihood(model, sites, errors, effects=effects)
    assert_allclose(likelihood["effects"], own["effects"], rtol=1e-12)
    for i in (0, 39):
        one = {name: array[i] for name, array in sites.items()}
        log, _ = numpyro.infer.util.log_density(model, (errors,), {"effects": effects}, one)
        total = likelihood["effects"][i].sum() + sum(each[i] for each in priors.values())
        assert_allclose(total, log, rtol=1e-12)
    assert list(priors) == ["mu", "tau", "eta"]


def test_supports_may_depend_on_other_sites_and_numbers_may_be_constant(numpyro):
    """The Cholesky factor of a correlation matrix has zeros, which no chain can mix."""
    dist = numpyro.distributions

    def model():
        top = numpyro.sample("top", dist.Gamma(3.0, 1.0))
        numpyro.sample("low", dist.Uniform(0.0, top))
        numpyro.sample("parts", dist.Dirichlet(np.ones(3)))
        numpyro.sample("factor", dist.LKJCholesky(2, 1.0))

    target = from_numpyro(model)
    assert target.dim == 5
    factor = [[1.0, 0.0], [0.6, 0.8]]
    start = {"top": 2.0, "low": 1.5, "parts": [0.2, 0.3, 0.5], "factor": factor}
    z = target.transform.read(start, 1)
    expected = [2.0, 1.5, 0.2, 0.3, 0.5, *np.ravel(factor)]
    assert_allclose(target.transform.to_bounded(z)[0], expected, rtol=1e-12)
    assert target.parameters.varies.tolist() == [*[True] * 5, False, False, True, True]
    run = sk.sample(target, **QUICK)
    assert run["low"].shape == (2, 20)
    assert "factor[0,1]" not in str(run.verdict)


def test_models_that_are_no_densities_are_refused(numpyro, schools):
    normal = numpyro.distributions.Normal

    def without_latent_sites():
        numpyro.sample("y", normal(0.0, 1.0), obs=1.0)

    def of_some_rows():
        mu = numpyro.sample("mu", normal(0.0, 1.0))
        with numpyro.plate("rows", 10, subsample_size=3):
            numpyro.sample("y", normal(mu, 1.0), obs=np.zeros(3))

    def broken():
        raise ValueError("no such data")

    for model, message in (
        (without_latent_sites, "no latent site"),
        (of_some_rows, "plate 'rows' takes 3 of 10 rows at random"),
        (broken, r"NumPyro cannot make .* no such data"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            from_numpyro(model)
    given = {"model": schools[0], "args": (schools[1],), "kwargs": {"effects": schools[2]}}
    assert sk.make("potential", "numpyro", **given).dim == 10


@pytest.mark.long
def test_the_schools_of_the_tutorial_run(numpyro, run_example):
    names = run_example("numpyro_schools.py")
    assert names["drawn"]["effects"].shape == (4000, 8)
    assert np.isfinite(names["drawn"]["effects"]).all()
