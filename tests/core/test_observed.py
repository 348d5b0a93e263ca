"""Data of forward maps: families of errors, and scales that are parameters."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.special import ndtri

import surrokit as sk
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.targets.gaussian import Priors
from surrokit.targets.noise import HalfStudent
from surrokit.testing import check_potential

TIMES = np.array([0.0, 0.5, 1.0, 1.5])
DATA = np.array([2.0, 1.4, 0.8, 0.7])
COUNTS = np.array([3.0, 0.0, 2.0, 1.0])
PRIOR = sk.gaussian_prior(mean=[1.0, 0.5], sd=[2.0, 1.0])
FLAT = scipy.stats.uniform(0, 1e6)


def on_line(scale):
    """Return a scale with that prior where it is sampled."""
    return ndtri(scale / 1e6)


def forward(q):
    return q[0] * np.exp(-q[1] * TIMES)


def jacobian(q):
    decay = np.exp(-q[1] * TIMES)
    return np.column_stack([decay, -q[0] * TIMES * decay])


def vjp(q, weights):
    return jacobian(q).T @ weights


def target(data=DATA, noise_sd=None, **options):
    given = {"dim": 2, "jacobian": jacobian, **options}
    return sk.forward_potential(forward, data=data, noise_sd=noise_sd, **given)


@pytest.fixture
def q(rng):
    return np.abs(rng.standard_normal((5, 2))) + 0.2


def assert_conforms(make, check="check_"):
    results = check_potential(make)
    assert [r.message for r in results if r.outcome != "passed"] == []
    assert any(r.name.startswith(check) for r in results)


def up_to_a_constant(found, expected):
    assert_allclose(found - found[0], expected - expected[0], rtol=1e-9, atol=1e-9)


# --- families ---


@pytest.mark.parametrize(
    ("data", "log_density"),
    [
        (sk.observed(DATA, 0.3), lambda f: scipy.stats.norm(f, 0.3).logpdf(DATA)),
        (
            sk.observed(DATA, [0.1, 0.2, 0.3, 0.4], family="student", degrees=3.0),
            lambda f: scipy.stats.t(3.0, f, [0.1, 0.2, 0.3, 0.4]).logpdf(DATA),
        ),
        (
            sk.observed(DATA, 0.3, family="student"),
            lambda f: scipy.stats.t(4.0, f, 0.3).logpdf(DATA),
        ),
        (
            sk.observed(DATA, 0.3, family="lognormal"),
            lambda f: scipy.stats.lognorm(0.3, scale=f).logpdf(DATA),
        ),
        (
            sk.observed(COUNTS, family="poisson"),
            lambda f: scipy.stats.poisson(f).logpmf(COUNTS),
        ),
        (
            sk.observed(COUNTS, family="poisson", link="log"),
            lambda f: scipy.stats.poisson(np.exp(f)).logpmf(COUNTS),
        ),
    ],
)
def test_the_value_is_minus_the_log_likelihood(data, log_density, q):
    expected = [-log_density(forward(x)).sum() for x in q]
    up_to_a_constant(target(data).value(q), np.array(expected))


FAMILIES = [
    sk.observed(DATA, "estimate"),
    sk.observed(DATA, "estimate", family="student", degrees=2.5),
    sk.observed(DATA, "estimate", family="lognormal"),
    sk.observed(DATA, sk.estimated([1, 0, 1, 0])),
    sk.observed(COUNTS, family="poisson"),
    sk.observed(COUNTS, family="poisson", link="log"),
]


IN_LOGS = np.column_stack([np.ones(4), -TIMES])


def decay(q):
    return np.exp(np.clip(IN_LOGS @ q, -300.0, 300.0))


def decay_jacobian(q):
    return decay(q)[:, None] * IN_LOGS


def decay_hessian(q):
    return decay(q)[:, None, None] * (IN_LOGS[:, :, None] * IN_LOGS[:, None, :])


def decay_vjp(q, weights):
    return decay_jacobian(q).T @ weights


SECOND = {"jacobian": decay_jacobian, "hessian": decay_hessian}


@pytest.mark.parametrize(
    ("data", "derivatives"),
    [
        *((data, SECOND) for data in FAMILIES),
        (sk.observed(DATA, 0.4, family="student"), SECOND),
        (sk.observed(DATA, 0.4, family="lognormal"), SECOND),
        (FAMILIES[1], {"jacobian": decay_jacobian}),
        (FAMILIES[3], {"vjp": decay_vjp}),
        (FAMILIES[4], {"vjp": decay_vjp}),
    ],
)
def test_families_keep_to_the_contract(data, derivatives):
    """Values, gradients, adjoints, curvatures and metrics agree with one another."""
    found = sk.forward_potential(decay, data=data, prior=PRIOR, dim=2, **derivatives)
    assert_conforms(lambda: found, "check_energy_curvatures")


@pytest.mark.statistical
@pytest.mark.parametrize("data", FAMILIES)
def test_information_is_the_expected_square_of_slopes(data, rng):
    """False-alarm rate 1e-4 over all: five standard errors of a mean of 200 000 squares."""
    family, n = data.family, 200_000
    output, scale = np.full((n, 1), 1.7), np.full((n, 1), 0.6)
    drawn = {
        "gaussian": lambda: scipy.stats.norm(1.7, 0.6).rvs(n, random_state=rng),
        "student": lambda: scipy.stats.t(2.5, 1.7, 0.6).rvs(n, random_state=rng),
        "lognormal": lambda: scipy.stats.lognorm(0.6, scale=1.7).rvs(n, random_state=rng),
        "poisson": lambda: scipy.stats.poisson(np.exp(1.7) if family.link == "log" else 1.7).rvs(
            n, random_state=rng
        ),
    }[family.name]()
    slopes_of_both = family.value_and_slopes(output, drawn[:, None].astype(float), scale)[1:]
    for slopes, known in zip(slopes_of_both, family.information(output, scale), strict=True):
        squares = np.square(slopes[:, 0])
        error = squares.std() / np.sqrt(n)
        assert abs(squares.mean() - known[0, 0]) <= 5 * error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # callers ignore these
@pytest.mark.parametrize("data", FAMILIES)
def test_nothing_is_a_density_outside_the_support_of_a_family(data):
    scale, outputs = np.ones((3, 4)), np.full((3, 4), 1.0)
    outputs[0, 2], outputs[1, 1] = np.nan, -1.0
    values, slopes, _ = data.family.value_and_slopes(outputs, data.data, scale)
    assert np.isnan(values[0, 2])
    needs_positive = data.family.name in ("lognormal", "poisson") and data.family.link != "log"
    assert np.isinf(values[1, 1]) == needs_positive
    assert np.isnan(slopes[1, 1]) == needs_positive
    assert np.isfinite(values[2]).all()
    if data.family.has_scale:
        at_zero = data.family.value_and_slopes(outputs[2:], data.data, 0.0 * scale[2:])
        assert (at_zero[0] == np.inf).all()
    elif needs_positive:  # a count of nothing has a mean of nothing
        zero = np.zeros((1, 1))
        assert data.family.value_and_slopes(zero, np.zeros(1), zero)[:2] == (0.0, 1.0)


# --- scales ---


def test_an_unknown_scale_is_a_parameter_with_a_prior(q):
    known, unknown = target(noise_sd=0.3), target(noise_sd="estimate")
    assert unknown.parameters.labels == ["q[0]", "q[1]", "noise_sd"]
    at = np.column_stack([q, np.full(5, np.log(0.3))])
    up_to_a_constant(unknown.value(at), known.value(q))
    sds = np.linspace(0.2, 2.0, 5)
    at = np.column_stack([np.tile(q[0], (5, 1)), np.log(sds)])
    log_prior = HalfStudent(2.5 * DATA.std()).logpdf(sds) + np.log(sds)  # and the Jacobian
    log_density = [scipy.stats.norm(forward(q[0]), sd).logpdf(DATA).sum() for sd in sds]
    up_to_a_constant(unknown.value(at), -(log_density + log_prior))


def test_the_usual_prior_of_a_scale_is_half_of_a_students_t():
    x = np.linspace(0.1, 5.0, 7)[:, None]
    half = HalfStudent(np.array([0.7]))
    assert_allclose(half.logpdf(x), np.log(2.0) + scipy.stats.t(3, 0, 0.7).logpdf(x))
    assert half.logpdf(np.array([[-0.1]])) == -np.inf


def test_scales_are_of_groups(q):
    unknown = target(noise_sd=sk.estimated([0, 1, 0, 1], prior=FLAT, name="tau"))
    assert unknown.parameters.labels[2:] == ["tau[0]", "tau[1]"]
    sds = np.array([0.3, 0.6])
    at = np.column_stack([q, np.tile(on_line(sds), (5, 1))])
    up_to_a_constant(unknown.value(at), target(noise_sd=np.tile(sds, 2)).value(q))
    information = np.einsum("nii->ni", unknown.metric(at)[:, 2:, 2:])
    slopes = np.exp(scipy.stats.norm.logpdf(on_line(sds)) - np.log(sds / 1e6))  # of the logarithms
    assert_allclose(information, np.tile(4.0 * slopes**2 + 1.0, (5, 1)), rtol=1e-6)


def test_priors_beside_parameters_go_with_an_unknown_scale(q, differences):
    declared = {"height": scipy.stats.norm(5, 5), "rate": sk.real()}
    instead = {"height": scipy.stats.norm(1, 2)}
    found = sk.forward_potential(
        forward, jacobian, data=DATA, noise_sd="estimate", parameters=declared, prior=instead
    )
    flat = target(noise_sd="estimate")
    z = np.column_stack([q, np.full(5, -1.0)])
    up_to_a_constant(found.value(z) - flat.value(z), 0.5 * np.square((q[:, 0] - 1) / 2))
    assert_allclose(
        found.value_and_gradient(z)[1], differences(found.value, z), rtol=1e-5, atol=1e-5
    )
    assert_allclose((found.metric(z) - flat.metric(z))[:, 0, 0], 0.25)
    assert_conforms(lambda: found)


def test_priors_have_slopes_inside_their_support_and_a_metric_if_they_have_a_variance():
    def of(**declared):
        return Priors.of(sk.Parameters.declare(declared))

    for x in (1e-14, 1.0 - 1e-14):
        at = np.array([[x]])
        flat = of(a=sk.interval(0, 1, prior=scipy.stats.uniform()))
        assert_allclose(flat.value_and_gradient(at)[1], 0.0)
        half = of(a=sk.positive(prior=scipy.stats.expon()))
        assert_allclose(half.value_and_gradient(at)[1], 1.0, rtol=1e-4)
    wide = of(a=sk.real(prior=scipy.stats.cauchy()), b=sk.real(2, prior=HalfStudent(np.ones(1))))
    assert not wide.metric(np.zeros((2, 3))).any()


def test_functions_of_rows_take_no_scales_either(q):
    def rows(x):
        assert x.shape[1] == 2
        return np.array([forward(each) for each in x])

    many = sk.forward_potential(
        rows,
        lambda x: np.array([jacobian(each) for each in x]),
        data=DATA,
        noise_sd="estimate",
        dim=2,
        prior=PRIOR,
        batched=True,
    )
    z = np.column_stack([q, np.full(5, -1.0)])
    one = target(noise_sd="estimate", prior=PRIOR)
    assert_allclose(many.value_and_gradient(z)[1], one.value_and_gradient(z)[1])


def test_scales_begin_where_their_data_scatter(rng):
    ranges = {"q": (0.5, 1.0)}
    scale = sk.estimated([0, 0, 1, 1])
    z = target(noise_sd=scale, plausible=ranges).initial(rng, 200)
    sds = np.array([DATA[:2].std(), DATA[2:].std()])
    ratio = np.exp(z[:, 2:]) / sds
    assert (ratio > 0.5).all()
    assert (ratio < 4.0).all()
    assert np.ptp(ratio) > 0.5
    own = sk.estimated(prior=scipy.stats.gamma(3))
    z = target(noise_sd=own, plausible=ranges).initial(rng, 200)
    assert (np.exp(z[:, 2]) >= scipy.stats.gamma(3).ppf(0.25)).all()
    z = target(noise_sd=own, plausible={**ranges, "noise_sd": (4.0, 4.1)}).initial(rng, 20)
    assert (np.exp(z[:, 2]) >= 4.0).all()
    with pytest.raises(
        ConfigurationError, match="for each of the parameters q, noise_sd, got noise"
    ):
        target(
            noise_sd="estimate", dim=None, parameters={"q": sk.real(2, prior=FLAT)}, plausible={}
        )
    # data that do not scatter have a prior too
    same = target(np.full(4, 3.0), noise_sd="estimate").parameters.specs["noise_sd"].prior
    zero = target(np.zeros(4), noise_sd="estimate").parameters.specs["noise_sd"].prior
    assert_allclose([same.scale[0], zero.scale[0]], [7.5, 2.5])


# --- several data sets ---


def rates(q):
    return np.array([q[0] + 1.0, q[1] + 2.0, q[0] * q[1] + 1.0])


def slopes_of_rates(q):
    return np.array([[1.0, 0.0], [0.0, 1.0], [q[1], q[0]]])


SETS = {
    "heights": sk.observed(DATA, "estimate"),
    "visits": sk.observed([1.0, 4.0, 2.0], family="poisson"),
    "depths": sk.observed(DATA, sk.estimated([0, 1, 1, 0], prior=FLAT)),
}


def joined():
    return sk.forward_potential(
        lambda x: np.concatenate([forward(x), rates(x), forward(x)]),
        lambda x: np.concatenate([jacobian(x), slopes_of_rates(x), jacobian(x)]),
        data=SETS,
        prior=PRIOR,
        dim=2,
    )


def test_several_data_sets_have_their_own_errors(q):
    found = joined()
    assert found.parameters.labels[2:] == ["scale_heights", "scale_depths[0]", "scale_depths[1]"]
    sds = on_line(np.array([0.2, 0.6]))
    z = np.column_stack([q, np.full(5, np.log(0.3)), np.tile(sds, (5, 1))])
    expected = target(noise_sd=0.3, prior=PRIOR).value(q)
    expected += [-scipy.stats.poisson(rates(x)).logpmf(SETS["visits"].data).sum() for x in q]
    expected += target(noise_sd=[0.2, 0.6, 0.6, 0.2]).value(q)
    up_to_a_constant(found.value(z), expected)
    assert found.forward(z).shape == (5, 11)
    assert_conforms(joined)


# --- what is refused ---


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((COUNTS - 1.0, None, {"family": "poisson"}), r"counts 0, 1, 2, ..., got -1 at \[1\]"),
        (([0.5], None, {"family": "poisson"}), r"counts 0, 1, 2, ..., got 0.5 at \[0\]"),
        (([1.0, 0.0], 1.0, {"family": "lognormal"}), r"must be positive, got 0 at \[1\]"),
        (([1.0, np.nan], 1.0, {}), r"data must be finite, got nan at \[1\]"),
        (([1.0], None, {}), "'gaussian' needs scale, that of the errors; give scale='estimate'"),
        (([1.0], 1.0, {"family": "poisson"}), "scale is given, but the family 'poisson' has none"),
        (([1.0], 1.0, {"family": "tweedie"}), "one of gaussian, student, lognormal, poisson, got"),
        (([1.0], 1.0, {"degrees": 3.0}), "degrees are of the family 'student', not of 'gaussian'"),
        (([1.0], 1.0, {"family": "student", "degrees": 0.0}), "degrees must be a positive"),
        (([1.0], 1.0, {"link": "log"}), "link is of the family 'poisson', not of 'gaussian'"),
        (([1.0], None, {"family": "poisson", "link": "sqrt"}), "'identity' or 'log', got 'sqrt'"),
        (([1.0], -1.0, {}), "scale must be positive and finite"),
    ],
)
def test_data_that_make_no_sense_are_refused(given, said):
    with pytest.raises(ConfigurationError, match=said):
        sk.observed(given[0], given[1], **given[2])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: sk.observed([[1.0]], 1.0), r"data must have shape \(m,\), got \(1, 1\)"),
        (lambda: sk.observed([], 1.0), r"data must have shape \(m,\), got \(0,\)"),
        (lambda: sk.observed(DATA, [1.0, 1.0]), r"shape of data, \(4,\), got \(2,\)"),
        (lambda: sk.observed(DATA, ["a"]), "scale must be numbers"),
        (lambda: sk.observed(DATA, sk.estimated([0, 1])), "each of the 4 data, got 2"),
        (lambda: target(sk.observed(DATA[:3], "estimate")).value(np.ones((1, 3))), "gives 4 out"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(given, said):
    with pytest.raises(ShapeError, match=said):
        given()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"groups": [0, 2, 2]}, "from 0 on and none left out"),
        ({"groups": [0.0, 1.0]}, "one whole number for each datum"),
        ({"groups": [[0, 1]]}, "one whole number for each datum"),
        ({"groups": [-1, 0]}, "from 0 on and none left out"),
        ({"name": 3}, "must be text, got 3"),
    ],
)
def test_scales_that_make_no_sense_are_refused(given, said):
    with pytest.raises(ConfigurationError, match=said):
        sk.estimated(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"noise_sd": "estimate", "parameters": {"a": None, "noise_sd": (0, None)}},
            "would be the parameter 'noise_sd', which is declared already",
        ),
        ({"data": sk.observed(DATA, 1.0), "noise_sd": 1.0}, "noise_sd is given beside"),
        ({"data": {}}, "must hold at least one set, got none"),
        ({"data": {"a": DATA}}, r"dictionary of names and surrokit.observed\(...\), got 'a'"),
    ],
)
def test_what_does_not_go_with_the_parameters_is_refused(given, said):
    with pytest.raises(ConfigurationError, match=said):
        sk.forward_potential(forward, **{"data": DATA, "parameters": {"a": None}, **given})


def test_derivatives_in_a_scale_are_refused_as_they_are_none_of_the_maps(q):
    wrong = target(noise_sd="estimate", jacobian=lambda x: np.ones((4, 3)))
    with pytest.raises(ShapeError, match=r"must return shape \(4, 2\), got \(4, 3\); parameters"):
        wrong.value_and_gradient(np.ones((1, 3)))


# --- draws ---


@pytest.mark.statistical
@pytest.mark.long
def test_a_surrogate_of_the_outputs_gives_exact_draws_of_an_unknown_scale():
    """The mean of the posterior by quadrature; false-alarm rate 1e-5 (4.5 standard errors)."""
    data = np.array([0.3, 1.1, 0.7, 1.9, 0.4, 1.2, 0.8, 1.4])
    found = sk.forward_potential(
        lambda x: np.repeat(x, 8),
        lambda x: np.ones((8, 1)),
        data=data,
        noise_sd=sk.estimated(prior=scipy.stats.gamma(4, scale=0.2)),
        prior=sk.gaussian_prior(0.0, 2.0),
        dim=1,
    )
    run = sk.sample(found, surrogate="additive", draws=1000, seed=3, progress=False)
    mean, sd = np.meshgrid(np.linspace(-2, 4, 801), np.linspace(0.01, 3, 801), indexing="ij")
    log = scipy.stats.norm(mean[..., None], sd[..., None]).logpdf(data).sum(axis=-1)
    log += scipy.stats.norm(0, 2).logpdf(mean) + scipy.stats.gamma(4, scale=0.2).logpdf(sd)
    weights = np.exp(log - log.max())
    expected = (weights * sd).sum() / weights.sum()
    error = run["noise_sd"].std() / np.sqrt(run.ess("bulk")[1])
    assert run.outputs.shape == (4, 1000, 8)
    assert abs(run["noise_sd"].mean() - expected) < 4.5 * error
