"""Chains on a process, which tell where its mass is."""

from __future__ import annotations

import numpy as np

from surrokit.limits import check_deadline
from surrokit.types import FloatArray
from surrokit_gp.quadratic.walled import Walled

CHAINS, TRANSITIONS, EVERY = 64, 60, 5
_STEPS, _STEP_SIZE, _WANTED = 8, 0.25, 0.8


def walk(
    walled: Walled, temperature: float, starts: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return draws of exp(-V / T) by Hamiltonian chains, the first third left out, shape (n, dim).

    Parameters
    ----------
    walled
        V. About 1 wide in each direction.
    temperature
        T.
    starts : ndarray of shape (chains, dim)
        Where chains begin.
    rng
        Generator.
    """
    state = starts, *walled.value_and_gradient(starts)
    step_size, kept, accepted = _STEP_SIZE, [], []
    with np.errstate(all="ignore"):  # paths that run off are refused
        for i in range(1, TRANSITIONS + 1):
            check_deadline()
            state, moved = _move(walled, temperature, state, step_size, rng)
            accepted.append(moved)
            if i % EVERY == 0 and 3 * i > TRANSITIONS:
                kept.append(state[0])
            if i % EVERY == 0 and 2 * i < TRANSITIONS:
                step_size *= float(np.exp(0.5 * (np.mean(accepted[-EVERY:]) - _WANTED)))
    return np.concatenate(kept)


def _move(
    walled: Walled,
    temperature: float,
    state: tuple[FloatArray, FloatArray, FloatArray],
    step_size: float,
    rng: np.random.Generator,
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], float]:
    """Return positions, V and its gradient after a path, and the part of paths accepted."""
    positions, values, gradients = state
    momenta = rng.standard_normal(positions.shape)
    step = step_size * rng.uniform(0.6, 1.2)
    energy = values / temperature + 0.5 * np.square(momenta).sum(axis=1)
    end, height, slope = positions, values, gradients
    for _ in range(_STEPS):
        momenta = momenta - 0.5 * step / temperature * slope
        end = end + step * momenta
        height, slope = walled.value_and_gradient(end)
        momenta = momenta - 0.5 * step / temperature * slope
    change = energy - height / temperature - 0.5 * np.square(momenta).sum(axis=1)
    moved = np.log(rng.random(len(end))) < change
    across = moved[:, None]
    after = (
        np.where(across, end, positions),
        np.where(moved, height, values),
        np.where(across, slope, gradients),
    )
    return after, float(moved.mean())
