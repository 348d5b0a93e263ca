"""Modes that searches have found: which are one, how wide they are, and whether mass is there."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from surrokit.exploring import evaluate_with_gradients
from surrokit.interfaces import ChainState, Evaluations
from surrokit.limits import check_deadline
from surrokit.mode.descent import Mode, descend
from surrokit.model.model import calls_per_gradient
from surrokit.modes import Modes
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray, IntArray
from surrokit_learning.designs import cholesky_factor

SAME_VALUE, SAME_PLACE = 0.5, 1.0
"""Nats, and standard deviations, by which two searches for one mode may end apart."""

AGREES = 0.25
"""Part by which a surrogate may be off, in its height above the deepest mode and in its gradient,
where a search goes on along it."""

SPREAD = 2.0
"""Standard deviations of the Laplace approximation's that chains begin at: farther apart than
draws, or else a comparison of chains could not see that they have yet to spread."""

ROOM = 10.0
"""Nats, beside one for each dimension, by which U may exceed what an approximation predicts."""

HALVINGS = 6
"""How often a start that exceeds it is moved half of the way to its mode."""

KEPT = 0.2
"""Part of such a move that at least half of the starts about a mode must keep, or else it is asked
whether it is in a funnel."""

STEEP = 0.5
"""Nats for each dimension, which draws have above their mode, that a step from such a mode would
still gain by its own covariance, where it is in a funnel. Searches also end there: in a
hierarchical model whose scale goes to 0 the density has no bound, and next to no mass is about. In
a shape that is merely unlike a normal one they end where it is nearly level."""

_ON_THE_WAY = (0.5, 0.25, 0.75, 0.9, 0.1)  # parts of it that are looked at
_RISE = 0.05  # nats that a way in a valley may rise
_USUAL = 1e-3  # what the usual curvature counts for in a direction, beside a row of data as 1
_LEAST = 1e-4  # of the usual curvature, the least
_MANY, _SPARSE = 200, 4  # dimensions from which on few rows matter, and how many there are to a row
_APART = 1e-4  # usual standard deviations between rows below which they tell nothing but rounding


# --- which are one ---


def same_mode(modes: Modes | None, position: FloatArray, value: float) -> int | None:
    """Return the mode that a ``position (dim,)`` of potential ``value`` is; None for another."""
    if modes is None:
        return None
    for k in range(len(modes)):
        near = modes.squares(k, position[None])[0] < SAME_PLACE**2
        if near and abs(value - modes.values[k]) < SAME_VALUE:
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
        highest = max(end.value, found.value) + _RISE
        for part in _ON_THE_WAY:
            if calls >= most:
                return None, calls
            calls += 1
            if not _value(exact, end.position + part * (found.position - end.position)) <= highest:
                break
        else:
            return k, calls
    return None, calls


def _value(exact: Potential, position: FloatArray) -> float:
    with np.errstate(all="ignore"):
        if calls_per_gradient(exact) > 1:
            return float(exact.value(position[None])[0])
        return float(with_gradient(exact).value_and_gradient(position[None])[0][0])


class ModeWatch:
    """Called with what a search evaluates, ends it where it leads to a known ``mode``.

    Potential and gradient at a position tell where a Newton step would lead, and how low, if all
    were as quadratic as at the mode. If that is the mode itself, the rest of the way need not be
    evaluated. Nor need it where a surrogate of known evaluations agrees with both, and leads there.
    """

    def __init__(self, modes: Modes | None, dim: int, surrogate: Potential | None = None) -> None:
        self.mode: int | None = None
        self._modes, self._dim, self._surrogate = modes, dim, surrogate
        self._seen: list[tuple[FloatArray, float, FloatArray]] = []

    def __call__(self, position: FloatArray, value: float, gradient: FloatArray) -> bool:
        """Take note of a position (dim,); return whether it leads to a known mode."""
        self._seen.append((position, value, gradient))
        for k in range(0 if self._modes is None else len(self._modes)):
            assert self._modes is not None
            with np.errstate(over="ignore"):  # far from a mode
                step = self._modes.covariances[k] @ gradient
                lowest = value - 0.5 * float(gradient @ step)
                if same_mode(self._modes, position - step, lowest) == k:
                    self.mode = k
        if self.mode is None and self._modes is not None and self._surrogate is not None:
            self.mode = _end_on(self._surrogate, self._modes, position, value, gradient)
        return self.mode is not None

    def seen(self) -> Evaluations:
        """Return what was evaluated, with gradients."""
        rows = len(self._seen), self._dim
        return Evaluations(
            positions=np.reshape([position for position, _, _ in self._seen], rows),
            values=np.array([value for _, value, _ in self._seen]),
            gradients=np.reshape([gradient for _, _, gradient in self._seen], rows),
        )


def _end_on(
    surrogate: Potential, modes: Modes, position: FloatArray, value: float, gradient: FloatArray
) -> int | None:
    """Return the mode to which a surrogate leads from where it agrees with the target; or None."""
    least = modes.values[0]
    with np.errstate(all="ignore"):
        at = np.stack([position, modes.positions[0]])
        values, gradients = with_gradient(surrogate).value_and_gradient(at)
        off = abs((values[0] - values[1]) - (value - least))
        turned = cholesky_factor(modes.covariances[0]).T @ np.stack([gradients[0], gradient]).T
        apart = np.linalg.norm(turned[:, 0] - turned[:, 1])
        agrees = off <= AGREES * max(value - least, 1.0)
        agrees = agrees and apart <= AGREES * np.linalg.norm(turned[:, 1])
    if not agrees:
        return None
    end = descend(surrogate, position)
    return same_mode(modes, end.position, end.value - float(values[1]) + least)


# --- how wide they are ---


def predicted_covariance(mode: FloatArray, slope: FloatArray, rows: Evaluations) -> FloatArray:
    """Return the inverse of the symmetric matrix H that fits best to slope + H (q - mode).

    Where rows say nothing of a direction, it has the usual curvature of the others. Searches go
    along few directions, and in these again and again, where a covariance of positions or
    gradients degenerates.

    Parameters
    ----------
    mode, slope : ndarray of shape (dim,)
        A mode, and the gradient there, which need not vanish altogether.
    rows
        With gradients, all finite. Those far above the least count little.
    """
    assert rows.gradients is not None
    typical = float(len(mode))
    excess = rows.values - np.min(rows.values, initial=np.inf)
    counts = (typical / np.maximum(excess, typical)) ** 2
    away, change = rows.positions - mode, rows.gradients - slope
    with np.errstate(over="ignore"):  # squares may overflow
        squares = np.square(away).sum(axis=1), np.square(change).sum(axis=1)
    near = np.isfinite(squares).all(axis=0)
    away, change, counts = away[near], change[near], counts[near]
    scales = _scales(away, change, counts)
    away, change = away / scales, change * scales
    lengths = np.linalg.norm(away, axis=1)
    told = lengths > _APART
    if not told.any():
        return np.asarray(np.diag(np.square(scales)))
    unit, turned = away[told] / lengths[told, None], change[told] / lengths[told, None]
    check_deadline()
    inverse = _inverse_fit(unit, turned, counts[told])
    return np.asarray(inverse * np.outer(scales, scales))


def _scales(away: FloatArray, change: FloatArray, counts: FloatArray) -> FloatArray:
    """Return about a standard deviation of each coordinate; of one that never moved, a usual."""
    moved, turned = counts @ np.square(away), counts @ np.square(change)
    with np.errstate(all="ignore"):
        ratios = moved / turned
    known = (ratios > 0.0) & np.isfinite(ratios)  # rounding may leave neither
    scales = np.ones(away.shape[1])
    if known.any():
        scales[known] = ratios[known] ** 0.25
        scales[~known] = np.exp(np.log(scales[known]).mean())
    return scales


def _inverse_fit(unit: FloatArray, turned: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the inverse of the H that fits, about the usual curvature, shape (dim, dim).

    Few rows in many dimensions tell of their own span alone. H is found there, as matrices of all
    dimensions take longer than the calls that they save.
    """
    along = np.einsum("nd,nd->n", unit, turned)
    usual = float(np.median(np.abs(along))) or 1.0
    rows, dim = unit.shape
    if dim < _MANY or _SPARSE * rows > dim:
        return _inverse(_fit(unit, turned, counts, usual))
    span = np.linalg.qr(np.concatenate([unit, turned]).T)[0]
    inside = _fit(unit @ span, turned @ span, counts, usual)
    inverse = _inverse(inside, usual, dim - len(inside)) - np.eye(len(inside)) / usual
    found = span @ inverse @ span.T
    found[np.diag_indices(dim)] += 1.0 / usual
    return np.asarray(found)


def _fit(unit: FloatArray, turned: FloatArray, counts: FloatArray, usual: float) -> FloatArray:
    """Return the symmetric H with the least sum of counts |H u - g|^2, drawn to a usual one."""
    dim = unit.shape[1]
    weighed = unit.T * counts
    moments = weighed @ unit + _USUAL * np.eye(dim)
    crossed = weighed @ turned + _USUAL * usual * np.eye(dim)
    eigenvalues, vectors = np.linalg.eigh(moments)
    # the normal equations are moments H + H moments = crossed + crossed^T
    inside = vectors.T @ (crossed + crossed.T) @ vectors
    hessian = vectors @ (inside / np.add.outer(eigenvalues, eigenvalues)) @ vectors.T
    return np.asarray(0.5 * (hessian + hessian.T))


def _inverse(hessian: FloatArray, usual: float = 1.0, more: int = 0) -> FloatArray:
    """Return the inverse of |H|, bounded; so many more of its eigenvalues are the usual one."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    sizes = np.abs(eigenvalues)
    median = float(np.median(np.concatenate([sizes, np.full(more, usual)])))
    sizes = np.maximum(sizes, _LEAST * max(median, np.finfo(float).tiny))
    return np.asarray((vectors / sizes) @ vectors.T)


# --- whether mass is there ---


def begin_about(
    exact: Potential, modes: Modes, chains: ChainState, rng: np.random.Generator
) -> tuple[ChainState, Modes]:
    """Return chains at draws about the modes that matter, and the modes, that of least U first.

    Chains stay where they are, and modes are not ``believed``, where one of these or the deepest is
    in a funnel. A gradient is evaluated for each chain, and some more where draws about modes are
    far above what was predicted.
    """
    n = len(chains.values)
    of = _shares(modes, n)
    now, parts = _about(exact, modes, of, rng)
    kept = {int(k): float(np.median(parts[of == k])) for k in np.unique(of)}
    if 0 not in kept:  # the deepest
        deepest = _about(exact, modes, np.zeros(n, dtype=np.int64), rng)[1]
        kept[0] = float(np.median(deepest))
    doubtful = [k for k, part in kept.items() if part < KEPT]
    if doubtful:
        few = modes.take(np.array(doubtful))
        slopes = chains_at(exact, few.positions).cache["gradient"]
        gains = 0.5 * np.einsum("ki,kij,kj->k", slopes, few.covariances, slopes)
        if gains.max() > STEEP * modes.positions.shape[1]:  # of a Newton step from each
            return chains, attrs.evolve(modes, believed=False)
    return now, modes


def chains_at(exact: Potential, positions: FloatArray) -> ChainState:
    """Return chains at positions (n, dim); U is infinite where anything failed."""
    values, gradients = evaluate_with_gradients(exact, positions)
    cache = {"value": values, "gradient": gradients}
    return ChainState(positions=positions, values=values, cache=cache)


def _about(
    exact: Potential, modes: Modes, of: IntArray, rng: np.random.Generator
) -> tuple[ChainState, FloatArray]:
    """Return chains at draws about modes ``of (n,)``, and what part (n,) is left of moves."""
    dim = modes.positions.shape[1]
    normals = SPREAD * rng.standard_normal((len(of), dim))
    expected = modes.values[of] + 0.5 * np.square(normals).sum(axis=1)
    factors = np.stack([cholesky_factor(covariance) for covariance in modes.covariances])
    moves = np.einsum("nij,nj->ni", factors[of], normals)
    at, parts = modes.positions[of] + moves, np.ones(len(of))
    values, gradients = map(np.array, evaluate_with_gradients(exact, at))
    for i in range(1, HALVINGS + 1):
        over = np.asarray(~(values <= expected + ROOM + dim))
        if not over.any():
            break
        parts[over] = 0.5**i if i < HALVINGS else 0.0
        at[over] = modes.positions[of[over]] + parts[over, None] * moves[over]
        values[over], gradients[over] = evaluate_with_gradients(exact, at[over])
    cache = {"value": values, "gradient": gradients}
    return ChainState(positions=at, values=values, cache=cache), parts


def _shares(modes: Modes, n: int) -> IntArray:
    """Return the mode (n,) that each chain begins at, by how many searches led there."""
    shares = np.where(modes.matters, modes.ended, 0)
    heaviest = np.argsort(-shares, kind="stable")[: min(n, int(np.count_nonzero(shares)))]
    counts = quotas(shares[heaviest] / shares[heaviest].sum(), n)
    return np.repeat(heaviest, counts)


def quotas(shares: FloatArray, n: int) -> IntArray:
    """Return how many of n to take of each kind: by its share (k,), and one at least."""
    counts = np.ones(len(shares), dtype=np.int64)
    for _ in range(n - len(shares)):  # whoever has least of what is due comes next
        counts[np.argmin((counts + 0.5) / np.maximum(shares, 1e-12))] += 1
    return counts
