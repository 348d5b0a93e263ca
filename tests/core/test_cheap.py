"""A cheap model beside the target: what it lacks is learnt, its failures cost no exactness."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

import surrokit as sk
from surrokit.cheap import cheap_learner
from surrokit.errors import CapabilityError, ConfigurationError, ShapeError
from surrokit.interfaces import LearningProblem
from surrokit.potentials import with_gradient
from surrokit.targets.bounds import transform_of
from surrokit.targets.cheap import cheap_of
from surrokit.targets.scaling import scaled

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
SDS = np.array([1.0, 0.5])
PARTS = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds", "progress": False}


def value(q):
    return 0.5 * np.square(q / SDS).sum(axis=-1) + 0.2 * np.sin(q).sum(axis=-1)


def gradient(q):
    return q / SDS**2 + 0.2 * np.cos(q)


def rough(q):
    return 0.4 * np.square(q / SDS).sum(axis=-1) + 7.0


def rough_gradient(q):
    return 0.8 * q / SDS**2


def fine():
    return sk.potential(value, gradient, dim=2, batched=True)


def coarse(fails=None):
    def both(q):
        values, gradients = rough(q), rough_gradient(q)
        if fails is not None:
            bad = fails(q)
            values, gradients = np.where(bad, np.nan, values), np.where(bad[:, None], 0, gradients)
        return values, gradients

    return sk.potential(value_and_gradient=both, dim=2, batched=True)


def learner_of(cheap, surrogate="additive"):
    target = fine()
    problem = LearningProblem(dim=2, capabilities=target.capabilities, is_density=True)
    made = sk.make("surrogate", surrogate)
    return cheap_learner(made, problem, cheap, np.random.default_rng(1))


def rows(n, seed=2):
    positions = np.random.default_rng(seed).standard_normal((n, 2)) * SDS
    return sk.Evaluations(
        positions=positions, values=value(positions), gradients=gradient(positions)
    )


@pytest.mark.parametrize("surrogate", ["additive", "quadratic", "gp", "quadratic-gp"])
def test_every_surrogate_learns_what_the_cheap_model_lacks(surrogate):
    learner = learner_of(coarse(), surrogate)
    alone = learner.fit()
    at = rows(200, 3).positions
    np.testing.assert_allclose(alone.value(at), rough(at))
    learner.observe(rows(40))
    found = learner.fit()
    errors = found.value(at) - value(at)
    assert np.std(errors) < 0.3 * np.std(rough(at) - value(at))
    copied = learner.restore(learner.state()).fit()
    np.testing.assert_array_equal(copied.value(at), found.value(at))


def test_gradients_are_those_of_values_far_out_and_where_the_cheap_model_fails():
    learner = learner_of(coarse(lambda q: q[:, 0] > 1.0))
    learner.observe(rows(40))
    found = learner.fit()
    at = np.array([[0.3, -0.2], [4.0, 3.0], [-9.0, 5.0], [1.4, 0.1]])
    step = 1e-5
    moves = np.concatenate([at + step * e for e in np.eye(2)] + [at - step * e for e in np.eye(2)])
    values = found.value(moves).reshape(2, 2, -1)
    differences = ((values[0] - values[1]) / (2 * step)).T
    values, gradients = with_gradient(found).value_and_gradient(at)
    assert np.isfinite(values).all()
    np.testing.assert_allclose(gradients, differences, rtol=1e-4, atol=1e-4)
    assert learner.cheap.failures


def test_a_cheap_model_moves_with_the_coordinates():
    parameters = {"a": (0, None), "b": None}
    ranges = {"a": (1.0, 90.0), "b": (-50.0, 10.0)}

    def of(factor):
        return sk.potential(
            lambda a, b: factor * (a + b**2), parameters=parameters, plausible=ranges
        )

    target = scaled(sk.with_cheap(of(1.0), of(3.0)))
    at = np.array([[0.1, 0.2], [-0.5, 1.0]])
    volume = transform_of(target).log_jacobian(at)
    ratio = (cheap_of(target).value(at) + volume) / (target.value(at) + volume)
    np.testing.assert_allclose(ratio, 3.0)


def test_what_is_no_cheap_model_is_an_error():
    with pytest.raises(ConfigurationError, match="a cheap model must be a potential, or a run"):
        sk.with_cheap(fine(), rough)
    with pytest.raises(ShapeError, match=r"the cheap model has 3 parameters .* Declare the same"):
        sk.with_cheap(fine(), sk.potential(rough, dim=3))
    without = sk.with_cheap(fine(), sk.potential(rough, dim=2, batched=True))
    with pytest.raises(CapabilityError, match="pass a run of it, whose surrogate has one"):
        sk.sample(without, **PARTS)
    strange = sk.potential(rough, lambda q: q[:, :1], dim=2, batched=True)
    with pytest.raises(ShapeError, match="the gradient function"):
        sk.sample(sk.with_cheap(fine(), strange), **PARTS)


@pytest.mark.parametrize("fails", [None, lambda q: q[:, 0] > 1.0])
def test_sub_chains_from_exact_starts_stay_exact(fails):
    """Starts are exact draws, so that their ends are: two tests at a level of 10^-4 each.

    The negative control is the cheap model's own density, which the same test rejects.
    """
    rng = np.random.default_rng(11)
    draws = rng.standard_normal((40_000, 2)) * SDS * 1.2
    logs = -value(draws) + 0.5 * np.square(draws / SDS / 1.2).sum(axis=1)
    exact = draws[rng.random(len(draws)) < np.exp(logs - logs.max())]
    starts, others = exact[:2000], exact[2000:]
    learner = learner_of(coarse(fails))
    learner.observe(rows(12))
    surrogate = learner.fit()
    run = sk.sample(
        fine(),
        sampler=("sub-chain", {"kernel": ("hmc", {"step_size": 0.4, "n_steps": 2}), "length": 3}),
        surrogate=surrogate,
        chains=len(starts),
        initial=starts,
        warmup=0,
        draws=4,
        seed=12,
        progress=False,
    )
    ends = run.draws[:, -1]
    assert (ends != starts).mean() > 0.5
    for k in range(2):
        assert ks_2samp(ends[:, k], others[:, k]).pvalue > 1e-4
    wrong = rng.standard_normal((20_000, 2)) * SDS / np.sqrt(0.8)
    assert ks_2samp(wrong[:, 1], others[:, 1]).pvalue < 1e-4


@pytest.mark.parametrize(("calls", "explored"), [(24, 4), (40, 9)])
def test_a_good_cheap_model_leaves_nearly_all_of_few_calls_to_the_answer(calls, explored):
    near = sk.potential(
        lambda q: 1.03 * value(q), lambda q: 1.03 * gradient(q), dim=2, batched=True
    )
    weights = ("weights", {"effective": 1000, "warmup": 100})
    target = sk.with_cheap(fine(), near)
    run = sk.sample(target, correction=weights, max_calls=calls, seed=1, **PARTS)
    assert run.accepted
    in_the_round = len(run.answer.rounds[0].evaluated) + 4  # where its surrogate ends
    assert run.total_calls - in_the_round == explored


@pytest.mark.long
def test_calls_of_both_are_counted_apart():
    target = sk.with_cheap(fine(), coarse(lambda q: q[:, 0] > 1.5))
    run = sk.sample(target, draws=20, seed=1, max_calls=2000, **PARTS)
    assert run.exact
    assert run.calls["cheap"] > 0
    assert run.total_calls == sum(n for kind, n in run.calls.items() if kind != "cheap")
    (finding,) = run.verdict.named("cheap_failed")
    assert "where a normal density stands for it" in finding.message


@pytest.mark.long
def test_a_cheap_model_that_always_fails_costs_no_exactness():
    def broken(q):
        raise RuntimeError("no mesh")

    target = sk.with_cheap(fine(), sk.potential(broken, broken, dim=2))
    run = sk.sample(target, draws=20, seed=1, **PARTS)
    assert run.exact
    assert run.recheck.cheap_failed
    assert np.isfinite(run.draws).all()


@pytest.mark.long
def test_outputs_of_a_cheap_map_are_corrected_and_a_run_is_a_cheap_model():
    def target(shift):
        return sk.forward_potential(
            lambda q: np.stack([q[:, 0] + shift * np.sin(q[:, 1]), q[:, 1]], axis=1),
            lambda q: np.stack(
                [
                    np.stack([np.ones(len(q)), shift * np.cos(q[:, 1])], axis=1),
                    np.tile([0.0, 1.0], (len(q), 1)),
                ],
                axis=1,
            ),
            data=[0.3, -0.2],
            noise_sd=0.5,
            prior=sk.gaussian_prior(0.0, 1.0),
            dim=2,
            batched=True,
        )

    first = sk.sample(target(0.0), draws=20, seed=1, **PARTS)
    for cheap in (target(0.0), first):
        run = sk.sample(sk.with_cheap(target(0.3), cheap), draws=20, seed=1, **PARTS)
        assert run.exact
        assert run.acceptance.mean() > 0.9
        assert bool(run.calls["cheap"]) == (cheap is not first)
        places = run.kept.positions.reshape(-1, 2)
        outputs = run.surrogate.forward(places)
        np.testing.assert_allclose(outputs[:, 1], places[:, 1], atol=0.05)
