"""Ways to set up surrogates that learn on the way: the paper's, and this project's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from surrokit.contracts.potential import Potential
from surrokit.experiments.contract import Conditions
from surrokit.settings import Limits, is_number
from surrokit_paper.problems.problems import PDE, PaperProblem
from surrokit_paper.problems.several import names_among

NETWORK_ALONE: Mapping[str, Any] = {
    "trend": "constant",
    "train_on": "values",
    "learns": "potential",
}
"""No trend, and values alone, as in the paper. Inputs are whitened, which the paper's are not: in
raw coordinates the recursion of Proposition 1 is numerically meaningless."""


UPDATES = ("auto", "refit", "greville")
"""Ways in which a network takes in points."""


@attrs.frozen(kw_only=True)
class Scheme:
    """What a surrogate learns from, and how.

    Parameters
    ----------
    name
        Word in the names of rows.
    label
        What tables and legends say.
    surrogate_settings
        Of the surrogate ``additive``; the paper's scheme has the problem's number of nodes too.
    gradients
        Whether it is shown gradients; of a forward map, Jacobians.
    outputs
        Whether it learns the outputs of a forward map in place of U.
    """

    name: str
    label: str
    surrogate_settings: Mapping[str, Any]
    gradients: bool
    outputs: bool = False

    def applies(self, problem: PaperProblem) -> bool:
        """Whether a problem has what it learns from."""
        return problem.name == PDE or not self.outputs

    def target(self, problem: PaperProblem, conditions: Conditions) -> Potential:
        """Return the target, with outputs of its forward map where it learns them.

        Exact HMC then pays for Jacobians, where it would need gradients only.

        Raises
        ------
        TargetError
            If its file is missing or cannot be read.
        """
        whole = problem.forward_target if self.outputs else problem.target
        return whole(conditions)

    def surrogate(self, n_nodes: int, updates: str) -> tuple[str, dict[str, Any]]:
        """Return name and settings of the surrogate.

        Parameters
        ----------
        n_nodes, updates
            Of the paper's network: s, and how it takes in points. The defaults keep their own.
        """
        paper = {} if self.gradients else {"n_nodes": n_nodes, "updates": updates}
        return "additive", {**self.surrogate_settings, **paper}

    def adaptive(self, kappa: float, freeze_after: str | None) -> tuple[str, dict[str, Any]]:
        """Return name and settings of the schedule of Algorithm 4.

        Parameters
        ----------
        kappa
            The surrogate is deployed with probability (1 + t)^-kappa, t iterations after the
            starting phase.
        freeze_after
            ``"warmup"``, or None for never, as in the paper.
        """
        return "greville", {
            "kappa": kappa,
            "freeze_after": freeze_after,
            "derivatives": "warmup" if self.gradients else "never",
        }


PAPER = Scheme(
    name="paper",
    label="the paper's network, values alone",
    surrogate_settings=NETWORK_ALONE,
    gradients=False,
)
"""Network alone, s as in the paper."""

DEFAULTS = Scheme(
    name="defaults",
    label="surrokit's defaults, gradients too",
    surrogate_settings={},
    gradients=True,
)
"""This project's surrogate as it comes, of U."""

EMULATOR = Scheme(
    name="emulator",
    label="surrokit's defaults, forward map",
    surrogate_settings={},
    gradients=True,
    outputs=True,
)
"""This project's surrogate as it comes where the target has a forward map: of its outputs."""

SCHEMES: Mapping[str, Scheme] = {scheme.name: scheme for scheme in (PAPER, DEFAULTS, EMULATOR)}
"""By name."""


vanishing = Limits(
    "a number above 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1
)
"""Takes a kappa for which (1 + t)^-kappa vanishes, and has no finite sum."""


def choose_schemes(value: Any) -> tuple[str, ...]:
    """Return names of schemes, each once; see :func:`names_among`."""
    return names_among(value, "schemes", SCHEMES)
