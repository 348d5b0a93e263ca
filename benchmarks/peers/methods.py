"""The methods of the comparison: surrokit's own, by settings of ``sk.sample``, and others'."""

from __future__ import annotations

import contextlib
import importlib
import io
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

import surrokit as sk
from harness import installed_version
from peers.outcome import Outcome, Task
from surrokit.errors import SamplingWarning


@attrs.frozen(kw_only=True)
class Peer:
    """Somebody else's sampler."""

    title: str
    function: str  # module and function, by a colon; imported only where it is run
    distributions: tuple[str, ...]  # whose versions the results quote
    kind: str = "peer"

    def __call__(self, task: Task) -> Outcome:
        """Run it; ImportError if it is not installed."""
        module, _, function = self.function.partition(":")
        found: Outcome = getattr(importlib.import_module(f"peers.{module}"), function)(task)
        return found

    def versions(self) -> dict[str, str]:
        """Return the versions of what it is made of, as far as installed."""
        return {name: installed_version(name) for name in self.distributions}


@attrs.frozen(kw_only=True)
class Ours:
    """Settings of :func:`surrokit.sample`."""

    title: str
    # ``baseline``: HMC on the exact potential; ``surrokit``: the other methods
    kind: str = "surrokit"
    # by keyword: a name, or a pair of name and settings; none gets the target and its budget, and
    # nothing else, not even where to start
    parts: Mapping[str, Any] = attrs.field(factory=dict)
    paper: bool = False  # whether step size and number of steps are the paper's
    # whether it gets the problem's length of warm-up; the others say themselves when it is
    # over
    warms_up: bool = False

    def __call__(self, task: Task) -> Outcome:
        """Run it."""
        settings = self._settings(task)
        start = time.perf_counter()
        with _quiet() as said:
            run = sk.sample(task.target, **settings)
        seconds = time.perf_counter() - start
        phases = {"compilation": 0.0, **run.seconds}
        phases["sampling"] += seconds - sum(run.seconds.values())  # whatever no phase was charged
        return Outcome(
            draws=run.draws,
            seconds=phases,
            calls={kind: float(calls) for kind, calls in run.calls.items() if calls},
            acceptance=float(run.acceptance.mean()),
            note="; ".join(filter(None, [run.choice, *said])),
        )

    def _settings(self, task: Task) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "max_seconds": task.seconds,
            "draws": task.draws,
            "chains": task.chains,
            "seed": task.seed,
            "progress": False,
        }
        if self.parts:
            settings |= {"initial": task.starts, **self.parts}
        if self.warms_up:
            settings["warmup"] = task.warmup
        if self.paper:
            name, fixed = settings["sampler"]
            path = {"step_size": task.step_size, "n_steps": task.n_steps}
            settings["sampler"] = (name, {**fixed, **path})
        return settings

    def versions(self) -> dict[str, str]:
        """Return its version."""
        return {"surrokit": installed_version("surrokit")}


@contextlib.contextmanager
def _quiet() -> Iterator[list[str]]:
    """Collect warnings about the sampling instead of showing them."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always", SamplingWarning)
        yield said
    said += [str(one.message) for one in caught if issubclass(one.category, SamplingWarning)]


_SUB_CHAIN = {"sampler": "sub-chain", "explorer": "rounds"}
_NORMAL = {"sampler": "gaussian", "surrogate": "quadratic", "explorer": "rounds"}

METHODS: Mapping[str, Ours | Peer] = {
    "hmc": Ours(
        title="surrokit: HMC, the paper's settings",
        kind="baseline",
        parts={"sampler": ("hmc", {"metric": "identity"})},
        paper=True,
        warms_up=True,
    ),
    "hmc-dense": Ours(
        title="surrokit: HMC, tuned dense mass matrix",
        kind="baseline",
        parts={"sampler": "hmc"},
        warms_up=True,
    ),
    "automatic": Ours(title="surrokit: sample(target)"),
    "sub-chain": Ours(
        title="surrokit: sub-chains on `additive`", parts={**_SUB_CHAIN, "surrogate": "additive"}
    ),
    "sub-chain-rows": Ours(
        title="surrokit: sub-chains on `rows`", parts={**_SUB_CHAIN, "surrogate": "rows"}
    ),
    "gaussian": Ours(title="surrokit: `gaussian` on `quadratic`", parts=_NORMAL),
    "subsampled": Ours(
        title="surrokit: `gaussian`, `subsampled`", parts={**_NORMAL, "correction": "subsampled"}
    ),
    "numpyro": Peer(
        title="NumPyro NUTS", function="numpyro_nuts:run", distributions=("numpyro", "jax")
    ),
    "blackjax": Peer(
        title="BlackJAX NUTS", function="blackjax_nuts:run", distributions=("blackjax", "jax")
    ),
    "nutpie": Peer(
        title="nutpie NUTS", function="nutpie_nuts:on_jax", distributions=("nutpie", "jax")
    ),
    "pymc": Peer(title="PyMC NUTS", function="pymc_nuts:run", distributions=("pymc", "pytensor")),
    "mici": Peer(title="Mici dynamic HMC", function="mici_nuts:run", distributions=("mici",)),
    "nutpie-pymc": Peer(
        title="nutpie on the PyMC model",
        function="nutpie_nuts:on_pymc",
        distributions=("nutpie", "pymc", "numba"),
    ),
}
"""By name, in the order of the tables."""

DEFAULT_METHODS = tuple(name for name in METHODS if name != "nutpie-pymc")
"""What runs where no method is named; nutpie is there once, on the faster of two densities."""
