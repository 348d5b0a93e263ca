"""Runs begin where priors and plausible ranges say, far from zero and on any scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surrokit as sk

WARNS = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
BEGUN = {"warmup": 1, "draws": 1, "seed": 1, "progress": False}


# --- where runs begin ---

DATES = stats.norm(2.4e6, 30.0)
DECLARED = {
    "three": (sk.real(prior=stats.norm(3.0, 0.5)), 2.0, 4.0),
    "date": (sk.real(prior=DATES), 2.4e6 - 60.0, 2.4e6 + 60.0),
    "days": (sk.real(prior=stats.uniform(2.4e6, 1e5)), 2.4e6, 2.5e6),
    "half a normal": (sk.positive(prior=stats.norm(0.0, 1e6)), 1e4, 1e7),
    "scale": (sk.positive(prior=stats.lognorm(0.5, scale=1e-9)), 3e-10, 3e-9),
}
if hasattr(stats, "Normal"):  # in later versions of SciPy
    NEW_DATES = stats.Normal(mu=2.4e6, sigma=30.0)
    DECLARED["date of a new distribution"] = (sk.real(prior=NEW_DATES), 2.39e6, 2.41e6)


def first_positions(spec, sampler="random-walk", plausible=None, **settings):
    """Return where a flat density of one number is evaluated at first, shape (4,)."""
    seen = []

    def log_density(a):
        seen.append(float(a))
        return 0.0

    target = sk.potential(log_density=log_density, parameters={"a": spec}, plausible=plausible)
    sk.sample(target, sampler=sampler, **BEGUN, **settings)
    return np.array(seen[:4])


@WARNS
@pytest.mark.parametrize(
    "sampler", ["random-walk", ("random-walk", {"step_size": 1e-3})], ids=["tuned", "own step"]
)
@pytest.mark.parametrize("name", DECLARED)
def test_chains_start_where_a_prior_is(name, sampler):
    spec, low, high = DECLARED[name]
    first = first_positions(spec, sampler)
    assert (first > low).all()
    assert (first < high).all()
    assert len(set(first)) == 4


@WARNS
def test_initial_positions_and_plausible_ranges_come_before_priors():
    spec, day = sk.real(prior=DATES), 2_400_100.0
    assert first_positions(spec, initial={"a": day}) == pytest.approx(day, abs=1e-6)
    first = first_positions(spec, plausible={"a": (day, day + 10.0)})
    assert ((first > day) & (first < day + 10.0)).all()


@WARNS
@pytest.mark.parametrize("data", [[1e6, 1.2e6], [1e-7, 2e-7]])
def test_forward_models_start_where_their_normal_prior_and_their_noise_are(data):
    seen = []

    def forward(q):
        seen.append(q.copy())
        return np.mean(data) + 0.0 * q[:2]

    target = sk.forward_potential(
        forward,
        data=np.array(data),
        noise_sd="estimate",
        prior=sk.gaussian_prior([43.0, 1e5], [1.0, np.inf]),
        parameters={"a": None, "b": None},
    )
    run = sk.sample(target, sampler="random-walk", **BEGUN)
    assert np.abs(np.array(seen[:4])[:, 0] - 43.0).max() < 2.1
    assert np.abs(np.array(seen[:4])[:, 1]).max() < 2.1
    typical = 2.5 * np.std(data)
    assert ((run["noise_sd"] > 0.01 * typical) & (run["noise_sd"] < 100.0 * typical)).all()


# --- targets far from zero, from thirty calls for each dimension ---

FAR = {
    "tens": ([43.5, -57.5], [0.3, 0.2], [stats.norm(43.0, 1.0), stats.norm(-57.0, 1.0)]),
    "a date and a rate": (
        [2_459_030.0, 3e-7],
        [20.0, 3e-8],
        [stats.norm(2_459_000.0, 100.0), stats.norm(2e-7, 1e-7)],
    ),
}


@WARNS
@pytest.mark.parametrize(
    "gradients", [pytest.param(False, marks=pytest.mark.long), True], ids=["values", "gradients"]
)
@pytest.mark.parametrize(
    "name", ["tens", pytest.param("a date and a rate", marks=pytest.mark.long)]
)
def test_normal_targets_far_from_zero_come_out_right_from_few_calls(name, gradients):
    """Likelihood and priors are normal, and so is their product."""
    centre, sd, priors = map(np.array, FAR[name])
    inverse = np.linalg.inv([[1.0, 0.6], [0.6, 1.0]]) / np.outer(sd, sd)
    target = sk.potential(
        lambda q: 0.5 * (q - centre) @ inverse @ (q - centre),
        (lambda q: inverse @ (q - centre)) if gradients else None,
        parameters={name: sk.real(prior=prior) for name, prior in zip("ab", priors, strict=True)},
    )
    parts = {"surrogate": "gp", "explorer": "rounds" if gradients else "active"}
    run = sk.sample(target, **parts, correction="weights", max_calls=60, seed=1, progress=False)
    assert run.total_calls <= 60
    precision = np.diag([prior.std() ** -2.0 for prior in priors])
    covariance = np.linalg.inv(inverse + precision)
    mean = covariance @ (inverse @ centre + precision @ [prior.mean() for prior in priors])
    sds = np.sqrt(np.diag(covariance))
    for i in range(2):
        assert abs(run.expectation(lambda q, i=i: q[i]).value - mean[i]) < 0.3 * sds[i]
        square = run.expectation(lambda q, i=i: (q[i] - mean[i]) ** 2).value
        assert abs(np.log(square) / 2 - np.log(sds[i])) < 0.3
