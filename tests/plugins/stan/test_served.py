"""Models that Stan has compiled: names, densities and draws as its own."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import stan_programs as programs
from numpy.testing import assert_allclose, assert_array_equal
from served_stan import ServedStan

import surrokit as sk
from surrokit_stan import from_stan

pytestmark = [
    pytest.mark.long,  # Stan's compiler takes a minute for each program
    pytest.mark.filterwarnings("ignore:.* kept paths diverged"),
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
]

MODELS = {
    "schools": (
        programs.SCHOOLS,
        programs.SCHOOLS_DATA,
        ["mu", "tau", *[f"eta.{i}" for i in range(1, 9)]],
    ),
    "covariance": (
        programs.COVARIANCE,
        programs.covariance_data(),
        [
            *[f"{name}.{i}" for name in ("mu", "factor", "sd") for i in (1, 2, 3)],
            *[f"{name}.{i}" for name in ("parts", "cuts") for i in (1, 2)],
        ],
    ),
}


@pytest.fixture(scope="session", autouse=True)
def _compiler(tmp_path_factory):
    pytest.importorskip("httpstan", reason="httpstan is optional: tox -e adapters")


@pytest.fixture(params=sorted(MODELS))
def served(request):
    return ServedStan(*MODELS[request.param])


def test_positions_come_back_from_what_is_reported(served):
    target = from_stan(served)
    z = 0.5 * np.random.default_rng(1).normal(size=(5, target.dim))
    reported = target.transform.to_bounded(z)
    assert_allclose(target.transform.to_unbounded(reported), z, atol=1e-8)
    assert sk.check_gradient(target, reported[0]).ok


def test_arrays_have_stans_shapes():
    target = from_stan(ServedStan(*MODELS["covariance"]))
    shapes = {name: spec.shape for name, spec in target.parameters.specs.items()}
    assert shapes["covariance"] == shapes["factor"] == (3, 3)
    assert shapes["parts"] == (3,)
    z = 0.5 * np.random.default_rng(1).normal(size=(5, target.dim))
    reported = target.parameters.split(target.transform.to_bounded(z))
    scale = reported["sd"][:, :, None] * reported["factor"]
    assert_allclose(reported["scale"], scale, rtol=1e-10)
    assert_array_equal(np.triu(reported["factor"], 1), 0.0)
    assert_allclose(reported["covariance"], scale @ scale.transpose(0, 2, 1), rtol=1e-10)
    varies = target.parameters.split(target.parameters.varies)
    assert varies["factor"].tolist() == [[False] * 3, [True, True, False], [True] * 3]


def test_generated_tables_are_read_by_row_and_column_and_copies_are_the_same():
    target = from_stan(ServedStan(*MODELS["schools"]))
    table = target.parameters.split(target.transform.to_bounded(np.zeros((1, 10))))["table"][0]
    assert table.tolist() == [[11.0, 12.0, 13.0], [21.0, 22.0, 23.0]]
    copy, z = pickle.loads(pickle.dumps(target)), np.ones((2, 10))
    assert_array_equal(copy.value_and_gradient(z)[1], target.value_and_gradient(z)[1])


def test_the_schools_of_the_tutorial_run(run_example, monkeypatch):
    """With a model that httpstan compiles in its place."""
    bridgestan = pytest.importorskip("bridgestan", reason="BridgeStan is optional: tox -e adapters")

    def load(path, data):
        program = Path(path).read_text(encoding="utf-8")
        return ServedStan(program, data, MODELS["schools"][2])

    monkeypatch.setattr(bridgestan, "StanModel", load)
    run = run_example("stan_schools.py")["run"]
    assert run["again"].shape == (4, 1000, 8)
    assert 2.5 < run["tau"].mean() < 4.5
    assert np.isfinite(run.draws).all()
