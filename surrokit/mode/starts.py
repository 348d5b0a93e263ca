"""Starts of chains, and evaluations that the user already has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from surrokit.arguments import numbers
from surrokit.capabilities import INITIAL
from surrokit.coordinates.exchanges import exchanges
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.transforms import Scaled, from_line_of
from surrokit.errors import ShapeError, TargetError
from surrokit.failures import FailureAccount
from surrokit.interfaces import ChainState, Evaluations
from surrokit.limits import PENALTY
from surrokit.potentials import FullPotential, Potential
from surrokit.targets.bounds import (
    describe_position,
    labels_on_line,
    parameters_of,
    transform_of,
)
from surrokit.targets.scaling import REACH, expected
from surrokit.types import BoolArray, FloatArray, IntArray

Began = TypeVar("Began")

SPREAD = REACH
"""Spreads about the expected centre of each number within which chains start uniformly."""

ATTEMPTS = 100
"""Draws of a chain's start before the run gives up, where the target is not finite."""


def given_positions(
    initial: Mapping[str, Any] | npt.ArrayLike, target: Potential, chains: int
) -> FloatArray:
    """Return a user's starting positions in the sampling coordinates, shape (chains, dim).

    They are one position (dim,) for all chains, one for each, or values by name.

    Raises
    ------
    ShapeError
        If the shape is neither (dim,) nor (chains, dim).
    TargetError
        If a number is not finite or not inside its bounds; the message names the parameter.
    """
    transform = transform_of(target)
    if isinstance(of := from_line_of(transform), ModelMap):
        line = of.read(initial, chains)
        return transform.scaling.to_unbounded(line) if isinstance(transform, Scaled) else line
    parameters = parameters_of(target)
    values = parameters.position(initial)  # type: ignore[arg-type]
    dim = parameters.dim
    if values.shape not in ((dim,), (chains, dim)):
        raise ShapeError(
            f"initial must have shape ({dim},) for all chains or ({chains}, {dim}) "
            f"for each, got {values.shape}"
        )
    bounded = np.broadcast_to(values, (chains, dim))
    lower, upper = parameters.bounds()
    inside = np.isfinite(bounded) & (bounded > lower) & (bounded < upper)
    if not inside.all():
        chain, i = np.argwhere(~inside)[0]
        bound = f" strictly between {lower[i]:g} and {upper[i]:g}" if parameters.bounded else ""
        raise TargetError(
            f"initial value of {parameters.labels[i]!r} in chain {chain} is {bounded[chain, i]}; "
            f"it must be finite{bound}"
        )
    for name, where in parameters.slices().items():
        constraint = parameters.specs[name].constraint
        if constraint is None:
            continue
        kept = np.isfinite(constraint.to_unbounded(bounded[:, where])).all(axis=1)
        if not kept.all():
            chain = int(np.flatnonzero(~kept)[0])
            given = bounded[chain, where].reshape(constraint.shape).tolist()
            raise TargetError(
                f"initial value of {name!r} in chain {chain} is {given}; it must be "
                f"{constraint.meaning}"
            )
    return transform.to_unbounded(bounded)


def draw_positions(target: Potential, rng: np.random.Generator, n: int) -> FloatArray:
    """Draw starting positions in the sampling coordinates, shape (n, dim).

    The target draws them if it can; else they are uniform within :data:`SPREAD` spreads of where
    priors expect the mass, and of 0 where nothing is declared.
    """
    if INITIAL in target.capabilities:
        return cast(FullPotential, target).initial(rng, n)
    centre, spread = expected(target)
    return centre + spread * rng.uniform(-SPREAD, SPREAD, size=(n, target.dim))


def reach_of(target: Potential, starts: FloatArray, modes: FloatArray) -> FloatArray | None:
    """Return how far to look for more modes, in spreads (dim,), where one lies beyond all starts.

    Then nothing declared says where modes are, and others may be half as far away again as ``modes
    (k, dim)``. None if all lie where :func:`spread_positions` looks anyway, given the same ``starts
    (m, dim)``.
    """
    if INITIAL in target.capabilities:
        return None
    centre, spread = _centre(target, starts)
    away = np.max(np.abs(modes - centre), axis=0) / spread
    away = np.where(transform_of(target).between, 0.0, away)
    if not away.max() > 2.0 * SPREAD:
        return None
    return np.maximum(1.5 * away, 4.0 * SPREAD)


def _centre(target: Potential, starts: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return about where positions are spread, and in which units."""
    centre, spread = expected(target)
    if starts is not None and len(starts):
        own = np.mean(starts, axis=0)
        centre = np.where(np.abs(own - centre) > SPREAD * spread, own, centre)
    return centre, spread


def spread_positions(
    target: Potential,
    rng: np.random.Generator,
    n: int,
    starts: FloatArray | None = None,
    reach: float | FloatArray | None = None,
) -> FloatArray:
    """Draw positions farther apart than starts of chains, in the sampling coordinates, (n, dim).

    They come in pairs, mirrored about a centre. If the target draws its own starts, positions are
    such starts, and in every second pair twice as far from the centre. Otherwise parameters
    between two bounds are uniform between them, and all others are uniform within half of the
    reach and all of it, in turn: in spreads, by default four times the distance of starts.

    Chains begin at ``starts (m, dim)``: numbers that start farther away than they are drawn are the
    user's own, and positions are spread about them.
    """
    half = (n + 1) // 2
    centre, spread = _centre(target, starts)
    if INITIAL in target.capabilities:
        draws = cast(FullPotential, target).initial(rng, 500 + half)
        centre = draws[:500].mean(axis=0)
        away = (draws[500:] - centre) * np.resize([1.0, 2.0], half)[:, None]
    else:
        uniform = rng.uniform(-1.0, 1.0, size=(half, target.dim))
        reach = 4.0 * SPREAD if reach is None else reach
        away = reach * spread * np.resize([0.5, 1.0], half)[:, None] * uniform
        from scipy.special import ndtri

        between = transform_of(target).between & (centre == 0.0) & (spread == 1.0)
        away[:, between] = ndtri(0.5 * (1.0 + uniform[:, between]))
    return np.stack([centre + away, centre - away], axis=1).reshape(2 * half, target.dim)[:n]


def start(
    begin: Callable[[FloatArray], tuple[Began, ChainState]],
    target: Potential,
    initial: FloatArray | None,
    chains: int,
    rng: np.random.Generator,
    failures: FailureAccount,
    value: Callable[[FloatArray], FloatArray],
) -> Began:
    """Return what ``begin`` returns at positions where the target is finite.

    The user's own positions in the sampling coordinates are ``initial (chains, dim)``; None draws
    them, and again for each chain at which the target is not finite. ``begin`` evaluates the target
    at positions, and returns a result and the chains' state; ``value`` evaluates U alone, by which
    positions are drawn again.

    Raises
    ------
    TargetError
        If the target is not finite at the user's positions, or no finite start is found; the
        message names the parameters, and what the target did.
    """
    positions = draw_positions(target, rng, chains) if initial is None else initial
    before: list[float] = []
    for _ in range(ATTEMPTS):
        began, state = begin(positions)
        bad = ~(np.isfinite(state.values) & _finite_gradient(state).all(axis=1))
        if initial is None:
            bad |= _is_penalty(target, state, before)
        if not bad.any():
            return began
        if initial is not None:
            raise TargetError(_complaint(state, bad, target, failures))
        # a value decides on new ones: what chains begin with may take many calls
        drawn, again = draw_positions(target, rng, int(bad.sum())), 10
        while again and (high := ~(value(drawn) < PENALTY)).any():
            drawn[high], again = draw_positions(target, rng, int(high.sum())), again - 1
        positions = positions.copy()
        positions[bad] = drawn
    raise TargetError(
        f"no start was found in {ATTEMPTS} attempts at which the target is finite: "
        f"{_complaint(state, bad, target, failures)}; pass initial=..."
    )


def _is_penalty(target: Potential, state: ChainState, before: list[float]) -> BoolArray:
    """Return which chains (n,) begin at a penalty: very high, and the same at two, or flat."""
    high = (state.values >= PENALTY) & np.isfinite(state.values)
    if not high.any():
        return np.asarray(high)
    transform, at = transform_of(target), state.positions
    densities = state.values + transform.log_jacobian(at)
    seen = np.array([*before, *densities[high]])
    with np.errstate(invalid="ignore"):
        same = np.abs(seen - densities[:, None]) <= 1e-10 * np.abs(densities[:, None])
    is_first, alone = not before, high.sum() == 1 and len(high) > 1
    before.extend(densities[high])
    shared = (same.sum(axis=1) > 1) | (is_first and alone)
    gradient = state.cache.get("gradient")
    if gradient is not None:
        slope = np.abs(gradient + transform.volume(at)[1]).max(axis=1)
        shared |= slope <= 1e-9 * state.values
    return np.asarray(high & shared)


def _finite_gradient(state: ChainState) -> BoolArray:
    gradient = state.cache.get("gradient")
    return np.isfinite(state.positions if gradient is None else gradient)


def _complaint(
    state: ChainState, bad: BoolArray, target: Potential, failures: FailureAccount
) -> str:
    chain = int(np.flatnonzero(bad)[0])
    value = state.values[chain]
    labels = labels_on_line(target)
    at = describe_position(target, state.positions[chain])
    if np.isfinite(value):
        finite = _finite_gradient(state)[chain]
        culprits = ", ".join(labels[i] for i in np.flatnonzero(~finite))
        return f"the gradient is not finite in {culprits} at the start of chain {chain} ({at})"
    most = max(failures.kinds.values(), key=lambda kind: kind.count, default=None)
    why = "" if most is None else f" (it {most.message})"
    return (
        f"the target has potential {value} at the start of chain {chain} ({at}){why}; "
        "start inside its support, where it can be evaluated"
    )


def read_evaluations(evaluations: Evaluations | tuple[Any, ...], exact: Potential) -> Evaluations:
    """Return evaluations in the sampling coordinates of a target.

    Parameters
    ----------
    evaluations
        A record, or a tuple of positions, values and perhaps gradients, in the user's coordinates
        and without any Jacobian in U. Rows on or outside the bounds are left out.

    Raises
    ------
    ShapeError
        If the arrays do not fit each other, or the target.
    """
    if not isinstance(evaluations, Evaluations):
        if not 2 <= len(evaluations) <= 3:
            raise ShapeError(
                "evaluations in warm_start must be (positions, values) or (positions, values, "
                f"gradients), got {len(evaluations)} items"
            )
        names = ("positions", "values", "gradients")
        arrays = {
            name: numbers(f"{name} of evaluations", array)
            for name, array in zip(names, evaluations, strict=False)
            if array is not None or name != "gradients"
        }
        evaluations = Evaluations(**arrays)
    transform = transform_of(exact)
    if evaluations.positions.shape[1] != transform.n_user:
        raise ShapeError(
            f"evaluations have positions of {evaluations.positions.shape[1]} numbers, but the "
            f"target has dim {transform.n_user}"
        )
    if isinstance(line := from_line_of(transform), ModelMap):
        line.reject_evaluations()
    z = transform.to_unbounded(evaluations.positions)
    inside = np.asarray(np.isfinite(z).all(axis=1))
    kept, z = evaluations.take(inside), z[inside]
    gradients, jacobians = kept.gradients, kept.jacobians
    return Evaluations(
        positions=z,
        values=kept.values - transform.log_jacobian(z),
        gradients=None if gradients is None else transform.pull_back(z, gradients),
        outputs=kept.outputs,
        jacobians=None if jacobians is None else transform.pull_outputs(z, jacobians),
    )


def exchanged(target: Potential, position: FloatArray) -> list[IntArray]:
    """Return orders (dim,) of numbers in which equally declared ones are exchanged.

    They are those that do in the sampling coordinates, at ``position (dim,)``, what they do in the
    user's.
    """
    transform, orders = transform_of(target), []
    place = transform.to_bounded(position)
    if len(place) != target.dim:
        return []
    for pairs in exchanges(parameters_of(target)):
        order = np.arange(target.dim)
        order[pairs] = pairs[:, ::-1]
        if np.allclose(transform.to_bounded(position[order]), place[order]):
            orders.append(order)
    return orders
