"""The paper's tables and figures, from one command."""

from __future__ import annotations

import json

import pytest

JOBS = [("table-1", ()), ("figure-1", ("--only", "additive/10"))]


@pytest.mark.long
@pytest.mark.parametrize(("name", "rows"), JOBS)
def test_a_result_of_the_paper(account, terminal, tmp_path, name, rows):
    printed = terminal("-m", "surrokit", "reproduce", name, "--quick", *rows, "--out", "again")
    assert f"written to again/{name}.json" in printed
    written = json.loads((tmp_path / "again" / f"{name}.json").read_text())
    assert len(written["rows"]) >= (1 if rows else 4)
