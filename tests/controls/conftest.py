"""What tests of mutants share."""

import pytest

from surrokit.testing import Verdict


@pytest.fixture
def p_values(monkeypatch):
    """The p-values of the verdicts that a test has asked for."""
    seen = []
    require = Verdict.require

    def recorded(verdict, claim):
        seen.append(verdict.p_value)
        require(verdict, claim)

    monkeypatch.setattr(Verdict, "require", recorded)
    return seen
