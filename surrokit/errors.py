"""Every error that surrokit raises on purpose, in one tree.

Each is also the builtin kind that a reader would expect, so ``except ValueError`` and
``except LookupError`` work. A message names the subject, what was expected, what came, and what
to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surrokit.types import FloatArray


class SurrokitError(Exception):
    """Root of every error that surrokit raises on purpose."""


class ConfigurationError(SurrokitError, ValueError):
    """A setting or a combination of parts that cannot work."""


class ShapeError(ConfigurationError):
    """An array whose shape is not the one expected."""


class CapabilityError(ConfigurationError):
    """A part needs something that the potential at hand does not offer."""


class TargetError(SurrokitError, ValueError):
    """A target that cannot be loaded, or that misbehaves where it must not."""


class NothingReportedError(ConfigurationError):
    """Somebody ended a command before it had anything to report."""


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
    """A computation that failed for its numbers, not for its settings."""


class IndefiniteMetricError(NumericalError):
    """A mass matrix that must be positive definite is not."""


class SurrogateFitError(NumericalError):
    """A surrogate could not be fitted to the evaluations at hand."""


class EvaluationError(NumericalError):
    """Some rows of a batch could not be evaluated by the target.

    Carries what the other rows gave, so that nothing paid for is lost.

    Parameters
    ----------
    causes
        The exception of each row that failed, by row number.
    results
        What the batch would have returned, with NaN in the rows that failed; empty if no row
        succeeded and the shapes are therefore not known.
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
    """The target raised, or returned NaN, at some positions; they count as rejections."""


class GradientWarning(UserWarning):
    """The gradient given does not agree with differences of the value."""


class SamplingWarning(UserWarning):
    """The run went on, but its result deserves a look before it is used."""
