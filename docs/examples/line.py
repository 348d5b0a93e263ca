"""How much longer is a spring under a load? A straight line through simulated readings."""

import numpy as np

import surrokit as sk

LOADS = np.arange(1.0, 9.0)
LENGTHS = np.array([12.3, 14.1, 16.6, 18.0, 19.9, 22.2, 24.1, 26.0])
"""Centimetres, each with an error of 0.3."""


def log_density(rest, stretch):
    misfit = LENGTHS - rest - stretch * LOADS
    return -np.sum((misfit / 0.3) ** 2) / 2.0


def gradient(rest, stretch):
    misfit = (LENGTHS - rest - stretch * LOADS) / 0.3**2
    return {"rest": np.sum(misfit), "stretch": np.sum(misfit * LOADS)}


target = sk.potential(
    log_density=log_density, gradient=gradient, parameters={"rest": None, "stretch": None}
)
