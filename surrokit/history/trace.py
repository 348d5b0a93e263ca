"""The trace of a run: its iterations as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.contracts.dynamics import Status
from surrokit.contracts.methods import CALL_KINDS
from surrokit.coordinates.blocks import CoordinateMap
from surrokit.history.scratch import AT_ONCE, Scratch
from surrokit.types import BoolArray, FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class Trace:
    """Iterations of one phase of a run; arrays have shape (chains, iterations) unless told.

    Parameters
    ----------
    draws : ndarray of shape (chains, iterations, dim)
        In the user's coordinates.
    positions : ndarray of shape (chains, iterations, dim)
        The same in the sampling coordinates.
    values : ndarray
        Exact U in the sampling coordinates, Jacobian included; NaN where the correction did not
        evaluate it.
    accepted, divergent : ndarray of bool
        Whether the chain moved, and whether its path failed.
    acceptance, path_acceptance : ndarray
        Exact acceptance probability, or an unbiased estimate of it, and the same if the potential
        that the sampler moved on were the target. NaN where there was nothing to decide, since
        the proposal did not leave the chain's position.
    n_steps : ndarray of int
        Integrator steps.
    status : ndarray of int
        :class:`~surrokit.contracts.dynamics.Status` of each path.
    step_size : ndarray of shape (iterations,)
        In use at each iteration; NaN for samplers without one.
    seconds : ndarray of shape (iterations,)
        Since the run began.
    energy : ndarray
        V + K with which each path began; NaN of samplers without momenta.
    failures : ndarray of shape (iterations,)
        Positions rejected, as the target failed there, since the run began.
    calls : dict of str to ndarray of shape (iterations,)
        Exact calls of each kind since the run began.
    outputs : ndarray of shape (chains, iterations, m), optional
        Forward outputs, where the target has them.
    transform
        The map from the sampling coordinates to the user's.
    ends : ndarray of shape (chains, iterations, dim), optional
        Where moves ended, accepted or not, in the user's coordinates; NaN of moves that do not keep
        a surrogate's density, None if none does or they were not kept.
    """

    draws: FloatArray
    positions: FloatArray
    values: FloatArray
    accepted: BoolArray
    divergent: BoolArray
    acceptance: FloatArray
    path_acceptance: FloatArray
    n_steps: IntArray
    status: IntArray
    energy: FloatArray
    step_size: FloatArray
    seconds: FloatArray
    failures: IntArray
    calls: Mapping[str, IntArray]
    outputs: FloatArray | None
    transform: CoordinateMap
    ends: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.seconds)

    def chosen(self, places: IntArray) -> Trace:
        """Return the iterations at some places as those of one chain.

        Parameters
        ----------
        places : ndarray of int, shape (n,)
            Counted through all chains, one after another.
        """
        when = places % max(1, len(self))
        found: dict[str, Any] = {
            **{name: _flat(getattr(self, name))[places][None] for name in (*_PLACES, *DTYPES)},
            **{name: getattr(self, name)[when] for name in ("step_size", "seconds", "failures")},
            "outputs": None if self.outputs is None else _flat(self.outputs)[places][None],
            "calls": {kind: counts[when] for kind, counts in self.calls.items()},
            "ends": None,
        }
        return attrs.evolve(self, **found)

    def path_failures(self) -> dict[str, int]:
        """Return the number of paths that failed, all chains together, by kind of failure.

        The kinds are ``not-finite``, ``not-converged`` and ``not-reversible``, as in
        :class:`~surrokit.contracts.dynamics.Status`. Each failed path was rejected.
        """
        return {
            failure.name.lower().replace("_", "-"): int((self.status == failure).sum())
            for failure in Status
            if failure is not Status.OK
        }

    def statistics(self, log_weights: FloatArray | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return the statistics of the sampler by ArviZ's names, each (chains, iterations).

        ``lp`` is left out where a correction did not evaluate the target at every draw, and
        ``energy`` where not every draw is from a path.

        Parameters
        ----------
        log_weights : ndarray of shape (chains, draws), optional
            Of weighted draws.
        """
        known = {"lp": -self.values, "energy": self.energy}
        return {
            **{name: array for name, array in known.items() if not np.isnan(array).any()},
            "acceptance_rate": self.acceptance,
            "diverging": self.divergent,
            "n_steps": self.n_steps,
            "step_size": np.tile(self.step_size, (len(self.draws), 1)),
            **({} if log_weights is None else {"log_weight": log_weights}),
        }


_PLACES = ("draws", "positions")

DTYPES = {
    "values": np.float64,
    "accepted": np.bool_,
    "divergent": np.bool_,
    "acceptance": np.float64,
    "path_acceptance": np.float64,
    "n_steps": np.int64,
    "status": np.int64,
    "energy": np.float64,
}
"""Name to type of the columns that have a number for each chain."""


def trace_of(
    columns: Mapping[str, npt.NDArray[Any]],
    transform: CoordinateMap,
    scratch: Scratch | None = None,
) -> Trace:
    """Return the trace of columns as :meth:`History.columns` returns them.

    Parameters
    ----------
    columns
        Name to array.
    transform
        The map to the user's coordinates.
    scratch
        Makes room for the draws; None for memory.
    """
    scratch = scratch or Scratch()
    arrays = {name: np.swapaxes(array, 0, 1) for name, array in columns.items()}
    numbers = columns["numbers"]
    calls = numbers[:, 3:].astype(np.int64)
    places = {
        name: scratch.copy(arrays[name])  # in the order of chains: sums round by how arrays lie
        for name in ("positions", "outputs", "ends")
        if name in arrays
    }
    positions, ends = places["positions"], places.get("ends")
    return Trace(
        draws=_to_bounded(positions, transform, scratch),
        positions=positions,
        **{name: arrays[name] for name in DTYPES},
        step_size=numbers[:, 0],
        seconds=numbers[:, 1],
        failures=numbers[:, 2].astype(np.int64),
        calls=dict(zip(CALL_KINDS, calls.T, strict=True)),
        outputs=places.get("outputs"),
        transform=transform,
        ends=None if ends is None else _to_bounded(ends, transform, scratch),
    )


def _flat(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array (chains, iterations, ...) with chains one after another."""
    return array.reshape(-1, *array.shape[2:])


def _to_bounded(positions: FloatArray, transform: CoordinateMap, scratch: Scratch) -> FloatArray:
    """Return positions (chains, n, dim) in the user's coordinates, a part of them at a time."""
    found = scratch.empty((*positions.shape[:-1], transform.n_user), np.float64)
    for chain in range(len(positions)):
        for at in range(0, positions.shape[1], AT_ONCE):
            part = slice(at, at + AT_ONCE)
            found[chain, part] = transform.to_bounded(positions[chain, part])
    return found
