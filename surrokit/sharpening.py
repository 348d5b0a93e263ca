"""Better answers of chains on a surrogate, from long chains on the surrogate alone."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from surrokit.contracts.sampler import Weigher
from surrokit.diagnostics import MIN_DRAWS
from surrokit.errors import ConfigurationError
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.composer import Composer
from surrokit.result.finding import Finding, Verdict
from surrokit.result.run import Run
from surrokit.surrogate.threads import one_thread
from surrokit.weighted.quality import complaint_about_draws
from surrokit.weighted.sharpened import Sharpened

LEAST_ACCEPTANCE = 0.9
"""Part of the moves that the target must accept; else errors are told by too few rejections, each
of which lasts for long."""


def sharpen(
    run: Run, seed: int | np.random.Generator | None = None, *, effective: int | None = None
) -> Run:
    """Return a run with sharper ``summary`` and ``expectation``, at no exact call.

    Long chains on the surrogate are a control of sub-chains, whose moves keep its density: draws
    have to tell no more than how far the target is from the surrogate. See
    :class:`surrokit.weighted.sharpened.Sharpened`. The draws stay as they are. Where that is not
    safe, or not worth it, the run comes back with a finding that says why.

    Parameters
    ----------
    run
        Of a sampler ``sub-chain`` on a surrogate.
    seed
        Of the chains on the surrogate, which take seconds to a minute.
    effective
        Effective draws of the surrogate to be had at least, of every parameter; those of the
        correction ``weights`` by default.

    Raises
    ------
    ConfigurationError
        If there were no such moves, the surrogate adapted among the draws, answers are weighted, or
        ``effective`` is no positive integer.
    """
    kept, surrogate = run.kept, run.surrogate
    _check(run)
    assert surrogate is not None
    assert kept.ends is not None
    acceptance = float(run.acceptance.mean())
    if acceptance < LEAST_ACCEPTANCE:
        return _as_it_is(run, f"the target accepted {acceptance:.2f} of the moves only")
    settings = {} if effective is None else {"effective": effective}
    weigher = cast(Weigher, Composer(default_catalogue()).make("correction", "weights", **settings))
    flat = kept.positions.reshape(-1, kept.positions.shape[2])
    covariance = np.cov(flat, rowvar=False).reshape(flat.shape[1], -1)
    rng = np.random.default_rng(seed)
    with one_thread():
        sample = weigher.draw(surrogate, run.sampler, kept.positions[:, -1], covariance, rng)
    doubt = complaint_about_draws(sample, surrogate)
    if doubt is not None:
        return _as_it_is(run, doubt)
    sharpened = Sharpened(
        draws=kept.draws,
        ends=kept.ends,
        surrogate=kept.transform.to_bounded(sample.positions),
        calls=run.total_calls,
    )
    return attrs.evolve(run, sharpened=sharpened)


def _as_it_is(run: Run, reason: str) -> Run:
    message = f"answers were not sharpened: {reason}; draw more instead"
    finding = Finding(name="sharpen", message=message, warns=True)
    return attrs.evolve(run, verdict=Verdict((finding, *run.verdict.findings)))


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
