"""Values with noise: as declared or returned, or found; and estimates of the density itself."""

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Evaluations
from surrokit.targets.estimates import noise_of
from surrokit.weighted.correction import Values, correct
from surrokit.weighted.round import Round
from surrokit.weighted.rounds import complaint_about_process

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def normal(q):
    return 0.5 * np.square(q).sum(axis=1)


def noisy(sd, seed, **declared):
    """Return a standard normal target in two dimensions, and noise of this sd in U."""
    rng = np.random.default_rng(seed)
    return sk.potential(
        lambda q: normal(q) + sd * rng.standard_normal(len(q)), dim=2, batched=True, **declared
    )


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"noise_sd": -1.0}, r"noise_sd must be a positive number, .* got -1.0"),
        ({"noise_sd": "large"}, r"noise_sd must be .* got 'large'"),
        ({"estimate": "exact"}, r"estimate must be 'unbiased', got 'exact'"),
        ({"noise_sd": 1.0, "gradient": "differences"}, r"show nothing of the gradient"),
    ],
)
def test_what_is_no_noise_is_an_error(declared, said):
    with pytest.raises(ConfigurationError, match=said):
        sk.potential(lambda q: q @ q, dim=2, **declared)


def test_noise_is_known_inside_wrappers():
    target = sk.potential(
        lambda a: a**2, parameters={"a": (0, None)}, plausible={"a": (1.0, 9.0)}, noise_sd=2
    )
    assert noise_of(target).sd == 2.0
    assert not noise_of(target).is_unbiased
    assert noise_of(sk.potential(lambda q: q @ q, dim=2)) is None


def test_noise_is_returned_beside_values():
    target = sk.potential(
        lambda q: (q @ q, {"noise_sd": 1.0 + abs(q[0])}), dim=2, noise_sd="returned"
    )
    recording = RecordingPotential(target, keep=True)
    positions = np.array([[1.0, 0.0], [3.0, 0.0]])
    recording.value(positions)
    np.testing.assert_array_equal(recording.drain().noise_sd, [2.0, 4.0])
    np.testing.assert_array_equal(recording.noise_sd(positions[::-1]), [4.0, 2.0])


def test_blocks_of_evaluations_join_with_their_noise():
    exact = Evaluations(positions=np.zeros((1, 2)), values=[1.0])
    rough = Evaluations(positions=np.ones((2, 2)), values=[1.0, 2.0], noise_sd=[0.5, np.nan])
    both = Evaluations.join([exact, rough], 2)
    np.testing.assert_array_equal(both.noise_sd, [0.0, 0.5, np.nan])
    np.testing.assert_array_equal(both.take(slice(1, 2)).noise_sd, [0.5])


@pytest.mark.parametrize("declared", [pytest.param(1.0, marks=pytest.mark.long), "estimate"])
def test_weighted_answers_are_those_of_a_process(declared):
    """Errors of all answers together: chi-square, with a rate of false alarms of 10^-4."""
    run = sk.sample(
        noisy(1.0, 4, noise_sd=declared),
        max_calls=90,
        correction=("weights", {"effective": 2000}),
        seed=4,
        progress=False,
    )
    assert not run.exact
    assert run.accepted
    assert run.total_calls <= 90
    assert run.recheck.noise_sd == pytest.approx(1.0, abs=0.5)
    (finding,) = run.verdict.named("noisy")
    assert "the answers are those of the expected log density" in finding.message
    assert not run.verdict.named("one_round")
    found = run.expectation(lambda q: q, batched=True)
    apart = found.value / found.error
    assert (found.error > 0.03).all()  # 90 exact values know it to a hundredth
    assert apart @ apart < 18.4


def test_weights_of_noisy_values_alone_would_be_biased():
    """A negative control: the largest of weights exp(noise) is most of them."""
    noise = np.random.default_rng(1).normal(0.0, 3.0, 100)
    weights = np.exp(noise - noise.max())
    assert weights.max() / weights.sum() > 0.2


def test_a_surrogate_without_a_covariance_is_rejected():
    run = sk.sample(
        noisy(1.0, 5, noise_sd=1.0),
        sampler="sub-chain",
        surrogate="additive",
        explorer="rounds",
        correction="weights",
        max_calls=90,
        seed=5,
        progress=False,
    )
    assert "the surrogate does not say how sure it is of U" in run.weights.reason
    assert run.stopped == "surrogate"
    assert "max_calls" not in run.verdict.named("unchecked")[0].message


def test_chains_on_unbiased_estimates_say_what_they_draw_from():
    parts = {"sampler": "random-walk", "draws": 50, "warmup": 50, "seed": 1, "progress": False}
    run = sk.sample(noisy(2.0, 6, estimate="unbiased"), **parts)
    assert run.exact
    assert "the mean of exp(-U)" in run.verdict.named("noisy")[0].message
    assert run.verdict.named("large_noise")  # measured at one position
    assert run.recheck.noise_sd == pytest.approx(2.0, rel=0.8)
    run = sk.sample(noisy(0.5, 6, estimate="unbiased", noise_sd=0.5), **parts)
    assert not run.verdict.named("large_noise")
    run = sk.sample(noisy(0.5, 6, noise_sd=0.5), **parts)
    assert "not of the expected log density" in run.verdict.named("noisy")[0].message


def test_what_a_process_does_not_know_is_an_error_of_means():
    """Of U + a q, with a ~ N(0, s^2), the mean of a normal draw is -a: its error is s."""
    rng = np.random.default_rng(2)
    draws = rng.standard_normal((4, 500, 1))
    found = Round(draws=draws, evaluated=np.zeros((3, 1)), log_weights=np.zeros(3), learnt=3)
    values = Values(draws, draws[:, :1], np.zeros((3, 1)))
    plain = correct(found, values)
    realisations = 0.3 * draws[:, ::4] * rng.standard_normal(400)
    doubtful = correct(attrs.evolve(found, realisations=realisations), values)
    np.testing.assert_array_equal(plain.means, doubtful.means)
    more = doubtful.of_chains - plain.of_chains
    assert np.sqrt(more[0]) == pytest.approx(0.3, rel=0.1)
    assert complaint_about_process(realisations) is None
    assert "of one of them, and 16 are needed" in complaint_about_process(40.0 * realisations)
