"""Runs of targets that fail by chance are done again with the failures that they had."""

from __future__ import annotations

import numpy as np
import pytest
from ledgers import SIZES, Counted, cut, events, query, same

import surrokit as sk
from surrokit.ledger.fingerprint import check_row

pytestmark = pytest.mark.filterwarnings(
    "ignore::surrokit.errors.SamplingWarning", "ignore::surrokit.errors.EvaluationWarning"
)

KINDS = {
    "values": (None, {"sampler": "random-walk", "warmup": 60, "draws": 60}),
    "differences": ("differences", {"sampler": ("hmc", {"n_steps": 3}), "warmup": 20, "draws": 15}),
    "gradients": ("exact", {"sampler": ("hmc", {"n_steps": 3}), "warmup": 40, "draws": 40}),
}
RETRY = sk.Compute(on_error="retry", retries=2)
CASES = {"values": RETRY, "differences": sk.Compute(), "gradients": sk.Compute()}


def by_chance(paid, gradient, seed=1):
    """A normal that raises, or returns NaN, in a tenth of its calls."""
    rng = np.random.default_rng(seed)

    def fails():
        paid()
        draw = rng.random()
        if draw < 0.05:
            raise RuntimeError("flaky")
        return draw < 0.1

    def value(q):
        return np.nan if fails() else 0.5 * q @ q

    def value_and_gradient(q):
        return (np.nan, q) if fails() else (0.5 * q @ q, q)

    if gradient == "exact":
        return sk.potential(value_and_gradient=value_and_gradient, dim=2)
    return sk.potential(value, dim=2, gradient=gradient)


def account(run):
    return (
        run.calls,
        run.failures,
        {name: kind.to_dict() for name, kind in run.failure_kinds.items()},
        run.recheck,
        run.broken_gradients.count,
        run.kept.failures.tolist(),
        [finding.name for finding in run.verdict.warnings],
    )


@pytest.fixture(scope="module", params=CASES)
def whole(request, tmp_path_factory):
    kind = request.param
    path = tmp_path_factory.mktemp("failing") / "a"
    gradient, settings = KINDS[kind]
    paid = Counted()
    settings = {**settings, "compute": CASES[kind], **SIZES}
    run = sk.sample(by_chance(paid, gradient), path=path, **settings)
    assert paid.n == sum(run.calls.values())
    return run, path, gradient, settings


def test_a_run_is_done_again_with_its_failures(whole, tmp_path):
    run, path, gradient, settings = whole
    if settings["compute"].on_error == "retry":
        assert sum(kind.cured for kind in run.failure_kinds.values()) > 5
        assert run.recheck.tried <= run.failures
    else:
        assert run.failures > 5
        assert run.recheck.tried >= 5
        assert run.recheck.worked > 0
    paid = Counted()
    target = by_chance(paid, gradient, seed=99)
    again = sk.resume(cut(path, tmp_path / "a"), target, check=False)
    assert paid.n == 0
    assert same(again, run)
    assert account(again) == account(run)
    opened = sk.open_run(path)
    assert opened.recheck == run.recheck
    assert account(opened)[2] == account(run)[2]


@pytest.mark.parametrize("part", [0.3, 0.95])
def test_a_run_is_cut_and_goes_on(part, whole, tmp_path):
    """What the target does by chance after the cut differs; what came before does not."""
    _, path, gradient, _ = whole
    n = int(part * query(path, "SELECT max(id) FROM events")[0][0])
    held = cut(path, tmp_path / "a", n)
    known = sum(sum(event.counts.values()) for event in events(held))
    paid = Counted()
    first = sk.resume(held, by_chance(paid, gradient, seed=7), check=False)
    assert paid.n == sum(first.calls.values()) - known
    assert query(held, BEFORE.format(n)) == query(path, BEFORE.format(n))
    again = sk.resume(held, by_chance(Counted(), gradient, seed=8), check=False)
    assert np.array_equal(again.draws, first.draws)
    assert account(again) == account(first)


BEFORE = "SELECT kind, outcome, notes, arrays, data FROM events WHERE id <= {}"


def test_a_run_that_looked_again_is_extended(whole, tmp_path):
    run, path, gradient, settings = whole
    held = cut(path, tmp_path / "a")
    wanted = settings["draws"] + 20
    paid = Counted()
    longer = sk.resume(held, by_chance(paid, gradient, seed=5), draws=wanted, check=False)
    assert longer.draws.shape[1] == wanted
    assert np.array_equal(longer.draws[:, : settings["draws"]], run.draws)
    again = sk.resume(held, by_chance(Counted(), gradient, seed=6), check=False)
    assert np.array_equal(again.draws, longer.draws)
    assert account(again) == account(longer)


def test_a_limit_that_forbade_to_look_again_is_raised(tmp_path):
    settings = {**KINDS["values"][1], **SIZES}
    run = sk.sample(by_chance(Counted(), None), path=tmp_path / "a", max_calls=124, **settings)
    assert 0 < run.recheck.tried < 5  # 122 calls are the warm-up's
    held, paid = tmp_path / "a", Counted()
    more = sk.resume(held, by_chance(paid, None, 3), max_calls=None, draws=80, check=False)
    assert more.draws.shape[1] == 80
    assert more.recheck.tried >= 5
    assert np.array_equal(more.warmup.draws, run.warmup.draws)
    assert paid.n == sum(more.calls.values()) - sum(run.calls.values())


def test_the_check_of_a_target_that_fails_by_chance_insists(whole):
    _, path, gradient, _ = whole
    for seed in range(10):
        with sk.Ledger(path) as ledger:
            check_row(ledger.store, by_chance(Counted(), gradient, seed))
