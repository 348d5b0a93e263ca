"""Maps of models of other libraries, which report more than they sample."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.coordinates.models import ModelMap, Reported
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, LedgerError, ShapeError, TargetError

OWN = Parameters({"scale": Parameter(), "w": Parameter((2,))})
REPORTED = Parameters(
    {
        "scale": Reported(),
        "w": Reported((2,)),
        "scaled": Reported((2,)),
        "one": Reported(constant=(0,)),
    }
)
QUICK = {"sampler": "hmc", "warmup": 80, "draws": 30, "chains": 2, "seed": 1, "progress": False}


def constrain(z):
    scale = np.exp(z[:, :1])
    return np.hstack([scale, z[:, 1:], scale * z[:, 1:], np.ones_like(scale)])


def unconstrain(arrays):
    with np.errstate(invalid="ignore"):
        return np.hstack([np.log(arrays["scale"])[:, None], arrays["w"]])


@attrs.frozen(eq=False)
class Model:
    """A standard normal density on the line."""

    parameters = REPORTED
    transform = ModelMap(reported=REPORTED, own=OWN, constrain=constrain, unconstrain=unconstrain)
    dim = 3
    capabilities = frozenset({"gradient"})

    def value(self, positions):
        return 0.5 * np.square(positions).sum(axis=1)

    def value_and_gradient(self, positions):
        return self.value(positions), positions.copy()


START = {"scale": 2.0, "w": [0.5, -0.5]}


def test_draws_are_all_that_the_model_reports():
    run = sk.sample(Model(), **QUICK)
    assert run.draws.shape == (2, 30, 6)
    assert_allclose(run["scaled"], run["scale"][..., None] * run["w"])
    assert run.labels == ["scale", "w[0]", "w[1]", "scaled[0]", "scaled[1]", "one"]


def test_constant_numbers_are_none_that_do_not_mix():
    run = sk.sample(Model(), **QUICK | {"draws": 300})
    assert_array_equal(run.parameters.varies, [True] * 5 + [False])
    assert_array_equal(run.kept.transform.varies, run.parameters.varies)
    assert not any("one" in finding.message for finding in run.verdict.findings)


@pytest.mark.parametrize("chains", [1, 3])
def test_starts_are_read_by_name(chains):
    each = {name: np.stack([np.asarray(array)] * chains) for name, array in START.items()}
    for given in (START, each):
        z = Model.transform.read(given, chains)
        assert_allclose(z, np.tile([np.log(2.0), 0.5, -0.5], (chains, 1)))


def test_reported_positions_lead_back():
    z = np.array([[0.1, 0.2, 0.3], [1.0, -1.0, 0.5]])
    assert_allclose(Model.transform.to_unbounded(Model.transform.to_bounded(z)), z)
    assert Model.transform.to_bounded(z[0]).shape == (6,)


@pytest.mark.parametrize(
    ("initial", "error", "message"),
    [
        ({"scale": 1.0}, ShapeError, "by name, for scale, w and for nothing .* got scale"),
        ({**START, "one": 1.0}, ShapeError, "nothing that follows from them"),
        ([0.0, 0.0, 0.0], ShapeError, "got a list"),
        ({}, ShapeError, "got none"),
        ({**START, "w": [1.0, 2.0, 3.0]}, ShapeError, r"'w' must have shape \(2,\) for all chains"),
        ({**START, "w": "text"}, ShapeError, "'w' must be numbers"),
        ({**START, "scale": -1.0}, TargetError, "'scale' in chain 0 is outside the support"),
    ],
)
def test_starts_that_are_none_are_refused(initial, error, message):
    with pytest.raises(error, match=message):
        sk.sample(Model(), initial=initial, **QUICK)


def test_a_library_that_refuses_a_start_is_heard():
    def refuse(arrays):
        raise KeyError("no such site")

    refusing = attrs.evolve(Model.transform, unconstrain=refuse)
    with pytest.raises(TargetError, match="cannot take the initial values of scale, w: KeyError"):
        refusing.read(START, 1)


def test_evaluations_in_the_users_coordinates_are_refused():
    with pytest.raises(ConfigurationError, match="adds its Jacobian by itself"):
        sk.sample(Model(), evaluations=(constrain(np.zeros((4, 3))), np.zeros(4)), **QUICK)
    for method in (Model.transform.log_jacobian_gradient, Model.transform.log_jacobian):
        with pytest.raises(ConfigurationError, match="adds its Jacobian by itself"):
            method(np.zeros((1, 3)))
    with pytest.raises(ConfigurationError, match="adds its Jacobian by itself"):
        Model.transform.vjp(np.zeros((1, 3)), np.zeros((1, 6)))


def test_messages_name_all_that_is_reported():
    class Broken(Model):
        def value_and_gradient(self, positions):
            return self.value(positions), positions * [1.0, np.nan, 1.0]

    with pytest.raises(TargetError, match=r"scale = 2, w\[0\] = 0.5, .* scaled\[1\] = -1, one = 1"):
        sk.sample(Broken(), initial=START, **QUICK)


def test_a_gradient_is_checked_on_the_line():
    check = sk.check_gradient(Model(), constrain(np.array([[0.1, 0.2, 0.3]]))[0])
    assert check.ok
    assert check.labels == ["scale.unconstrained", "w.unconstrained[0]", "w.unconstrained[1]"]


def test_a_file_goes_on_with_the_model_and_is_the_lines_without(tmp_path):
    path = tmp_path / "run.surrokit"
    run = sk.sample(Model(), path=path, **QUICK)
    more = sk.resume(path, Model(), draws=40, progress=False)
    assert_array_equal(more["scaled"][:, :30], run["scaled"])
    opened = sk.open_run(path)
    assert list(opened.parameters.specs) == ["scale.unconstrained", "w.unconstrained"]
    assert_allclose(np.exp(opened["scale.unconstrained"]), more["scale"])
    with sk.Ledger(path) as ledger:
        assert ledger.to_arrays()["positions"].shape[1] == 3
    again = sk.sample(Model(), path=tmp_path / "b.surrokit", warm_start=path, **QUICK)
    assert again["scaled"].shape == (2, 30, 2)


@pytest.mark.long
def test_weighted_answers_are_read_with_the_model_alone(tmp_path):
    path = tmp_path / "run.surrokit"
    settings = {"correction": "weights", "max_calls": 300, "seed": 1, "progress": False}
    run = sk.sample(Model(), path=path, **settings)
    assert not run.exact
    message = r"weighted answers of a model .*surrokit\.resume\(path, target\)"
    with pytest.raises(LedgerError, match=message):
        sk.open_run(path)
    assert_array_equal(sk.resume(path, Model(), progress=False).draws, run.draws)
