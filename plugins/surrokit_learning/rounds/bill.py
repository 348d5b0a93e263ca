"""The bill of an exploration in rounds, and its limits."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class Bill:
    """Steps and exact evaluations.

    Parameters
    ----------
    steps, paid
        So far.
    most_steps, most_paid
        Bounds on them.
    spare
        Evaluations by which the bound may be moved yet.
    """

    steps: int = 0
    paid: int = 0
    most_steps: int
    most_paid: int
    spare: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether there is nothing left."""
        return self.steps >= self.most_steps or self.paid >= self.most_paid

    @property
    def is_half_spent(self) -> bool:
        """Whether half of either is gone."""
        return 2 * self.paid >= self.most_paid or 2 * self.steps >= self.most_steps

    def step(self) -> Bill:
        """Return the bill after one more step."""
        return attrs.evolve(self, steps=self.steps + 1)

    def pay(self, evaluations: int, *, extra: bool = False) -> Bill:
        """Return the bill after so many evaluations; extra ones do not count against the rest."""
        most = self.most_paid + evaluations * extra
        return attrs.evolve(self, paid=self.paid + evaluations, most_paid=most)

    def extend(self, evaluations: int) -> Bill:
        """Return the bill with room for so many more evaluations, or for all spare ones."""
        more = min(evaluations, self.spare)
        return attrs.evolve(self, most_paid=self.most_paid + more, spare=self.spare - more)
