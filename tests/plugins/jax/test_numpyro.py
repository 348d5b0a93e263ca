"""Models of NumPyro: names, values, starts, files, and draws as good as its own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import surrokit as sk
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit.testing import CHECK_RATE
from surrokit_jax import from_numpyro

QUICK = {"sampler": "hmc", "warmup": 60, "draws": 20, "chains": 2, "seed": 1, "progress": False}
START = {"mu": 1.0, "tau": 2.0, "eta": np.linspace(-1.0, 1.0, 8)}


@pytest.fixture
def target(schools):
    model, errors, effects = schools
    return from_numpyro(model, errors, effects=effects)


@pytest.fixture
def run(target):
    return sk.sample(target, **QUICK)


def test_data_are_exported_by_the_models_names(run):
    assert list(run.observed_data) == ["effects"]
    assert run.observed_data["effects"].shape == (8,)


def test_draws_come_back_by_the_names_of_sites(run):
    assert list(run.parameters.specs) == ["mu", "tau", "eta", "theta"]
    assert run["tau"].shape == (2, 20)
    assert run["theta"].shape == (2, 20, 8)


def test_values_are_constrained_and_deterministic_sites_follow(run):
    assert (run["tau"] > 0.0).all()
    theta = run["mu"][..., None] + run["tau"][..., None] * run["eta"]
    assert_allclose(run["theta"], theta, rtol=1e-12)


def test_the_density_is_the_models(target, schools, numpyro):
    model, errors, effects = schools
    z = target.transform.read(START, 1)
    of_model, _ = numpyro.infer.util.log_density(model, (errors,), {"effects": effects}, START)
    assert_allclose(target.value(z), -(of_model + np.log(2.0)), rtol=1e-12)


def test_gradients_agree_with_differences(target, run):
    check = sk.check_gradient(target, run.draws[0, 0])
    assert check.ok
    assert check.labels[:3] == ["mu.unconstrained", "tau.unconstrained", "eta.unconstrained[0]"]


def test_summaries_and_arviz_have_the_models_names(run):
    assert "theta[7]" in str(run.summary())
    pytest.importorskip("arviz_base", reason="ArviZ is optional")
    posterior = run.to_arviz()["posterior"]
    assert posterior["theta"].shape == (2, 20, 8)


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
        (np.zeros(10), ShapeError, "by name, for mu, tau, eta .* got a ndarray"),
        ({**START, "eta": np.zeros(7)}, ShapeError, r"'eta' must have shape \(8,\)"),
        ({**START, "tau": -1.0}, TargetError, "'tau' in chain 0 is outside the support"),
    ],
)
def test_starts_that_are_none_are_refused(target, initial, error, message):
    with pytest.raises(error, match=message):
        sk.sample(target, initial=initial, **QUICK)


def test_evaluations_of_elsewhere_are_refused(target, run):
    with pytest.raises(ConfigurationError, match="adds its Jacobian by itself"):
        sk.sample(target, warm_start=(run.draws[0], np.zeros(20)), **QUICK)


def test_a_run_goes_on_from_its_file(target, tmp_path):
    path = tmp_path / "run.surrokit"
    first = sk.sample(target, path=path, **QUICK)
    more = sk.resume(path, target, draws=30, progress=False)
    assert_array_equal(more["theta"][:, :20], first["theta"])
    assert_array_equal(more["tau"][:, :20], first["tau"])


def test_a_file_alone_has_the_unconstrained_numbers(target, tmp_path):
    """The file cannot hold the model; a name that is the model's own would mislead."""
    run = sk.sample(target, path=tmp_path / "run.surrokit", **QUICK)
    opened = sk.open_run(tmp_path / "run.surrokit")
    assert_allclose(np.exp(opened["tau.unconstrained"]), run["tau"], rtol=1e-12)
    with sk.Ledger(tmp_path / "run.surrokit") as ledger:
        assert ledger.to_arrays()["positions"].shape[1] == target.dim


def test_supports_may_depend_on_other_sites(numpyro):
    def model():
        top = numpyro.sample("top", numpyro.distributions.Gamma(3.0, 1.0))
        numpyro.sample("low", numpyro.distributions.Uniform(0.0, top))
        numpyro.sample("parts", numpyro.distributions.Dirichlet(np.ones(3)))

    target = from_numpyro(model)
    assert target.dim == 4
    start = {"top": 2.0, "low": 1.5, "parts": [0.2, 0.3, 0.5]}
    z = target.transform.read(start, 1)
    assert_allclose(target.transform.to_bounded(z)[0], [2.0, 1.5, 0.2, 0.3, 0.5], rtol=1e-12)
    assert sk.sample(target, **QUICK)["low"].shape == (2, 20)


def test_constant_numbers_spoil_no_verdict(numpyro):
    """The Cholesky factor of a correlation matrix has zeros, which no chain can mix."""

    def model():
        factor = numpyro.sample("factor", numpyro.distributions.LKJCholesky(2, 1.0))
        numpyro.deterministic("one", factor[0, 0] + 0.0 * factor[1, 0])

    target = from_numpyro(model)
    assert target.parameters.varies.tolist() == [False, False, True, True, False]
    run = sk.sample(target, sampler="hmc", warmup=200, draws=300, seed=1, progress=False)
    assert np.isfinite(run.to_dict()["rhat_max"])
    assert "factor[0,1]" not in str(run.verdict)
    stopped = sk.sample(target, sampler="hmc", target_ess=200, seed=1, progress=False)
    assert stopped.stopped == "target_ess"


def test_it_is_a_part_of_the_catalogue(schools):
    model, errors, effects = schools
    made = sk.make("potential", "numpyro", model=model, args=(errors,), kwargs={"effects": effects})
    assert made.dim == 10


def test_models_that_are_no_densities_are_refused(numpyro):
    normal = numpyro.distributions.Normal

    def without_latent_sites():
        numpyro.sample("y", normal(0.0, 1.0), obs=1.0)

    def of_some_rows():
        mu = numpyro.sample("mu", normal(0.0, 1.0))
        with numpyro.plate("rows", 10, subsample_size=3):
            numpyro.sample("y", normal(mu, 1.0), obs=np.zeros(3))

    def broken():
        raise ValueError("no such data")

    with pytest.raises(ConfigurationError, match="no latent site"):
        from_numpyro(without_latent_sites)
    with pytest.raises(ConfigurationError, match="plate 'rows' takes 3 of 10 rows at random"):
        from_numpyro(of_some_rows)
    with pytest.raises(ConfigurationError, match=r"NumPyro cannot make .* no such data"):
        from_numpyro(broken)


def hierarchical(numpyro, jax):
    """Return a hierarchical normal model with unknown scales, and its data."""
    normal = numpyro.distributions.Normal
    groups = np.repeat(np.arange(6), 5)
    data = np.random.default_rng(8).normal(groups.astype(float), 1.0)

    def model(groups, y=None):
        mu = numpyro.sample("mu", normal(0.0, 5.0))
        between = numpyro.sample("between", numpyro.distributions.HalfNormal(3.0))
        within = numpyro.sample("within", numpyro.distributions.HalfNormal(3.0))
        with numpyro.plate("groups", 6):
            effect = numpyro.sample("effect", normal(mu, between))
        with numpyro.plate("rows", len(groups)):
            numpyro.sample("y", normal(effect[groups], within), obs=y)

    return model, (groups,), {"y": data}


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore:.* kept paths diverged")
@pytest.mark.parametrize("which", ["schools", "hierarchical"])
def test_means_are_those_of_numpyros_own_sampler(jax, numpyro, schools, which):
    """Means and mean squares of all sites; of right draws one in a million fails."""
    if which == "schools":
        model, args, kwargs = schools[0], (schools[1],), {"effects": schools[2]}
    else:
        model, args, kwargs = hierarchical(numpyro, jax)
    target = from_numpyro(model, *args, **kwargs)
    nuts = ("nuts", {"target_acceptance": 0.98})
    run = sk.sample(target, sampler=nuts, warmup=1000, draws=5000, seed=2, progress=False)
    nuts = numpyro.infer.NUTS(model, target_accept_prob=0.95)
    theirs = numpyro.infer.MCMC(
        nuts, num_warmup=1000, num_samples=5000, num_chains=4, chain_method="sequential",
        progress_bar=False,
    )  # fmt: skip
    theirs.run(jax.random.PRNGKey(0), *args, **kwargs)
    draws = theirs.get_samples(group_by_chain=True)
    p_values = [
        p
        for name in run.parameters.specs
        for power in (1, 2)
        for p in _compare(run[name] ** power, np.asarray(draws[name]) ** power)
    ]
    assert min(p_values) * len(p_values) > CHECK_RATE


def _compare(ours, theirs):
    """Return two-sided p-values of equal means, number by number."""
    ours, theirs = (array.reshape(*array.shape[:2], -1) for array in (ours, theirs))
    errors = [
        array.std(axis=(0, 1)) / np.sqrt(sk.effective_sample_size(array, "bulk"))
        for array in (ours, theirs)
    ]
    apart = np.abs(ours.mean(axis=(0, 1)) - theirs.mean(axis=(0, 1)))
    return 2.0 * ndtr(-apart / np.hypot(*errors))
