"""One round: which draws are evaluated, cross-fitting, and whether weights can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self, cast

import attrs
import numpy as np
from scipy.special import logsumexp

from surrokit.capabilities import COVARIANCE
from surrokit.diagnostics import r_hat
from surrokit.interfaces import OuterSample, SurrogateSample
from surrokit.potentials import CovariancePotential, Potential
from surrokit.surrogate.training import are_beyond, part_beyond
from surrokit.types import FloatArray, IntArray
from surrokit.weighted.answer import Answer, Figures
from surrokit.weighted.correction import Values, correct, pareto_k_of
from surrokit.weighted.round import Round, combine_degrees, effective, thin

MOST_VARIANCE, COMPARED_VARIANCES = 2.0, 2000
"""Of a process, in nats squared, from which on it knows nothing of U; and how many are computed,
each of which takes the square of what the process has learnt from."""

LOOKED_AT = 12_000
"""Draws of a surrogate at which other surrogates are evaluated at most, as that takes time."""


@attrs.frozen(kw_only=True, eq=False)
class EvaluatedDraws:
    """Positions to evaluate, and how likely they were.

    Draws of a surrogate V cannot tell what V lacks. Where V is too high it has few draws, and
    weights would look good while a part of the target is missing. So half of the evaluations go to
    draws of a wider density. All are draws of one known mixture (defensive importance sampling:
    Hesterberg 1995, doi:10.1080/00401706.1995.10484303; parts of fixed sizes after Veach and Guibas
    1995, doi:10.1145/218380.218498).

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        In the sampling coordinates.
    values : ndarray of shape (n,)
        V there.
    share
        Part of the evaluations that is farther out.
    outer
        Draws there; None where all evaluations are draws of V.
    log_densities : ndarray of shape (n,), optional
        Logarithms of their densities, where an earlier question has drawn them.
    """

    positions: FloatArray
    values: FloatArray
    share: float = 0.0
    outer: OuterSample | None = None
    log_densities: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def log_surrogate_weights(self) -> FloatArray:
        """Log of the surrogate's density over the mixture's, shape (n,)."""
        if self.log_densities is not None:
            return -self.values - self.log_densities
        return self.log_surrogate_weights_at(self.positions, self.values)

    def log_surrogate_weights_at(self, positions: FloatArray, values: FloatArray) -> FloatArray:
        """Return that log at positions (..., dim) by values of V there, of their shape."""
        if self.outer is None:
            return np.zeros_like(values)
        chances = self.outer.chances(positions, values)
        return np.asarray(-np.log(1.0 - self.share + self.share * chances))

    def weigh(self, exact: FloatArray) -> FloatArray:
        """Return log weights, shape (n,), by U there: log of the target's density over q."""
        with np.errstate(invalid="ignore"):
            weights = self.values - exact + self.log_surrogate_weights
        return np.where(np.isinf(exact), -np.inf, weights)


def choose(sample: SurrogateSample, n: int, rng: np.random.Generator) -> EvaluatedDraws:
    """Return n positions to evaluate, far fewer than the draws of a surrogate V."""
    flat, outer = sample.flat, sample.outer
    if outer is None:
        inner = _thin(len(flat), n, rng)
        return EvaluatedDraws(positions=flat[inner], values=sample.values.ravel()[inner])
    n_outer = min(n // 2, len(outer.positions))
    near = _thin(len(flat), n - n_outer, rng)
    farther = _thin(len(outer.positions), n_outer, rng)
    return EvaluatedDraws(
        positions=np.concatenate([flat[near], outer.positions[farther]]),
        values=np.concatenate([sample.values.ravel()[near], outer.values[farther]]),
        share=n_outer / n,
        outer=outer,
    )


def predict_variances(
    sample: SurrogateSample,
    evaluations: EvaluatedDraws,
    later: Potential,
    density_ratios: FloatArray | None = None,
) -> FloatArray:
    """Return by how much weights vary about draws of a surrogate V, as a later one predicts.

    That is h of :mod:`surrokit.weighted.correction`.

    Parameters
    ----------
    density_ratios : ndarray of shape (folds, chains, m), optional
        Of other surrogates that are corrected in place of V; the mean is taken over them.

    Returns
    -------
    ndarray of shape (chains, m)
        At the positions that :class:`LookedAt` has, times their weights.
    """
    looked_at = LookedAt.of(sample)
    ratios, _ = looked_at.compare(later)
    squares = np.square(ratios - (looked_at.weights if density_ratios is None else density_ratios))
    of_all = squares.reshape(-1, *ratios.shape).mean(axis=0) / looked_at.weights
    weights = evaluations.log_surrogate_weights_at(looked_at.positions, looked_at.values)
    return np.asarray(np.exp(weights) * of_all)


@attrs.frozen(eq=False)
class LookedAt:
    """Where other surrogates are compared with V: draws of V, and those farther out.

    Draws of V alone cannot tell that another surrogate goes on where V ends.
    """

    positions: FloatArray  # (chains, m, dim), in the sampling coordinates
    values: FloatArray  # V there, (chains, m)
    weights: FloatArray  # V's density over that of both kinds together, of mean one, (chains, m)
    n_draws: int  # of V, of each chain; they come first

    @classmethod
    def of(cls, sample: SurrogateSample) -> Self:
        """Return at most :data:`LOOKED_AT` draws, evenly among all, and all farther out."""
        chains, outer = len(sample.values), sample.outer
        positions, values = (
            thin(each, LOOKED_AT // chains) for each in (sample.positions, sample.values)
        )
        n_draws = values.shape[1]
        n = 0 if outer is None else len(outer.positions) // chains  # of each chain
        if outer is None or n == 0:
            return cls(positions, values, np.ones_like(values), n_draws)
        part = n / (n + n_draws)
        far = outer.positions[: n * chains].reshape(chains, n, -1)
        positions = np.concatenate([positions, far], axis=1)
        values = np.concatenate([values, outer.values[: n * chains].reshape(chains, n)], axis=1)
        weights = 1.0 / (1.0 - part + part * outer.chances(positions, values))
        return cls(positions, values, weights / weights.mean(), n_draws)

    def compare(self, other: Potential) -> tuple[FloatArray, float]:
        """Return the density of another surrogate V' over that of V, times the weights.

        Farther out it is that of V wherever V' is beyond what it has learnt from.

        Returns
        -------
        ratios : ndarray of shape (chains, m)
            exp(V - V') times the weights, of mean one.
        level : float
            Logarithm of what they were divided by for that.
        """
        shape, dim = self.values.shape, self.positions.shape[2]
        logs = self.values - other.value(self.positions.reshape(-1, dim)).reshape(shape)
        knows, far = np.ones(shape, dtype=bool), self.positions[:, self.n_draws :]
        knows[:, self.n_draws :] = ~are_beyond(other, far.reshape(-1, dim)).reshape(far.shape[:2])
        largest = logs[knows].max()
        ratios = np.exp(np.where(knows, logs - largest, 0.0))
        mean = np.average(ratios[knows], weights=self.weights[knows])
        ratios = np.where(knows, ratios / mean, 1.0)
        return self.weights * ratios, float(largest + np.log(mean))

    def log_mass(self, other: Potential) -> float:
        """Return log of the mass that a process V' expects over that of V; NaN of no process.

        V' is its mean, and exp(-U) is exp(-V' + s^2 / 2) on average, with s^2 its variance, for
        which few positions do.
        """
        if COVARIANCE not in other.capabilities:
            return np.nan
        at, weights = self.positions.reshape(-1, self.positions.shape[2]), self.weights.ravel()
        logs = self.values.ravel() - other.value(at)
        few = slice(None, None, -(-len(at) // COMPARED_VARIANCES))
        variances = cast(CovariancePotential, other).variance(at[few])
        raised = logs[few] + 0.5 * np.minimum(variances, MOST_VARIANCE)
        more = logsumexp(raised, b=weights[few]) - logsumexp(logs[few], b=weights[few])
        return float(logsumexp(logs, b=weights / len(at)) + more)


def _thin(size: int, n: int, rng: np.random.Generator) -> IntArray:
    """Return n different ones of at least as many draws, as far apart as can be."""
    at = ((np.arange(n) + rng.random()) / max(n, 1) * size).astype(np.int64)
    return np.minimum(at, size - 1)


FOLDS = 5
"""Parts of a round's evaluations; as many surrogates are fitted."""


@attrs.frozen(kw_only=True, eq=False)
class CrossFit:
    """What surrogates give for a round that each have learnt from all evaluations but one part.

    See :mod:`surrokit.weighted.correction`.

    Parameters
    ----------
    density_ratios : ndarray of shape (folds, chains, m)
        r_k at the positions looked at, times their weights, of mean one for each k.
    log_surrogate_weights : ndarray of shape (n,)
        Log of e_k for each evaluation, with its own k.
    spread
        The largest variance of r_k over draws of V.
    """

    density_ratios: FloatArray
    log_surrogate_weights: FloatArray
    spread: float

    def apply(self, found: Round) -> Round:
        """Return the round as it is with these surrogates in place of its own."""
        counts = np.bincount(_fold_of(len(found)), minlength=len(self.density_ratios)) / len(found)
        density_ratio = np.tensordot(counts, self.density_ratios, axes=1)
        return attrs.evolve(
            found, log_surrogate_weights=self.log_surrogate_weights, density_ratio=density_ratio
        )

    def improves(self, found: Round) -> bool:
        """Return whether a round gains by them, for all that it shows.

        Where the variance of a ratio is large, draws of one surrogate say little of the other, nor
        do those farther out. A small round cannot tell whether surrogates that change much in a
        tail are right there.
        """
        of_all = np.square(self.density_ratios - found.looked_at_weights).mean(axis=(1, 2))
        if self.complaint is not None or of_all.max() > 1.0:
            return False
        if len(found) < FEWEST and self.spread > EVEN:
            return False
        return self.apply(found).variance < found.variance

    @property
    def complaint(self) -> str | None:
        """Why these surrogates are too far from that of the draws, or None."""
        if self.spread <= 1.0:
            return None
        return f"surrogates differ, their ratio has variance {self.spread:.2g}"


def is_worth_it(found: Round) -> bool:
    """Return whether what a round corrects makes up enough of its errors."""
    if len(found) < 2 * FOLDS:
        return False
    reported = correct(found, Values(found.draws, found.looked_at, found.evaluated))
    return bool(np.median(reported.of_correction) > 0.2 * np.median(reported.of_chains))


def parts_of(evaluations: EvaluatedDraws) -> Iterator[FloatArray]:
    """Yield the positions of each part, shape (n, dim), that one surrogate must not know."""
    folds = _fold_of(len(evaluations))
    return (evaluations.positions[folds == fold] for fold in range(FOLDS))


def cross_fit(
    sample: SurrogateSample, evaluations: EvaluatedDraws, surrogates: Sequence[Potential]
) -> CrossFit:
    """Return what surrogates say of a round: one for each of :func:`parts_of` its evaluations."""
    folds, looked_at, found = _fold_of(len(evaluations)), LookedAt.of(sample), []
    log_surrogate_weights = evaluations.log_surrogate_weights
    for fold, surrogate in enumerate(surrogates):
        own = folds == fold
        ratios, level = looked_at.compare(surrogate)
        found.append(ratios)
        here = evaluations.values[own] - surrogate.value(evaluations.positions[own])
        log_surrogate_weights[own] += here - level
    density_ratios = np.array(found)
    at_draws = (density_ratios / looked_at.weights)[..., : looked_at.n_draws]
    return CrossFit(
        density_ratios=density_ratios,
        log_surrogate_weights=log_surrogate_weights,
        spread=float(at_draws.var(axis=(1, 2)).max()),
    )


def _fold_of(n: int) -> IntArray:
    """Return the part of each of n evaluations: each part is spread over all chains and tails."""
    return np.arange(n) % FOLDS


COMPARED, REALISATIONS = 512, 128
"""Draws at which a process says what U may be, whose price is their square and cube; and how many
potentials are drawn from it."""


def realisations_of(
    sample: SurrogateSample, process: CovariancePotential, rng: np.random.Generator
) -> FloatArray:
    """Return by how much potentials drawn from a process differ from its mean, (chains, m, r).

    That is at every k-th draw of each chain. Parts of less than a thousandth of the variance are
    left out.
    """
    few = thin(sample.positions, max(COMPARED // len(sample.positions), 1))
    chains, m, dim = few.shape
    values, vectors = np.linalg.eigh(process.covariance(few.reshape(-1, dim)))
    kept = values > 1e-3 * max(float(values[-1]), 0.0)
    factor = vectors[:, kept] * np.sqrt(values[kept])
    moves = factor @ rng.standard_normal((int(kept.sum()), REALISATIONS))
    return np.asarray(moves.reshape(chains, m, -1))


def complaint_about_process(realisations: FloatArray) -> str | None:
    """Return why what a process does not know is too much for an error, or None.

    Parameters
    ----------
    realisations : ndarray of shape (chains, m, r)
        Those of :func:`realisations_of`.
    """
    logs = -realisations.reshape(-1, realisations.shape[2])
    worth = float(np.median([effective(each) for each in logs.T]))
    if worth >= WORTH:
        return None
    return (
        f"potentials that values leave possible differ so much that {len(logs)} draws of their "
        f"mean are worth {worth:.0f} of one of them, and {WORTH} are needed"
    )


def complaint_about_noise(
    process: CovariancePotential, positions: FloatArray, values: FloatArray, noise_sd: FloatArray
) -> str | None:
    """Return by how much new values differ from a process, if by more than it and noise explain.

    Parameters
    ----------
    positions, values, noise_sd : ndarrays of shape (n, dim), (n,) and (n,)
        Where values were evaluated, these, and the standard deviation of their noise; NaN where it
        is not known, and the process has found it.
    """
    from scipy.stats import chi2

    expected = process.value(positions)
    sds = np.where(np.isnan(noise_sd), process.noise_sd, noise_sd)
    # where both are far above the least one there is no mass to be wrong about
    top = expected.min() + 5.0 + 2.0 * positions.shape[1] + 3.0 * sds
    known = np.isfinite(values) & (np.minimum(values, expected) <= top)
    errors = values[known] - expected[known]
    squares = np.square(errors) / (np.square(sds[known]) + process.variance(positions[known]))
    if squares.sum() <= chi2.isf(1e-3, len(squares)):  # the probability of a false alarm
        return None
    return (
        f"new values are {np.sqrt(squares.mean()):.1f} times as far from the surrogate as their "
        "noise and what it does not know explain"
    )


LARGEST_K = 0.7
"""Pareto's k of the weights above which means have no error to go by (Vehtari, Simpson, Gelman,
Yao and Gabry 2024, arXiv:1507.02646)."""

LARGEST_RHAT, MOST_BEYOND = 1.02, 0.05
"""R-hat of chains on the surrogate above which their draws are not its own, and part of the draws
beyond its border above which its mass is not known."""

FEWEST, EVEN = 25, 0.1
"""Draws of a round below which the largest fifth is fewer than the five of a tail; and the largest
variance of so few weights that can be trusted."""


WORTH = 16
"""Exact draws that the weights of a round are worth at least: of few the largest hides the rest."""


def pareto_k(log_weights: FloatArray) -> float:
    """Return Pareto's k of the largest weights, by ArviZ, from their logarithms (n,).

    Where all are the same but for a twentieth, or those of the tail are, k is -inf. Where they
    are fewer than :data:`FEWEST`, or most are zero, it is inf.
    """
    level, largest = np.exp(-0.05), log_weights.max(initial=-np.inf)
    if not np.isfinite(largest):
        return np.inf
    weights = np.exp(log_weights - largest)
    if weights.mean() >= level:
        return -np.inf
    tail = np.sort(weights)[-max(len(weights) // 5, 1) :]
    if len(weights) < FEWEST or tail[0] == 0.0:
        return np.inf
    # where as many are about as large as the largest there is no tail
    if tail[0] >= level * tail[-1]:
        return -np.inf
    k = pareto_k_of(weights[None])
    return np.inf if np.isnan(k) else k


def complaint_about_draws(sample: SurrogateSample, surrogate: Potential | None) -> str | None:
    """Return why draws are not the surrogate's, or not to be used, or None."""
    rhat = float(np.max(r_hat(sample.positions)))
    if not rhat <= LARGEST_RHAT:
        return f"chains on the surrogate alone are apart, with R-hat {rhat:.3g}"
    beyond = part_beyond(surrogate, sample.flat)
    if beyond > MOST_BEYOND:
        return f"{beyond:.2g} of the surrogate's draws lie beyond all that it has learnt from"
    return None


def stay_rejected(positions: FloatArray, surrogate: Potential | None, longer: float) -> bool:
    """Return whether :func:`complaint_about_draws` would reject chains however they go on.

    Where chains mix, the square of R-hat less one falls about as one over their length. Short
    chains have to miss the limits by twice as much.

    Parameters
    ----------
    positions : ndarray of shape (chains, draws, dim)
        Draws so far.
    longer
        How many times as long chains may become.
    """
    apart, allowed = np.square([np.max(r_hat(positions)), LARGEST_RHAT]) - 1.0
    if apart > 2.0 * longer * allowed:
        return True
    return part_beyond(surrogate, positions.reshape(-1, positions.shape[2])) > 2.0 * MOST_BEYOND


def complaint(found: Round) -> str | None:
    """Return why the weights of a round are not to be accepted, or None."""
    n = len(found)
    if not np.isfinite(found.log_weights).any():
        return "the target is zero at all draws of the surrogate"
    if n < FEWEST:
        if found.variance > EVEN:
            return f"{n} weights tell of their tail only where they are even, {FEWEST} are enough"
    elif (k := pareto_k(found.log_weights)) > LARGEST_K:
        return f"Pareto's k of the weights is {k:.2f}, above {LARGEST_K}"
    elif (worth := n / (1.0 + found.variance)) < WORTH:
        return f"{n} weights are worth {worth:.0f} exact draws, and {WORTH} are needed"
    if found.variance > 4.0:  # a paid draw is worth less than a quarter of an exact one
        return f"the variance of the weights is {found.variance:.2g}, above 4"
    return None


def complaint_about_errors(figures: Figures) -> str | None:
    """Return which mean is worth less than a single exact draw, or None."""
    # what a mean is off by makes an estimate of the variance as much larger
    unsure = 2.0 * np.square(figures.mean.error) - np.square(figures.sd.value)
    worst = int(np.argmax(unsure))
    if not unsure[worst] > 0.0:
        return None
    return f"the mean of number {worst} has an error above its standard deviation"


def disagreement(one: Round, other: Round) -> str | None:
    """Return by how much two rounds disagree about a mean, if by more than their errors allow.

    The means are those of the numbers and of their squares: false modes may change either.
    """
    from scipy.stats import t as student

    centre = one.flat.mean(axis=0)
    dim = len(centre)

    def moments(positions: FloatArray) -> FloatArray:
        return np.hstack([positions - centre, np.square(positions - centre)])

    a, b = (Answer(rounds=(each,), calls=0.0).expectation(moments) for each in (one, other))
    errors, difference = np.square([a.error, b.error]), np.abs(a.value - b.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(difference == 0.0, 0.0, difference / np.sqrt(errors.sum(axis=0)))
    degrees = combine_degrees(errors, np.stack([a.degrees, b.degrees]), errors.sum(axis=0))
    likely = 2.0 * student.sf(apart, np.where(np.isnan(degrees), np.inf, degrees)) * len(apart)
    worst = int(np.argmin(likely))
    if likely[worst] >= 1e-3:  # the probability of a false alarm
        return None
    of = f"the {'mean' if worst < dim else 'mean square'} of number {worst % dim}"
    return f"two rounds put {of} {apart[worst]:.1f} standard errors apart"
