"""Modes that no search has found: what a verdict says of them, and when it says nothing."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.modes import Modes
from surrokit.result.advice import modes_left

CHANNELS = np.linspace(0.0, 10.0, 80)
LINES = {"a1": (0, 10), "c1": (0, 10), "a2": (0, 10), "c2": (0, 10), "floor": None}
NOISE = 0.3


def shapes(q):
    return [np.exp(-0.5 * ((CHANNELS - q[k]) / 0.4) ** 2) for k in (1, 3)]


def spectrum(q):
    one, other = shapes(q)
    return q[0] * one + q[2] * other + q[4]


@pytest.fixture(scope="module")
def two_lines():
    """Two equal spectral lines: labels exchange, so half of the mass is at c1 > c2."""
    noise = NOISE * np.random.default_rng(0).standard_normal(len(CHANNELS))
    data = spectrum([3.0, 3.5, 3.0, 6.5, 0.5]) + noise

    def log_density(q):
        return -0.5 * np.square((data - spectrum(q)) / NOISE).sum()

    def gradient(q):
        left, by_line = (data - spectrum(q)) / NOISE**2, []
        for k, shape in enumerate(shapes(q)):
            moved = shape * (CHANNELS - q[2 * k + 1]) / 0.4**2
            by_line += [left @ shape, q[2 * k] * left @ moved]
        return np.array([*by_line, left.sum()])

    return sk.potential(log_density=log_density, gradient=gradient, parameters=LINES)


@pytest.mark.parametrize("seed", [0, 3])
def test_a_run_that_misses_half_of_two_equal_lines_warns_and_others_jump(two_lines, seed):
    with pytest.warns(SamplingWarning) as told:
        run = sk.sample(two_lines, sampler="hmc", warmup=150, draws=60, seed=seed, progress=False)
    part = float((run["c1"] > run["c2"]).mean())
    assert run.modes.values[0] < 31.0  # searches go on as long as they find new places
    if part in (0.0, 1.0):
        assert (run.exchange.one, run.exchange.other) == (("a1", "c1"), ("a2", "c2"))
        (finding,) = run.verdict.named("exchange")
        assert finding.message in [str(each.message) for each in told]
        assert "'a1', 'c1' and 'a2', 'c2' are exchanged" in finding.message
        if len(run.modes) > 1:  # with seed 3 all searches agree, so that they speak for no other
            (finding,) = run.verdict.named("unseen_modes")
            assert finding.message in [str(each.message) for each in told]
            assert f"ended in {len(run.modes)} places" in finding.message
            estimate, bound = run.modes.unseen()
            assert 0.0 < estimate < bound < 1.0
            assert f"{estimate:.0%} of further ones" in finding.message
    else:
        went = any("chains went from one to another" in each for each in run.verdict.messages)
        assert went or run.adaptation.jumps >= 2  # both lines were found, and chains jump


@pytest.mark.parametrize(("n_modes", "each", "hidden"), [(1, 3, 0.05), (2, 5, 0.013), (20, 3, 1.0)])
def test_modes_found_as_easily_as_others_may_be_missed(n_modes, each, hidden):
    """Of 21 modes 63 searches miss about one, though each of the others was found thrice."""
    modes = Modes(
        positions=np.zeros((n_modes, 1)),
        values=np.zeros(n_modes),
        covariances=np.ones((n_modes, 1, 1)),
        ended=np.full(n_modes, each),
    )
    assert modes.unseen()[0] == 0.0
    assert modes.hidden == pytest.approx(hidden, rel=0.05)


@pytest.mark.parametrize(
    ("dim", "height", "doubtful"), [(20, 1.0, True), (20, 4.0, False), (2, 1.0, False)]
)
def test_a_high_mode_is_not_neglected_for_its_volume_in_many_dimensions(dim, height, doubtful):
    """In thirty dimensions 80 gradients left the volume of a mode of mass 0.2 off by eight nats."""
    modes = Modes(
        positions=np.zeros((2, dim)),
        values=np.array([0.0, height]),
        covariances=np.stack([np.eye(dim), np.exp(-20.0 / dim) * np.eye(dim)]),
        ended=np.full(2, 5),
    )
    assert modes.matters.tolist() == [True, False]
    assert modes.doubtful.tolist() == [False, doubtful]


def test_a_place_neglected_for_its_volume_is_warned_of_where_no_draw_is():
    def normal(q):
        return 0.5 * np.square(q).sum(axis=1), q

    target = sk.potential(value_and_gradient=normal, dim=12, batched=True)
    run = sk.sample(target, sampler="hmc", warmup=50, draws=50, seed=0, progress=False)
    assert not run.verdict.named("unseen_modes")
    narrow = Modes(
        positions=np.stack([np.zeros(12), np.full(12, 20.0)]),
        values=np.array([0.0, 1.0]),
        covariances=np.stack([np.eye(12), 0.1 * np.eye(12)]),
        ended=np.full(2, 5),
    )
    (finding,) = modes_left(attrs.evolve(run, modes=narrow))
    assert finding.name == "unseen_modes"
    assert finding.warns
    assert "1 of these places, nearly as high as the highest, were neglected" in finding.message


def two_normals(apart, sd):
    """Half of the mass in a narrow normal distribution beside a standard one."""
    middle = np.array([apart, 0.0])

    def parts(q):
        return np.array([-0.5 * q @ q, -0.5 * np.square((q - middle) / sd).sum() - 2 * np.log(sd)])

    def gradient(q):
        logs = parts(q)
        weights = np.exp(logs - np.logaddexp(*logs))
        return -weights[0] * q + weights[1] * (middle - q) / sd**2

    return sk.potential(
        log_density=lambda q: np.logaddexp(*parts(q)),
        gradient=gradient,
        parameters={"q": sk.real(2)},
    )


def test_searches_that_agree_bound_what_they_have_not_seen_and_nothing_is_warned_of():
    """The rule of three: a narrow neighbour is not found, which no finite search can rule out."""
    run = sk.sample(
        two_normals(apart=9.0, sd=0.05),
        sampler="hmc",
        warmup=300,
        draws=500,
        seed=0,
        progress=False,
    )
    (n,) = run.modes.ended
    assert n >= 3
    assert run.modes.unseen() == (0.0, pytest.approx(1.0 - 0.05 ** (1.0 / n)))
    assert not run.verdict.named("unseen_modes")
    (finding,) = run.verdict.named("searches")
    assert not finding.warns
    said = f"{n} of {run.modes.searches} searches for modes ended at one place; at most "
    assert finding.message.startswith(f"{said}{run.modes.unseen()[1]:.0%} of further ones")
    assert "such as a narrow one, may still have any mass" in str(run.summary())


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize("apart", [0.0, 8.0])
def test_a_run_without_searches_says_so_and_an_exchange_of_entries_is_recognised(apart):
    """Equal entries have one mode where they are alike, and two where they differ."""

    def log_density(q):
        first, other = q - [apart, 0.0], q - [0.0, apart]
        return np.logaddexp(-0.5 * first @ first, -0.5 * other @ other)

    run = sk.sample(
        sk.potential(log_density=log_density, parameters={"q": sk.real(2)}),
        sampler="random-walk",
        chains=1,
        warmup=200,
        draws=400,
        initial=[[apart, 0.0]],
        seed=0,
        progress=False,
    )
    assert run.modes is None
    assert "no search for modes was made" in str(run.summary())
    assert bool(run.verdict.named("exchange")) == (apart > 0.0)
    assert run.total_calls <= 1 + 200 + 400 + 2


def test_unlike_entries_are_not_taken_for_an_exchange():
    """The one look across costs two values, and none where calls are few."""
    target = sk.potential(lambda q: 0.5 * np.square(q - [4.0, -4.0]).sum(), dim=2)
    settings = {"sampler": "random-walk", "initial": [[4.0, -4.0]], "seed": 0, "progress": False}
    long = sk.sample(target, chains=1, warmup=100, draws=400, **settings)
    assert not long.verdict.named("exchange")
    assert long.total_calls == 1 + 100 + 400 + 2
    short = sk.sample(target, chains=1, warmup=50, draws=50, **settings)
    assert short.total_calls == 1 + 50 + 50


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_fewer_than_three_searches_that_agree_are_warned_of():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)
    run = sk.sample(
        target,
        sampler=("sub-chain", {"kernel": ("hmc", {"n_steps": 3})}),
        surrogate="quadratic",
        explorer=("rounds", {"searches": 2}),
        warmup=100,
        draws=40,
        seed=1,
        progress=False,
    )
    assert len(run.modes) == 1
    assert run.verdict.named("unseen_modes")


def test_a_target_that_is_known_to_be_log_concave_needs_one_search():
    target = sk.make("potential", "simulated-logistic", n_rows=200, dim=3)
    run = sk.sample(target, sampler="hmc", warmup=200, draws=300, seed=1, progress=False)
    assert run.modes.searches == 1
    assert run.modes.unseen() == (0.0, 0.0)
    assert not run.verdict.named("unseen_modes")
