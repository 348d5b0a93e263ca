"""How fast does a cup of coffee cool? Simulated readings, and a target for surrokit."""

import numpy as np

import surrokit as sk

MINUTES = np.arange(3.0, 31.0, 3.0)
READINGS = np.array([70.1, 61.0, 54.2, 48.9, 43.2, 39.3, 36.7, 33.0, 31.3, 29.3])
"""Degrees Celsius, of a cup that began at 80."""


# [log density]
def log_density(rate, room, noise):
    curve = room + (80.0 - room) * np.exp(-rate * MINUTES)
    misfit = np.sum((READINGS - curve) ** 2) / (2.0 * noise**2)
    prior = -rate / 0.1 - (room - 20.0) ** 2 / 50.0 - noise
    return prior - len(READINGS) * np.log(noise) - misfit


# [target]
target = sk.potential(
    log_density=log_density,
    parameters={"rate": (0, None), "room": (0, 40), "noise": (0.1, 5)},
)


# [gradient]
def gradient(rate, room, noise):
    decay = np.exp(-rate * MINUTES)
    residual = READINGS - room - (80.0 - room) * decay
    by_rate = -np.sum(residual * (80.0 - room) * MINUTES * decay) / noise**2 - 1.0 / 0.1
    by_room = np.sum(residual * (1.0 - decay)) / noise**2 - (room - 20.0) / 25.0
    by_noise = np.sum(residual**2) / noise**3 - len(READINGS) / noise - 1.0
    return {"rate": by_rate, "room": by_room, "noise": by_noise}


# [target with gradient]
smooth = sk.potential(
    log_density=log_density,
    gradient=gradient,
    parameters={"rate": (0, None), "room": (0, 40), "noise": (0.1, 5)},
)
# [end]
