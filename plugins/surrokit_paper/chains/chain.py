"""One chain at a time, with unit masses and a given step size: how the paper samples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import surrokit as sk
from surrokit.contracts.potential import Potential
from surrokit.errors import EvaluationWarning
from surrokit.history.trace import Trace
from surrokit.types import FloatArray, IntArray
from surrokit_paper.chains.stop_at import StopAt, evaluations
from surrokit_paper.problems.problems import PaperProblem


def complete(run: sk.Run) -> sk.Run:
    """Return a run that was not interrupted: half a run is no result to keep.

    Raises
    ------
    KeyboardInterrupt
        If somebody ended it.
    """
    if not run.complete:
        raise KeyboardInterrupt
    return run


def one_chain(
    target: Potential,
    problem: PaperProblem,
    start: FloatArray,
    rng: np.random.Generator,
    *,
    stop: StopAt | None = None,
    observers: Sequence[object] = (),
    **settings: Any,
) -> sk.Run:
    """Run one chain of HMC with the problem's step size and number of steps.

    Parameters
    ----------
    target, problem
        What is sampled.
    start : ndarray of shape (dim,)
        Where the chain starts.
    rng
        Generator.
    stop
        Ends the run.
    observers
        Others that are told.
    **settings
        More for :func:`surrokit.sample`.

    Raises
    ------
    KeyboardInterrupt
        If somebody else ended it: half a chain is no result.
    """
    run = sk.sample(
        target,
        sampler=("hmc", {"metric": "identity"}),
        step_size=problem.step_size,
        n_steps=problem.n_steps,
        chains=1,
        initial=start,
        seed=rng,
        progress=False,
        observers=[*observers, *([] if stop is None else [stop])],
        **settings,
    )
    return run if stop is not None and stop.reached else complete(run)


def burnt_in(
    target: Potential, problem: PaperProblem, n_iterations: int, rng: np.random.Generator
) -> FloatArray:
    """Return where exact HMC is after so many iterations from 0, shape (dim,).

    Its step size is tuned: at 0 the potential is more curved than where the posterior is, and a
    step that fits there may be rejected for long. The same generator brings every method to the
    same place; none is charged for it.

    Raises
    ------
    KeyboardInterrupt
        If somebody ended it.
    """
    start = np.zeros(target.dim)
    if not n_iterations:
        return start
    with warnings.catch_warnings():
        # a step that is only tried out may lead to where the target has no value
        warnings.simplefilter("ignore", EvaluationWarning)
        run = sk.sample(
            target,
            sampler=("hmc", {"metric": "identity"}),
            n_steps=problem.n_steps,
            chains=1,
            warmup=n_iterations,
            draws=1,
            initial=start,
            seed=rng,
            progress=False,
        )
    return np.asarray(complete(run).draws[0, -1], dtype=np.float64)


def evaluations_paid(trace: Trace) -> IntArray:
    """Return at how many positions the target had been evaluated after each iteration."""
    return np.asarray(evaluations(trace.calls))
