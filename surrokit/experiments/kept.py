"""Finished rows of experiments, kept on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from surrokit.errors import ConfigurationError
from surrokit.experiments.contract import Finished, Row
from surrokit.output.json import plain


def fingerprint(experiment: str, row: Row, seed: int, versions: Mapping[str, str]) -> str:
    """Return a short text that differs whenever the result of a row may differ.

    Parameters
    ----------
    experiment
        Name of the experiment.
    row
        The row, with its settings.
    seed
        Seed of all randomness.
    versions
        Package to version.
    """
    facts = [experiment, row.name, plain(row.settings, row.name), seed, dict(versions)]
    text = json.dumps(facts, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


class KeptRows:
    """A file of finished rows, one per line, each with its fingerprint.

    Rows are added as they finish, so an interrupted command loses only the row in progress. Rows
    of different settings, seeds and versions lie side by side; of two rows with one fingerprint the
    later one counts. A line that was cut short is ignored.

    Parameters
    ----------
    path
        The file; it need not exist.

    Raises
    ------
    ConfigurationError
        If the file cannot be read; from ``add``, if it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, Mapping[str, Any]] = {}
        try:
            text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        except OSError as error:
            raise ConfigurationError(
                f"cannot read {path}: {error.strerror}; move it away, or give another folder with "
                "--out"
            ) from error
        self._cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            self._take(line)

    def _take(self, line: str) -> None:
        try:
            kept = json.loads(line)
            self._rows[kept["fingerprint"]] = {
                "result": dict(kept["result"]),
                "seconds": float(kept["seconds"]),
            }
        except (ValueError, KeyError, TypeError):
            return

    def get(self, mark: str, row: Row) -> Finished | None:
        """Return the finished row of a fingerprint, if it is kept."""
        kept = self._rows.get(mark)
        if kept is None:
            return None
        return Finished(name=row.name, settings=plain(row.settings), **kept)

    def drop(self, marks: Iterable[str]) -> None:
        """Forget the rows of some fingerprints, in the file as well."""
        dropped = {mark for mark in marks if self._rows.pop(mark, None) is not None}
        if not dropped:
            return
        lines = self._path.read_text(encoding="utf-8", errors="replace").splitlines()
        left = [line for line in lines if not any(f'"{mark}"' in line for mark in dropped)]
        self._write("w", "".join(f"{line}\n" for line in left))
        self._cut = False

    def add(self, mark: str, finished: Finished) -> None:
        """Write a row under its fingerprint at once."""
        kept = {"result": finished.result, "seconds": finished.seconds}
        record = {"fingerprint": mark, "row": finished.name, "settings": finished.settings, **kept}
        line = ("\n" if self._cut else "") + json.dumps(record, allow_nan=False) + "\n"
        self._write("a", line)
        self._cut = False
        self._rows[mark] = kept

    def _write(self, mode: str, text: str) -> None:
        try:
            with self._path.open(mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise ConfigurationError(
                f"cannot write {self._path}: {error.strerror}; give another folder with --out"
            ) from error
