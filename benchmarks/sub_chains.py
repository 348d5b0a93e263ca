"""What length tuning finds for sub-chains, and what a draw is worth then.

Run it as ``python benchmarks/sub_chains.py``. It prints effective draws per draw of positions
and of their squares, means over parameters: first for samplers on exact normal targets, with
gradients paid, and then for sub-chains on a normal surrogate of targets that are more and more
skewed. It asserts nothing.
"""

from __future__ import annotations

import warnings

import numpy as np

import surrokit as sk
from surrokit.diagnostics import effective_sample_size


def normal(dim: int, widest: float = 1.0):
    covariance = np.diag(np.logspace(0.0, 2.0 * np.log10(widest), dim))
    return sk.make("potential", "gaussian", mean=np.zeros(dim), covariance=covariance)


def skewed(skew: float, dim: int):
    """U = sum of (exp(a q) - a q) / a^2, whose normal approximation at the mode is N(0, I)."""
    return sk.potential(
        lambda q: ((np.exp(skew * q) - skew * q) / skew**2).sum(axis=1),
        lambda q: (np.exp(skew * q) - 1.0) / skew,
        dim=dim,
        batched=True,
    )


def described(target, sampler, surrogate=None) -> str:
    """Run once, and describe what came of it."""
    parts = {"sampler": sampler, "surrogate": surrogate, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sk.sample(target, chains=4, warmup=400, draws=500, seed=1, **parts)
        away = run.draws - run.draws.mean(axis=(0, 1))
        of_draws = effective_sample_size(run.draws, "bulk").mean() / 2000
        of_squares = effective_sample_size(np.square(away), "bulk").mean() / 2000
    steps = run.kept.n_steps.mean()
    length = getattr(run.kernel, "n_transitions", 1)
    return (
        f"k {length:4d}  steps {steps:6.1f}  acceptance {run.acceptance.mean():.2f}  "
        f"draws {of_draws:.2f}  squares {of_squares:.2f}  "
        f"per 100 steps {100 * of_draws / steps:5.1f} {100 * of_squares / steps:5.1f}"
    )


def main() -> None:
    print("exact normal targets, of equal scales and of scales from 1 to 10")
    for dim in (10, 50):
        for widest in (1.0, 10.0):
            target = normal(dim, widest)
            for name in ("hmc", "nuts", "sub-chain"):
                found = described(target, name)
                print(f"dim {dim:3d}  widest {widest:4.0f}  {name:10s} {found}", flush=True)
    print("a normal surrogate of skewed targets, dim 20")
    for skew in (0.2, 0.3, 0.5, 0.7):
        for length in (None, 1, 2, 4, 8, 16):
            sampler = ("sub-chain", {"length": length})
            found = described(skewed(skew, 20), sampler, normal(20))
            print(f"skew {skew:.1f}  length {'tuned' if length is None else length!s:5s} {found}")
        found = described(skewed(skew, 20), "gaussian", normal(20))
        print(f"skew {skew:.1f}  gaussian      {found}", flush=True)


if __name__ == "__main__":
    main()
