"""How most runs of the record are asked for."""

from __future__ import annotations

from typing import Any

import surrokit as sk

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
    """An observer that stands for Ctrl-C after an iteration.

    Parameters
    ----------
    iteration
        Of the whole run.
    """

    def __init__(self, iteration: int) -> None:
        self._iteration = iteration

    def surrokit_transition_done(self, run: Any, state: Any, info: Any) -> None:
        if info.iteration == self._iteration:
            raise KeyboardInterrupt
