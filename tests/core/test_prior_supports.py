"""Priors as SciPy and others have them: where a prior ends, its parameter does."""

import numpy as np
import pytest
import scipy.stats as st

import surrokit as sk
from surrokit.coordinates.constraints import Circular
from surrokit.coordinates.distributions import closed_form
from surrokit.errors import ConfigurationError

SHORT = {"sampler": "random-walk", "warmup": 300, "draws": 800, "seed": 1, "progress": False}


class Own:
    """A distribution with nothing but what is asked for."""

    def support(self):
        return 2.0, 5.0

    def logpdf(self, x):
        return np.where((x > 2.0) & (x < 5.0), np.log(2.0 / 9.0 * np.abs(x - 2.0)), -np.inf)


class WithoutQuantiles(Own):
    def support(self):
        return 0.0, 5.0

    def logpdf(self, x):
        return np.where((x > 0.0) & (x < 5.0), -np.log(5.0), -np.inf) + 0.0 * x


def target_of(spec):
    return sk.potential(log_density=lambda x: 0.0, parameters={"x": spec})


HISTOGRAM = st.rv_histogram(np.histogram([1.0, 2.0, 2.2, 3.0, 4.0, 2.5], bins=3))
OF_REALS = {
    "far uniform": (st.uniform(1e4, 1.0), (1e4, 1e4 + 1.0)),
    "histogram": (HISTOGRAM, (1.0, 4.0)),
    "own": (Own(), (2.0, 5.0)),
    "gamma": (st.gamma(4.0), (0.0, np.inf)),
    "below": (st.weibull_max(2.0), (-np.inf, 0.0)),
    "vonmises_line": (st.vonmises_line(4.0, loc=3.0), (3.0 - np.pi, 3.0 + np.pi)),
}
DRAWN = ("far uniform", "own", "below")


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize("name", OF_REALS)
def test_the_support_of_a_prior_bounds_a_real_parameter(name):
    prior, ends = OF_REALS[name]
    target = target_of(sk.real(prior=prior))
    assert target.parameters.specs["x"].bounds == pytest.approx(ends)
    if name not in DRAWN:
        return
    mean, sd = (4.0, 0.5**0.5) if name == "own" else (prior.mean(), prior.std())
    draws = sk.sample(target, **SHORT)["x"]
    assert ends[0] <= draws.min()
    assert draws.max() <= ends[1]
    assert draws.mean() == pytest.approx(mean, abs=0.12 * sd)
    assert draws.std() == pytest.approx(sd, rel=0.12)


def test_the_narrower_of_bounds_and_support_holds(tmp_path):
    between = sk.interval(0.2, 5.0, prior=st.uniform(0.0, 1.0))
    assert between.bounds == (0.2, 1.0)
    assert sk.positive(prior=st.expon(2.0)).bounds == (2.0, np.inf)
    assert sk.positive(prior=st.norm()).bounds == (0.0, np.inf)
    assert sk.positive(prior=st.halfnorm()).bounds == (0.0, np.inf)
    path, small = tmp_path / "run.surrokit", {**SHORT, "warmup": 20, "draws": 10}
    run = sk.sample(target_of(sk.real(prior=st.uniform(3.0, 1.0))), path=path, **small)
    np.testing.assert_array_equal(sk.open_run(path).draws, run.draws)
    assert sk.open_run(path).parameters.specs["x"].bounds == (3.0, 4.0)


def test_a_density_that_bounds_cut_off_is_that_of_what_is_left():
    z = -0.4
    x = np.exp(z)

    def on_line(spec):
        return target_of(spec).value(np.array([[z]]))[0]

    expected = -st.halfnorm.logpdf(x) - z
    assert on_line(sk.positive(prior=st.norm())) == pytest.approx(expected)
    expected = -st.truncnorm(9.0, np.inf).logpdf(9.0 + x) - z
    assert on_line(sk.interval(9.0, np.inf, prior=st.norm())) == pytest.approx(expected)
    prior = st.norm([0.0, 5.0], [1.0, 2.0])  # one for each number of a vector
    found = target_of(sk.real(2, prior=prior)).value(np.array([[0.3, 4.0]]))
    assert found[0] == pytest.approx(-prior.logpdf([0.3, 4.0]).sum())


KDE = st.gaussian_kde([[1.0, 2.0, 4.0], [0.0, 3.0, 1.0]])


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: sk.real(prior=st.vonmises(4.0)), "vonmises repeats.*surrokit.circular"),
        (lambda: sk.Parameter((), constraint=Circular(), prior=st.norm()), "given for angles"),
        (lambda: sk.positive(prior=st.uniform(-3.0, 1.0)), "uniform lies outside"),
        (lambda: sk.interval(0.0, 1.0, prior=st.gamma(2.0, loc=1.0)), "gamma lies outside"),
        (lambda: sk.real(2, prior=st.uniform([0, 5], [1, 1])), "another support for each"),
        (lambda: sk.real(3, prior=st.dirichlet([1.0, 1.0, 1.0])), "single numbers"),
        (lambda: sk.real(2, prior=st.dirichlet([1.0, 1.0, 1.0])), "single numbers"),
        (lambda: sk.real(2, prior=st.multivariate_normal([0.0, 0.0])), "single numbers"),
        (lambda: sk.real(prior=st.gaussian_kde([1.0, 2.0, 4.0])), "single numbers"),
        (lambda: sk.real(2, prior=KDE), "single numbers"),
        (lambda: sk.real(prior=st.norm([0.0, 1.0])), "single numbers"),
        (lambda: sk.real(prior=st.poisson(3.0)), "a frozen distribution of scipy.stats with a"),
        (lambda: sk.real(prior=st.beta), "a frozen distribution"),
        (lambda: sk.positive(prior=3.0), "a frozen distribution"),
        (lambda: sk.positive(prior="normal"), "a frozen distribution"),
        (lambda: sk.estimated(prior=st.dirichlet([1.0, 1.0])), "single numbers"),
    ],
)
def test_what_is_no_prior_of_its_parameter_is_refused_by_name(declare, message):
    with pytest.raises(ConfigurationError, match=message):
        declare()


def test_a_scale_may_have_a_prior_without_quantiles():
    def target(**plausible):
        return sk.forward_potential(
            lambda q: q[0] * np.ones(5),
            data=np.arange(5.0),
            noise_sd=sk.estimated(prior=WithoutQuantiles()),
            parameters={"a": sk.real()},
            plausible=plausible,
        )

    made = target(a=(-1.0, 1.0), noise_sd=(0.5, 2.0))
    assert made.parameters.specs["noise_sd"].bounds == (0.0, 5.0)
    with pytest.raises(ConfigurationError, match="noise_sd"):
        target(a=(-1.0, 1.0))


KNOWN = [
    st.beta(2.0, b=4.0, loc=-1.0, scale=3.0),
    st.cauchy(0.0, 3.0),
    st.expon(1.0, 2.0),
    st.gamma(a=2.5, scale=2.0),
    st.halfcauchy(scale=2.0),
    st.halfnorm(0.0, 2.0),
    st.invgamma(3.0, scale=2.0),
    st.lognorm(s=0.5, loc=1.0, scale=3.0),
    st.norm([0.0, 1.0], [1.0, 2.0]),
    st.t(4.0, 1.0, 2.0),
    st.truncnorm(-1.0, 2.0, 1.0, 3.0),
    st.uniform(3.0, 2.0),
]


@pytest.mark.parametrize("prior", KNOWN, ids=lambda prior: prior.dist.name)
def test_closed_forms_are_the_densities_of_scipy(prior, differences):
    at = np.linspace(prior.ppf(0.01), prior.ppf(0.99), 7).reshape(7, -1) * np.ones(2)
    found, slopes = closed_form(prior)(at)
    np.testing.assert_allclose(found, prior.logpdf(at), rtol=1e-12, atol=1e-12)
    numeric = differences(lambda q: prior.logpdf(q).sum(axis=1), at)
    np.testing.assert_allclose(slopes, numeric, rtol=1e-5, atol=1e-7)


def test_other_distributions_have_no_closed_form():
    class Norm(st.rv_continuous):  # of that name, and not that density
        def _logpdf(self, x):
            return -np.abs(x)

    assert closed_form(Norm(name="norm")()) is None
    assert closed_form(st.gumbel_r()) is None
