"""The contract of explorers that ask for fits, kept by ``rounds`` and broken on purpose."""

from __future__ import annotations

import attrs
import pytest

import surrokit as sk
from surrokit.testing import learning as checks


def rounds():
    return sk.make("explorer", "rounds", sampler="hmc", tuned="hmc", evaluations=60, searches=1)


@attrs.frozen(eq=False)
class Broken:
    """An explorer with one fault."""

    inner: object
    fault: str

    @property
    def needs(self):
        return self.inner.needs

    def explore(self, start, rng):
        if self.fault == "draws":
            rng.random()
        for step in self.inner.explore(start, rng):
            if self.fault == "evaluates":
                start.potential.value(step.findings.chains.positions)
            if self.fault == "boasts":
                step = attrs.evolve(step, findings=attrs.evolve(step.findings, acceptance=1.5))
            yield attrs.evolve(step, done=False) if self.fault == "stops" else step
            if self.fault == "goes on" and step.done:
                yield step


@pytest.mark.parametrize(
    ("fault", "check", "message"),
    [
        ("draws", checks.check_exploration, "took numbers from the generator"),
        ("evaluates", checks.check_exploration, "were not asked for"),
        ("stops", checks.check_exploration, "without an item that is marked done"),
        ("goes on", checks.check_exploration, "something follows"),
        ("boasts", checks.check_findings, "acceptance predicted must be finite and from 0 to 1"),
    ],
)
def test_a_fault_is_found(fault, check, message):
    check(rounds)
    with pytest.raises(AssertionError, match=message):
        check(lambda: Broken(rounds(), fault))
