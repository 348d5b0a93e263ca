"""Draws from models of PyMC are as good as those of its own sampler, also in tutorials."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import surrokit as sk
from means import least_p_value
from surrokit.testing import CHECK_RATE
from surrokit_pymc import from_pymc

pytestmark = [
    pytest.mark.long,
    pytest.mark.statistical,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* kept paths diverged"),
]


@pytest.fixture
def covariance(pymc):
    """Three correlated numbers, with a prior by Lewandowski, Kurowicka and Joe (2009)."""
    matrix = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, -0.3], [0.0, -0.3, 0.5]])
    data = np.random.default_rng(9).multivariate_normal([0.5, 0.0, -1.0], matrix, size=40)
    with pymc.Model() as model:
        mu = pymc.Normal("mu", 0.0, 2.0, shape=3)
        factor, _, _ = pymc.LKJCholeskyCov(
            "factor", n=3, eta=2.0, sd_dist=pymc.HalfNormal.dist(2.0, shape=3)
        )
        pymc.MvNormal("y", mu, chol=factor, observed=data)
    return model


@pytest.mark.parametrize("which", ["schools", "covariance"])
def test_means_are_those_of_pymcs_own_sampler(pymc, which, request):
    """Means and mean squares of all quantities; of right draws one in a million fails."""
    model = request.getfixturevalue(which)
    run = sk.sample(
        from_pymc(model),
        sampler=("nuts", {"target_acceptance": 0.95}),
        warmup=1000,
        draws=4000,
        seed=2,
        progress=False,
    )
    with model:
        theirs = pymc.sample(
            draws=4000,
            tune=1000,
            chains=4,
            cores=1,
            target_accept=0.95,
            random_seed=3,
            progressbar=False,
            compute_convergence_checks=False,
            nuts_sampler="pymc",
        )["posterior"]
    assert set(run.parameters.specs) == set(theirs.data_vars)
    for name in run.parameters.specs:
        assert run[name].shape == theirs[name].shape
    pairs = [(run[name], theirs[name].values) for name in run.parameters.specs]
    p, n = least_p_value(pairs, varies=run.parameters.varies)
    assert p * n > CHECK_RATE
    tree = run.to_arviz()["posterior"]
    assert {name: tree[name].dims for name in tree.data_vars} == {
        name: theirs[name].dims for name in theirs.data_vars
    }


@pytest.fixture
def _quiet_blas():
    import pytensor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may lack a BLAS, and says so once
        _ = pytensor.config.blas__ldflags


@pytest.mark.usefixtures("pymc", "_quiet_blas")
def test_the_schools_of_the_tutorial_run(run_example):
    names = run_example("pymc_schools.py")
    assert names["choate"].shape == (4, 1000)
    assert 2.5 < names["run"]["tau"].mean() < 4.5


@pytest.mark.usefixtures("bambi", "_quiet_blas")
def test_the_pupils_of_the_tutorial_run(run_example):
    names = run_example("bambi_pupils.py")
    assert 0.7 < names["run"]["hours"].mean() < 1.0
    predicted = names["tree"]["posterior"]["mu"].mean(("chain", "draw"))
    truth = 5.0 + 0.8 * np.array([2.0, 8.0]) + names["level"][[0, -1]]
    assert np.abs(predicted.values - truth).max() < 1.0
