"""The kinds of part that can be checked, and how a part shows its kind."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from surrokit.errors import ConfigurationError
from surrokit.registry.components import Kind, binds_as
from surrokit.testing.checks.dynamics import integrator, metric, position_metric
from surrokit.testing.checks.kernels import correction, kernel, sampler, tuning
from surrokit.testing.checks.learning import explorer, schedule, surrogate
from surrokit.testing.checks.plugins import plugin, policy
from surrokit.testing.checks.targets import forward, matrices, potential, rows, wrapper
from surrokit.testing.results import Check

CheckedKind: TypeAlias = Kind | Literal["wrapper", "plugin"]
"""Kinds that can be checked: those of components, wrappers of potentials, plugin modules."""

CHECKS: dict[CheckedKind, tuple[Check, ...]] = {
    "potential": potential.CHECKS + matrices.CHECKS + forward.CHECKS + rows.CHECKS,
    "surrogate": surrogate.CHECKS,
    "explorer": explorer.CHECKS,
    "schedule": schedule.CHECKS,
    "sampler": sampler.CHECKS + tuning.CHECKS + kernel.CHECKS,
    "integrator": integrator.CHECKS,
    "metric": metric.CHECKS + position_metric.CHECKS,
    "correction": correction.CHECKS,
    "policy": policy.CHECKS,
    "wrapper": wrapper.CHECKS,
    "plugin": plugin.CHECKS,
}
"""All checks by kind, in the order in which they run."""

_SIGNS: tuple[tuple[CheckedKind, tuple[str, ...]], ...] = (
    ("policy", ("choose", "plain")),
    ("surrogate", ("learner",)),
    ("integrator", ("advance", "cache")),
    ("schedule", ("learns", "decide")),
    ("explorer", ("needs", "explore")),
    ("metric", ("draw", "velocity", "energy")),
    ("potential", ("dim", "capabilities", "value")),
)


def kind_of(part: Any) -> CheckedKind:
    """Return the kind of a part, by its methods.

    Raises
    ------
    ConfigurationError
        If it has the methods of no kind.
    """
    for kind, names in _SIGNS:
        if all(hasattr(part, name) for name in names):
            return kind
    if (kind_bound := binds_as(part)) is not None:
        return kind_bound
    if callable(part) and not isinstance(part, type):
        return "wrapper"
    raise ConfigurationError(
        f"a {type(part).__name__} has the methods of no kind of part; the methods are in "
        f"surrokit.plugin, and kind=... names one of {', '.join(CHECKS)}"
    )


def check_kind(kind: str) -> CheckedKind:
    """Return a valid kind.

    Raises
    ------
    ConfigurationError
        If there is none of that name.
    """
    if kind not in CHECKS:
        raise ConfigurationError(f"kind must be one of {', '.join(CHECKS)}, got {kind!r}")
    return kind
