"""Models of NumPyro as sums over rows: which are, and why others are not."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit_jax import from_numpyro

N = 60
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, 2))
GROUP = np.arange(N) % 4
EXPOSURE = RNG.uniform(0.5, 2.0, N)
EVENTS = (RNG.random(N) < 0.5).astype(int)
COUNTS = RNG.poisson(EXPOSURE)
REAL = X @ [1.0, -0.5] + RNG.standard_normal(N)


def logistic(numpyro, jnp):
    dist = numpyro.distributions
    a = numpyro.sample("a", dist.Normal(0.3, 2.0))
    b = numpyro.sample("b", dist.Normal(0.0, np.array([1.0, 0.5])).to_event(1))
    with numpyro.plate("rows", N):
        numpyro.sample("y", dist.Bernoulli(logits=a + X @ b), obs=EVENTS)


def chances(numpyro, jnp):
    from jax.nn import sigmoid

    b = numpyro.sample("b", numpyro.distributions.Normal().expand([2]))
    numpyro.sample("y", numpyro.distributions.Bernoulli(probs=sigmoid(X @ b)), obs=EVENTS)


def counts(numpyro, jnp):
    b = numpyro.sample("b", numpyro.distributions.Normal().expand([2]))
    rate = EXPOSURE * jnp.exp(X @ b - 0.2)
    numpyro.sample("y", numpyro.distributions.Poisson(rate).to_event(1), obs=COUNTS)


def real(numpyro, jnp):
    """A predictor by many operations, and a known scale for each row."""
    b = numpyro.sample("b", numpyro.distributions.Normal().expand([2]))
    with numpyro.plate("groups", 4):
        effect = numpyro.sample("effect", numpyro.distributions.Normal(0.2, 1.5))
    predictor = numpyro.deterministic("predictor", effect[GROUP] + X[:, 0] * b[0])
    centre = predictor - jnp.concatenate([b, -b])[GROUP] / 2.0
    numpyro.sample("y", numpyro.distributions.Normal(centre, EXPOSURE), obs=REAL)


def target_of(write, numpyro, rows):
    import jax.numpy as jnp

    return from_numpyro(write, numpyro, jnp, rows=rows)


@pytest.mark.parametrize("write", [logistic, chances, counts, real])
def test_a_sum_over_rows_has_numpyros_own_density(numpyro, write):
    ours, whole = (target_of(write, numpyro, rows) for rows in (True, False))
    assert {"rows", "hessian", "gradient"} <= ours.capabilities
    assert "rows" not in whole.capabilities
    assert (
        whole.missing["rows"]
        == "the model is sampled whole, as rows=False or gradient=False was given"
    )
    assert ours.n_rows == N
    z = np.random.default_rng(1).uniform(-1.0, 1.0, (5, ours.dim))
    assert_allclose(ours.value(z), whole.value(z), rtol=1e-11)
    assert_allclose(ours.value_and_gradient(z)[1], whole.value_and_gradient(z)[1], atol=1e-9)
    assert_allclose(ours.hessian(z), whole.hessian(z), atol=1e-9)
    assert ours.parameters.labels == whole.parameters.labels


def of_rows(x, y, sample=None, normal=None, bernoulli=None):
    b = sample("b", normal(0.0, 1.0).expand([x.shape[1]]))
    sample("y", bernoulli(logits=x @ b), obs=y)


def test_many_rows_are_recognised_without_being_asked_and_travel(numpyro):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((1200, 2)), rng.integers(0, 2, 1200)
    dist = numpyro.distributions
    given = {"sample": numpyro.sample, "normal": dist.Normal, "bernoulli": dist.Bernoulli}
    target = from_numpyro(of_rows, x, y, **given)
    assert "rows" in target.capabilities
    again = pickle.loads(pickle.dumps(target))
    z = np.array([[0.3, -0.2]])
    assert_allclose(again.value(z), target.value(z), rtol=1e-14)
    run = sk.sample(target, correction="subsampled", draws=200, seed=1, progress=False)
    assert run["b"].shape == (4, 200, 2)
    by_name = sk.make("potential", "numpyro", model=of_rows, args=(x, y), kwargs=given, rows=False)
    assert "rows" not in by_name.capabilities


def coefficients(numpyro):
    return numpyro.sample("b", numpyro.distributions.Normal().expand([2]))


def observe(numpyro, plain, obs=REAL):
    numpyro.sample("y", plain, obs=obs)


def not_centred(numpyro, jnp):
    spread = numpyro.sample("spread", numpyro.distributions.Normal())
    z = numpyro.sample("z", numpyro.distributions.Normal().expand([4]))
    observe(numpyro, numpyro.distributions.Normal((spread * z)[GROUP], 1.0))


def clipped(numpyro, jnp):
    logits = jnp.clip(X @ coefficients(numpyro), -9.0, 9.0)
    observe(numpyro, numpyro.distributions.Bernoulli(logits=logits), EVENTS)


def in_single_precision(numpyro, jnp):
    logits = (X @ coefficients(numpyro)).astype(jnp.float32).astype(jnp.float64)
    observe(numpyro, numpyro.distributions.Bernoulli(logits=logits), EVENTS)


def series(numpyro, jnp):
    """Each state follows from the one before and from what was seen then."""
    import jax

    rho = numpyro.sample("rho", numpyro.distributions.Normal())
    _, states = jax.lax.scan(lambda state, seen: (rho * state + 0.5 * seen, state), 0.0, REAL)
    observe(numpyro, numpyro.distributions.Normal(states, 1.0))


def with_factor(numpyro, jnp):
    b = coefficients(numpyro)
    numpyro.factor("rows", jnp.sum(X @ b))
    observe(numpyro, numpyro.distributions.Normal(X @ b, 1.0))


def masked(numpyro, jnp):
    plain = numpyro.distributions.Normal(X @ coefficients(numpyro), 1.0)
    observe(numpyro, plain.mask(GROUP > 0))


def scaled(numpyro, jnp):
    b = coefficients(numpyro)
    with numpyro.handlers.scale(scale=2.0):
        observe(numpyro, numpyro.distributions.Normal(X @ b, 1.0))


def two_observed(numpyro, jnp):
    b = coefficients(numpyro)
    observe(numpyro, numpyro.distributions.Normal(X @ b, 1.0))
    numpyro.sample("other", numpyro.distributions.Normal(b[0], 1.0), obs=REAL[:7])


def other_prior(numpyro, jnp):
    b = numpyro.sample("b", numpyro.distributions.StudentT(4.0).expand([2]))
    observe(numpyro, numpyro.distributions.Normal(X @ b, 1.0))


def spread_of_groups(numpyro, jnp):
    between = numpyro.sample("between", numpyro.distributions.Normal())
    effect = numpyro.sample(
        "effect", numpyro.distributions.Normal(0.0, 1.0 + between**2).expand([4])
    )
    observe(numpyro, numpyro.distributions.Normal(effect[GROUP], 1.0))


def own_noise(numpyro, jnp):
    noise = numpyro.sample("noise", numpyro.distributions.Normal())
    observe(numpyro, numpyro.distributions.Normal(X @ coefficients(numpyro), 1.0 + noise**2))


REFUSED = {
    not_centred: "predictor of 'y' is not linear .*, as it passes through 'mul'",
    clipped: "predictor of 'y' is not linear .*, as it passes through 'm(ax|in)'",
    in_single_precision: "as it passes through 'convert_element_type'",
    series: "predictor of 'y' is not linear .*, as it passes through 'scan'",
    with_factor: r"it has 2 observed sites \(rows, y\), not one",
    other_prior: "the prior of 'b' is not normal",
    spread_of_groups: "the mean or scale of a prior depends on other parameters",
    own_noise: "the scale of 'y' depends on parameters",
    masked: "'y' is distributed as MaskedDistribution, which is no family of rows",
    scaled: "the density of 'y' is scaled by a handler",
    two_observed: r"it has 2 observed sites \(y, other\), not one",
}


@pytest.mark.parametrize("write", REFUSED)
def test_what_is_no_sum_is_refused_with_the_reason(numpyro, write):
    with pytest.raises(ConfigurationError, match=f"rows=True demands .*{REFUSED[write]}"):
        target_of(write, numpyro, True)


def test_few_rows_are_left_alone_and_the_target_says_so(numpyro):
    target = target_of(logistic, numpyro, None)
    assert "numbers on, 10 for each parameter, and it has 60 for 3" in target.missing["rows"]
    with pytest.raises(ConfigurationError, match="the model is sampled whole: a sum over rows"):
        sk.sample(target, correction="subsampled", progress=False)
    with pytest.raises(ConfigurationError, match="rows must be True, False or None, got 'all'"):
        target_of(logistic, numpyro, "all")


def test_a_graph_that_lies_is_caught_by_the_density(numpyro, monkeypatch):
    """As if a form were told wrongly: the sum has another density than the model."""
    from surrokit.tables.graphs import Form
    from surrokit_jax import numpyro_rows

    told = numpyro_rows.read_forms

    def lie(function, dim):
        return {
            name: Form.LINEAR if name == "argument" else f
            for name, f in told(function, dim)[0].items()
        }, None

    monkeypatch.setattr(numpyro_rows, "read_forms", lie)

    def bent(numpyro, jnp):
        b = numpyro.sample("b", numpyro.distributions.Normal().expand([2]))
        logits = X @ b + 0.01 * jnp.sum(b**2)
        numpyro.sample("y", numpyro.distributions.Bernoulli(logits=logits), obs=EVENTS)

    with pytest.raises(ConfigurationError, match="has another density than the model"):
        target_of(bent, numpyro, True)


def test_leave_one_out_of_a_regression_is_that_of_numpyros_own_run(numpyro):
    """Sums over 60 rows have an error of .035 each: four of the difference, a false alarm of 6e-5.
    That of the same rows without leaving out is 2.1 larger."""
    import arviz
    from jax.random import PRNGKey

    def model():
        b = numpyro.sample("b", numpyro.distributions.Normal(0.0, 2.0).expand([2]))
        numpyro.sample("y", numpyro.distributions.Bernoulli(logits=X @ b), obs=EVENTS)

    kernel, many = numpyro.infer.HMC(model), {"num_warmup": 300, "num_samples": 4000}
    theirs = numpyro.infer.MCMC(kernel, progress_bar=False, **many)
    theirs.run(PRNGKey(0))
    target = sk.rows_potential("logistic", X, EVENTS, prior=2.0)
    ours = sk.sample(target, sampler="hmc", draws=1000, seed=1, progress=False)
    before = dict(ours.calls)
    found = ours.to_arviz(log_likelihood=True)
    assert ours.calls == before
    one, other = (
        arviz.loo(each).elpd for each in (found, arviz.from_numpyro(theirs, log_likelihood=True))
    )
    assert one == pytest.approx(other, abs=0.2)
