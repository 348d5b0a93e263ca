"""Models of PyMC: names, values, starts, files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit_pymc import from_pymc

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")

QUICK = {"sampler": "hmc", "warmup": 60, "draws": 20, "chains": 2, "seed": 1, "progress": False}
START = {"mu": 1.0, "tau": 2.0, "eta": np.linspace(-1.0, 1.0, 8)}


@pytest.fixture(scope="module")
def target(schools):
    return from_pymc(schools)


@pytest.fixture(scope="module")
def run(target):
    return sk.sample(target, **QUICK)


def test_data_are_exported_by_the_models_names(run):
    assert list(run.observed_data) == ["effects"]
    assert run.observed_data["effects"].shape == (8,)


def test_draws_come_back_by_the_models_names(run):
    assert list(run.parameters.specs) == ["mu", "tau", "eta", "theta"]
    assert run["theta"].shape == (2, 20, 8)
    assert run.labels[2:4] == ["eta[Choate]", "eta[Deerfield]"]
    assert "theta[Hermon]" in str(run.summary())


def test_values_are_constrained_and_deterministic_quantities_follow(run):
    assert (run["tau"] > 0.0).all()
    theta = run["mu"][..., None] + run["tau"][..., None] * run["eta"]
    assert_allclose(run["theta"], theta, rtol=1e-12)


def test_the_density_is_pymcs(target, schools):
    point = schools.initial_point()
    point.update(mu=np.array(1.0), tau_log__=np.log(2.0), eta=START["eta"])
    z = target.transform.read(START, 1)
    assert_allclose(target.value(z), -schools.compile_logp()(point), rtol=1e-12)
    assert_allclose(target.value_and_gradient(z)[0], target.value(z), rtol=1e-12)


def test_gradients_agree_with_differences(target, run):
    check = sk.check_gradient(target, run.draws[0, 0])
    assert check.ok
    assert check.labels[:3] == ["mu.unconstrained", "tau.unconstrained", "eta.unconstrained[0]"]


def test_results_of_one_call_outlive_the_next(target):
    z = np.random.default_rng(1).normal(size=(2, 10))
    first = target.value_and_gradient(z[:1])
    kept = [array.copy() for array in first]
    target.value_and_gradient(z[1:])
    assert_array_equal(first[0], kept[0])
    assert_array_equal(first[1], kept[1])


def test_values_and_gradients_are_counted_apart(target):
    recording = RecordingPotential(target, keep=False)
    z = np.zeros((3, 10))
    recording.value(z)
    recording.value_and_gradient(z)
    assert {kind: n for kind, n in recording.calls.items() if n} == {"value": 3, "gradient": 3}


def test_arviz_has_the_models_dimensions_and_predictions_follow(run, schools, pymc):
    pytest.importorskip("arviz_base", reason="ArviZ is optional")
    tree = run.to_arviz()
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "school")
    assert tree["posterior"]["school"].values[0] == "Choate"
    with schools:
        drawn = pymc.sample_posterior_predictive(tree, progressbar=False, random_seed=1)
    effects = drawn["posterior_predictive"]["effects"]
    assert effects.shape == (2, 20, 8)
    apart = (effects.values - run["theta"]) / 18.0
    assert np.abs(apart).max() < 6.0


@pytest.mark.parametrize("each", [False, True])
def test_chains_start_where_they_are_told(target, each):
    given = {
        name: np.stack([np.asarray(array)] * 2) if each else array for name, array in START.items()
    }
    z = target.transform.read(given, 2)
    reported = target.parameters.split(target.transform.to_bounded(z))
    for name, array in START.items():
        assert_allclose(reported[name], np.broadcast_to(array, reported[name].shape), rtol=1e-12)
    sk.sample(target, initial=given, **QUICK)


@pytest.mark.parametrize(
    ("initial", "error", "message"),
    [
        ({"mu": 1.0}, ShapeError, "by name, for mu, tau, eta .* got mu"),
        ({**START, "theta": np.zeros(8)}, ShapeError, "nothing that follows from them"),
        ({**START, "tau": -1.0}, TargetError, "'tau' in chain 0 is outside the support"),
    ],
)
def test_starts_that_are_none_are_refused(target, initial, error, message):
    with pytest.raises(error, match=message):
        sk.sample(target, initial=initial, **QUICK)


def test_chains_start_around_the_models_initial_point(varied):
    target = from_pymc(varied)
    z = target.initial(np.random.default_rng(1), 100)
    top = target.parameters.split(target.transform.to_bounded(z))["top"]
    assert_allclose(np.log(top).min(), np.log(2.5) - 1.0, atol=0.1)
    assert_allclose(np.log(top).max(), np.log(2.5) + 1.0, atol=0.1)
    assert varied.rvs_to_initial_values[varied["top"]] == 2.5


def test_a_run_goes_on_from_its_file(target, tmp_path):
    path = tmp_path / "run.surrokit"
    first = sk.sample(target, path=path, **QUICK)
    more = sk.resume(path, target, draws=30, progress=False)
    assert_array_equal(more["theta"][:, :20], first["theta"])


def test_variables_of_many_kinds(varied):
    target = from_pymc(varied)
    free = ["top", "low", "parts", "zero", "factor", "slope"]
    assert [*target.parameters.specs][:6] == free
    assert {"factor_corr", "factor_stds", "one", "is_up", "line"} < set(target.parameters.specs)
    z = 0.5 * np.random.default_rng(2).normal(size=(5, target.dim))
    reported = target.parameters.split(target.transform.to_bounded(z))
    assert_allclose(reported["parts"].sum(axis=1), 1.0)
    assert_allclose(reported["zero"].sum(axis=1), 0.0, atol=1e-12)
    assert (reported["low"] < reported["top"]).all()
    assert_array_equal(reported["is_up"], reported["slope"] > 0)
    arrays = {name: reported[name] for name in free}
    assert_allclose(target.transform.unconstrain(arrays), z, atol=1e-9)
    assert target.parameters.specs["parts"].indices == ["a", "b", "c"]
    varies = target.parameters.split(target.parameters.varies)
    assert not varies["one"]
    assert varies["factor_corr"].tolist() == [[False, True], [True, False]]
    assert varies["parts"].all()


def test_densities_of_many_kinds_are_pymcs(varied):
    target = from_pymc(varied)
    z = 0.5 * np.random.default_rng(2).normal(size=target.dim)
    names = [varied.rvs_to_values[varied[name]].name for name in target.transform.own.specs]
    point = dict(zip(names, target.transform.own.split(z).values(), strict=True))
    assert_allclose(target.value(z[None]), -varied.compile_logp()(point), rtol=1e-12)
    check = sk.check_gradient(target, target.transform.to_bounded(z))
    assert check.ok


def test_quantities_to_report_can_be_chosen(varied):
    names = from_pymc(varied, var_names=["line"]).parameters.specs
    assert [*names][6:] == ["line"]
    assert len(from_pymc(varied, var_names=[]).parameters.specs) == 6
    with pytest.raises(ConfigurationError, match=r"var_names has 'lines', but .* are .*line"):
        from_pymc(varied, var_names=["lines"])


def test_data_that_are_set_later_change_nothing(pymc):
    with pymc.Model(coords={"row": range(3)}) as model:
        y = pymc.Data("y", np.zeros(3), dims="row")
        mu = pymc.Normal("mu")
        pymc.Deterministic("fit", mu + y, dims="row")
        pymc.Normal("seen", mu, 1.0, observed=y, dims="row")
    target, z = from_pymc(model), np.ones((1, 1))
    before = target.value(z), target.transform.to_bounded(z)
    with model:
        pymc.set_data({"y": np.full(5, 9.0)}, coords={"row": range(5)})
    assert_array_equal(target.value(z), before[0])
    assert_array_equal(target.value_and_gradient(z)[0], before[0])
    assert_array_equal(target.transform.to_bounded(z), before[1])


def test_missing_data_are_drawn(pymc):
    seen = np.ma.masked_invalid([1.0, np.nan, 2.0])
    with pymc.Model() as model:
        mu = pymc.Normal("mu")
        with pytest.warns(pymc.exceptions.ImputationWarning):
            pymc.Normal("y", mu, 1.0, observed=seen)
    specs = from_pymc(model).parameters.specs
    assert specs["y_unobserved"].shape == (1,)
    assert specs["y"].shape == (3,)


def test_quantities_without_numbers_are_left_out(pymc):
    with pymc.Model() as model:
        mu = pymc.Normal("mu")
        pymc.Deterministic("none", mu * np.zeros(0))
    assert [*from_pymc(model).parameters.specs] == ["mu"]


@pytest.mark.filterwarnings("ignore:Numba will use object mode:UserWarning")
def test_a_likelihood_without_gradients_has_values(pymc):
    import pytensor.tensor as pt
    from pytensor.graph import Apply, Op

    class Blackbox(Op):
        def make_node(self, x):
            return Apply(self, [pt.as_tensor_variable(x)], [pt.dscalar()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = np.array(-0.5 * inputs[0] ** 2)

    with pymc.Model() as model:
        mu = pymc.Normal("mu")
        pymc.Potential("simulator", Blackbox()(mu))
    with pytest.raises(ConfigurationError, match=r"cannot differentiate .* pass gradient=False"):
        from_pymc(model)
    target = from_pymc(model, gradient=False)
    assert target.capabilities == {"initial"}
    assert_allclose(target.value(np.array([[2.0]])), 4.0 + 0.5 * np.log(2.0 * np.pi))
    assert sk.sample(target, sampler="random-walk", draws=5, seed=1, progress=False).draws.size


def test_it_is_a_part_of_the_catalogue(schools):
    assert sk.make("potential", "pymc", model=schools).dim == 10


def test_what_is_no_model_is_refused(pymc):
    with pytest.raises(ConfigurationError, match=r"must be a pymc\.Model, got function"):
        from_pymc(lambda: None)
    with pymc.Model() as empty:
        pymc.Normal("y", 0.0, 1.0, observed=[1.0])
    with pytest.raises(ConfigurationError, match="no free variable"):
        from_pymc(empty)
    with pymc.Model() as model:
        pymc.Normal("mu")
    with pytest.raises(ConfigurationError, match="backend must be 'pytensor' or 'jax', got 'c'"):
        from_pymc(model, backend="c")


def test_discrete_variables_are_to_be_marginalised(pymc):
    with pymc.Model() as model:
        which = pymc.Bernoulli("which", 0.5)
        pymc.Normal("y", which, 1.0, observed=[1.0])
    with pytest.raises(ConfigurationError, match=r"'which' is discrete.* marginalise"):
        from_pymc(model)


def test_densities_by_chance_are_refused(pymc):
    with pymc.Model() as model:
        rows = pymc.Minibatch(np.arange(50.0), batch_size=5)
        mu = pymc.Normal("mu")
        pymc.Normal("y", mu, 1.0, observed=rows, total_size=50)
    with pytest.raises(ConfigurationError, match=r"drawn at random .* all of its data"):
        from_pymc(model)


def test_quantities_by_chance_are_refused(pymc):
    with pymc.Model() as model:
        mu = pymc.Normal("mu")
        pymc.Deterministic("noisy", mu + pymc.Normal.dist())
    with pytest.raises(ConfigurationError, match=r"'noisy' is drawn at random .* var_names"):
        from_pymc(model)
    assert [*from_pymc(model, var_names=[]).parameters.specs] == ["mu"]


def test_single_precision_is_refused(pymc, monkeypatch):
    import pytensor

    with pytensor.config.change_flags(floatX="float32", warn_float64="ignore"):
        with pymc.Model() as model:
            pymc.Normal("mu")
        with pytest.raises(ConfigurationError, match="floatX is float32, which is too coarse"):
            from_pymc(model)
    with pytest.raises(ConfigurationError, match=r"'mu' is in single precision \(float32\)"):
        from_pymc(model)


def test_what_pymc_cannot_compile_is_told(pymc):
    def sum_of_two(size):
        return pymc.Normal.dist(size=size) + pymc.Gamma.dist(1.0, 1.0, size=size)

    with pymc.Model() as model:
        pymc.CustomDist("sum", dist=sum_of_two)
    with pytest.raises(ConfigurationError, match="PyMC cannot compile the model: "):
        from_pymc(model)
