"""The comparison with other samplers: its figures and its table, without any of the peers."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

FOLDER = Path(__file__).parent
SHARES = {"gradient": 1.0, "value": 0.5, "rows": 0.005, "milliseconds": 2.0}


@pytest.fixture
def outcome(rng):
    from peers.outcome import Outcome

    return Outcome(
        draws=rng.standard_normal((4, 500, 3)),
        seconds={"compilation": 50.0, "warmup": 2.0, "training": 1.0, "sampling": 5.0},
        calls={"gradient": 100.0, "value": 40.0, "rows": 2000.0},
    )


@pytest.fixture
def results(outcome):
    from peers.bookkeeping import figures

    def line(title, kind, seconds):
        timed = attrs.evolve(outcome, seconds={**outcome.seconds, "sampling": seconds})
        return {
            "title": title,
            "kind": kind,
            "status": "done",
            "limit": 60.0,
            "message": "",
            "versions": {"numpy": "2"},
            **figures(timed, SHARES),
        }

    return {
        "title": "A problem",
        "shares": SHARES,
        "settings": {"chains": 4, "seconds": 60.0, "warmup": 300, "mass": "dense"},
        "machine": {"processor": "abacus", "cores": 2, "numpy": "2"},
        "lines": {
            "hmc": line("HMC", "baseline", 77.0),
            "hmc-dense": line("dense HMC", "baseline", 37.0),
            "ours": line("ours", "surrokit", 1.0),
            "good": line("good peer", "peer", 17.0),
            "bad": line("bad peer", "peer", 37.0),
            "absent": {
                "title": "absent peer",
                "kind": "peer",
                "limit": 90.0,
                "status": "not installed",
                "message": "No module named 'absent'",
            },
        },
    }


def test_calls_count_by_their_cost():
    from peers.bookkeeping import gradient_equivalents

    assert gradient_equivalents({"gradient": 3, "value": 4, "rows": 200}, SHARES) == 6.0


def test_a_call_of_unknown_cost_is_refused():
    from peers.bookkeeping import gradient_equivalents

    assert gradient_equivalents({"gradient": 3, "forward": 0}, SHARES) == 3.0
    with pytest.raises(KeyError, match="must have a measured cost, got forward without"):
        gradient_equivalents({"forward": 1}, SHARES)


def test_costs_are_measured_against_a_gradient():
    import time

    from peers.bookkeeping import measured_shares

    class Slow:
        def value(self, b):
            time.sleep(0.002)

        def value_and_gradient(self, b):
            time.sleep(0.008)

    shares = measured_shares(Slow(), np.zeros((4, 2)), 100)
    assert shares["gradient"] == 1.0
    assert 0.1 < shares["value"] < 0.8
    assert shares["rows"] == shares["value"] / 100
    assert shares["milliseconds"] >= 2.0


def test_everything_but_compilation_counts(outcome):
    from peers.bookkeeping import figures

    found = figures(outcome, SHARES)
    assert found["total_seconds"] == 8.0
    assert found["rate"] == found["ess"] / 8.0
    assert found["sampling_rate"] == min(found["ess"], found["ess_squares"]) / 5.0
    assert found["per_call_squares"] == found["ess_squares"] / 130.0
    assert min(found["ess"], found["ess_squares"]) > 1000
    assert found["rhat"] < 1.02


def test_figures_of_chains_that_stand_still_are_empty(outcome):
    from peers.bookkeeping import disagreement, figures

    stuck = figures(attrs.evolve(outcome, draws=np.zeros((4, 500, 3))), SHARES)
    assert stuck["ess"] is None
    assert stuck["rate"] is None
    assert disagreement(stuck, figures(outcome, SHARES)) is None


def test_disagreement_is_seen_in_means_and_in_variances(outcome, rng):
    from peers.bookkeeping import disagreement, figures, tolerance

    same, mean, wide = (
        figures(attrs.evolve(outcome, draws=draws), SHARES)
        for draws in (
            rng.standard_normal((4, 500, 3)),
            outcome.draws + np.array([0.0, 0.3, 0.0]),
            1.3 * (outcome.draws - outcome.draws.mean(axis=(0, 1))),
        )
    )
    ours = figures(outcome, SHARES)
    assert disagreement(ours, same) < tolerance(3) < 4.5
    assert disagreement(ours, mean) > tolerance(3)
    assert disagreement(ours, wide) > tolerance(3)


def test_the_efficiency_is_that_of_the_worse_of_both(results):
    from peers.table import best_peer, efficiency

    line = results["lines"]["ours"]
    assert efficiency(line) == min(line["rate"], line["rate_squares"])
    assert efficiency({**line, "rhat": 1.2}) is None
    assert efficiency({**line, "rate": None}) is None
    assert efficiency(results["lines"]["absent"]) is None
    assert best_peer(results) == "good"


def rows_of(text, header):
    """Return the rows of the table with these columns, by their first cell and column."""
    cells = [
        [cell.strip() for cell in line[2:-2].split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    start = cells.index(list(header)) + 2
    names = [row[0] for row in cells[start:]]
    end = start + (names.index("method") if "method" in names else len(names))
    return {row[0]: dict(zip(header, row, strict=True)) for row in cells[start:end]}


def test_the_table_compares_with_baselines_and_the_best_peer(results):
    from peers.table import COST, WORTH, markdown, versions

    text = markdown(results)
    worth, cost = rows_of(text, WORTH), rows_of(text, COST)
    compared = [worth["ours"][f"times {other}"] for other in ("HMC", "dense HMC", "best peer")]
    assert compared == ["20", "10", "5"]
    assert worth["dense HMC"]["times dense HMC"] == "1"
    assert worth["absent peer"]["ESS/s of q"] == "not installed"
    assert "absent peer" not in cost
    seconds = [cost["ours"][name] for name in ("seconds before", "drawing", "compiling")]
    assert seconds == ["3.0", "1.0", "50.0"]
    assert cost["ours"]["gradients"] == "130"
    assert cost["dense HMC"]["off by"] == ""
    assert "absent peer: No module named 'absent'" in text
    assert "Every method had 60 s, absent peer 90 s, and 4 chains" in text
    assert versions(results).startswith("On one core of 2 (abacus), numpy 2")


def test_the_table_marks_what_is_not_to_be_trusted(results):
    from peers.table import markdown

    assert "†" not in markdown(results)
    assert "‡" not in markdown(results)
    results["lines"]["good"]["rhat"] = 1.3
    results["lines"]["ours"]["mean"][0] += 1.0
    text = markdown(results)
    assert "good peer †" in text
    assert "‡ Further off" in text


def test_without_dense_hmc_the_longest_run_is_the_reference(results):
    from peers.table import markdown, reference

    assert reference(results) == "hmc-dense"
    results["lines"]["hmc-dense"]["rhat"] = 1.5
    results["lines"]["good"]["ess"] *= 1.5
    results["lines"]["good"]["ess_squares"] *= 1.5
    assert reference(results) == "good"
    assert '"off by" is told from good peer' in markdown(results)
    for name in ("hmc", "ours", "good", "bad"):
        results["lines"][name]["rhat"] = None
    assert reference(results) is None
    assert "is told from" not in markdown(results)


def test_chains_after_one_another_get_as_many_draws_as_the_first(outcome):
    from peers.one_after_another import Chain, run_chains
    from peers.outcome import Stopwatch, Task

    task = Task(
        target=None,
        design=np.ones((5, 2)),
        response=np.ones(5),
        prior_variance=1.0,
        starts=np.zeros((3, 2)),
        step_size=0.1,
        n_steps=1,
        dense=True,
        warmup=10,
        draws=1000,
        seconds=30.0,
        seed=1,
    )
    shares = []

    def chain(share):
        shares.append(share)
        draws = 0
        while draws < share.draws and not share.is_over(draws, 0.25 * draws):
            draws += 1
        return Chain(draws=np.zeros((draws, 2)), steps=7, warmup=1.0, sampling=2.0)

    found = run_chains(task, Stopwatch(30.0), chain)
    assert found.draws.shape == (3, 40, 2)
    assert [share.number for share in shares] == [0, 1, 2]
    assert [share.seconds for share in shares] == [10.0, np.inf, np.inf]
    assert found.calls == {"gradient": 21}
    assert (found.seconds["warmup"], found.seconds["sampling"]) == (3.0, 6.0)


def test_every_method_can_be_looked_up():
    from peers.methods import DEFAULT_METHODS, METHODS
    from peers.ours import OURS

    assert {name for name, method in METHODS.items() if method.kind != "peer"} == set(OURS)
    assert set(DEFAULT_METHODS) <= set(METHODS)
    assert METHODS["mici"].versions().keys() == {"mici"}
    for method in METHODS.values():
        module = method.function.partition(":")[0]
        assert (FOLDER / "peers" / f"{module}.py").is_file()
