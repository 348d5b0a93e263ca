"""The loop over iterations: what it repeats, what it pays, and how it ends."""

from __future__ import annotations

import types
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import EvaluationWarning, SamplingWarning, SurrogateFitError, TargetError
from surrokit.testing.wrappers import CountingPotential

SMALL = {"chains": 3, "warmup": 40, "draws": 30, "seed": 4, "progress": False}
FIXED = {"sampler": ("hmc", {"step_size": 0.3, "n_steps": 5, "metric": "identity"})}


class Normal:
    """A standard normal of rows."""

    dim = 2
    capabilities = frozenset({"gradient", "gradient-alone"})

    def value(self, q):
        return 0.5 * np.square(q).sum(axis=1)

    def value_and_gradient(self, q):
        return self.value(q), q.copy()

    def gradient(self, q):
        return q.copy()


def right(**options):
    return sk.batch_surrogate(lambda evaluations, rng: Normal(), **options)


def off_by_a_bit():
    """A surrogate that is wrong enough to be rejected at times."""

    class Wrong(Normal):
        def value(self, q):
            return 0.5 * np.square(q).sum(axis=1) + 0.4 * np.cos(3 * q[:, 0])

        def value_and_gradient(self, q):
            gradient = q.copy()
            gradient[:, 0] -= 1.2 * np.sin(3 * q[:, 0])
            return self.value(q), gradient

        def gradient(self, q):
            return self.value_and_gradient(q)[1]

    return sk.batch_surrogate(lambda evaluations, rng: Wrong())


RUNS = {
    "hmc": {},
    "fixed": FIXED,
    "random-walk": {"sampler": "random-walk"},
    "surrogate": {"surrogate": off_by_a_bit()},
    "additive": {"surrogate": "additive"},
}
EVERY = pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)


# --- the same seed, the same draws ---


@pytest.fixture(scope="module")
def plain():
    return sk.sample(Normal(), **SMALL)


@pytest.fixture(scope="module")
def fixed():
    """A run of paths of one length, and the target that it called."""
    exact = CountingPotential(Normal())
    return sk.sample(exact, **FIXED, **SMALL), exact


@pytest.fixture(scope="module")
def on_right():
    return sk.sample(Normal(), surrogate=right(), **SMALL)


@EVERY
def test_draws_depend_on_the_seed_and_not_on_observers(options):
    busy = types.SimpleNamespace(
        surrokit_run_started=lambda run: np.random.default_rng().random(),
        surrokit_transition_done=lambda run, state, info: state.positions.sum(),
    )
    one = sk.sample(Normal(), **options, **SMALL)
    two = sk.sample(Normal(), observers=[busy], **options, **SMALL)
    assert_array_equal(one.draws, two.draws)
    assert_array_equal(one.kept.acceptance, two.kept.acceptance)
    assert_array_equal(one.warmup.draws, two.warmup.draws)
    assert one.calls == two.calls
    other = sk.sample(Normal(), **options, **{**SMALL, "seed": 5})
    assert not (one.draws == other.draws).any()
    assert not (one.draws[0] == one.draws[1]).all(axis=1).any()


@pytest.mark.parametrize("given", [{"seed": np.random.default_rng(4)}, {"progress": True}])
def test_a_generator_does_as_a_seed_and_progress_draws_nothing(plain, given):
    assert_array_equal(sk.sample(Normal(), **{**SMALL, **given}).draws, plain.draws)


def test_numpys_global_generator_is_neither_used_nor_touched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    sk.sample(Normal(), surrogate="additive", **SMALL)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("batched", [True, False])
def test_rows_or_one_position_give_the_same_draws(plain, batched):
    target = sk.potential(lambda q: 0.5 * (q * q).sum(-1), lambda q: q, dim=2, batched=batched)
    assert_allclose(sk.sample(target, **SMALL).draws, plain.draws, rtol=1e-6, atol=1e-9)


# --- what is paid ---


def test_exact_hmc_pays_one_gradient_a_step_and_no_value(fixed):
    run, exact = fixed
    steps = run.kept.n_steps.sum() + run.warmup.n_steps.sum()
    started = 3
    assert run.calls["gradient"] == exact.gradients() == steps + started
    assert run.calls["value"] == 2  # the check of the gradient, once
    gradients = np.diff([run.warmup.calls["gradient"][-1], *run.kept.calls["gradient"]])
    assert_array_equal(gradients, run.kept.n_steps.sum(axis=0))
    assert len(set(run.kept.calls["value"])) == 1
    # and one batch a step
    batches = exact.batches["gradient"] + exact.batches["value_and_gradient"]
    assert batches == 1 + run.kept.n_steps[0].sum() + run.warmup.n_steps[0].sum()


@pytest.mark.parametrize("surrogate", [off_by_a_bit(), "additive"])
def test_kept_iterations_on_a_surrogate_pay_at_most_one_value_a_chain(surrogate):
    exact = CountingPotential(Normal())
    run = sk.sample(exact, surrogate=surrogate, **SMALL)
    values = np.diff([run.warmup.calls["value"][-1], *run.kept.calls["value"]])
    assert (values <= 3).all()
    assert values.sum() > 0
    for kind in set(run.calls) - {"value"}:
        assert run.kept.calls[kind][-1] == run.warmup.calls[kind][-1], kind
    assert run.calls["value"] == exact.positions["value"]
    assert run.calls["gradient"] == exact.gradients()
    if surrogate != "additive":  # its draws are made on it
        assert run.kernel.potential is run.surrogate
        assert (run.kept.acceptance != run.kept.path_acceptance).any()


def test_warm_up_on_a_surrogate_pays_values_only(on_right):
    (deployed,) = on_right.adaptation.deployments
    gradients = on_right.warmup.calls["gradient"]
    assert gradients[deployed - 1] == gradients[-1]
    assert deployed == 10  # a quarter
    assert len(on_right.warmup) == 40


@pytest.mark.parametrize("iterations", [33, 40])
def test_the_exploration_can_be_set_and_may_be_all_of_the_warm_up(iterations):
    explorer = ("sampler", {"iterations": iterations})
    run = sk.sample(Normal(), surrogate=right(), explorer=explorer, **SMALL)
    assert run.adaptation.deployments == (iterations,)
    assert run.adaptation.frozen_before_draws
    assert len(run.kept) == 30


def test_a_random_walk_pays_one_value_a_chain():
    run = sk.sample(Normal(), sampler="random-walk", **SMALL)
    assert run.calls["value"] == 3 * (1 + 40 + 30)
    assert run.total_calls == run.calls["value"]


def test_a_forward_target_on_a_surrogate_pays_one_output_a_chain(forward_run):
    run, _ = forward_run
    paid = np.diff([run.warmup.calls["forward"][-1], *run.kept.calls["forward"]])
    assert (paid <= 2).all()
    assert run.kept.calls["jacobian"][-1] == run.warmup.calls["jacobian"][-1]


# --- learning and deploying ---


def test_the_surrogate_learns_from_everything_that_was_paid():
    seen = []

    def fit(evaluations, rng):
        seen.append(evaluations)
        return Normal()

    run = sk.sample(Normal(), surrogate=sk.batch_surrogate(fit), **SMALL)
    (rows,) = seen
    (deployed,) = run.adaptation.deployments
    explored = {kind: int(n[deployed - 1]) for kind, n in run.warmup.calls.items()}
    assert len(rows) == explored["gradient"] + explored["value"]
    assert_allclose(rows.values, Normal().value(rows.positions))
    assert np.isfinite(rows.gradients).all(axis=1).sum() == explored["gradient"]


def raising(evaluations, rng):
    raise SurrogateFitError("too few points; explore for longer")


def test_without_a_fit_the_run_warns_and_goes_on_exactly():
    """Values on a path are of use to a learner only: once nothing is learnt, none are paid."""
    exact = CountingPotential(Normal())
    with pytest.warns(SamplingWarning, match="no surrogate could be fitted.*explore for longer"):
        run = sk.sample(exact, surrogate=sk.batch_surrogate(raising), **FIXED, **SMALL)
    assert run.surrogate is None
    assert run.adaptation.deployments == ()
    assert run.draws.shape == (3, 30, 2)
    assert_allclose(run.kept.acceptance, run.kept.path_acceptance)
    explored = run.warmup.n_steps[:, :10].sum()
    later = run.warmup.n_steps[:, 10:].sum() + run.kept.n_steps.sum()
    iterations = 3 * (30 + 30)
    assert exact.positions["gradient"] == later - iterations
    assert exact.positions["value_and_gradient"] >= explored + iterations


def half(q):
    if q[0] < 0:
        raise ValueError("left half")
    return 0.5 * q @ q


def test_without_a_fit_and_without_a_gradient_the_run_stops():
    """On the exact target HMC could not move."""

    class ValuesOnly(Normal):
        capabilities = frozenset()

    with pytest.raises(SurrogateFitError, match="explore for longer"):
        sk.sample(ValuesOnly(), surrogate=sk.batch_surrogate(raising), **SMALL)


def test_another_error_of_a_fit_is_not_hidden():
    def broken(evaluations, rng):
        raise KeyError("a bug in the surrogate")

    with pytest.raises(KeyError, match="a bug in the surrogate"):
        sk.sample(Normal(), surrogate=sk.batch_surrogate(broken), **SMALL)


def test_warm_up_changes_the_sampler_and_draws_do_not():
    run = sk.sample(Normal(), **{**SMALL, "warmup": 100})
    assert len(np.unique(run.warmup.step_size)) > 3
    assert len(np.unique(run.kept.step_size)) == 1
    assert run.kernel.step == run.kept.step_size[0]


# --- failures of the target ---


def test_a_target_that_raises_at_times_is_sampled_where_it_does_not():
    """Or stops the run, if asked."""
    options = {"sampler": "random-walk", "initial": [1.0], **SMALL, "draws": 200}
    with pytest.warns(EvaluationWarning, match="left half") as caught:
        run = sk.sample(sk.potential(half, dim=1), **options)
    assert [w.category for w in caught].count(EvaluationWarning) == 1
    assert (run.draws >= 0).all()
    assert run.failures > 10
    with pytest.raises(TargetError, match="left half"):
        sk.sample(sk.potential(half, dim=1), compute=sk.Compute(on_error="raise"), **options)


def test_what_was_drawn_before_an_error_comes_with_it():
    calls = []

    def breaks_late(q):
        calls.append(1)
        if len(calls) > 3 * 55:
            raise ValueError("late")
        return 0.5 * q @ q

    with pytest.raises(TargetError, match="late") as caught:
        sk.sample(
            sk.potential(breaks_late, dim=1),
            sampler="random-walk",
            compute=sk.Compute(on_error="raise"),
            **SMALL,
        )
    partial = caught.value.partial
    assert not partial.complete
    assert partial.draws.shape == (3, 14, 1)
    assert len(partial.warmup) == 40
    assert any("'partial'" in note for note in caught.value.__notes__)


# --- interrupts ---


def interrupt(*_, **__):
    raise KeyboardInterrupt


def interrupting_at(iteration):
    def transition_done(run, state, info):
        if info.iteration == iteration:
            raise KeyboardInterrupt

    return types.SimpleNamespace(surrokit_transition_done=transition_done)


@pytest.mark.parametrize(
    ("surrogate", "iteration", "warmup", "draws"),
    [(None, 40, 40, 0), ("additive", 1, 1, 0), ("additive", 25, 25, 0), ("additive", 50, 40, 10)],
)
def test_an_interrupt_by_an_observer_returns_what_was_drawn(surrogate, iteration, warmup, draws):
    outcomes = []
    finished = types.SimpleNamespace(
        surrokit_run_finished=lambda run, outcome: outcomes.append(outcome)
    )
    observers = [interrupting_at(iteration), finished]
    parts = {"sampler": "hmc", "surrogate": surrogate}  # picked ones depend on the clock
    full = sk.sample(Normal(), **parts, **SMALL)
    run = sk.sample(Normal(), observers=observers, **parts, **SMALL)
    assert full.complete
    assert not run.complete
    assert outcomes == [run]
    assert (len(run.warmup), len(run.kept)) == (warmup, draws)
    assert_array_equal(run.draws, full.draws[:, :draws])
    assert_array_equal(run.warmup.draws, full.warmup.draws[:, :warmup])


def test_an_interrupt_at_the_start_returns_an_empty_run():
    observer = types.SimpleNamespace(surrokit_run_started=interrupt)
    run = sk.sample(Normal(), sampler="hmc", observers=[observer], **SMALL)
    assert not run.complete
    assert run.stopped == "interrupted"
    assert run.draws.shape == (3, 0, 2)
    assert run.total_calls == 0


@pytest.mark.parametrize("calls", [0, 1, 100])
def test_an_interrupt_inside_the_target_returns_what_was_drawn(calls):
    class Interrupted(Normal):
        left = calls

        def value(self, q):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return super().value(q)

        def gradient(self, q):
            return self.value(q)[:, None] * 0 + q

    run = sk.sample(Interrupted(), **FIXED, **SMALL)
    assert not run.complete
    assert len(run.kept) < 30
    assert run.draws.shape == (3, len(run.kept), 2)
    assert str(run.summary())
    assert run.to_dict()["complete"] is False
    assert "incomplete" in repr(run)


def test_an_interrupt_inside_a_fit_returns_what_was_drawn():
    run = sk.sample(Normal(), surrogate=sk.batch_surrogate(interrupt), **SMALL)
    assert not run.complete
    assert len(run.warmup) == 10


def test_an_interrupted_run_can_be_exported():
    pytest.importorskip("arviz")
    run = sk.sample(Normal(), observers=[interrupting_at(45)], **SMALL)
    assert run.to_arviz()["posterior"]["q"].shape == (3, 5, 2)


# --- it samples the target ---


@pytest.mark.statistical
@pytest.mark.parametrize(
    "options",
    [{}, {"surrogate": off_by_a_bit()}, {"sampler": "random-walk"}, FIXED],
    ids=["hmc", "surrogate", "random-walk", "fixed"],
)
def test_moments_are_those_of_the_target(options):
    """Five standard errors each for mean and variance: fewer than one false alarm in 10^5."""
    run = sk.sample(Normal(), **options, **{**SMALL, "warmup": 300, "draws": 700})
    flat = run.draws.reshape(-1, 2)
    ess = run.ess("bulk")
    assert (np.abs(flat.mean(axis=0)) < 5 / np.sqrt(ess)).all()
    squares = sk.effective_sample_size(run.draws**2, "bulk")
    assert (np.abs((flat**2).mean(axis=0) - 1) < 5 * np.sqrt(2 / squares)).all()


def test_nothing_warns_in_an_ordinary_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "R-hat is|the draws of", SamplingWarning)
        sk.sample(Normal(), surrogate="additive", **SMALL)
