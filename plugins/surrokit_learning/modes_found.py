"""Modes that searches have found: which of them are one, and how wide they are."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.errors import NumericalError
from surrokit.interfaces import Evaluations
from surrokit.limits import check_deadline
from surrokit.mode.descent import Mode, descend, spectrum
from surrokit.modes import Modes
from surrokit.potentials import Potential, with_gradient
from surrokit.types import Capabilities, FloatArray, Pair

WIDE = 20.0
"""Nats above the least potential, beside one for each dimension, up to which a point is plausible.

Draws of a normal target lie dim / 2 above it on average; the rest is for surrogates to learn what
lies about it.
"""

SAME, HILL = 0.5, 0.05
"""Nats that ends of searches for one mode may differ by, and nats above both below which a way
between them leads over no hill."""

HALVINGS = 3
"""Times that a way along a curved valley is halved."""


def same_mode(modes: Modes | None, position: FloatArray, value: float) -> int | None:
    """Return the mode that a ``position (dim,)`` of potential ``value`` is; None for another.

    Two searches for one mode may end a standard deviation and half a nat apart.
    """
    for k in range(0 if modes is None else len(modes)):
        assert modes is not None
        if modes.squares(k, position[None])[0] < 1.0 and abs(value - modes.values[k]) < SAME:
            return k
    return None


def valley_of(
    exact: Potential, ends: Sequence[Mode], found: Mode, most: int
) -> tuple[int | None, int]:
    """Return the known end that a search has stopped short of, in a flat valley; and the calls.

    No potential on the straight way between the two is above both. Between modes there is one, and
    as a rule the first that is evaluated. Where so many calls do not suffice, no end is known.
    """
    calls = 0
    for k, end in enumerate(ends):
        for part in (0.5, 0.25, 0.75, 0.9, 0.1):
            if calls >= most:
                return None, calls
            calls += 1
            at = end.position + part * (found.position - end.position)
            with np.errstate(all="ignore"):
                value = exact.value(at[None])[0]
            if not value <= max(end.value, found.value) + HILL:
                break
        else:
            return k, calls
    return None, calls


def curved_valley_of(
    exact: Potential, ends: Sequence[Mode], found: Mode, covariance: FloatArray, most: int
) -> tuple[int | None, int]:
    """Return the known end in the same curved valley as one found; and the gradients taken.

    Such are looked for within five of the largest standard deviations of its ``covariance``, from
    the nearest, of the same height.
    """
    width, calls = float(np.sqrt(np.linalg.eigvalsh(covariance)[-1])), 0
    away = np.array([np.linalg.norm(end.position - found.position) for end in ends])
    for k in np.argsort(away, kind="stable"):
        end = ends[int(k)]
        if away[k] > 5.0 * width or abs(end.value - found.value) > SAME or calls >= most:
            continue
        level = max(end.value, found.value) + HILL
        leads, taken = _joins(exact, end.position, found.position, level, most - calls, HALVINGS)
        calls += taken
        if leads:
            return int(k), calls
    return None, calls


def _joins(
    exact: Potential, one: FloatArray, other: FloatArray, level: float, most: int, halvings: int
) -> tuple[bool, int]:
    """Return whether a valley below a level joins two positions (dim,); and the gradients taken.

    Its middle is looked for by a descent in the plane between the two.
    """
    if most <= 0:
        return False, 0
    plane, middle = _Plane(exact, (other - one) / np.linalg.norm(other - one)), 0.5 * (one + other)
    try:
        low = descend(plane, middle, max_calls=min(most, 12), until=lambda _, u, __: u <= level)
    except NumericalError:
        return False, 1
    if not low.value <= level:
        return False, low.calls
    if low.calls == 1 and halvings < HALVINGS:  # straight enough; at first there is a hill
        return True, low.calls
    if not halvings:
        return False, low.calls
    calls = low.calls
    for end in (one, other):
        leads, taken = _joins(exact, end, low.position, level, most - calls, halvings - 1)
        calls += taken
        if not leads:
            return False, calls
    return True, calls


@attrs.frozen(eq=False)
class _Plane:
    """A potential, with its gradient in the plane across a direction (dim,) of length 1."""

    exact: Potential
    along: FloatArray
    capabilities: Capabilities = frozenset({GRADIENT})

    @property
    def dim(self) -> int:
        return len(self.along)

    def value(self, positions: FloatArray) -> FloatArray:
        return self.exact.value(positions)

    def value_and_gradient(self, positions: FloatArray) -> Pair:
        values, gradients = with_gradient(self.exact).value_and_gradient(positions)
        return values, gradients - np.outer(gradients @ self.along, self.along)


def leads_to(
    modes: Modes | None, position: FloatArray, value: float, gradient: FloatArray
) -> int | None:
    """Return the known mode to which a Newton step leads, and to its height; None for none.

    If all were as quadratic as at the mode, the rest of the way need not be evaluated.
    """
    for k in range(0 if modes is None else len(modes)):
        assert modes is not None
        with np.errstate(over="ignore"):  # far from a mode
            step = modes.covariances[k] @ gradient
            lowest = value - 0.5 * float(gradient @ step)
            if same_mode(modes, position - step, lowest) == k:
                return k
    return None


def inverse_curvature(hessian: FloatArray) -> FloatArray:
    """Return |H|^-1, the covariance of a Laplace approximation with any Hessian (dim, dim).

    Directions of negative curvature count by its size, flat ones by the faintest curvature; where
    all is flat it is the identity.
    """
    sizes, ways = spectrum(hessian)
    sizes = np.abs(sizes)
    if not sizes.any():
        return np.eye(len(hessian))
    covariance = (ways / np.maximum(sizes, 1e-12 * sizes.max())) @ ways.T
    return np.asarray(0.5 * (covariance + covariance.T))


def predicted_covariance(mode: FloatArray, slope: FloatArray, rows: Evaluations) -> FloatArray:
    """Return the inverse of the symmetric matrix H that fits best to slope + H (q - mode).

    Where rows have no information about a direction, it has the usual curvature of the others.
    Searches go along few directions, and in these again and again, where a covariance of
    positions or gradients degenerates. The gradient at the mode (dim,) is ``slope (dim,)``,
    which need not vanish altogether. Rows, with finite gradients, that lie far above the least
    count little.
    """
    assert rows.gradients is not None
    dim, little = float(len(mode)), 1e-3 * np.eye(len(mode))  # beside a row of data as 1
    excess = rows.values - np.min(rows.values, initial=np.inf)
    counts = np.square(dim / np.maximum(excess, dim))
    away, change = rows.positions - mode, rows.gradients - slope
    with np.errstate(all="ignore"):  # squares may overflow
        near = np.isfinite(np.square(away).sum(axis=1) + np.square(change).sum(axis=1))
        away, change, counts = away[near], change[near], counts[near]
        # about a standard deviation of each coordinate; of one that never moved, a usual
        scales = ((counts @ np.square(away)) / (counts @ np.square(change))) ** 0.25
    known = (scales > 0.0) & np.isfinite(scales)  # rounding may leave neither
    scales[~known] = np.exp(np.log(scales[known]).mean()) if known.any() else 1.0
    away, change = away / scales, change * scales
    lengths = np.linalg.norm(away, axis=1)
    far = lengths > 1e-4  # nearer rows tell nothing but rounding
    if not far.any():
        return np.asarray(np.diag(np.square(scales)))
    check_deadline()
    unit, turned = (each[far] / lengths[far, None] for each in (away, change))
    usual = float(np.median(np.abs(np.sum(unit * turned, axis=1)))) or 1.0
    weighed = unit.T * counts[far]
    crossed = weighed @ turned + usual * little
    # the normal equations of the least sum of counts |H u - g|^2 are
    # moments H + H moments = crossed + crossed^T
    moments, vectors = np.linalg.eigh(weighed @ unit + little)
    inside = vectors.T @ (crossed + crossed.T) @ vectors / np.add.outer(moments, moments)
    sizes, vectors = np.linalg.eigh(vectors @ (inside + inside.T) @ vectors.T / 2.0)
    sizes = np.abs(sizes)
    sizes = np.maximum(sizes, 1e-4 * max(float(np.median(sizes)), np.finfo(float).tiny))
    return np.asarray((vectors / sizes) @ vectors.T * np.outer(scales, scales))
