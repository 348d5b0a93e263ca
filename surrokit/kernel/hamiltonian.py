"""The pairing of metrics and integrators."""

from __future__ import annotations

from typing import cast

from surrokit.contracts.dynamics import Metric, PositionMetric, changes_with_position
from surrokit.errors import ConfigurationError


def constant_metric(metric: Metric | PositionMetric, who: str) -> Metric:
    """Return a metric, if it has one mass matrix for all positions.

    Parameters
    ----------
    metric
        The metric.
    who
        Name of the part that needs such a metric, for the message.

    Raises
    ------
    ConfigurationError
        If its mass matrix changes with position.
    """
    if changes_with_position(metric):
        raise ConfigurationError(
            f"{who} needs a metric with one mass matrix for all positions, got "
            f"{type(metric).__name__}, which changes with position; use sampler='rmhmc' for it, or "
            "metric 'dense', 'diagonal' or 'identity'"
        )
    return cast("Metric", metric)


def position_metric(metric: Metric | PositionMetric, who: str) -> PositionMetric:
    """Return a metric, if its mass matrix changes with position.

    Parameters
    ----------
    metric
        The metric.
    who
        Name of the part that needs such a metric, for the message.

    Raises
    ------
    ConfigurationError
        If it has one mass matrix for all positions.
    """
    if not changes_with_position(metric):
        raise ConfigurationError(
            f"{who} needs a metric that changes with position, got {type(metric).__name__}, which "
            "does not; use sampler='hmc' for it, or metric 'softabs'"
        )
    return metric


def works_by_position(integrator: object) -> bool:
    """Return whether an integrator follows paths in a metric that changes with position.

    Such an integrator has a true attribute ``by_position``.
    """
    return bool(getattr(integrator, "by_position", False))


def constant_integrator(integrator: object, who: str) -> None:
    """Refuse an integrator that follows paths in a metric that changes with position.

    Parameters
    ----------
    integrator
        The integrator.
    who
        Name of the part that refuses such an integrator, for the message.

    Raises
    ------
    ConfigurationError
        If the integrator does so.
    """
    if works_by_position(integrator):
        raise ConfigurationError(
            f"{who} needs an integrator for one mass matrix, got {type(integrator).__name__}, "
            "which follows metrics that change with position; use sampler='rmhmc' for it, or "
            "integrator 'leapfrog'"
        )
