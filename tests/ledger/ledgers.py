"""Runs with a file, and copies of their files that end early, as after a kill."""

from __future__ import annotations

import shutil
import sqlite3

import numpy as np

import surrokit as sk

SIZES = {"chains": 2, "seed": 3, "progress": False}


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


def forward(paid):
    """A forward map with Jacobian."""

    def outputs(q):
        paid()
        return np.array([q[0] + 0.1 * q[1] ** 2, q[1] - 0.2 * q[0], np.sin(0.5 * q[0])])

    def jacobian(q):
        paid()
        return np.array([[1.0, 0.2 * q[1]], [-0.2, 1.0], [0.5 * np.cos(0.5 * q[0]), 0.0]])

    return sk.forward_potential(
        outputs,
        jacobian,
        data=[0.5, 0.2, 0.3],
        noise_sd=0.4,
        prior=sk.gaussian_prior(),
        dim=2,
    )


KINDS = {
    "hmc": (plain, {"sampler": "hmc", "warmup": 60, "draws": 40}),
    "sub-chain": (
        forward,
        {
            "sampler": "sub-chain",
            "surrogate": ("additive", {"n_nodes": 20}),
            "explorer": "rounds",
            "draws": 30,
        },
    ),
    "automatic": (forward, {"draws": 30, "max_calls": 4000}),
    "values": (values, {"draws": 20, "max_calls": 3000}),
    "weights": (
        forward,
        {
            "sampler": "hmc",
            "surrogate": ("additive", {"n_nodes": 20}),
            "explorer": "rounds",
            "correction": ("weights", {"chains": 16, "warmup": 60, "effective": 800}),
            "max_calls": 110,
        },
    ),
    "while-learning": (
        plain,
        {
            "sampler": "hmc",
            "surrogate": ("additive", {"n_nodes": 20}),
            "schedule": "greville",
            "warmup": 60,
            "draws": 40,
        },
    ),
    "limited": (plain, {"sampler": "hmc", "warmup": 60, "draws": 400, "max_calls": 900}),
}


def cut(path, new, n):
    """Copy a ledger as a kill would have left it after n events."""
    shutil.copy(path, new)
    connection = sqlite3.connect(new)
    connection.execute("DELETE FROM events WHERE id > ?", (n,))
    connection.execute("DELETE FROM draws")
    connection.commit()
    connection.close()
    return new


def query(path, question):
    connection = sqlite3.connect(path)
    rows = connection.execute(question).fetchall()
    connection.close()
    return rows
