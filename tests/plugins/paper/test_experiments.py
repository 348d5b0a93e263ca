"""What is the same of every table and figure: rows, plain results, a report and picture of some."""

from __future__ import annotations

import hashlib
import json
import re

import attrs
import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.output.files import plain
from surrokit.registry.components import settings_of
from surrokit_paper.figure_1 import Figure1
from surrokit_paper.figure_2 import Figure2
from surrokit_paper.figure_4 import Figure4
from surrokit_paper.figure_6 import Figure6
from surrokit_paper.figure_7 import Figure7
from surrokit_paper.figure_8 import Figure8
from surrokit_paper.harness import Conditions, Finished
from surrokit_paper.reproduction import EXPERIMENTS
from surrokit_paper.table_1 import Table1

GRID = {"n_nodes": 20, "repeats": 1, "n_rows": 300, "burn_in": 20, "chains": 5, "iterations": 5}
GRID |= {"dims": 2, "n_points": 40, "gradient_points": 20}
ONE_PROBLEM = {"problems": "simulated", "n_rows": 500, "dim": 3}

TINY = {
    "figure-1": {"n_refits": 2, "n_data_sets": 2},
    "figure-2": {"repeats": 1, "burn_in": 5, "n_states": 50, "draws": 10, "n_nodes": 10},
    "figure-3": {"n_points": (60,), "repeats": 1, "burn_in": 5, "draws": 10},
    "figure-4": GRID,
    "figure-5": GRID,
    "figure-6": {
        "n_rows": 500,
        "dim": 3,
        "parameters": (1, 3),
        "n_nodes": 20,
        "burn_in": 60,
        "discard": 10,
        "draws": 50,
    },
    "figure-7": {**ONE_PROBLEM, "burn_in": 5, "draws": 20},
    "figure-8": {**ONE_PROBLEM, "reference_draws": 50, "seconds": 0.1},
    "table-1": {**ONE_PROBLEM, "burn_in": 100, "discard": 20, "draws": 50},
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_rows_have_names_of_their_own_and_say_what_their_result_depends_on(name):
    cls = EXPERIMENTS[name]
    for experiment in (cls(), cls(**cls.quick), cls(**TINY[name])):
        rows = experiment.rows()
        names = [row.name for row in rows]
        assert len(set(names)) == len(names) > 0
        assert all(re.fullmatch(r"[a-z0-9-]+(/[a-z0-9-]+)*", each) for each in names)
        assert rows == experiment.rows()
        json.dumps(plain([row.settings for row in rows]), allow_nan=False)
        json.dumps(plain(attrs.asdict(experiment)), allow_nan=False)


SETTINGS = {
    "figure-1": "a587d0bb316f",
    "figure-2": "2720adaa5630",
    "figure-3": "86d3dd444b22",
    "figure-4": "b579f0044383",
    "figure-5": "de3f281e3f40",
    "figure-6": "41e638c82af0",
    "figure-7": "3fe601a23d51",
    "figure-8": "5daaa9792721",
    "table-1": "09cca110b97a",
}
"""Of each experiment a hash of the names and settings of all rows, in full and quick."""


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_are_those_of_the_paper_and_kept_rows_stay_valid(name):
    cls = EXPERIMENTS[name]
    rows = [[r.name, plain(r.settings)] for e in (cls(), cls(**cls.quick)) for r in e.rows()]
    text = json.dumps(rows, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == SETTINGS[name]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_one_row_is_plain_data_and_enough_for_a_report_and_a_picture(name):
    experiment = EXPERIMENTS[name](**TINY[name])
    row = experiment.rows()[0]
    result = plain(experiment.run(row, Conditions(seed=1607)), row.name)
    settings = plain(row.settings, row.name)
    finished = Finished(name=row.name, settings=settings, result=result, seconds=1.0)
    report = experiment.report([finished])
    assert report.tables or report.printed
    for table in report.tables.values():
        assert len({tuple(line) for line in table}) <= 1
    json.dumps(plain(report.figures, "figures"), allow_nan=False)
    experiment.draw([finished]).draw_without_rendering()


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "figure-1"])
def test_half_a_run_is_no_result(name, monkeypatch):
    real = sk.sample

    def interrupted(target, **arguments):
        return attrs.evolve(real(target, **arguments), stopped="interrupted")

    monkeypatch.setattr(sk, "sample", interrupted)
    experiment = EXPERIMENTS[name](**TINY[name])
    with pytest.raises(KeyboardInterrupt):
        experiment.run(experiment.rows()[-1], Conditions(seed=1))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_all_settings_have_help_and_small_sizes(name):
    cls = EXPERIMENTS[name]
    for setting in settings_of(cls).values():
        assert setting.help, setting.name
        assert setting.limits or setting.type not in ("", "int", "float"), setting.name
    assert set(cls.quick) <= {field.name for field in attrs.fields(cls)}
    assert cls(**cls.quick) != cls()
    assert "\n" not in cls.title


@pytest.mark.parametrize(
    ("cls", "settings", "message"),
    [
        *((Figure1, {"n_points": bad}, "n_points must be a whole number of at least 1, or several")
          for bad in (0, (10, -1), (), "ten", (10, 2.5))),
        (Figure2, {"repeats": 0}, "repeats must be a whole number"),
        (Figure2, {"burn_in": -1}, "burn_in must be a whole number"),
        (Figure2, {"ridge": 0.0}, "ridge must be a positive"),
        (Figure4, {"dims": 0}, "dims must be a whole number of at least 1, or several"),
        (Figure4, {"n_nodes": ()}, "n_nodes must be a whole number of at least 1, or several"),
        (Figure4, {"acceptance": 1.5}, "acceptance must be"),
        (Figure6, {"parameters": (0, 1)}, "parameters must be a whole number of at least 1"),
        (Figure6, {"dim": 20}, "parameters must be numbers from 1 to dim, which is 20"),
        (Figure6, {"discard": 5000}, "discard must be less than burn_in, which is 5000, got 5000"),
        (Figure7, {"problems": ("bank", "banana")}, "problems must be one or several of simulated"),
        (Figure7, {"problems": ()}, "problems must be one or several of"),
        (Figure7, {"paper_points": (600, 600)}, "paper_points must be two whole numbers"),
        (Figure7, {"default_points": 50}, "default_points must be two whole numbers"),
        (Figure7, {"updates": "often"}, "updates must be one of 'auto', 'refit', 'greville'"),
        (Figure7, {"kappa": 1.5}, "kappa must be a number above 0 and at most 1"),
        (Figure8, {"schemes": ("paper", "ours")}, "schemes must be one or several of paper, def"),
        (Figure8, {"seconds": 0}, "seconds must be a positive finite number"),
        (Table1, {"methods": "nuts"}, "methods must be one or several of hmc, rmhmc, rns-hmc"),
        (Table1, {"convex_metric": "fisher"}, "convex_metric must be one of 'hessian', 'softabs'"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(cls, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        cls(**settings)
