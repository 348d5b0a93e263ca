"""Models of PyMC: names, values, starts, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
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


@pytest.fixture(scope="module")
def of_many_kinds(varied):
    return from_pymc(varied)


def test_draws_come_back_by_the_models_names(target, run):
    assert list(run.observed_data) == ["effects"]
    assert list(run.parameters.specs) == ["mu", "tau", "eta", "theta"]
    assert run["theta"].shape == (2, 20, 8)
    assert run.labels[2:4] == ["eta[Choate]", "eta[Deerfield]"]
    assert (run["tau"] > 0.0).all()
    theta = run["mu"][..., None] + run["tau"][..., None] * run["eta"]
    assert_allclose(run["theta"], theta, rtol=1e-12)
    check = sk.check_gradient(target, run.draws[0, 0])
    assert check.ok
    assert check.labels[:3] == ["mu.unconstrained", "tau.unconstrained", "eta.unconstrained[0]"]


def test_the_density_is_pymcs_at_the_starts_that_it_reads(target, schools):
    point = schools.initial_point()
    point.update(mu=np.array(1.0), tau_log__=np.log(2.0), eta=START["eta"])
    z = target.transform.read(START, 1)
    assert_allclose(target.value(z), -schools.compile_logp()(point), rtol=1e-12)
    assert_allclose(target.value_and_gradient(z)[0], target.value(z), rtol=1e-12)
    reported = target.parameters.split(target.transform.to_bounded(z))
    for name, array in START.items():
        assert_allclose(reported[name][0], array, rtol=1e-12)


def test_log_likelihoods_and_priors_are_those_of_its_variables(run, schools):
    draws = run.draws.reshape(-1, run.draws.shape[2])
    likelihood, priors = run.pointwise(None, draws)
    away = (draws[:, 10:] - run.observed_data["effects"]) / [15, 10, 16, 11, 9, 11, 10, 18]
    scale = np.log([15, 10, 16, 11, 9, 11, 10, 18]) + 0.5 * np.log(2.0 * np.pi)
    assert_allclose(likelihood["effects"], -0.5 * away**2 - scale, rtol=1e-9)
    density, point = schools.compile_logp(jacobian=False), schools.initial_point()
    for i in (0, 39):
        point.update(mu=draws[i, 0], tau_log__=np.log(draws[i, 1]), eta=draws[i, 2:10])
        total = likelihood["effects"][i].sum() + sum(each[i] for each in priors.values())
        assert_allclose(total, density(point), rtol=1e-9)
    assert list(priors) == ["mu", "tau", "eta"]


def test_arviz_has_the_models_dimensions_and_predictions_follow(run, schools, pymc):
    pytest.importorskip("arviz_base", reason="ArviZ is optional")
    tree = run.to_arviz()
    assert tree["posterior"]["theta"].dims == ("chain", "draw", "school")
    assert tree["posterior"]["school"].values[0] == "Choate"
    takes_trees = int(pymc.__version__.partition(".")[0]) >= 6
    given = tree if takes_trees else tree["posterior"].to_dataset()
    with schools:
        drawn = pymc.sample_posterior_predictive(given, progressbar=False, random_seed=1)
    effects = drawn["posterior_predictive"]["effects"]
    assert effects.shape == (2, 20, 8)
    assert np.abs((effects.values - run["theta"]) / 18.0).max() < 6.0


def test_chains_start_around_the_models_initial_point(of_many_kinds, varied):
    z = of_many_kinds.initial(np.random.default_rng(1), 100)
    top = of_many_kinds.parameters.split(of_many_kinds.transform.to_bounded(z))["top"]
    assert_allclose(np.log(top).min(), np.log(2.5) - 1.0, atol=0.1)
    assert_allclose(np.log(top).max(), np.log(2.5) + 1.0, atol=0.1)
    assert varied.rvs_to_initial_values[varied["top"]] == 2.5


def test_variables_of_many_kinds(of_many_kinds, varied):
    target = of_many_kinds
    free = ["top", "low", "parts", "zero", "factor", "slope"]
    assert [*target.parameters.specs][:6] == free
    assert {"factor_corr", "factor_stds", "one", "is_up", "line"} < set(target.parameters.specs)
    z = 0.5 * np.random.default_rng(2).normal(size=(5, target.dim))
    reported = target.parameters.split(target.transform.to_bounded(z))
    assert_allclose(reported["parts"].sum(axis=1), 1.0)
    assert_allclose(reported["zero"].sum(axis=1), 0.0, atol=1e-12)
    assert (reported["low"] < reported["top"]).all()
    assert_array_equal(reported["is_up"], reported["slope"] > 0)
    assert_allclose(target.transform.unconstrain({n: reported[n] for n in free}), z, atol=1e-9)
    assert target.parameters.specs["parts"].indices == ["a", "b", "c"]
    varies = target.parameters.split(target.parameters.varies)
    assert not varies["one"]
    assert varies["factor_corr"].tolist() == [[False, True], [True, False]]
    assert varies["parts"].all()
    names = [varied.rvs_to_values[varied[name]].name for name in target.transform.own.specs]
    point = dict(zip(names, target.transform.own.split(z[0]).values(), strict=True))
    assert_allclose(target.value(z[:1]), -varied.compile_logp()(point), rtol=1e-12)
    assert sk.check_gradient(target, target.transform.to_bounded(z[0])).ok


def test_quantities_to_report_can_be_chosen(varied):
    names = from_pymc(varied, var_names=["line"]).parameters.specs
    assert [*names][6:] == ["line"]
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


def test_missing_data_are_drawn_and_quantities_without_numbers_left_out(pymc):
    seen = np.ma.masked_invalid([1.0, np.nan, 2.0])
    with pymc.Model() as model:
        mu = pymc.Normal("mu")
        pymc.Deterministic("none", mu * np.zeros(0))
        with pytest.warns(pymc.exceptions.ImputationWarning):
            pymc.Normal("y", mu, 1.0, observed=seen)
    specs = from_pymc(model).parameters.specs
    assert specs["y_unobserved"].shape == (1,)
    assert specs["y"].shape == (3,)
    assert "none" not in specs


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


# --- what is refused ---


def without_free_variables(pymc):
    pymc.Normal("y", 0.0, 1.0, observed=[1.0])


def discrete(pymc):
    which = pymc.Bernoulli("which", 0.5)
    pymc.Normal("y", which, 1.0, observed=[1.0])


def of_some_rows(pymc):
    rows = pymc.Minibatch(np.arange(50.0), batch_size=5)
    pymc.Normal("y", pymc.Normal("mu"), 1.0, observed=rows, total_size=50)


def noisy(pymc):
    pymc.Deterministic("noisy", pymc.Normal("mu") + pymc.Normal.dist())


def not_compiled(pymc):
    def sum_of_two(size):
        return pymc.Normal.dist(size=size) + pymc.Gamma.dist(1.0, 1.0, size=size)

    pymc.CustomDist("sum", dist=sum_of_two)


def one_number(pymc):
    pymc.Normal("mu")


@pytest.mark.parametrize(
    ("write", "settings", "message"),
    [
        (without_free_variables, {}, "no free variable"),
        (discrete, {}, r"'which' is discrete.* marginalise"),
        (of_some_rows, {}, r"drawn at random .* all of its data"),
        (noisy, {}, r"'noisy' is drawn at random .* var_names"),
        (not_compiled, {}, "PyMC cannot compile the model: "),
        (one_number, {"backend": "c"}, "backend must be 'pytensor' or 'jax', got 'c'"),
        (one_number, {"backend": "jax", "gradient": False}, "goes with backend='pytensor' alone"),
    ],
)
def test_what_is_no_target_is_refused(pymc, write, settings, message):
    with pymc.Model() as model:
        write(pymc)
    with pytest.raises(ConfigurationError, match=message):
        from_pymc(model, **settings)
    if write is noisy:
        assert [*from_pymc(model, var_names=[]).parameters.specs] == ["mu"]


def test_what_is_no_model_or_in_single_precision_is_refused(pymc):
    import pytensor

    with pytest.raises(ConfigurationError, match=r"must be a pymc\.Model, got function"):
        from_pymc(lambda: None)
    with pytensor.config.change_flags(floatX="float32", warn_float64="ignore"):
        with pymc.Model() as model:
            pymc.Normal("mu")
        with pytest.raises(ConfigurationError, match="floatX is float32, which is too coarse"):
            from_pymc(model)
    with pytest.raises(ConfigurationError, match=r"'mu' is in single precision \(float32\)"):
        from_pymc(model)
