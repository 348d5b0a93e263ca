"""Regressions of Bambi: names, intercepts, predictions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit_pymc import from_bambi, from_pymc

pytestmark = [
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
    pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning"),  # runs are short
    pytest.mark.filterwarnings("ignore:For backward compatibility"),  # of pandas, to Bambi
]

QUICK = {"sampler": "hmc", "warmup": 60, "draws": 20, "chains": 2, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def table():
    pandas = pytest.importorskip("pandas", reason="Bambi brings pandas")
    rng = np.random.default_rng(1)
    columns = {
        "x": rng.normal(3.0, 1.0, size=60),
        "kind": rng.choice(["u", "v"], size=60),
        "group": rng.choice(["a", "b", "c"], size=60),
        "choice": rng.choice(["p", "q", "r"], size=60),
    }
    table = pandas.DataFrame(columns)
    table["y"] = 1.0 + 2.0 * table["x"] + 1.5 * (table["kind"] == "v") + rng.normal(size=60)
    return table


@pytest.fixture(scope="module")
def grouped(bambi, table):
    return bambi.Model("y ~ x + kind + (1|group)", table)


def test_draws_come_back_by_bambis_names(grouped):
    run = sk.sample(from_bambi(grouped), **QUICK)
    assert {"Intercept", "x", "kind[v]", "sigma", "1|group[a]"} < set(run.labels)
    assert "mu" not in run.parameters.specs
    assert run.to_arviz()["posterior"]["1|group"].dims[2:] == ("group__factor_dim",)


@pytest.mark.parametrize("which", ["grouped", "choice"])
def test_intercepts_are_those_of_predictors_as_they_are(bambi, table, request, which):
    """Bambi's own predictions from the draws are what the model itself computes."""
    if which == "grouped":
        model, response = request.getfixturevalue("grouped"), "mu"
    else:
        model, response = bambi.Model("choice ~ x + kind", table, family="categorical"), "p"
    target = from_bambi(model)
    tree = sk.sample(target, **QUICK).to_arviz()
    own = from_pymc(model.backend.model)
    z = target.transform.to_unbounded(_flat(tree, target))
    inside = own.parameters.split(own.transform.to_bounded(z))
    model.predict(tree, kind="response_params")
    predicted = tree["posterior"][response].values.reshape(inside[response].shape)
    assert_allclose(predicted, inside[response], rtol=1e-9)
    assert np.abs(inside["Intercept"] - _numbers(tree, "Intercept")).min() > 0.0
    model.predict(tree, kind="response")
    assert tree["posterior_predictive"].sizes["draw"] == 20


def _numbers(tree, name):
    array = tree["posterior"][name].values
    return array.reshape(-1, *array.shape[2:])


def _flat(tree, target):
    names = target.parameters.specs
    return np.hstack([_numbers(tree, name).reshape(40, -1) for name in names])


def test_chains_start_where_they_are_told(grouped):
    target = from_bambi(grouped)
    specs = target.parameters.specs
    start = {name: np.full(specs[name].shape, 0.5) for name in target.transform.own.specs}
    z = target.transform.read(start, 2)
    reported = target.parameters.split(target.transform.to_bounded(z))
    assert_allclose(reported["Intercept"], 0.5, rtol=1e-12)
    assert_allclose(reported["x"], 0.5, rtol=1e-12)


def test_predictors_that_are_not_centred_are_left_as_they_are(bambi, table):
    model = bambi.Model("y ~ x", table, center_predictors=False)
    target = from_bambi(model)
    own = from_pymc(model.backend.model, var_names=[])
    z = np.ones((1, target.dim))
    assert_array_equal(target.transform.to_bounded(z), own.transform.to_bounded(z))


def test_parameters_of_the_response_are_there_if_asked_for(grouped):
    made = sk.make("potential", "bambi", model=grouped, var_names=["mu"])
    assert made.parameters.specs["mu"].shape == (60,)
    with pytest.raises(ConfigurationError, match=r"must be a pymc\.Model, .* it to from_bambi"):
        from_pymc(grouped)
    with pytest.raises(ConfigurationError, match=r"must be a bambi\.Model, got object"):
        from_bambi(object())
