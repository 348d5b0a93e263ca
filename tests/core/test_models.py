"""Maps of models of other libraries, which report more than they sample."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.coordinates.models import Axis, ModelMap, Reported
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, LedgerError, ShapeError, TargetError
from surrokit.mode.starts import draw_positions
from surrokit.targets.forward import ModelledPotential

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
        sk.sample(Model(), warm_start=(constrain(np.zeros((4, 3))), np.zeros(4)), **QUICK)
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


NAMED = Parameters(
    {
        "scale": Reported(),
        "w": Reported((2,), axes=(Axis("side", ("left", "right")),)),
        "scaled": Reported((2,), axes=(Axis(labels=(1, 2)),)),
        "one": Reported(constant=(0,)),
    }
)
NAMED_MAP = attrs.evolve(Model.transform, reported=NAMED)


def test_labels_are_those_of_axes():
    assert NAMED.labels == ["scale", "w[left]", "w[right]", "scaled[1]", "scaled[2]", "one"]
    table = Reported((2, 3), axes=(Axis("row", ("a", "b")), Axis("column")))
    assert table.indices == ["a,0", "a,1", "a,2", "b,0", "b,1", "b,2"]


def test_labels_that_would_be_the_same_are_places():
    assert Reported((2,), axes=(Axis("side", ("left", "left")),)).indices == ["0", "1"]
    assert Reported((2,), axes=(Axis("side", (1, "1")),)).indices == ["0", "1"]


def test_as_many_axes_as_the_array_has():
    with pytest.raises(ConfigurationError, match=r"shape \(2,\) needs as many axes, got 2"):
        Reported((2,), axes=(Axis(), Axis()))


def test_arviz_has_names_and_coordinates_of_axes():
    pytest.importorskip("arviz_base", reason="ArviZ is optional")
    posterior = sk.sample(ModelledPotential(Model(), NAMED_MAP), **QUICK).to_arviz()["posterior"]
    assert posterior["w"].dims == ("chain", "draw", "side")
    assert posterior["side"].values.tolist() == ["left", "right"]
    assert posterior["scaled"].dims == ("chain", "draw", "scaled_dim_0")
    assert posterior["scaled_dim_0"].values.tolist() == [0, 1]


def test_files_have_names_of_axes_without_slashes(tmp_path):
    xarray = pytest.importorskip("xarray", reason="ArviZ is optional")
    pytest.importorskip("arviz", reason="ArviZ is optional")
    pytest.importorskip("h5netcdf", reason="h5netcdf is optional")
    slashed = Reported((2,), axes=(Axis("side/way", ("left", "right")),))
    reported = Parameters({**NAMED.specs, "w": slashed})
    target = ModelledPotential(Model(), attrs.evolve(NAMED_MAP, reported=reported))
    sk.sample(target, **QUICK).save(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", group="posterior", engine="h5netcdf") as kept:
        assert kept["side÷way"].values.tolist() == ["left", "right"]


def test_a_modelled_potential_does_all_that_the_inner_one_does():
    target = ModelledPotential(sk.one_by_one(Model()), NAMED_MAP)
    assert target.capabilities == {"gradient"}
    assert target.parameters is NAMED
    z = np.array([[1.0, 2.0, 2.0]])
    assert_allclose(target.value(z), 4.5)
    assert_allclose(target.value_and_gradient(z)[1], z)
    run = sk.sample(target, **QUICK)
    assert_allclose(run.draws, sk.sample(Model(), **QUICK).draws, rtol=1e-12)
    assert run.calls["gradient"] == sk.sample(Model(), **QUICK).calls["gradient"]
    spread = sk.sample(target, compute=sk.Compute(executor="threads", workers=2), **QUICK)
    assert_array_equal(spread.draws, run.draws)


def test_chains_start_where_the_model_says():
    def starts(rng, n):
        return np.tile([3.0, 4.0, 5.0], (n, 1)) + 0.1 * rng.uniform(size=(n, 3))

    target = ModelledPotential(Model(), NAMED_MAP, starts)
    assert "initial" in target.capabilities
    rng = np.random.default_rng(1)
    assert_allclose(draw_positions(target, rng, 2), [[3.0, 4.0, 5.0]] * 2, atol=0.11)


def test_a_map_of_another_size_is_refused():
    inner = sk.potential(lambda q: q @ q, dim=2)
    with pytest.raises(ShapeError, match=r"map takes 3 numbers on the line, but .* takes 2"):
        ModelledPotential(inner, NAMED_MAP)
