"""Runs begin where priors and plausible ranges say, far from zero and on any scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surrokit as sk

GRID = np.linspace(-7.0, 7.0, 421)
WARNS = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
BEGUN = {"warmup": 1, "draws": 1, "seed": 1, "progress": False}


def moments(run):
    """Return the means and standard deviations that a run answers with, (dim,) each."""
    dim = run.draws.shape[-1]
    mean = np.array([run.expectation(lambda q, i=i: q[i]).value for i in range(dim)])
    square = [run.expectation(lambda q, i=i: (q[i] - mean[i]) ** 2).value for i in range(dim)]
    return mean, np.sqrt(square)


# --- where runs begin ---

DATES = stats.norm(2.4e6, 30.0)
NEW_DATES = stats.Normal(mu=2.4e6, sigma=30.0)
DECLARED = {
    "three": (sk.real(prior=stats.norm(3.0, 0.5)), 2.0, 4.0),
    "date": (sk.real(prior=DATES), 2.4e6 - 60.0, 2.4e6 + 60.0),
    "date of a new distribution": (sk.real(prior=NEW_DATES), 2.39e6, 2.41e6),
    "days": (sk.real(prior=stats.uniform(2.4e6, 1e5)), 2.4e6, 2.5e6),
    "half a normal": (sk.positive(prior=stats.norm(0.0, 1e6)), 1e4, 1e7),
    "scale": (sk.positive(prior=stats.lognorm(0.5, scale=1e-9)), 3e-10, 3e-9),
}


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


class Bent:
    """A likelihood that is a bent normal density in (q - centre) / scale, times priors."""

    def __init__(self, centre, scale, bend, parameters, plausible=None):
        self.centre, self.scale, self.bend = np.array(centre), np.array(scale), bend
        self.parameters, self.plausible = parameters, plausible

    def value(self, q):
        z = (q - self.centre) / self.scale
        return 0.5 * float(z[0] ** 2 + self._other(*z) ** 2 / 0.64)

    def gradient(self, q):
        z = (q - self.centre) / self.scale
        slope = self._other(*z) / 0.64
        return np.array([z[0] + slope * (2.0 * self.bend * z[0] - 0.6), slope]) / self.scale

    def _other(self, a, b):
        return b + self.bend * (a * a - 1.0) - 0.6 * a

    def target(self, gradients):
        slope = self.gradient if gradients else None
        return sk.potential(self.value, slope, parameters=self.parameters, plausible=self.plausible)

    def moments(self):
        """Return means and standard deviations, by a grid."""
        z = np.meshgrid(GRID, GRID, indexing="ij")
        height = -0.5 * (z[0] ** 2 + self._other(*z) ** 2 / 0.64)
        for i, spec in enumerate(self.parameters.values()):
            q = self.centre[i] + self.scale[i] * z[i]
            if spec is not None and spec.prior is not None:
                height = height + spec.prior.logpdf(q)
            if spec is not None and spec.bounds[0] == 0.0:
                height = np.where(q > 0.0, height, -np.inf)
        mass = np.exp(height - height.max())
        mass /= mass.sum()
        mean = np.array([(mass * each).sum() for each in z])
        sd = np.sqrt([(mass * each**2).sum() - m**2 for each, m in zip(z, mean, strict=True)])
        return self.centre + self.scale * mean, self.scale * sd

    def is_right(self, run, wrong):
        """Return whether means and standard deviations are those of a grid."""
        (mean, sd), (means, sds) = self.moments(), moments(run)
        near = np.abs((means - mean) / sd).max() < wrong
        return near and np.abs(np.log(sds / sd)).max() < wrong


def normal(mean, sd):
    return sk.real(prior=stats.norm(mean, sd))


DAY = sk.interval(2.39e6, 2.41e6, prior=stats.norm(2.4e6, 2e3))
FAR = {
    "a date and a rate": Bent(
        [2_459_030.0, 3e-7],
        [20.0, 3e-8],
        0.1,
        {"date": normal(2_459_000.0, 100.0), "rate": normal(2e-7, 1e-7)},
    ),
    "scales 10^12 apart": Bent(
        [7e6, 4e-7], [1e6, 1e-6], 0.15, {"m": normal(5e6, 3e6), "s": normal(3e-6, 2e-6)}
    ),
    "an amplitude and a day": Bent(
        [6e5, 2_400_400.0],
        [8e4, 300.0],
        0.0,
        {"amplitude": sk.positive(prior=stats.norm(0.0, 1e6)), "day": DAY},
    ),
    "boxes": Bent(
        [1.1e6, 5e-7],
        [1e4, 3e-8],
        0.2,
        {"a": None, "b": sk.positive()},
        {"a": (1e6, 1.2e6), "b": (1e-7, 1e-6)},
    ),
}


@WARNS
def test_a_prior_away_from_zero_is_where_values_alone_are_looked_for():
    parameters = {"a": normal(43.0, 1.0), "b": normal(-57.0, 1.0)}
    bent = Bent([43.5, -57.5], [0.3, 0.2], 0.1, parameters)
    parts = {"surrogate": "gp", "explorer": "active", "correction": "metropolis"}
    run = sk.sample(bent.target(False), **parts, max_calls=100, seed=1, progress=False)
    assert bent.is_right(run, 0.6)  # five Monte Carlo errors of 70 effective draws


@pytest.mark.long
@WARNS
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("name", FAR)
def test_targets_far_from_zero_and_of_any_scale_come_out_right_from_few_calls(
    name, gradients, seed
):
    explorer = "rounds" if gradients else "active"
    parts = {"surrogate": "gp", "explorer": explorer, "correction": "weights"}
    target = FAR[name].target(gradients)
    run = sk.sample(target, **parts, max_calls=30 * 2, seed=seed, progress=False)
    assert run.total_calls <= 60
    said = str(run.verdict)
    refused = "the draws are not exact" in said or "independent draws where 100" in said
    right = FAR[name].is_right(run, 0.3)
    assert right or (gradients and refused and "raise max_calls" in said)
