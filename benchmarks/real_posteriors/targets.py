"""A posterior as a target of surrokit, with gradients or from values alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from real_posteriors import by_hand
from real_posteriors.cases import CASES, Case, Reference
from surrokit.potentials import Potential
from surrokit.types import FloatArray

Function = Callable[[FloatArray], FloatArray]


@attrs.frozen(kw_only=True)
class Posterior:
    """A case with its data and its reference."""

    case: Case  # what is drawn from, and what is known about it
    data: dict[str, Any]
    reference: Reference
    # whether to differentiate by JAX where it is installed; if not, by hand where that was
    # done
    jax: bool = True

    @classmethod
    def read(cls, name: str, folder: Path, *, jax: bool = True) -> Posterior:
        """Read the files of a posterior from a folder that has one folder for each."""
        data, reference = (
            json.loads((folder / name / file).read_text(encoding="utf-8"))
            for file in ("data.json", "reference_summary.json")
        )
        return cls(case=CASES[name], data=data, reference=reference, jax=jax)

    def with_gradient(self) -> Potential:
        """Return the target as a user would give it, with gradients."""
        if self.case.registered is not None:
            registered: Potential = sk.make("potential", self.case.registered)
            return registered
        value, gradient = self._functions()
        return sk.potential(value, gradient, parameters=self.case.parameters, batched=True)

    def values_alone(self) -> Potential:
        """Return the same target without its gradient, and with nothing that says where to start.

        Raises
        ------
        ImportError
            As above.
        """
        value = self._functions()[0]
        return sk.potential(value, parameters=self.case.parameters, batched=True)

    def _functions(self) -> tuple[Function, Function]:
        if self.case.registered is not None:
            inner = sk.make("potential", self.case.registered).inner
            return inner.value, lambda q: inner.value_and_gradient(q)[1]
        if not self.jax:
            return self.functions_by_hand()
        try:
            return self.compiled()
        except ImportError:
            if self.case.by_hand is None:
                raise
            return self.functions_by_hand()

    def compiled(self) -> tuple[Function, Function]:
        """Return U and its gradient, each a function of rows, by JAX."""
        from real_posteriors import in_jax

        return in_jax.in_rows(getattr(in_jax, self.case.density)(self.data))

    def functions_by_hand(self) -> tuple[Function, Function]:
        """Return U and its gradient, each a function of rows, without JAX."""
        assert self.case.by_hand is not None, f"{self.case.name} has no gradient by hand"
        both = getattr(by_hand, self.case.by_hand)(self.data)
        return (lambda q: both(q)[0]), (lambda q: both(q)[1])

    def typical_range(self) -> tuple[FloatArray, FloatArray]:
        """Return a centre and a scale of each unbounded coordinate, from the reference.

        Samplers that have to be told where to look get them. Logarithms and logits have the scale
        of a lognormal, and of a first-order expansion.
        """
        mean, sd = map(np.array, self.case.typical(self.reference))
        lower, upper = self.case.declared.bounds()
        centre, scale = mean.copy(), sd.copy()
        positive, between = np.isfinite(lower) & ~np.isfinite(upper), np.isfinite(upper)
        above = (mean - lower)[positive]
        scale[positive] = np.sqrt(np.log1p((sd[positive] / above) ** 2))
        centre[positive] = np.log(above) - 0.5 * scale[positive] ** 2
        width = (upper - lower)[between]
        part = (mean - lower)[between] / width
        centre[between] = np.log(part / (1.0 - part))
        scale[between] = sd[between] / width / (part * (1.0 - part))
        return centre, scale
