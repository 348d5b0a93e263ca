"""A program behind a queue, which is asked and answered by tables."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import surrokit as sk


def log_density(flux, depth):
    """Return that of a wall's thermal flux and depth, by its temperature and a plan."""
    return -0.5 * (flux * depth - 6) ** 2 - 0.5 * ((depth - 2) / 0.3) ** 2


def worked_through(todo, done):
    """Do the queue's work: a wall's temperature, for each row of the table."""
    with todo.open() as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        flux, depth = float(row["flux"]), float(row["depth"])
        row["log_density"] = log_density(flux, depth)
    with done.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


@pytest.mark.long
def test_a_program_behind_a_queue(account, terminal, tmp_path):
    study, todo, done = (tmp_path / name for name in ("run.surrokit", "todo.csv", "done.csv"))
    command = ("-m", "surrokit")
    terminal(*command, "study", study, "flux=0:10", "depth=0:5", "--max-calls", 200, "--seed", 1)
    batches = []
    while not sk.study(study).done:
        terminal(*command, "ask", study, "--out", todo)
        batches.append(worked_through(todo, done))
        terminal(*command, "tell", study, done)
        assert len(batches) < 40
    run = account(sk.open_run(study))
    assert sum(batches) <= 200
    shown = terminal(*command, "show", study)
    if not run.verdict.sound:  # the surrogate has learnt too little, and all who look are told
        assert "Warning" in shown
        return
    assert "flux" in shown
    flux, depth = np.meshgrid(np.linspace(0.01, 9.99, 800), np.linspace(0.01, 4.99, 800))
    mass = np.exp(log_density(flux, depth))
    mean = [(each * mass).sum() / mass.sum() for each in (flux, depth)]
    assert np.allclose(run.summary()["mean"], mean, atol=0.05)
