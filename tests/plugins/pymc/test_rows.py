"""Models of PyMC as sums over rows: which ones are, with PyMC's own density, and why others not."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError, NotASumError
from surrokit_pymc import from_bambi, from_pymc

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")

N = 60
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, 2))
GROUP = np.arange(N) % 4
EXPOSURE = RNG.uniform(0.5, 2.0, N)
EVENTS = (RNG.random(N) < 0.5).astype(int)
COUNTS = RNG.poisson(EXPOSURE)
REAL = X @ [1.0, -0.5] + RNG.standard_normal(N)


def logistic(pymc):
    a, b = pymc.Normal("a", 0.3, 2.0), pymc.Normal("b", 0.0, [1.0, 0.5], shape=2)
    pymc.Bernoulli("y", logit_p=a + pymc.math.dot(X, b), observed=EVENTS)


def chances(pymc):
    b = pymc.Normal("b", shape=2)
    pymc.Bernoulli("y", p=pymc.math.sigmoid(X @ b), observed=EVENTS)


def counts(pymc):
    data = pymc.Data("x", X)
    b = pymc.Normal("b", shape=2)
    pymc.Poisson("y", EXPOSURE * pymc.math.exp(data @ b - 0.2), observed=COUNTS)


def real(pymc):
    """A predictor by many operations, and a known scale for each row."""
    effect, b = pymc.Normal("effect", 0.2, 1.5, shape=4), pymc.Normal("b", shape=2)
    centre = effect[GROUP] + X[:, 0] * b[0] - pymc.math.concatenate([b, -b])[GROUP] / 2.0
    pymc.Normal("y", centre, EXPOSURE, observed=REAL)


RECOGNISED = (logistic, chances, counts, real)


def model_of(pymc, write):
    with pymc.Model() as model:
        write(pymc)
    return model


@pytest.mark.parametrize("write", RECOGNISED)
def test_a_sum_over_rows_has_pymcs_own_density(pymc, write):
    model = model_of(pymc, write)
    ours, whole = from_pymc(model, rows=True), from_pymc(model, rows=False, gradient=False)
    assert {"rows", "hessian", "gradient", "initial"} <= ours.capabilities
    assert whole.capabilities == {"initial"}
    assert (
        whole.missing["rows"]
        == "the model is sampled whole, as rows=False or gradient=False was given"
    )
    assert ours.n_rows == N
    z = np.random.default_rng(1).uniform(-1.0, 1.0, (5, ours.dim))
    assert_allclose(ours.value(z), whole.value(z), rtol=1e-11)
    steps = 1e-5 * np.eye(ours.dim)
    slopes = [ours.value(z[:1] + h) - ours.value(z[:1] - h) for h in steps]
    assert_allclose(ours.value_and_gradient(z[:1])[1][0], np.ravel(slopes) / 2e-5, atol=1e-6)
    bends = [ours.gradient(z[:1] + h) - ours.gradient(z[:1] - h) for h in steps]
    assert_allclose(ours.hessian(z[:1])[0], np.vstack(bends) / 2e-5, atol=1e-5)
    assert ours.parameters.labels == whole.parameters.labels
    again = pickle.loads(pickle.dumps(ours))
    assert_allclose(again.value(z), ours.value(z), rtol=1e-14)


def test_many_rows_are_recognised_without_being_asked(pymc):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1200, 2))
    with pymc.Model() as model:
        b = pymc.Normal("b", shape=2)
        pymc.Bernoulli("y", logit_p=x @ b, observed=rng.integers(0, 2, 1200))
    target = from_pymc(model)
    assert "rows" in target.capabilities
    assert target.missing == {}
    run = sk.sample(target, correction="subsampled", draws=200, seed=1, progress=False)
    assert run["b"].shape == (4, 200, 2)


def test_a_formula_of_bambi_is_recognised(pymc, bambi):
    pandas = pytest.importorskip("pandas", reason="Bambi brings it")
    frame = pandas.DataFrame({"x": X[:, 0], "y": COUNTS})
    ours = from_bambi(bambi.Model("y ~ x", frame, family="poisson"), rows=True)
    assert "rows" in ours.capabilities
    assert ours.parameters.labels[:2] == ["Intercept", "x"]


def unknown_scale(pymc):
    b = pymc.Normal("b", shape=2)
    pymc.Normal("y", X @ b, pymc.Normal("noise") ** 2 + 1.0, observed=REAL)


def not_centred(pymc):
    spread, z = pymc.Normal("spread"), pymc.Normal("z", shape=4)
    pymc.Normal("y", (spread * z)[GROUP], 1.0, observed=REAL)


def clipped(pymc):
    b = pymc.Normal("b", shape=2)
    pymc.Bernoulli("y", logit_p=pymc.math.clip(X @ b, -9.0, 9.0), observed=EVENTS)


def series(pymc):
    pymc.AR("y", [pymc.Normal("rho")], sigma=1.0, init_dist=pymc.Normal.dist(), observed=REAL)


def with_potential(pymc):
    b = pymc.Normal("b", shape=2)
    pymc.Potential("rows", pymc.math.sum(X @ b))
    pymc.Normal("y", X @ b, 1.0, observed=REAL)


def two_observed(pymc):
    b = pymc.Normal("b", shape=2)
    pymc.Normal("y", X @ b, 1.0, observed=REAL)
    pymc.Normal("other", b[0], 1.0, observed=REAL[:7])


def other_prior(pymc):
    pymc.Normal("y", X @ pymc.StudentT("b", 4.0, shape=2), 1.0, observed=REAL)


def spread_of_groups(pymc):
    effect = pymc.Normal("effect", 0.0, pymc.Normal("between") ** 2 + 1.0, shape=4)
    pymc.Normal("y", effect[GROUP], 1.0, observed=REAL)


def identity_link(pymc):
    pymc.Poisson("y", pymc.Normal("a") + EXPOSURE, observed=COUNTS)


REFUSED = {
    not_centred: "predictor of 'y' is not linear in the unconstrained .*, as it passes through Mul",
    clipped: "predictor of 'y' is not linear .*, as it passes through Clip",
    series: "'y' is distributed as AutoRegressive, which is no family of rows",
    with_potential: "'rows' is a pymc.Potential, whose rows are not known",
    two_observed: r"it has 2 observed variables \(.*other.*\), not one",
    other_prior: "the prior of 'b' is not normal",
    spread_of_groups: "the mean or scale of a prior depends on other parameters",
    unknown_scale: "the scale of 'y' depends on parameters",
    identity_link: "not in the form that 'poisson' has$",
}


@pytest.mark.parametrize("write", REFUSED)
def test_what_is_no_sum_is_refused_with_the_reason(pymc, write):
    from surrokit_pymc.compiled import Line, freeze
    from surrokit_pymc.rows import regression_of

    model = model_of(pymc, write)
    frozen = freeze(model)
    line = Line.of(frozen, [variable.name for variable in model.free_RVs])
    with pytest.raises(NotASumError, match=REFUSED[write]):
        regression_of(frozen, line).as_sum(None, line.start(model))


def test_the_door_says_why_and_refuses_where_rows_are_demanded(pymc):
    model = model_of(pymc, unknown_scale)
    target = from_pymc(model)
    assert "numbers on, 10 for each parameter, and it has 60 for 3" in target.missing["rows"]
    with pytest.raises(
        ConfigurationError, match="rows=True demands a sum over rows, but the scale"
    ):
        from_pymc(model, rows=True)
    with pytest.raises(ConfigurationError, match="rows must be True, False or None, got 'all'"):
        from_pymc(model, rows="all")
    with pytest.raises(ConfigurationError, match="the model is sampled whole: a sum over rows"):
        sk.sample(target, correction="subsampled", progress=False)
