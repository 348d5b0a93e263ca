"""The exact kernel that takes over where a surrogate is not worth its cost."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from surrokit.contracts.sampler import Correction, Sampler
from surrokit.contracts.schedule import Schedule

HOPELESS = 0.01
"""A surrogate whose iterations forget less than this part is dropped, whatever its calls cost."""

_NEEDED = 0.25  # part of a sub-chain's steps that a draw takes, since sub-chains tend to be long


@attrs.frozen(kw_only=True, eq=False)
class Fallback:
    """An exact kernel, and what an independent draw is expected to cost with it.

    Parameters
    ----------
    name
        Its name in messages.
    sampler, correction
        The kernel; not bound to a potential yet.
    schedule
        One that learns nothing.
    seconds_per_draw
        Seconds for one about independent draw of every chain, with its share of the warm-up that
        this kernel would still need.
    seconds_per_value
        Seconds for the target's value at one position of every chain.
    steps_per_draw
        Integrator steps in that draw; None where nothing is integrated.
    described
        Kind of part to its name, for the output.
    """

    name: str
    sampler: Sampler
    correction: Correction
    schedule: Schedule
    seconds_per_draw: float
    seconds_per_value: float
    steps_per_draw: float | None = None
    described: Mapping[str, str] = attrs.field(factory=dict)

    def complaint(self, forgotten: float, seconds: float = 0.0, steps: float = 0.0) -> str | None:
        """Return why the surrogate is to be dropped, or None.

        If an iteration forgets a part f, each draw is worth f / (2 - f) independent draws. In
        general f is 1 less the correlation of successive draws; with independent proposals it is
        their acceptance.

        Parameters
        ----------
        forgotten
            f, predicted or measured.
        seconds
            Seconds of an iteration on the surrogate; at least those of the exact values count.
        steps
            Integrator steps of an iteration on the surrogate. If they are very many, so are those
            of the exact kernel.
        """
        if not forgotten >= HOPELESS:
            return f"an iteration on the surrogate would forget {max(forgotten, 0.0):.3f} only"
        worth = forgotten / (2.0 - forgotten)
        on_surrogate = max(seconds, self.seconds_per_value) / worth
        exact = self.seconds_per_draw
        if self.steps_per_draw is not None:
            exact *= max(_NEEDED * steps / self.steps_per_draw, 1.0)
        if on_surrogate <= exact:
            return None
        return (
            f"a draw on the surrogate would be worth {worth:.2g} independent ones; each of these "
            f"would take {in_words(on_surrogate)}, but {in_words(exact)} with {self.name}"
        )


def in_words(seconds: float) -> str:
    """Return a time with its unit."""
    if seconds >= 60:
        return f"{seconds / 60:.3g} min"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    number, unit = (1e3 * seconds, "ms") if seconds >= 1e-4 else (1e6 * seconds, "us")
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:.2g} {unit}"
