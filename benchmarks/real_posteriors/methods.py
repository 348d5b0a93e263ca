"""The methods of the bench, by name: settings of ``sk.sample``, and the row of a run with them."""

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
from harness import Row, installed_version
from real_posteriors.judging import judge
from real_posteriors.peers import Peer
from real_posteriors.targets import Posterior
from surrokit.errors import SamplingWarning

CHAINS = 4


@attrs.frozen(kw_only=True)
class Method:
    """Settings of :func:`surrokit.sample`; all else is its default."""

    title: str
    settings: Mapping[str, Any] = attrs.field(factory=dict)  # by keyword
    gradients: bool = True  # whether the target has them
    # whether chains begin near the reference's means: a control of the density, not a
    # method
    at_reference: bool = False

    def row(self, posterior: Posterior, seed: int) -> Row:
        """Return what comes of a run, as plain data."""
        target = posterior.with_gradient() if self.gradients else posterior.values_alone()
        settings = {"seed": seed, "progress": False, **self.settings}
        centre, scale = posterior.typical_range()
        if self.at_reference:
            normals = np.random.default_rng(seed).standard_normal((CHAINS, target.dim))
            settings["initial"] = target.transform.to_bounded(centre + 0.1 * scale * normals)
        for n in (1, CHAINS, 64):  # so that compilation is not timed
            rows = np.tile(centre, (n, 1))
            target.value(rows)
            if "gradient" in target.capabilities:
                target.value_and_gradient(rows)
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with contextlib.redirect_stdout(io.StringIO()):
                run = sk.sample(target, **settings)
        seconds = time.perf_counter() - began
        said = [x for x in caught if issubclass(x.category, SamplingWarning)]
        rest = [x for x in caught if not issubclass(x.category, SamplingWarning)]
        named = posterior.case.name_draws(run.draws)
        before = run.warmup.calls.items()
        return {
            "status": "done",
            "message": "",
            **attrs.asdict(judge(named, posterior.reference)),
            "warnings": [" ".join(str(x.message).split()) for x in said],
            # exact calls by kind, in positions: before the first kept draw, and in all
            "calls_before": {kind: int(n[-1]) for kind, n in before if len(n) and n[-1]},
            "calls": {kind: int(n) for kind, n in run.calls.items() if n},
            "seconds": seconds,
            "acceptance": float(run.acceptance.mean()),
            "chains": run.draws.shape[0],
            "draws": run.draws.shape[1],
            "parts": dict(run.parts),
            "choice": run.choice,
            "stopped": run.stopped,
            "seconds_by_phase": dict(run.seconds),
            "other_warnings": sorted({f"{x.category.__name__}: {x.message}"[:200] for x in rest}),
            "moments": {name: [float(x.mean()), float(x.std())] for name, x in named.items()},
            "versions": {"surrokit": installed_version("surrokit")},
        }


_HMC, _LEARNT = {"sampler": "hmc"}, {"surrogate": "additive"}

METHODS: dict[str, Method | Peer] = {
    "default": Method(title="sample(target)"),
    "hmc": Method(title="HMC", settings=_HMC),
    "nuts": Method(title="NUTS", settings={"sampler": "nuts"}),
    "sub-chain": Method(
        title="sub-chains on `additive`",
        settings={"sampler": "sub-chain", **_LEARNT, "explorer": "rounds"},
    ),
    "hmc-additive": Method(title="HMC on `additive`", settings={**_HMC, **_LEARNT}),
    "greville": Method(
        title="HMC on `additive`, `greville`",
        settings={**_HMC, **_LEARNT, "schedule": "greville"},
    ),
    "rmhmc": Method(
        title="RMHMC on `additive`, 60 s",
        settings={"sampler": "rmhmc", **_LEARNT, "max_seconds": 60.0},
    ),
    "values": Method(title="sample(target), values alone", gradients=False),
    "nutpie": Peer(title="nutpie", library="nutpie", settings={"adaptation": "diag"}),
    "nutpie-low-rank": Peer(
        title="nutpie, low rank", library="nutpie", settings={"adaptation": "low_rank"}
    ),
    "numpyro": Peer(title="NumPyro", library="numpyro", settings={"dense_mass": False}),
    "numpyro-dense": Peer(title="NumPyro, dense", library="numpyro", settings={"dense_mass": True}),
    "walnuts": Method(title="WALNUTS", settings={"sampler": "walnuts"}),
    "control": Method(title="HMC from the reference's means", settings=_HMC, at_reference=True),
}
"""In the order of the table; ``control`` shows that a density is the reference's."""

DEFAULT_METHODS = tuple(METHODS)[: tuple(METHODS).index("nutpie")]
"""What runs where no method is named."""

EXACT_METHODS = ("hmc", "nuts", "nutpie", "nutpie-low-rank", "numpyro", "numpyro-dense")
"""What ``--exact`` compares: methods whose every path is on the exact potential."""
