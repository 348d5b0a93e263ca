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

from real_posteriors.methods import METHODS
from real_posteriors.targets import Posterior


def main() -> None:
    """Do what the order says."""
    order = json.loads(sys.argv[1])
    try:
        posterior = Posterior.read(order["posterior"], Path(order["data"]))
        found = METHODS[order["method"]].row(posterior, order["seed"])
    except ImportError as error:
        found = {"status": "not installed", "message": str(error)}
    except Exception as error:
        traceback.print_exc()
        message = f"{type(error).__name__}: {error}".split("\n")[0]
        trace = traceback.format_exc()[-3000:]
        found = {"status": "failed", "message": message, "traceback": trace}
    kept = {name: order[name] for name in ("posterior", "method", "seed")}
    Path(order["result"]).write_text(json.dumps({**kept, **found}), encoding="utf-8")


if __name__ == "__main__":
    main()
