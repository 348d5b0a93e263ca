"""A new run learns from ledgers, and pays for nothing that is in them."""

from __future__ import annotations

import numpy as np
import pytest
from ledgers import KINDS, SIZES, SMALL, WEIGHTS, Counted, forward, plain, same, values

import surrokit as sk
from surrokit.errors import ConfigurationError, LedgerError
from surrokit.ledger.known import read_known

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


@pytest.mark.parametrize("target", [plain, values])
def test_the_same_run_pays_for_nothing(target, tmp_path):
    settings = {"sampler": "random-walk", "warmup": 30, "draws": 20}
    path, paid = tmp_path / "first", Counted()
    run = sk.sample(target(Counted()), path=path, **settings, **SIZES)
    again = sk.sample(target(paid), warm_start=path, **settings, **SIZES)
    assert np.array_equal(again.draws, run.draws)
    assert sum(again.calls.values()) == 0
    assert paid.n == 1  # the check that the target is the same


@pytest.mark.long
def test_a_surrogate_learns_from_runs_of_its_target_in_several_files(whole, tmp_path):
    target, settings = KINDS["sub-chain"]
    other = tmp_path / "other"
    cold = sk.sample(target(Counted()), path=other, **settings, **{**SIZES, "seed": 5})
    sizes = {**settings, **SIZES, "seed": 6}
    warm = sk.sample(target(Counted()), warm_start=[whole("sub-chain")[1], other], **sizes)
    one = sk.sample(target(Counted()), warm_start=other, **sizes)
    learnt = [run.adaptation.training_rows for run in (cold, one, warm)]
    assert learnt == sorted(set(learnt))


def test_of_a_batch_only_unknown_positions_are_paid_for(tmp_path):
    at = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    run = {**SIZES, "sampler": ("hmc", {"step_size": 0.1}), "warmup": 5, "draws": 5}
    sk.sample(plain(Counted()), path=tmp_path / "a", initial=at, **run)
    cold, warm = Counted(), Counted()
    new = np.vstack([at[0], [1.0, 1.0, 1.0]])
    one = sk.sample(plain(cold), initial=new, **run)
    two = sk.sample(plain(warm), initial=new, warm_start=tmp_path / "a", **run)
    assert np.array_equal(one.draws, two.draws)
    assert sum(two.calls.values()) < sum(one.calls.values())


@pytest.mark.parametrize("other", [values, forward, lambda paid: plain(paid, scale=2.0)])
def test_the_ledger_of_another_target_teaches_nothing(other, whole):
    with pytest.raises(LedgerError, match="is the ledger of another target"):
        sk.sample(other(Counted()), warm_start=whole("hmc")[1], **SIZES)


def test_a_target_of_another_scale_is_another_target(tmp_path):
    def of_width(width):
        plausible = {"a": (-width, width), "b": (-1.0, 1.0)}
        both = {"value_and_gradient": lambda q: (0.5 * q @ q, q), "plausible": plausible}
        return sk.potential(parameters={"a": None, "b": None}, **both)

    sk.sample(of_width(900.0), path=tmp_path / "a", **SMALL)
    assert sk.sample(of_width(900.0), warm_start=tmp_path / "a", **SMALL).stopped == "draws"
    with pytest.raises(LedgerError, match="columns are of another scale"):
        sk.sample(of_width(1.0), warm_start=tmp_path / "a", **SMALL)


@pytest.mark.parametrize("given", [[], 3, [3]])
def test_what_is_no_path_is_refused(given):
    with pytest.raises(ConfigurationError, match="warm_start must be the path of a run's file"):
        sk.sample(plain(Counted()), warm_start=given, **SIZES)


ROUNDS = {**KINDS["sub-chain"][1], "draws": 400, **SIZES}


class First:
    """Remembers what was paid when the first draw was made."""

    def __init__(self):
        self.calls = None

    def surrokit_transition_done(self, info, **_):
        if self.calls is None and info.stage == "sampling":
            self.calls = sum(info.calls.values())


@pytest.fixture(scope="module")
def enough(tmp_path_factory):
    """A ledger with draws of chains that agree."""
    path = tmp_path_factory.mktemp("enough") / "a"
    return sk.sample(forward(Counted()), path=path, **ROUNDS), path


def test_nothing_is_paid_before_the_first_draw(enough):
    cold, path = enough
    first, seen = First(), {row.tobytes() for row in cold.kept.positions.reshape(-1, 2)}
    warm = sk.sample(
        forward(Counted()), warm_start=path, observers=[first], **{**ROUNDS, "seed": 8}
    )
    assert first.calls == SIZES["chains"]  # of the first draws themselves
    assert warm.calls["jacobian"] == 0
    assert [finding.warns for finding in warm.verdict.named("recalled")] == [False]
    assert not cold.verdict.named("recalled")
    assert warm.kept.acceptance.mean() > 0.9
    assert all(row.tobytes() in seen for row in warm.warmup.positions[:, -1])
    assert np.abs(cold.draws.mean(axis=(0, 1)) - warm.draws.mean(axis=(0, 1))).max() < 0.25


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"initial": np.zeros(2)}, marks=pytest.mark.long),
        pytest.param({"explorer": ("rounds", {"acceptance": 1.0 - 1e-12})}, marks=pytest.mark.long),
        {"explorer": "sampler", "warmup": 60},
    ],
)
def test_a_warm_run_explores_where_it_has_to(changed, enough):
    """Starts are given, the surrogate is not good enough at draws, or nothing can be recalled."""
    first = First()
    settings = {**ROUNDS, **changed, "seed": 8}
    sk.sample(forward(Counted()), warm_start=enough[1], observers=[first], **settings)
    assert first.calls > 2 * SIZES["chains"]


def test_draws_of_chains_that_are_apart_are_not_gone_on_from(tmp_path):
    """Each of two chains stays in a mode of its own."""
    target = sk.potential(
        lambda q: 50.0 * (q[0] ** 2 - 1.0) ** 2, lambda q: 200.0 * q * (q**2 - 1.0), dim=1
    )
    starts = np.array([[-1.0], [1.0]])
    settings = {"sampler": ("hmc", {"step_size": 0.05}), "warmup": 10, "draws": 400, **SIZES}
    sk.sample(target, path=tmp_path / "apart", initial=starts, **settings)
    assert read_known([tmp_path / "apart"], target)[2] is None
    sk.sample(target, path=tmp_path / "together", initial=np.ones((2, 1)), **settings)
    assert len(read_known([tmp_path / "together"], target)[2]) == 800


def test_of_runs_on_other_data_a_map_is_known_and_no_draw(enough):
    target = forward(Counted(), noise_sd=0.8)
    memo, evaluations, past = read_known([enough[1]], target)
    assert past is None
    assert min(len(memo), len(evaluations)) > 300
    np.testing.assert_allclose(evaluations.values, target.value(evaluations.positions), rtol=1e-12)
    assert read_known([enough[1]], forward(Counted()))[2] is not None


def test_weighted_draws_are_not_gone_on_from(whole):
    _, path = whole("weights")
    assert read_known([path], forward(Counted()))[2] is None


@pytest.mark.long
def test_a_recalled_run_is_resumed_without_the_ledger(enough, tmp_path):
    run = sk.sample(
        forward(Counted()), warm_start=enough[1], path=tmp_path / "a", **{**ROUNDS, "seed": 4}
    )
    again = sk.resume(tmp_path / "a", forward(Counted()))
    assert same(again, run)


def test_weighted_answers_begin_from_draws_of_chains(enough):
    """All calls correct answers, and none is spent on an exploration."""
    settings = {
        **ROUNDS,
        "draws": None,
        "correction": WEIGHTS,
        "max_calls": 80,
        "seed": 2,
    }
    run = sk.sample(forward(Counted()), warm_start=enough[1], **settings)
    assert run.answer is not None
    assert sum(map(len, run.answer.rounds)) > 60


def test_gradients_by_an_adjoint_are_of_the_data_that_they_were_made_with(tmp_path):
    def by_adjoint(data):
        return sk.forward_potential(
            lambda q: np.array([q[0] + q[1], q[0] - q[1]]),
            vjp=lambda q, w: np.array([w[0] + w[1], w[0] - w[1]]),
            dim=2,
            data=data,
            noise_sd=0.4,
        )

    sk.sample(by_adjoint((0.1, 0.2)), path=tmp_path / "a", **SMALL)
    assert sk.sample(by_adjoint((0.1, 0.2)), warm_start=tmp_path / "a", **SMALL).total_calls == 0
    with pytest.raises(LedgerError, match="is the ledger of another target"):
        sk.sample(by_adjoint((0.1, 0.3)), warm_start=tmp_path / "a", **SMALL)
