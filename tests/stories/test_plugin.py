"""A surrogate of one's own, from the template to a run."""

from __future__ import annotations

import csv

import pytest


@pytest.mark.long
def test_a_new_part(terminal, tmp_path, record_property):
    printed = terminal("-m", "surrokit", "new", "plugin", "mine")
    assert "pip install" in printed
    folder = tmp_path / "surrokit-mine"
    known = folder / "surrokit_mine-0.1.0.dist-info"  # as an editable install leaves it
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: surrokit-mine\nVersion: 0.1.0\n")
    (known / "entry_points.txt").write_text("[surrokit]\nmine = surrokit_mine\n")
    tests = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert " passed" in terminal(*tests, paths=[folder], folder=folder)
    assert "surrogate mine" in terminal("-m", "surrokit", "plugins", "mine", paths=[folder])
    run = ("sample", "gaussian", "--surrogate", "mine", "--seed", "1", "--out", "draws.csv")
    printed = terminal("-m", "surrokit", *run, paths=[folder])
    record_property("calls", printed.split("exact calls")[1].splitlines()[0].strip())
    with (tmp_path / "draws.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4000
    assert abs(sum(float(row["q[0]"]) for row in rows) / len(rows)) < 0.2
