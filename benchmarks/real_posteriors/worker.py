"""Runs one method on one posterior with one seed, in a process of its own.

    python -m real_posteriors.worker ORDER

``ORDER`` is JSON: ``posterior``, ``method``, ``seed``, ``data``, the folder of all posteriors, and
``result``, the file for the row.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import attrs

from harness import Row
from real_posteriors.judging import Judgement, judge
from real_posteriors.methods import METHODS
from real_posteriors.ours import Drawn
from real_posteriors.targets import Posterior

END_OF_A_TRACE = 3000
"""Characters of it that a row keeps."""


def row_of(order: dict[str, Any]) -> Row:
    """Return the row of a run, or why there is none."""
    posterior = Posterior.read(order["posterior"], Path(order["data"]))
    method = METHODS[order["method"]]
    try:
        drawn = method.load()(posterior, order["seed"])
    except ImportError as error:
        return {"status": "not installed", "message": str(error)}
    named = posterior.case.name_draws(drawn.draws)
    judgement = judge(named, posterior.reference, chains=drawn.chains, ess=drawn.ess)
    means = {name: [float(x.mean()), float(x.std())] for name, x in named.items()}
    return {
        "status": "done",
        "message": "",
        **figures(drawn, judgement),
        "moments": means,
        "versions": method.versions(),
    }


def figures(drawn: Drawn, judgement: Judgement) -> Row:
    """Return everything that the table needs, as plain data."""
    return {
        **attrs.asdict(judgement),
        "warnings": list(drawn.warnings),
        "calls_before": dict(drawn.calls_before),
        "calls": dict(drawn.calls),
        "seconds": drawn.seconds,
        "acceptance": drawn.acceptance,
        "chains": drawn.draws.shape[0],
        "draws": drawn.draws.shape[1],
        **drawn.extra,
    }


def main() -> None:
    """Do what the order says."""
    order = json.loads(sys.argv[1])
    try:
        found = row_of(order)
    except Exception as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error}".split("\n")[0]
        trace = traceback.format_exc()[-END_OF_A_TRACE:]
        found = {"status": "failed", "message": message, "traceback": trace}
    kept = {name: order[name] for name in ("posterior", "method", "seed")}
    Path(order["result"]).write_text(json.dumps({**kept, **found}), encoding="utf-8")


if __name__ == "__main__":
    main()
