"""The logistic regressions of section 5.1, with the settings that the paper gives them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

import surrokit as sk
from surrokit.errors import TargetError
from surrokit.experiments import Conditions
from surrokit.protocols import Potential
from surrokit_paper.names import names_among

PAPER_ROWS = 100_000
"""Rows of the paper's simulated data, for which its step size is."""


@attrs.frozen(kw_only=True)
class LogisticProblem:
    """A target, and how the paper samples it.

    Parameters
    ----------
    name
        Word in the names of rows.
    label
        What tables and pictures say.
    potential, potential_settings
        The registered target.
    step_size, n_steps
        Of HMC and of everything that is compared with it; the number of steps is drawn from
        {1, ..., n_steps} in each iteration.
    n_nodes
        s, the nodes of the paper's network.
    file
        A data file that users bring; it may be packed as .gz. None where there is none.
    source
        Where the file is to be had.
    """

    name: str
    label: str
    potential: str
    potential_settings: Mapping[str, Any] = attrs.field(factory=dict)
    step_size: float
    n_steps: int
    n_nodes: int
    file: str | None = None
    source: str = ""

    def facts(self) -> dict[str, Any]:
        """Return what a row's result depends on, as plain data."""
        return {
            "problem": self.name,
            "label": self.label,
            "potential_settings": dict(self.potential_settings),
            "step_size": self.step_size,
            "n_steps": self.n_steps,
        }

    def target(self, conditions: Conditions) -> Potential:
        """Return the target.

        Raises
        ------
        TargetError
            If its file is missing or cannot be read.
        """
        settings = dict(self.potential_settings)
        if self.file is not None:
            settings["path"] = self._path(conditions, self.file)
        made: Potential = sk.make("potential", self.potential, **settings)
        return made

    def _path(self, conditions: Conditions, file: str) -> Path:
        if conditions.data is not None:
            packed = conditions.data / f"{file}.gz"
            if packed.is_file():
                return packed
        try:
            return conditions.data_file(file)
        except TargetError as error:
            raise TargetError(f"{error}; {self.source}") from error


def logistic_problems(n_rows: int, dim: int, a9a_step_size: float) -> dict[str, LogisticProblem]:
    """Return the three problems by name.

    Parameters
    ----------
    n_rows, dim
        Of the simulated data; the paper has 100000 and 50. With other rows the posterior is wider
        or narrower, and the step size with it.
    a9a_step_size
        Of a9a. The paper's random projection is lost, and its 0.012 fits no other.
    """
    problems = (
        LogisticProblem(
            name="simulated",
            label="simulated",
            potential="simulated-logistic",
            potential_settings={"n_rows": n_rows, "dim": dim},
            step_size=0.045 * (PAPER_ROWS / n_rows) ** 0.5,
            n_steps=6,
            n_nodes=2000,
        ),
        LogisticProblem(
            name="bank",
            label="Bank Marketing",
            potential="bank",
            step_size=0.012,
            n_steps=45,
            n_nodes=1000,
            file="bank-additional-full.csv",
            source=(
                "it comes in bank-additional.zip from "
                "https://archive.ics.uci.edu/dataset/222/bank+marketing"
            ),
        ),
        LogisticProblem(
            name="a9a",
            label="a9a, 60 dimensions",
            potential="a9a",
            potential_settings={"projected": 60},
            step_size=a9a_step_size,
            n_steps=10,
            n_nodes=2500,
            file="a9a",
            source=("it is at https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html"),
        ),
    )
    return {problem.name: problem for problem in problems}


PROBLEMS = ("simulated", "bank", "a9a")
"""Names, in the order of the paper's tables."""


def chosen_names(value: Any) -> tuple[str, ...]:
    """Return names of problems, each once, in the order of the paper; see :func:`names_among`."""
    return names_among(value, "problems", PROBLEMS)
