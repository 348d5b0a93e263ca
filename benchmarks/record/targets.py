"""How runs of the record are asked for, and their targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import surrokit as sk
from record.clock import CLOCK, costly
from surrokit.testing import Wrapped

SIZES: dict[str, Any] = {"chains": 3, "warmup": 120, "draws": 60, "seed": 14, "progress": False}
"""Enough iterations for tuning, a fit and a few kept draws."""

FIXED: dict[str, Any] = {"step_size": 0.4, "n_steps": 4}
"""A sampler with nothing to tune."""


_OF_SAMPLER = ("step_size", "n_steps", "metric", "integrator")


def drawn(target: Any, **options: Any) -> sk.Run:
    """Draw a little; settings of the sampler, or of the one by default, may stand beside it."""
    given = {**SIZES, **options}
    if moves := {name: given.pop(name) for name in _OF_SAMPLER if name in given}:
        sampler = given.get("sampler", "hmc")
        name, settings = sampler if isinstance(sampler, tuple) else (sampler, {})
        given["sampler"] = (name, {**settings, **moves})
    return sk.sample(target, **given)


class Interrupting:
    """An observer that stands for Ctrl-C after an iteration."""

    def __init__(self, iteration: int) -> None:
        self._iteration = iteration

    def surrokit_transition_done(self, run: Any, state: Any, info: Any) -> None:
        if info.iteration == self._iteration:
            raise KeyboardInterrupt


PRECISION = np.array([[1.6, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.8]])


def bent(q: np.ndarray) -> np.ndarray:
    """U of a density that is no Gaussian, at positions (..., 3)."""
    quadratic = 0.5 * np.einsum("...i,ij,...j->...", q, PRECISION, q)
    return quadratic + np.log1p(np.exp(1.5 * q[..., 0])) + 0.1 * np.square(np.square(q[..., 1]))


def bent_gradient(q: np.ndarray) -> np.ndarray:
    gradient = q @ PRECISION
    gradient[..., 0] += 1.5 / (1.0 + np.exp(-1.5 * q[..., 0]))
    gradient[..., 1] += 0.4 * q[..., 1] ** 3
    return gradient


def smooth(*, batched: bool = True, gradient: bool = True, seconds: float = 0.0) -> Any:
    """A target of three numbers from functions, each call of which takes so long."""
    given = costly(bent_gradient, seconds) if gradient else None
    return sk.potential(costly(bent, seconds), given, dim=3, batched=batched)


def joint(*, seconds: float = 0.0) -> Any:
    """The same with one function for both, of one position."""
    both = costly(lambda q: (bent(q), bent_gradient(q)), seconds)
    return sk.potential(value_and_gradient=both, dim=3)


def banana() -> Any:
    return sk.make("potential", "banana")


def gaussian(mean: Any = (0.5, -1.0, 0.0)) -> Any:
    """A normal target, which knows that it is one; also a surrogate that is ready."""
    return sk.make("potential", "gaussian", mean=mean, covariance=np.linalg.inv(PRECISION))


def two_modes(half_distance: float = 3.0) -> Any:
    """Two unit normals side by side."""

    def both(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        pull = half_distance * np.tanh(half_distance * q[:, 0])
        value = 0.5 * np.square(q).sum(axis=1) - np.logaddexp(
            half_distance * q[:, 0], -half_distance * q[:, 0]
        )
        return value, q - np.column_stack([pull, np.zeros(len(q))])

    return sk.potential(value_and_gradient=both, dim=2, batched=True)


# --- forward maps ---

TIMES = np.linspace(0.2, 3.0, 6)


def decay(q: np.ndarray) -> np.ndarray:
    """Amplitude and log rate (..., 2) to readings (..., 6)."""
    return q[..., :1] * np.exp(-np.exp(q[..., 1:]) * TIMES)


def decay_jacobian(q: np.ndarray) -> np.ndarray:
    rate = np.exp(q[..., 1:])
    fall = np.exp(-rate * TIMES)
    return np.stack([fall, -q[..., :1] * rate * TIMES * fall], axis=-1)


def decay_hessian(q: np.ndarray) -> np.ndarray:
    rate = np.exp(q[..., 1:])
    fall = np.exp(-rate * TIMES)
    mixed = -rate * TIMES * fall
    last = q[..., :1] * (np.square(rate * TIMES) - rate * TIMES) * fall
    return np.stack(
        [np.stack([0.0 * fall, mixed], axis=-1), np.stack([mixed, last], axis=-1)], axis=-2
    )


READINGS = decay(np.array([2.0, -0.3])) + 0.1 * np.cos(7.0 * TIMES)


def forward(
    *,
    jacobian: bool = True,
    hessian: bool = False,
    batched: bool = True,
    seconds: float = 0.0,
    **options: Any,
) -> Any:
    """A forward map with normal errors and a normal prior, with as many derivatives as asked."""
    return sk.forward_potential(
        costly(decay, seconds),
        costly(decay_jacobian, seconds) if jacobian else None,
        decay_hessian if hessian else None,
        data=READINGS,
        noise_sd=0.15,
        prior=sk.gaussian_prior(mean=(1.5, 0.0), sd=(1.0, 0.7)),
        batched=batched,
        **(options or {"dim": 2}),
    )


BOUNDS = {"amplitude": (0.0, None), "log_rate": (-3.0, 2.0)}
"""Of the parameters of a forward map."""

EVERY_BOUND = {
    "free": None,
    "above": (-2.0, None),
    "below": (None, 2.5),
    "between": sk.vector(2, -3.0, 3.0),
}
"""Every transform there is, one of them of a vector."""


def bounded(*, gradient: bool = True) -> Any:
    """A target of five numbers within bounds, by its log density, of one position."""
    scales = np.array([1.0, 0.7, 1.2, 2.0, 0.9])

    def log_density(q: np.ndarray) -> float:
        return float(-0.5 * np.sum(np.square(q / scales)) - 0.3 * q[0] * q[3])

    def slope(q: np.ndarray) -> np.ndarray:
        return -q / np.square(scales) - 0.3 * np.array([q[3], 0.0, 0.0, q[0], 0.0])

    return sk.potential(
        log_density=log_density, gradient=slope if gradient else None, parameters=EVERY_BOUND
    )


def bounded_banana() -> Any:
    """A potential with second and third derivatives within bounds."""
    bounds = {"first": (-4.0, 4.0), "second": (-3.5, None)}
    return sk.BoundedPotential(banana(), sk.Parameters.declare(bounds))


# --- sums over rows of data ---


def design(n_rows: int = 400, dim: int = 4, seed: int = 12) -> np.ndarray:
    """Columns as data have them: an intercept, two yes or no, and numbers; (n_rows, dim)."""
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((n_rows, dim))
    columns[:, 0] = 1.0
    columns[:, 1] = rng.random(n_rows) < 0.3
    columns[:, 2] = rng.random(n_rows) < 0.1
    return columns


def regression(kind: str = "logistic", n_rows: int = 400, dim: int = 4, **settings: Any) -> Any:
    """A regression on synthetic rows; ``kind`` is ``logistic``, ``probit`` or ``robust``."""
    columns, rng = design(n_rows, dim), np.random.default_rng(7)
    linear = columns @ np.linspace(-0.8, 0.9, dim)
    noise = rng.logistic(size=n_rows)
    response = linear + 0.5 * noise if kind == "robust" else (linear + noise > 0).astype(float)
    is_sparse = settings.pop("sparse", False)
    rows = sparse.csr_array(columns) if is_sparse else columns
    if kind == "logistic":
        return sk.make("potential", kind, design=rows, response=response, **settings)
    family = {"probit": "probit", "robust": "student"}[kind]
    return sk.rows_potential(family, rows, response, prior=10.0, **settings)


class Slow(Wrapped):
    """A target of which each call takes so long, whatever it offers."""

    def __init__(self, inner: Any, seconds: float) -> None:
        super().__init__(inner)
        self._seconds = seconds

    def evaluate(self, method: str, function: Callable, positions: np.ndarray) -> Any:
        CLOCK.spend(self._seconds)
        return function(positions)


# --- targets that fail ---


def failing(how: str, *, batched: bool = False, gradient: bool = True) -> Any:
    """The smooth target, which fails in a corner: by ``raise``, ``nan``, ``inf`` or ``slope``.

    A batched one that raises does so for all rows at once; ``slope`` has a gradient that is NaN
    where the value is finite.
    """

    def value(q: np.ndarray) -> np.ndarray:
        return _spoilt(bent(q), _in_corner(q), "" if how == "slope" else how)

    def slope(q: np.ndarray) -> np.ndarray:
        return _spoilt(bent_gradient(q), _in_corner(q)[..., None], how)

    return sk.potential(value, slope if gradient else None, dim=3, batched=batched)


def _in_corner(q: np.ndarray) -> np.ndarray:
    return (q[..., 0] > 0.4) & (q[..., 2] > 0.0)


def _spoilt(numbers: np.ndarray, where: np.ndarray, how: str) -> np.ndarray:
    if how == "raise" and np.any(where):
        raise ValueError("no luck in the corner")
    if how in ("", "raise"):
        return numbers
    return np.where(where, np.inf if how == "inf" else np.nan, numbers)
