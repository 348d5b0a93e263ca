"""Better answers of chains on a surrogate, from more moves on the surrogate alone."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import is_whole, read_seed
from surrokit.diagnostics import MIN_DRAWS
from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState
from surrokit.kernel.kernel import Binding
from surrokit.limits import one_thread
from surrokit.result.records import Finding, Verdict
from surrokit.result.run import Run
from surrokit.types import FloatArray
from surrokit.weighted.sharpened import Sharpened

MOVES = 50_000
"""Moves on the surrogate, from all draws together, by default."""


def sharpen(run: Run, seed: int | np.random.Generator | None = None, *, moves: int = MOVES) -> Run:
    """Return a run with sharper ``summary`` and ``expectation``, at no exact call.

    Further moves on the surrogate, from every draw, are a control of sub-chains, which proposed
    such moves: draws have to tell no more than how far the target is from the surrogate. See
    :class:`surrokit.weighted.sharpened.Sharpened`. The draws stay as they are. Where that is not
    worth it, the run comes back with a finding that says why.

    Parameters
    ----------
    run
        Of a sampler ``sub-chain`` on a surrogate.
    seed
        Of the moves, which take seconds to a minute.
    moves
        Moves in all, at least; from each draw there are four or more.

    Raises
    ------
    ConfigurationError
        If there were no such moves, the surrogate adapted among the draws, answers are weighted, or
        ``moves`` is no positive integer.
    """
    if not is_whole(moves, 1):
        raise ConfigurationError(f"moves must be a whole number of at least 1, got {moves!r}")
    _check(run)
    kept = run.kept
    assert kept.ends is not None
    acceptance = float(run.acceptance.mean())
    if acceptance < 0.9:  # errors would be told by too few rejections, each of which lasts for long
        reason = f"the target accepted {acceptance:.2f} of the moves only"
        message = f"answers were not sharpened: {reason}; draw more instead"
        finding = Finding(name="sharpen", message=message, warns=True)
        return attrs.evolve(run, verdict=Verdict((finding, *run.verdict.findings)))
    flat = kept.positions.reshape(-1, kept.positions.shape[2])
    each = max(-(-moves // len(flat)), 4)  # the noise of fewer is too large
    with one_thread():
        ends = _move(run, flat, each, read_seed(seed))
    sharpened = Sharpened(
        draws=kept.draws,
        ends=kept.ends,
        moves=kept.transform.to_bounded(ends).reshape(each, *kept.draws.shape),
        calls=run.total_calls,
    )
    return attrs.evolve(run, sharpened=sharpened)


def _move(run: Run, positions: FloatArray, each: int, rng: np.random.Generator) -> FloatArray:
    """Return where moves of the run's kernel from positions (n, dim) end, shape (each, n, dim)."""
    assert run.surrogate is not None
    at_once = 1024  # a batch that stays in the processor's cache
    kernel = Binding(run.sampler, run.surrogate, at_once).kernel
    ends = np.empty((each, *positions.shape))
    for at in range(0, len(positions), at_once):
        here = positions[at : at + at_once]
        cache = kernel.cache(here)
        state = ChainState(positions=here, values=cache["value"], cache=cache)
        for i in range(each):
            ends[i, at : at + at_once] = kernel.propose(state, rng).positions
    return ends


def _check(run: Run) -> None:
    if not run.exact:
        raise ConfigurationError("the answers of this run are weighted, and as sharp as they get")
    if run.surrogate is None or run.kept.ends is None or len(run.kept) < MIN_DRAWS:
        raise ConfigurationError(
            f"at least {MIN_DRAWS} draws by moves that keep a surrogate's density are needed; use "
            "sampler='sub-chain' with a surrogate"
        )
    if not run.adaptation.frozen_before_draws:
        raise ConfigurationError(
            "draws that were kept while the surrogate still adapted cannot be sharpened; use "
            "schedule='once'"
        )
