"""What a study waits for, as its file says."""

from __future__ import annotations

from surrokit.ledger.reader import Ledger
from surrokit.ledger.store import reading

FACT, ARRAYS, PENDING = "study", "study/", "pending"
"""The fact of a study, the beginning of the names of its arrays, and of these the positions that it
waits for."""

_SHOWN = 3


def waits_for(ledger: Ledger) -> str | None:
    """Return in words what a study waits for; None for a run that is none, or a study that is done.

    Parameters
    ----------
    ledger
        Its file.

    Raises
    ------
    LedgerError
        If the file is damaged.
    """
    with reading(ledger.path):
        facts, pending = ledger.facts.get(FACT), ledger.store.arrays().get(ARRAYS + PENDING)
        if facts is None or pending is None or not len(pending):
            return None
        what = "log densities, with their gradients," if facts["gradients"] else "log densities"
        what = "outputs of the model" if facts["has_data"] else what
        names = ", ".join(ledger.parameters.labels)
        rows = [", ".join(f"{number:.4g}" for number in row) for row in pending[:_SHOWN].tolist()]
    file, left = ledger.path.name, len(pending) - len(rows)
    at = "; ".join(rows) + (f"; and {left} more" if left else "")
    return (
        f"the study waits for {what} at {len(pending)} positions, ({names}) = {at}. Get them by "
        f"surrokit ask {file}, and pass the results by surrokit tell {file} TABLE"
    )
