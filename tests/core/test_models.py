"""Maps of models of other libraries, which report more than they sample."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.coordinates.models import Axis, ModelMap, Reported
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit.mode.starts import draw_positions
from surrokit.targets.forward import ModelledPotential

REPORTED = Parameters(
    {
        "scale": Reported(),
        "w": Reported((2,), axes=(Axis("side", ("left", "right")),)),
        "scaled": Reported((2,), axes=(Axis(labels=(1, 2)),)),
        "one": Reported(constant=(0,)),
    }
)
QUICK = {"sampler": "hmc", "warmup": 80, "draws": 30, "chains": 2, "seed": 1, "progress": False}
START = {"scale": 2.0, "w": [0.5, -0.5]}


def constrain(z):
    scale = np.exp(z[:, :1])
    return np.hstack([scale, z[:, 1:], scale * z[:, 1:], np.ones_like(scale)])


def unconstrain(arrays):
    with np.errstate(invalid="ignore"):
        return np.hstack([np.log(arrays["scale"])[:, None], arrays["w"]])


MAP = ModelMap(
    reported=REPORTED,
    own=Parameters({"scale": Parameter(), "w": Parameter((2,))}),
    constrain=constrain,
    unconstrain=unconstrain,
)


@attrs.frozen(eq=False)
class Line:
    """A standard normal density on the line, less a number."""

    level: float = 0.0
    dim = 3
    capabilities = frozenset({"gradient"})

    def value(self, positions):
        return 0.5 * np.square(positions).sum(axis=1) + self.level

    def value_and_gradient(self, positions):
        return self.value(positions), positions.copy()


@pytest.fixture
def target():
    return ModelledPotential(sk.one_by_one(Line()), MAP)


@pytest.fixture
def run(target):
    return sk.sample(target, **QUICK)


def test_draws_are_all_that_the_model_reports(target, run):
    assert target.capabilities == {"gradient"}
    assert run.draws.shape == (2, 30, 6)
    assert_allclose(run["scaled"], run["scale"][..., None] * run["w"])
    assert run.labels == ["scale", "w[left]", "w[right]", "scaled[1]", "scaled[2]", "one"]
    plain = sk.sample(Line(), **QUICK)
    assert_allclose(run.draws[..., 1:3], plain.draws[..., 1:], rtol=1e-12)
    assert run.calls["gradient"] == plain.calls["gradient"]
    spread = sk.sample(target, compute=sk.Compute(executor="threads", workers=2), **QUICK)
    assert_array_equal(spread.draws, run.draws)


@pytest.mark.parametrize("chains", [1, 3])
def test_starts_are_read_by_name_and_reported_positions_lead_back(chains):
    each = {name: np.stack([np.asarray(array)] * chains) for name, array in START.items()}
    for given in (START, each):
        z = MAP.read(given, chains)
        assert_allclose(z, np.tile([np.log(2.0), 0.5, -0.5], (chains, 1)))
    assert_allclose(MAP.to_unbounded(MAP.to_bounded(z)), z)
    assert MAP.to_bounded(z[0]).shape == (6,)


@pytest.mark.parametrize(
    ("initial", "error", "message"),
    [
        ({"scale": 1.0}, ShapeError, "by name must be given for scale, w, got scale"),
        ({**START, "one": 1.0}, ShapeError, "for scale, w, got scale, w, one"),
        ([0.0, 0.0, 0.0], ShapeError, "by name, for scale, w, got a list"),
        ({**START, "w": [1.0, 2.0, 3.0]}, ShapeError, r"'w' must have shape \(2,\), got \(3,\)"),
        ({**START, "scale": [1.0] * 3}, ShapeError, r"for each of 2, got \(3,\)"),
        ({**START, "w": "text"}, ShapeError, "'w' must be numbers"),
        ({**START, "scale": -1.0}, TargetError, "'scale' in chain 0 is outside the support"),
    ],
)
def test_starts_that_are_none_are_refused(target, initial, error, message):
    with pytest.raises(error, match=message):
        sk.sample(target, initial=initial, **QUICK)


def test_what_the_library_refuses_and_what_it_keeps_to_itself(target):
    def refuse(arrays):
        raise KeyError("no such site")

    refusing = attrs.evolve(MAP, unconstrain=refuse)
    with pytest.raises(TargetError, match="cannot take the initial values of scale, w: KeyError"):
        refusing.read(START, 1)
    with pytest.raises(ConfigurationError, match="adds its Jacobian by itself"):
        sk.sample(target, warm_start=(constrain(np.zeros((4, 3))), np.zeros(4)), **QUICK)
    with pytest.raises(ConfigurationError, match="adds its Jacobian by itself"):
        MAP.vjp(np.zeros((1, 3)), np.zeros((1, 6)))
    inner = sk.potential(lambda q: q @ q, dim=2)
    with pytest.raises(ShapeError, match=r"map takes 3 numbers on the line, but .* takes 2"):
        ModelledPotential(inner, MAP)


def test_messages_and_checks_have_the_models_names(target):
    class Broken(Line):
        def value_and_gradient(self, positions):
            return self.value(positions), positions * [1.0, np.nan, 1.0]

    message = r"scale = 2, w\[left\] = 0.5, .* scaled\[2\] = -1, one = 1"
    with pytest.raises(TargetError, match=message):
        sk.sample(ModelledPotential(Broken(), MAP), initial=START, **QUICK)
    check = sk.check_gradient(target, constrain(np.array([[0.1, 0.2, 0.3]]))[0])
    assert check.ok
    assert check.labels == ["scale.unconstrained", "w.unconstrained[0]", "w.unconstrained[1]"]


def test_a_file_goes_on_with_the_model_and_is_the_lines_without(target, tmp_path):
    path = tmp_path / "run.surrokit"
    run = sk.sample(target, path=path, **QUICK)
    more = sk.resume(path, target, draws=40, progress=False)
    assert_array_equal(more["scaled"][:, :30], run["scaled"])
    opened = sk.open_run(path)
    assert list(opened.parameters.specs) == ["scale.unconstrained", "w.unconstrained"]
    assert_allclose(np.exp(opened["scale.unconstrained"]), more["scale"])
    with sk.Ledger(path) as ledger:
        assert ledger.to_arrays()["positions"].shape[1] == 3
    again = sk.sample(target, path=tmp_path / "b.surrokit", warm_start=path, **QUICK)
    assert again["scaled"].shape == (2, 30, 2)


def test_labels_are_those_of_axes_unless_two_are_the_same():
    table = Reported((2, 3), axes=(Axis("row", ("a", "b")), Axis("column")))
    assert table.indices == ["a,0", "a,1", "a,2", "b,0", "b,1", "b,2"]
    for labels in (("left", "left"), (1, "1")):
        assert Reported((2,), axes=(Axis("side", labels),)).indices == ["0", "1"]
    with pytest.raises(ConfigurationError, match=r"shape \(2,\) needs as many axes, got 2"):
        Reported((2,), axes=(Axis(), Axis()))


def test_arviz_and_files_have_names_and_coordinates_of_axes(run, tmp_path):
    pytest.importorskip("arviz_base", reason="ArviZ is optional")
    posterior = run.to_arviz()["posterior"]
    assert posterior["w"].dims == ("chain", "draw", "side")
    assert posterior["side"].values.tolist() == ["left", "right"]
    assert posterior["scaled"].dims == ("chain", "draw", "scaled_dim_0")
    assert posterior["scaled_dim_0"].values.tolist() == [0, 1]


def test_chains_start_where_the_model_says():
    def starts(rng, n):
        return np.tile([3.0, 4.0, 5.0], (n, 1)) + 0.1 * rng.uniform(size=(n, 3))

    target = ModelledPotential(Line(), MAP, starts)
    assert "initial" in target.capabilities
    rng = np.random.default_rng(1)
    assert_allclose(draw_positions(target, rng, 2), [[3.0, 4.0, 5.0]] * 2, atol=0.11)
