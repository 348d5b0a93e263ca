"""What a method hands over, and surrokit's methods: settings of ``sk.sample`` by name."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from real_posteriors.targets import Posterior
from surrokit.errors import SamplingWarning
from surrokit.potentials import Potential
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Drawn:
    """Draws, what they cost, and what was said about them."""

    draws: FloatArray  # (chains, draws, dim): in the user's coordinates
    # exact calls by kind, in positions: before the first kept draw, and in all
    calls_before: Mapping[str, int]
    calls: Mapping[str, int]
    seconds: float  # all of them, but compilation
    warnings: tuple[str, ...] = ()  # that the result deserves a look, each in words
    acceptance: float | None = None  # mean over the chains; None where it says nothing
    chains: bool = True  # whether the draws come from chains, so that R-hat says something
    # effective draws where a method tells them itself, as it must for weighted points; None
    # to estimate them from the chains
    ess: float | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)  # what else is worth keeping


CHAINS = 4
TOUCHED = (1, CHAINS, 64)
"""Batches that are evaluated beforehand, so that compilation is not timed."""


@attrs.frozen(kw_only=True)
class Ours:
    """Settings of :func:`surrokit.sample`; all else is its default."""

    settings: Mapping[str, Any] = attrs.field(factory=dict)  # by keyword
    gradients: bool = True  # whether the target has them
    # whether chains begin near the reference's means: a control of the density, not a
    # method
    at_reference: bool = False

    def __call__(self, posterior: Posterior, seed: int) -> Drawn:
        """Run it."""
        target = posterior.with_gradient() if self.gradients else posterior.values_alone()
        settings = {"seed": seed, "progress": False, **self.settings}
        if self.at_reference:
            settings["initial"] = near_reference(posterior, target, seed)
        touch(target, posterior)
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.redirect_stdout(io.StringIO()):
                run = sk.sample(target, **settings)
        return handed_over(run, time.perf_counter() - began, caught)


def near_reference(posterior: Posterior, target: Potential, seed: int) -> Any:
    """Return starts near the reference's means, in the user's coordinates."""
    centre, scale = posterior.typical_range()
    normals = np.random.default_rng(seed).standard_normal((CHAINS, target.dim))
    return target.transform.to_bounded(centre + 0.1 * scale * normals)


def touch(target: Potential, posterior: Posterior) -> None:
    """Have all functions compiled."""
    centre, _ = posterior.typical_range()
    for n in TOUCHED:
        rows = np.tile(centre, (n, 1))
        target.value(rows)
        if "gradient" in target.capabilities:
            target.value_and_gradient(rows)


def handed_over(run: sk.Run, seconds: float, caught: Any) -> Drawn:
    """Return what came of a run, with its warnings and those of others apart."""
    said = [x for x in caught if issubclass(x.category, SamplingWarning)]
    rest = [x for x in caught if not issubclass(x.category, SamplingWarning)]
    return Drawn(
        draws=run.draws,
        calls_before={k: int(n[-1]) for k, n in run.warmup.calls.items() if len(n) and n[-1]},
        calls={kind: int(n) for kind, n in run.calls.items() if n},
        seconds=seconds,
        warnings=tuple(" ".join(str(x.message).split()) for x in said),
        acceptance=float(run.acceptance.mean()),
        extra={
            "parts": dict(run.parts),
            "choice": run.choice,
            "stopped": run.stopped,
            "seconds_by_phase": dict(run.seconds),
            "other_warnings": sorted({f"{x.category.__name__}: {x.message}"[:200] for x in rest}),
        },
    )


_LEARNT = {"surrogate": "additive"}

OURS = {
    "default": Ours(),
    "hmc": Ours(settings={"sampler": "hmc"}),
    "nuts": Ours(settings={"sampler": "nuts"}),
    "sub-chain": Ours(settings={"sampler": "sub-chain", **_LEARNT, "explorer": "rounds"}),
    "hmc-additive": Ours(settings={"sampler": "hmc", **_LEARNT}),
    "greville": Ours(settings={"sampler": "hmc", **_LEARNT, "schedule": "greville"}),
    "rmhmc": Ours(settings={"sampler": "rmhmc", **_LEARNT, "max_seconds": 60.0}),
    "values": Ours(gradients=False),
    "control": Ours(settings={"sampler": "hmc"}, at_reference=True),
}
"""By the name of the method; ``control`` shows that a density is the reference's."""
