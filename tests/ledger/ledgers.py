"""Runs with a file, and copies of their files that end early, as after a kill."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np

import surrokit as sk

HERE = Path(__file__).parent
SIZES = {"chains": 2, "seed": 3, "progress": False}
SMALL = {"sampler": "hmc", "warmup": 6, "draws": 6, **SIZES}


class Counted:
    """Counts positions, and stops at one of them."""

    def __init__(self):
        self.n = 0
        self.stop_at = None
        self.error = KeyboardInterrupt

    def __call__(self):
        if self.n == self.stop_at:
            raise self.error("stopped on purpose")
        self.n += 1


def plain(paid, scale=1.0):
    """A correlated normal with value and gradient."""
    precision = np.diag([1.0, 4.0, 0.25]) + 0.3

    def value_and_gradient(q):
        paid()
        return scale * 0.5 * q @ precision @ q, scale * precision @ q

    return sk.potential(value_and_gradient=value_and_gradient, dim=3)


def values(paid):
    """Values alone, with bounds."""

    def log_density(q):
        paid()
        return -q[0] + 2.0 * np.log(q[0]) - 0.5 * (q[1] - 0.3 * q[0]) ** 2

    return sk.potential(log_density=log_density, parameters={"rate": (0, None), "slope": None})


def forward(paid, data=(0.5, 0.2, 0.3), noise_sd=0.4, prior_sd=1.0):
    """A forward map with Jacobian."""

    def outputs(q):
        paid()
        return np.array([q[0] + 0.1 * q[1] ** 2, q[1] - 0.2 * q[0], np.sin(0.5 * q[0])])

    def jacobian(q):
        paid()
        return np.array([[1.0, 0.2 * q[1]], [-0.2, 1.0], [0.5 * np.cos(0.5 * q[0]), 0.0]])

    observed = {"data": data, "noise_sd": noise_sd, "prior": sk.gaussian_prior(0.0, prior_sd)}
    return sk.forward_potential(outputs, jacobian, dim=2, **observed)


LEARNT = {"sampler": "hmc", "surrogate": ("additive", {"n_nodes": 20})}
WEIGHTS = ("weights", {"chains": 16, "warmup": 60, "effective": 800})
KINDS = {
    "hmc": (plain, {"sampler": "hmc", "warmup": 60, "draws": 40}),
    "sub-chain": (
        forward,
        {**LEARNT, "sampler": "sub-chain", "explorer": "rounds", "draws": 30},
    ),
    "automatic": (forward, {"draws": 30, "max_calls": 4000}),
    "values": (values, {"draws": 20, "max_calls": 1500}),
    "weights": (
        forward,
        {**LEARNT, "explorer": "rounds", "correction": WEIGHTS, "max_calls": 110},
    ),
    "while-learning": (plain, {**LEARNT, "schedule": "greville", "warmup": 60, "draws": 40}),
    "limited": (plain, {"sampler": "hmc", "warmup": 60, "draws": 400, "max_calls": 900}),
}


def cut(path, new, n=10**9):
    """Copy a file as a kill would have left it after n events."""
    shutil.copy(path, new)
    change(new, f"DELETE FROM events WHERE id > {n}", "DELETE FROM draws")
    return new


def change(path, *statements):
    """Do statements, each alone or with its values, to a file."""
    with closing(sqlite3.connect(path)) as connection:
        for each in statements:
            connection.execute(*([each] if isinstance(each, str) else each))
        connection.commit()


def query(path, question):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


FORGET_ACCOUNT = "DELETE FROM facts WHERE name = 'account'"
"""As if the run had been killed."""


def events(path):
    """Return all batches of exact calls of a file, whatever came of them."""
    with sk.Ledger(path) as ledger:
        return [*ledger.events()]


def fact(path, name):
    return json.loads(query(path, f"SELECT value FROM facts WHERE name = '{name}'")[0][0])


def set_fact(path, name, value):
    change(path, ("UPDATE facts SET value = ? WHERE name = ?", (json.dumps(value), name)))


def same(one, other):
    """Whether two runs have the same draws to the bit, and the same costs."""
    return (
        np.array_equal(one.draws, other.draws)
        and np.array_equal(one.warmup.draws, other.warmup.draws)
        and np.array_equal(one.kept.values, other.kept.values, equal_nan=True)
        and one.calls == other.calls
        and one.adaptation == other.adaptation
    )


def call(*command, **more):
    """Run Python in another process, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    settings = {"capture_output": True, "text": True, "timeout": 120, "check": True, **more}
    return subprocess.run([sys.executable, *map(str, command)], env=environment, **settings)
