"""The bench of real posteriors: its names, its judgements, its file and its table, without JAX."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np
import pytest

FOLDER = Path(__file__).parent


@pytest.fixture
def reference():
    return {"a": {"mean": 2.0, "sd": 0.5}, "b": {"mean": -1e6, "sd": 1e3}}


@pytest.fixture
def named(rng, reference):
    """Draws of the reference: chance moves means by 0.03 sd and more once in 300 times."""
    return {
        name: x["mean"] + x["sd"] * rng.standard_normal((4, 2000)) for name, x in reference.items()
    }


@pytest.fixture
def row():
    return {
        "posterior": "arK-arK",
        "method": "nuts",
        "seed": 1,
        "status": "done",
        "message": "",
        "wrong": [],
        "warnings": [],
        "rhat": 1.001,
        "mean": 0.03,
        "sd": 0.02,
        "ess": 500.0,
        "calls_before": {"gradient": 700},
        "calls": {"gradient": 2000, "value": 4},
        "seconds": 2.5,
        "wall": 4.0,
    }


def wrong(row, **others):
    return {**row, "wrong": ["R-hat of sigma is 1.5"], "rhat": 1.5, **others}


def test_draws_of_the_reference_are_right(named, reference):
    from real_posteriors.judging import judge

    found = judge(named, reference)
    assert found.right
    assert found.rhat < 1.01
    assert found.mean < 0.05
    assert found.sd < 0.05
    assert found.ess > 5000


def test_what_is_wrong_is_named(named, reference, rng):
    from real_posteriors.judging import judge

    off = judge({**named, "a": named["a"] + 0.1}, reference)
    assert [text.partition(" is off")[0] for text in off.wrong] == ["mean of a"]
    wide = judge({**named, "b": 1.2 * (named["b"] + 1e6) - 1e6}, reference)
    assert wide.wrong == (f"sd of b is off by {wide.sd:.0%}",)
    apart = judge({**named, "a": named["a"] + np.array([[0.2], [-0.2], [0.2], [-0.2]])}, reference)
    assert apart.wrong[0] == f"R-hat of a is {apart.rhat:.4g}"


def test_chains_that_stand_still_are_wrong(named, reference):
    from real_posteriors.judging import judge

    stuck = judge({**named, "a": np.full((4, 2000), 2.0)}, reference)
    assert stuck.rhat is None
    assert stuck.ess is None
    assert "R-hat of a is nan" in stuck.wrong
    lost = judge({**named, "a": np.full((4, 2000), np.nan)}, reference)
    assert "mean of a is off by nan sd" in lost.wrong


def test_the_worst_are_named_and_the_rest_counted(rng):
    from real_posteriors.judging import judge

    reference = {f"x[{i}]": {"mean": 0.0, "sd": 1.0} for i in range(6)}
    named = {name: i + rng.standard_normal((4, 500)) for i, name in enumerate(reference)}
    means = [text for text in judge(named, reference).wrong if "sd" in text or "more" in text]
    assert [text[:12] for text in means] == [
        "mean of x[5]",
        "mean of x[4]",
        "mean of x[3]",
        "and 2 more",
    ]


def test_draws_without_chains_have_no_r_hat_and_their_own_ess(named, reference):
    from real_posteriors.judging import judge

    pooled = {name: np.sort(x.reshape(1, -1)) for name, x in named.items()}
    found = judge(pooled, reference, chains=False, ess=321.0)
    assert found.right
    assert (found.rhat, found.ess) == (None, 321.0)
    assert not judge(pooled, reference).right


def test_other_names_than_the_reference_are_refused(named, reference):
    from real_posteriors.judging import judge

    with pytest.raises(ValueError, match="must have the same names, got different b, c"):
        judge({"a": named["a"], "c": named["b"]}, reference)


def test_verdicts(row):
    from real_posteriors.judging import verdict

    assert verdict(row) == "right"
    assert verdict({**row, "warnings": ["look"]}) == "right"
    assert verdict(wrong(row)) == "wrong, silent"
    assert verdict(wrong(row, warnings=["look"])) == "wrong, warned"
    assert verdict({"status": "over time"}) == "over time"


def test_fourteen_posteriors_have_as_many_numbers_as_their_programs():
    from real_posteriors.cases import CASES

    dims = [case.dim for case in CASES.values()]
    assert dims == [7, 4, 3, 4, 10, 4, 8, 5, 5, 5, 3, 66, 7, 8]
    assert sum(case.by_hand is not None for case in CASES.values()) == 5


def test_names_are_the_programs():
    from real_posteriors.cases import CASES

    draws = np.arange(14.0).reshape(1, 2, 7)
    named = CASES["arK-arK"].name_draws(draws)
    assert list(named) == ["alpha", *(f"beta[{i}]" for i in range(1, 6)), "sigma"]
    assert named["beta[1]"].tolist() == [[1.0, 8.0]]
    latent = list(CASES["mcycle_gp-accel_gp"].name_draws(np.zeros(66)))
    assert latent[2:5] == ["lscale_1", "zgp_1[1]", "zgp_1[2]"]
    assert latent[-21:-19] == ["lscale_sigma_1", "zgp_sigma_1[1]"]
    hares = list(CASES["hudson_lynx_hare-lotka_volterra"].name_draws(np.zeros(8)))
    assert hares[3:7] == ["theta[4]", "z_init[1]", "z_init[2]", "sigma[1]"]


def test_schools_are_named_by_their_effects():
    from real_posteriors.cases import CASES

    case = CASES["eight_schools-eight_schools_noncentered"]
    named = case.name_draws(np.array([-1.0, *[0.0] * 6, 2.0, 5.0, 3.0]))
    assert (named["theta[1]"], named["theta[8]"], named["mu"], named["tau"]) == (
        2.0,
        11.0,
        5.0,
        3.0,
    )
    means, sds = case.typical({name: {"mean": 4.0, "sd": 2.0} for name in named})
    assert (means, sds) == ([0.0] * 8 + [4.0] * 2, [1.0] * 8 + [2.0] * 2)


def test_states_are_named_by_both_ends():
    from real_posteriors.cases import CASES

    case = CASES["hmm_example-hmm_example"]
    named = case.name_draws(np.array([0.7, 0.2, 3.0, 6.0]))
    expected = {"theta1[1]": 0.7, "theta1[2]": 0.3, "theta2[1]": 0.2, "theta2[2]": 0.8}
    assert named == pytest.approx({**expected, "mu[1]": 3.0, "mu[2]": 9.0})
    means, sds = case.typical({name: {"mean": x, "sd": 0.1} for name, x in named.items()})
    assert means == pytest.approx([0.7, 0.2, 3.0, 6.0])
    assert sds[3] == pytest.approx(0.1 * np.sqrt(2.0))


def series(rng, n=40):
    y = np.cumsum(0.3 * rng.standard_normal(n))
    return {"T": n, "N": n, "K": 2, "y": y.tolist()}


def made_up(name, rng):
    if name == "interaction":
        names = ("mom_hs", "mom_iq", "kid_score")
        return {x: rng.standard_normal(30).tolist() for x in names}
    if name == "schools":
        return {"J": 3, "y": [1.0, -2.0, 8.0], "sigma": [2.0, 3.0, 4.0]}
    return series(rng)


@pytest.mark.parametrize(
    ("name", "dim"),
    [
        ("interaction", 5),
        ("autoregression", 4),
        ("moving_average", 4),
        ("schools", 5),
        ("hidden_states", 4),
    ],
)
def test_gradients_by_hand_are_those_of_the_values(name, dim, rng, differences):
    from real_posteriors.models import by_hand

    both = getattr(by_hand, name)(made_up(name, rng))
    positions = rng.uniform(0.2, 0.8, (6, dim))
    value, gradient = both(positions)
    assert value.shape == (6,)
    assert gradient == pytest.approx(
        differences(lambda q: both(q)[0], positions), rel=1e-6, abs=1e-6
    )


def test_hidden_states_are_summed_over_all_paths(rng):
    import itertools

    from real_posteriors.models import by_hand

    y = [2.0, 9.0, 4.0]
    stays, returns, mean, gap = 0.7, 0.2, 3.0, 6.0
    moves = np.array([[stays, 1 - stays], [returns, 1 - returns]])
    means = np.array([mean, mean + gap])
    total = 0.0
    for path in itertools.product((0, 1), repeat=3):
        states = np.array(path)
        steps = moves[states[:-1], states[1:]].prod()
        total += steps * np.exp(-0.5 * np.square(np.array(y) - means[states]).sum())
    value, _ = by_hand.hidden_states({"y": y})(np.array([[stays, returns, mean, gap]]))
    assert value[0] == pytest.approx(0.5 * (0.0 + 1.0) - np.log(total))


def test_where_to_look_is_on_the_whole_line():
    from real_posteriors.cases import CASES
    from real_posteriors.targets import Posterior

    case = attrs.evolve(CASES["hmm_example-hmm_example"], typical=lambda _: (MEANS, SDS))
    centre, scale = Posterior(case=case, data={}, reference={}).typical_range()
    assert centre[0] == pytest.approx(0.0)
    assert scale[0] == pytest.approx(0.4)
    # a lognormal of these has the mean and the sd
    assert np.exp(centre[2] + 0.5 * scale[2] ** 2) == pytest.approx(3.0)
    assert 3.0 * np.sqrt(np.expm1(scale[2] ** 2)) == pytest.approx(1.5)


MEANS, SDS = [0.5, 0.2, 3.0, 6.0], [0.1, 0.1, 1.5, 1.0]


def test_a_bench_goes_on_where_it_was(row, tmp_path):
    from real_posteriors.rows_file import add_row, key_of, read_rows, still_to_do

    path = tmp_path / "rows.jsonl"
    absent = {**row, "seed": 2, "status": "not installed"}
    keys = [("arK-arK", "nuts", seed) for seed in (1, 2, 3)]
    assert still_to_do(keys, read_rows(path)) == keys
    add_row(path, row)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(absent)[:30])  # cut by an interrupt
    assert list(read_rows(path)) == keys[:1]
    add_row(path, absent)
    assert list(read_rows(path)) == keys[:2]
    assert still_to_do(keys, read_rows(path)) == keys[1:]
    add_row(path, {**absent, "status": "done"})
    assert still_to_do(keys, read_rows(path)) == keys[2:]
    assert read_rows(path)[key_of(absent)]["status"] == "done"


def test_a_broken_line_within_the_file_is_not_passed_over(row, tmp_path):
    from real_posteriors.rows_file import read_rows

    path = tmp_path / "rows.jsonl"
    path.write_text('{"posterior"\n' + json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(json.JSONDecodeError):
        read_rows(path)


def cells(text):
    return [
        [cell.strip() for cell in line[2:-2].split(" | ")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]


def test_the_table_tells_who_was_wrong_in_silence(row):
    from real_posteriors.table import COLUMNS, report

    rows = [row, wrong(row, seed=2), wrong(row, seed=3, warnings=["look here"], ess=None)]
    head, _, line, *_ = cells(report(rows))
    found = dict(zip(COLUMNS, line, strict=True))
    assert head == list(COLUMNS)
    assert found["posterior"] == "arK-arK (7)"
    assert found["came out"] == "right (1); wrong, **silent** (2); wrong, warned (3)"
    assert (found["R-hat"], found["mean off"], found["sd off"]) == ("1.500", "0.03", "2%")
    assert found["calls before"] == "700 g"
    assert found["said"] == "look here"


def test_calls_are_told_for_each_effective_draw(row):
    from real_posteriors.table import COLUMNS, report

    line = cells(report([row, {**row, "seed": 2}]))[2]
    found = dict(zip(COLUMNS, line, strict=True))
    assert found["calls an effective draw"] == "4 g + 0.008 v"
    assert found["seconds"] == "2.5"


def test_methods_are_summed_up(row):
    from real_posteriors.table import SUMMARY, report

    other = {**row, "posterior": "arma-arma11"}
    absent = {**row, "method": "numpyro", "status": "not installed", "message": "no module"}
    rows = [row, {**row, "seed": 2, "warnings": ["look"]}, other, wrong(other, seed=2), absent]
    lines = cells(report(rows))
    start = lines.index(list(SUMMARY)) + 2
    ours, peer = (dict(zip(SUMMARY, line, strict=True)) for line in lines[start:])
    assert ours["posteriors"] == "2"
    assert ours["right on all seeds"] == "1"
    assert ours["runs right"] == "3 of 4"
    assert (ours["wrong, warned"], ours["wrong, silent"], ours["right, warned"]) == ("0", "1", "1")
    assert (peer["method"], peer["no draws"]) == ("NumPyro NUTS", "1")
    assert "not installed" in report([absent])


def test_every_method_can_be_looked_up():
    from real_posteriors.samplers.methods import DEFAULT_METHODS, METHODS
    from real_posteriors.samplers.ours import OURS

    assert {name for name, method in METHODS.items() if not method.is_peer} == set(OURS)
    assert set(DEFAULT_METHODS) == set(METHODS) - {"control"}
    assert METHODS["nuts"].load() is OURS["nuts"]
    for method in METHODS.values():
        module, _, function = method.function.partition(":")
        text = (FOLDER / "real_posteriors" / "samplers" / f"{module}.py").read_text(
            encoding="utf-8"
        )
        assert f"def {function}(" in text or function == "OURS"


def test_a_run_is_handed_over_with_what_it_said():
    from real_posteriors.cases import CASES
    from real_posteriors.judging import judge
    from real_posteriors.samplers.ours import Ours
    from real_posteriors.targets import Posterior
    from real_posteriors.worker import figures

    y, sd = [28, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18]
    case = CASES["eight_schools-eight_schools_noncentered"]
    names = case.name_draws(np.zeros(10))
    reference = {name: {"mean": 4.0, "sd": 5.0} for name in names}
    data = {"y": y, "sigma": sd}
    posterior = Posterior(case=case, data=data, reference=reference, jax=False)
    drawn = Ours(settings={"sampler": "hmc", "warmup": 20, "draws": 8})(posterior, seed=1)
    assert drawn.draws.shape == (4, 8, 10)
    assert 0 < drawn.calls_before["gradient"] < drawn.calls["gradient"]
    found = figures(drawn, judge(case.name_draws(drawn.draws), reference))
    assert json.loads(json.dumps(found))["parts"]["sampler"].startswith("hmc")
    assert found["wrong"]


def test_posteriors_are_picked_by_parts_of_their_names():
    import click

    from posteriors import matching

    assert matching(["arK-arK", "arma-arma11"], ["ar"]) == ["arK-arK", "arma-arma11"]
    assert matching(["arK-arK", "arma-arma11"], ["arma*11"]) == ["arma-arma11"]
    with pytest.raises(click.ClickException, match="no posterior is named like x; there are arK"):
        matching(["arK-arK"], ["x"])
