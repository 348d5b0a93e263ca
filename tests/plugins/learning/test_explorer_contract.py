"""The contract of explorers that ask for fits, kept by ``rounds`` and broken on purpose."""

from __future__ import annotations

import attrs
import pytest

import surrokit as sk
from surrokit.testing import learning as checks

BURST = ("sampler", {"sampler": "random-walk", "correction": "metropolis", "iterations": 20})


def rounds():
    return sk.make(
        "explorer", "rounds", sampler="hmc", tuned="hmc", burst=BURST, evaluations=60, searches=1
    )


@attrs.frozen(eq=False)
class Broken:
    """An explorer with one fault."""

    inner: object
    fault: str

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def bind(self, potential, calls=None):
        return Broken(self.inner.bind(potential, calls), self.fault)

    def inform(self, state, surrogate):
        if self.fault == "pays":
            self.inner.potential.value(state.chains.positions)
        if self.fault == "waits" and surrogate is None:
            return attrs.evolve(state, finished=False)
        after = self.inner.inform(state, surrogate)
        kept = None if surrogate is None else surrogate.value
        return attrs.evolve(after, burst=kept) if self.fault == "keeps" else after

    def findings(self, state):
        found = self.inner.findings(state)
        return attrs.evolve(found, acceptance=1.5) if self.fault == "boasts" else found


@pytest.mark.parametrize(
    ("fault", "check", "message"),
    [
        ("pays", checks.check_exact_calls, "inform called the exact potential"),
        ("waits", checks.check_fits_are_optional, "must end within it"),
        ("keeps", checks.check_exploration_survives, "what lives across iterations"),
        ("boasts", checks.check_findings, "must be a probability"),
    ],
)
def test_a_fault_is_found(fault, check, message):
    check(rounds)
    with pytest.raises(AssertionError, match=message):
        check(lambda: Broken(rounds(), fault))
