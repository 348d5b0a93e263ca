"""The four problems of section 5, with the settings that the paper and its authors' code give.

a9a: the paper's random projection is lost. On orthonormal directions of the standardised features
its step size of HMC leads nearly to its acceptance and effective draws. RMHMC accepts 0.6 with its
step of 0.5, where the paper has 0.82; here it is 0.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

import surrokit as sk
from surrokit.errors import TargetError
from surrokit.potentials import Potential
from surrokit_paper.harness import Conditions, Figure

SIMULATED, BANK, A9A, PDE = "simulated", "bank", "a9a", "pde"
PROBLEMS = (SIMULATED, BANK, A9A, PDE)
"""Names, in the order of the paper's tables; the elliptic problem is no logistic regression."""

PAPER_ROWS = 100_000
"""Rows of the paper's simulated data, for which its step size is."""

LABELS = {
    SIMULATED: "simulated",
    BANK: "Bank Marketing",
    A9A: "a9a, 60 dimensions",
    PDE: "elliptic PDE",
}
"""In tables and pictures."""


@attrs.frozen(kw_only=True)
class PaperProblem:
    """A target, and how the paper samples it."""

    name: str
    potential: str  # the registered target, with its settings
    potential_settings: Mapping[str, Any] = attrs.field(factory=dict)
    paths: Mapping[str, Any]  # of HMC and RNS-HMC: the number of steps is drawn up to n_steps
    riemannian_paths: Mapping[str, Any]  # of RMHMC and RNS-RMHMC, with so many steps in each path
    n_nodes: int  # s, of the paper's network
    ridge: float  # added to the normal equations of the network: for HMC, and for RMHMC
    riemannian_ridge: float = 1e-9
    metric: str = "fisher"  # of RMHMC on the target itself, and of RNS-RMHMC
    surrogate_metric: str = "hessian"
    source: str = ""  # where users get the data file
    file: str | None = None

    @property
    def n_steps(self) -> int:
        """The largest number of steps of HMC."""
        return int(self.paths["n_steps"])

    def target(self, conditions: Conditions, *, outputs: bool = False) -> Potential:
        """Return the target; TargetError if its file is missing or cannot be read.

        With ``outputs`` the elliptic problem offers those of its forward map: HMC evaluates
        Jacobians, and otherwise gradients by the adjoint equation.
        """
        settings = dict(self.potential_settings)
        if self.name == PDE and not outputs:
            settings["outputs"] = False
        if self.file is not None:
            try:
                settings["path"] = conditions.data_file(self.file)
            except TargetError as error:
                raise TargetError(f"{error}; {self.source}") from error
        made: Potential = sk.make("potential", self.potential, **settings)
        return made


def _paths(step_size: float, n_steps: int) -> dict[str, Any]:
    return {"step_size": step_size, "n_steps": n_steps}


_OTHERS = {
    BANK: PaperProblem(
        name=BANK,
        potential="bank",
        paths=_paths(0.012, 45),
        riemannian_paths=_paths(0.4, 6),
        n_nodes=1000,
        ridge=1e-7,
        file="bank-additional-full.csv",
        source="it comes in bank-additional.zip from "
        "https://archive.ics.uci.edu/dataset/222/bank+marketing",
    ),
    A9A: PaperProblem(
        name=A9A,
        potential="a9a",
        potential_settings={"projected": 60, "directions": "orthonormal"},
        paths=_paths(0.012, 10),
        riemannian_paths=_paths(0.4, 4),
        n_nodes=2500,
        ridge=1e-9,
        file="a9a",
        source="it is at https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
    ),
    PDE: PaperProblem(
        name=PDE,
        potential="elliptic-pde",
        paths=_paths(0.16, 10),
        riemannian_paths=_paths(0.8, 3),
        n_nodes=1000,
        ridge=1e-7,
        riemannian_ridge=1e-7,
        metric="gauss-newton",
        surrogate_metric="hessian-diagonal",
    ),
}


@attrs.frozen(kw_only=True)
class ProblemFigure(Figure):
    """A figure on the paper's four problems."""

    n_rows: int = PAPER_ROWS  # of the simulated data
    dim: int = 50
    mesh: int = 30  # squares along either side of the elliptic problem, as in the paper

    def problem(self, name: str) -> PaperProblem:
        """Return a problem; on simulated data the step size follows the posterior's width."""
        if name == SIMULATED:
            return PaperProblem(
                name=SIMULATED,
                potential="simulated-logistic",
                potential_settings={"n_rows": self.n_rows, "dim": self.dim},
                paths=_paths(0.045 * (PAPER_ROWS / self.n_rows) ** 0.5, 6),
                riemannian_paths=_paths(0.54, 2),
                n_nodes=2000,
                ridge=1e-6,
            )
        if name == PDE:
            return attrs.evolve(_OTHERS[PDE], potential_settings={"mesh": self.mesh})
        return _OTHERS[name]
