"""Records of a run's course: choices, adaptation, weighted answers and findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Self

import attrs
import numpy as np

from surrokit.diagnostics import r_hat
from surrokit.modes import Searches
from surrokit.types import FloatArray
from surrokit.weighted.answer import Answer, Figures
from surrokit.weighted.round import Estimate


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that a reader of the figures must know."""

    name: str  #: A word for programs, such as ``r_hat`` or ``stopped``.
    message: str  #: What was found and what to do about it, without a full stop.
    warns: bool  #: Whether the draws may be wrong by it, or worth less than they seem.

    def __str__(self) -> str:
        return f"{'Warning' if self.warns else 'Note'}: {self.message}."


def warning(name: str, message: str) -> Finding:
    """Return a finding by which the draws may be wrong, or worth less than they seem."""
    return Finding(name=name, message=message, warns=True)


def note(name: str, message: str) -> Finding:
    """Return a finding that is good to know."""
    return Finding(name=name, message=message, warns=False)


@attrs.frozen
class Verdict:
    """All findings about a run; as text, at most five lines, the most important ones first."""

    findings: tuple[Finding, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether no finding warns."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings by which the draws may be wrong, or worth less than they seem."""
        return tuple(finding for finding in self.findings if finding.warns)

    @property
    def messages(self) -> tuple[str, ...]:
        """What each finding says, without full stops."""
        return tuple(finding.message for finding in self.findings)

    def named(self, name: str) -> tuple[Finding, ...]:
        """Return the findings of one name; empty if there are none."""
        return tuple(finding for finding in self.findings if finding.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        return {"sound": self.sound, "findings": [attrs.asdict(each) for each in self.findings]}

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __str__(self) -> str:
        lines, most = [str(each) for each in self.findings], 5
        if len(lines) > most:
            rest = self.findings[most - 1 :]
            warned = sum(each.warns for each in rest)
            lines[most - 1 :] = [
                f"Note: {len(rest)} more findings, {warned} of them warnings; list(run.verdict) "
                "and --wide have all."
            ]
        return "\n".join(lines)


@attrs.frozen(kw_only=True)
class Choice:
    """Parts that a policy picked, and the exact sampler that replaced a surrogate."""

    #: Kind of part to the part as it would be typed; empty where the user named them.
    parts: Mapping[str, str] = attrs.field(factory=dict)
    reasons: tuple[str, ...] = ()  #: Why these, with the figures measured.
    fallback: tuple[str, ...] = ()  #: The sampler that took over, and why; empty where none did.

    def because(self, reason: str) -> Self:
        """Return it with one more reason."""
        return attrs.evolve(self, reasons=(*self.reasons, reason))

    def __str__(self) -> str:
        begun = ", ".join(f"{kind}={part}" for kind, part in self.parts.items())
        first = ": ".join(filter(None, (begun, "; ".join(self.reasons))))
        sampler, reason = self.fallback or ("", "")
        return f"{first}; then {sampler} instead: {reason}" if sampler else first


@attrs.frozen(kw_only=True)
class Repair:
    """One repair of a surrogate, after an iteration counted from 1, with what was wrong."""

    iteration: int
    reason: str


@attrs.frozen(kw_only=True)
class Adaptation:
    """What changed in the course of a run."""

    #: Iterations, counted from 1 over the whole run, after which a new surrogate was deployed.
    deployments: tuple[int, ...]
    training_rows: int  #: Exact evaluations that the learner observed.
    #: Whether every kept draw had the same kernel, as the run sees for itself, whatever a schedule
    #: says. If not, draws are exact only in the limit of vanishing adaptation.
    frozen_before_draws: bool
    repairs: tuple[Repair, ...] = ()  #: Repairs of the surrogate in warm-up.
    mix: float = 0.0  #: Probability with which a kept iteration was an exact transition.
    jumps: int = 0  #: Modes between which half of the kept iterations jumped; 0 for no jumps.
    #: Places where the target went on where the surrogate's mass ended, after the exploration.
    missed: int = 0
    recalled: bool = False  #: Whether chains went on from draws of an earlier run, unexplored.
    #: Deployments after the schedule had said that it was frozen.
    deployed_though_frozen: tuple[int, ...] = ()
    searches: Searches | None = None  #: Where searches for modes ended; None where none was made.

    @property
    def last_deployment(self) -> int | None:
        """The iteration of the last deployment; None if there was none."""
        return self.deployments[-1] if self.deployments else None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, the number of deployments and the last of them as plain data."""
        return {
            **attrs.asdict(self),
            "n_deployments": len(self.deployments),
            "last_deployment": self.last_deployment,
        }


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Weights:
    """Weighted answers of a run, or why there are none."""

    answer: Answer | None = None  #: What the rounds that are reliable say; None where none is.
    reason: str | None = None  #: Why weights were not reliable, the last time; None if they are.
    rejected: int = 0  #: Rounds that were not reliable; their evaluations were learnt from.
    #: Logarithm of the normalising constant of each surrogate, in the rounds reliable.
    of_surrogates: tuple[Estimate, ...] = ()
    unnormalized: tuple[str, ...] = ()  #: What of the target may lack its normalising constant.

    def account(self) -> dict[str, Any]:
        """Return what there is to write down beside the rounds."""
        calls = 0.0 if self.answer is None else self.answer.calls
        reasons = {"reason": self.reason, "rejected": self.rejected}
        return {**reasons, "calls": calls, "unnormalized": list(self.unnormalized)}

    @cached_property
    def figures(self) -> Figures:
        """Mean, sd and quantiles of the answer."""
        assert self.answer is not None
        return Figures.of(self.answer)

    @cached_property
    def log_evidence(self) -> Estimate:
        """Logarithm of the integral of exp(-U)."""
        assert self.answer is not None
        # imported late, so that importing the package stays fast
        from surrokit.weighted.normalizer import evidence_of_rounds

        found = evidence_of_rounds(self.answer.rounds, self.of_surrogates, self.answer.calls)
        return attrs.evolve(found, unnormalized=self.unnormalized)

    @cached_property
    def rhat(self) -> FloatArray:
        """The largest R-hat of chains on the surrogate in any round, shape (dim,)."""
        assert self.answer is not None
        return np.asarray(np.max([r_hat(each.draws) for each in self.answer.rounds], axis=0))
