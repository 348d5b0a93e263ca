"""surrokit's own methods: two baselines that move on the exact potential, and the rest."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

import surrokit as sk
from peers.outcome import Outcome, Task
from surrokit.errors import SamplingWarning
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import KINDS


class NotThereError(LookupError):
    """A method needs a part that nothing registers."""


@attrs.frozen(kw_only=True)
class Ours:
    """Settings of :func:`surrokit.sample`."""

    # by keyword: a name, or a pair of name and settings
    parts: Mapping[str, Any] = attrs.field(factory=dict)
    paper: bool = False  # whether step size and number of steps are the paper's
    # whether it gets the target and its budget, and nothing else; not even where to start
    automatic: bool = False
    # whether it gets the problem's length of warm-up; the others say themselves when it is
    # over
    warms_up: bool = False

    def __call__(self, task: Task) -> Outcome:
        """Run it."""
        _check(self.parts)
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
            note="; ".join(filter(None, [getattr(run, "choice", None), *said])),
        )

    def _settings(self, task: Task) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "max_seconds": task.seconds,
            "draws": task.draws,
            "chains": task.chains,
            "seed": task.seed,
            "progress": False,
        }
        if not self.automatic:
            settings |= {"initial": task.starts, **self.parts}
        if self.warms_up:
            settings["warmup"] = task.warmup
        if self.paper:
            name, fixed = settings["sampler"]
            path = {"step_size": task.step_size, "n_steps": task.n_steps}
            settings["sampler"] = (name, {**fixed, **path})
        return settings


def _check(parts: Mapping[str, Any]) -> None:
    catalogue = default_catalogue()
    for kind, part in parts.items():
        name = part if isinstance(part, str) else part[0]
        if kind in KINDS and name not in catalogue.names(kind):
            raise NotThereError(f"no {kind} is registered as {name!r}")


@contextlib.contextmanager
def _quiet() -> Iterator[list[str]]:
    """Collect warnings about the sampling instead of showing them."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("always", SamplingWarning)
        yield said
    said += [str(one.message) for one in caught if issubclass(one.category, SamplingWarning)]


OURS = {
    "hmc": Ours(parts={"sampler": ("hmc", {"metric": "identity"})}, paper=True, warms_up=True),
    "hmc-dense": Ours(parts={"sampler": "hmc"}, warms_up=True),
    "automatic": Ours(automatic=True),
    "sub-chain": Ours(
        parts={"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}
    ),
    "gaussian": Ours(parts={"sampler": "gaussian", "surrogate": "quadratic", "explorer": "rounds"}),
    "subsampled": Ours(
        parts={
            "sampler": "gaussian",
            "surrogate": "quadratic",
            "explorer": "rounds",
            "correction": "subsampled",
        }
    ),
    "sub-chain-rows": Ours(
        parts={"sampler": "sub-chain", "surrogate": "rows", "explorer": "rounds"}
    ),
}
"""By the name of the method."""
