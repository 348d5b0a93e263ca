"""The frame of experiments on the problems of section 5."""

from __future__ import annotations

import attrs

from surrokit.settings import positive_integer
from surrokit_paper.experiment import PaperExperiment
from surrokit_paper.problems.problems import PROBLEMS, PaperProblem, choose_names, paper_problems


@attrs.frozen(kw_only=True)
class ProblemExperiment(PaperExperiment):
    """An experiment on some of the paper's four problems.

    Parameters
    ----------
    problems
        Names of the targets.
    n_rows, dim
        Of the simulated data.
    mesh
        Squares along either side of the elliptic problem.
    """

    problems: tuple[str, ...] = attrs.field(default=PROBLEMS, converter=choose_names)
    n_rows: int = attrs.field(default=100_000, validator=positive_integer)
    dim: int = attrs.field(default=50, validator=positive_integer)
    mesh: int = attrs.field(default=30, validator=positive_integer)

    def problem(self, name: str) -> PaperProblem:
        """Return a problem by its name."""
        return paper_problems(self.n_rows, self.dim, self.mesh)[name]

    def choose_problems(self) -> list[PaperProblem]:
        """Return the problems in the order of the paper."""
        return [self.problem(name) for name in self.problems]
