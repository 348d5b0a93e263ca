"""Targets that workers import, and what they do to those who evaluate them."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import attrs
import numpy as np

import surrokit as sk

SIZES = {"chains": 3, "warmup": 30, "draws": 20, "seed": 1, "progress": False}


class Choked(Exception):
    """Cannot be put together again from what its base class keeps of it."""

    def __init__(self, where, why):
        super().__init__(f"{why} at {where:.1f}")


class Late(Choked, TimeoutError):
    """One that counts as a time-out all the same."""


def value(q):
    return float(q @ q / 2 + 0.1 * np.sum(q**4))


def gradient(q):
    return q + 0.4 * q**3


def outputs(q):
    return np.array([q[0] * q[1], q[0] + q[2] ** 2, np.sin(q[1])])


def jacobian(q):
    return np.array([[q[1], q[0], 0.0], [1.0, 0.0, 2.0 * q[2]], [0.0, np.cos(q[1]), 0.0]])


def second(q):
    made = np.zeros((3, 3, 3))
    made[0, 0, 1] = made[0, 1, 0] = 1.0
    made[1, 2, 2] = 2.0
    made[2, 1, 1] = -np.sin(q[1])
    return made


def pulled(q, w):
    return jacobian(q).T @ w


def mapped(jac=None, hessian=None, vjp=None, **names):
    """A target of a forward map."""
    names = names or {"dim": 3}
    data = {"data": [0.5, 1.0, 0.2], "noise_sd": 0.3, "prior": sk.gaussian_prior(0, 1)}
    return sk.forward_potential(outputs, jac, hessian, vjp=vjp, **data, **names)


def rows(q):
    return np.sum(q**2, axis=1) / 2


@attrs.frozen
class Together:
    """A potential that notes in a folder whether so many of its calls were ever under way at once.

    A call waits so many seconds for the others, and no longer once all have met.
    """

    folder: Path
    n: int
    seconds: float = 1.0

    def met(self):
        return (self.folder / "met").exists()

    def __call__(self, q):
        here = self.folder / f"{os.getpid()}-{threading.get_ident()}"
        here.touch()
        end = time.monotonic() + self.seconds
        while not self.met() and time.monotonic() < end:
            if len(list(self.folder.iterdir())) >= self.n:
                (self.folder / "met").touch()
            time.sleep(0.001)
        here.unlink()
        return float(q @ q / 2)


def fails(q):
    """Fails in many ways along its first coordinate."""
    x = q[0]
    if x > 1.2:
        raise Choked(x, "too far")
    if x > 0.9:
        raise Late(x, "gave up")
    if x > 0.3:
        return np.nan
    if x < -1.5:
        return np.ones(2)
    return float(q @ q / 2)


@attrs.frozen
class Noted:
    """A normal density that leaves a file for each process that evaluates it."""

    folder: Path
    seconds: float = 0.0

    def __call__(self, q):
        (self.folder / str(os.getpid())).touch()
        time.sleep(self.seconds)
        return float(q @ q / 2)


@attrs.frozen
class Deadly:
    """Ends its process at the first calls beyond an edge: as often as ``lives`` says."""

    folder: Path
    lives: int

    def __call__(self, q):
        if q[0] > 0.5:
            deaths = len(list(self.folder.iterdir()))
            if deaths < self.lives:
                (self.folder / str(deaths)).touch()
                os._exit(1)
        return float(q @ q / 2)


def hangs(q):
    """Hangs beyond an edge."""
    if q[0] > 1.2:
        time.sleep(1000.0)
    return float(q @ q / 2)


@attrs.frozen
class HangsOnce:
    """Hangs at one call, which leaves a file, after the first few."""

    folder: Path

    def __call__(self, q):
        n = len(list(self.folder.iterdir()))
        if n < 6:
            (self.folder / str(n)).touch()
            time.sleep(1000.0 if n == 5 else 0.0)
        return float(q @ q / 2)


class Unloadable:
    """Can be pickled, and not be made anew."""

    def __call__(self, q):
        return 0.0

    def __reduce__(self):
        return _reject, ()


def _reject():
    raise OSError("no such data here")


def noisy(q):
    """Divides by zero where q[0] > 0, and counts on being told nothing of it."""
    return float(np.float64(q @ q / 2) + 0.0 * (np.float64(1.0) / np.float64(0.0) > 0))


def single(q):
    """Computes in single precision."""
    return np.float32(np.float32(q @ q) / np.float32(2.0))


def leave(q):
    """Return a value, or exit far out."""
    if q[0] > 1.0:
        raise SystemExit(3)
    return value(q)


TIMES = np.linspace(0.0, 2.0, 8)
DATA = 3.0 * np.exp(-1.2 * TIMES) + 0.1 * np.cos(7.0 * TIMES)


class Decay:
    """y' = -rate y by Euler steps: two derived numbers and a series."""

    def __init__(self, *, beside=True):
        self.beside, self.calls = beside, 0

    def outputs(self, rate, start):
        self.calls += 1
        steps = np.full(200, 1.0 - 0.01 * rate).cumprod()
        series = start * np.concatenate([[1.0], steps])
        found = np.interp(TIMES, np.linspace(0.0, 2.0, 201), series)
        beside = {"half": np.log(2.0) / rate, "end": series[-1], "series": series[::40]}
        return (found, beside) if self.beside else found

    def log_density(self, rate, start):
        found = self.outputs(rate, start)
        away, *beside = found if self.beside else (found,)
        value = -0.5 * np.square((away - DATA) / 0.2).sum()
        return (value, *beside) if self.beside else value
