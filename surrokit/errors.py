"""Every error that surrokit raises on purpose, in one tree.

Each is also the builtin error that a reader would expect, so ``except ValueError`` and
``except LookupError`` work. A message says what was expected, what came, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surrokit.types import FloatArray


class SurrokitError(Exception):
    """Root of every error that surrokit raises on purpose."""


class ConfigurationError(SurrokitError, ValueError):
    """A setting, or a combination of parts, cannot work."""


class ShapeError(ConfigurationError):
    """An array does not have the expected shape."""


class ResultTypeError(ConfigurationError, TypeError):
    """A target returned something that is no array of real numbers."""


class CapabilityError(ConfigurationError):
    """A part needs something that the potential at hand does not offer."""


class NotASumError(ConfigurationError):
    """A model of another library is not known to be a sum over rows; the message says why."""


class TargetError(SurrokitError, ValueError):
    """A target cannot be loaded, or fails where it must not."""


class ProgramError(SurrokitError, RuntimeError):
    """An external program failed at a position."""


class ServerError(SurrokitError, RuntimeError):
    """A server that evaluates a target stayed away, or its model failed at a position."""


class WorkerError(TargetError, RuntimeError):
    """Workers that evaluate a target died or cannot be had, again and again."""


class StopRun(KeyboardInterrupt):
    """Raised by an observer to end the run that it hears of; the draws so far are the result."""


class LedgerError(SurrokitError, ValueError):
    """A ledger cannot be read or written, is in use, or is another target's."""


class MissingDependencyError(SurrokitError, ImportError):
    """An optional package is needed and absent; the message says what to install."""


class UnknownComponentError(SurrokitError, LookupError):
    """No part of that kind is registered under that name."""


class PluginError(SurrokitError):
    """Something is wrong with a plugin."""


class PluginLoadError(PluginError, ImportError):
    """A plugin could not be imported, or asks for hooks that do not exist."""


class ComponentClashError(PluginError, ValueError):
    """Two plugins claim one name."""


class NumericalError(SurrokitError, ArithmeticError):
    """A computation failed because of its numbers, not its settings."""


class IndefiniteMetricError(NumericalError):
    """A mass matrix that must be positive definite is not."""


class SurrogateFitError(NumericalError):
    """A surrogate could not be fitted to the evaluations at hand."""


class EvaluationError(NumericalError):
    """The target could not be evaluated at some rows of a batch.

    The error carries the results of the other rows, so that no evaluation is lost.

    Parameters
    ----------
    causes
        Row number to the exception of each failed row.
    results
        Results of the batch, with NaN in the failed rows; empty if no row succeeded, since shapes
        are then unknown.
    n
        Rows in the batch; not needed with ``results``.
    """

    def __init__(
        self, causes: dict[int, Exception], results: Sequence[FloatArray], n: int | None = None
    ) -> None:
        first = next(iter(causes.values()))
        rows = len(results[0]) if results else n
        super().__init__(
            f"{len(causes)} of {rows} positions could not be evaluated; "
            f"the first raised {type(first).__name__}: {first}"
        )
        self.causes = causes
        self.results = tuple(results)


class EvaluationWarning(UserWarning):
    """The target raised, or returned NaN, near the draws; such positions count as rejections."""


class GradientWarning(UserWarning):
    """The given gradient does not agree with differences of the value."""


class SamplingWarning(UserWarning):
    """The run went on, but its result must be checked before use."""


class BudgetSpent(BaseException):
    """Ends a run from within; like ``KeyboardInterrupt`` it passes any ``except Exception``.

    Parameters
    ----------
    reason
        The limit that was reached (:data:`surrokit.cost.budget.StopReason`).
    """

    def __init__(self, reason: Any) -> None:
        super().__init__(reason)
        self.reason = reason
