"""What retries and second evaluations say of failures by chance."""

from __future__ import annotations

import math

from surrokit.failures.account import Recheck

LITTLE = 1e-3
"""Part of the density that may be lost to failures by chance: less than draws can show."""

SURE, UNLIKELY = 20, 0.05
"""Rejected positions that fail again when tried once more, from which on they are taken to fail for
a reason; and the probability of fewer such, by chance, below which they are too."""


def tell_chance(again: Recheck, cured: int, rejected: int, *, doubt: bool) -> str | None:
    """Return what is known of failures by chance; None if nothing is.

    Parameters
    ----------
    again
        What came of failed positions that were tried once more.
    cured
        Positions that failed first, and could be evaluated by a retry.
    rejected
        Positions that were rejected.
    doubt
        Whether the message is wanted that draws may be wrong, or the one that they are not.
    """
    by_chance = bool(cured or again.worked)
    if not by_chance or doubt != (_lost(again, cured, rejected) >= LITTLE):
        return None
    if not again.retries:
        return (
            f"the target fails by chance: of {again.tried} positions at which it had failed, "
            f"{again.worked} could be evaluated when tried once more. Draws are then those of its "
            "density times its chance to work, which is another target where that chance changes: "
            f"about {again.rate:.0%} of the density is lost at such positions. Pass "
            f"on_error='retry' with retries={_needed(again.rate)}, or mend the model"
        )
    message = f"the target fails by chance: {cured} positions that failed were evaluated by a retry"
    if not rejected:
        return f"{message}; draws are right, since in the end every position was evaluated"
    message += f", and {rejected} {'was' if rejected == 1 else 'were'} rejected"
    if again.tried:
        works = again.worked or "none"
        message += f" ({works} of {again.tried} could be evaluated when tried once more)"
    if _fail_for_a_reason(again, cured, rejected):
        return f"{message}; these fail for another reason, and draws are right"
    rate = _rate(again, cured, rejected)
    return (
        f"{message}. Where these failed by chance, up to about {rate ** (again.retries + 1):.2g} "
        f"of the density is lost, which makes another target; pass retries={_needed(rate)}, or "
        "mend the model"
    )


def tell_infinite(again: Recheck) -> str | None:
    """Return that U is infinite by chance, if so."""
    if not again.finite:
        return None
    return (
        f"the target's U is infinite by chance: of {again.infinite} positions at which it was, "
        f"{again.finite} had a finite one when evaluated once more. Draws are then those of its "
        "density times the chance of a finite U, which is another target where that chance "
        f"changes: about {again.infinite_rate:.0%} of the density is lost at such positions. Let "
        "the model raise an exception, or return NaN, where it fails, and pass on_error='retry' "
        f"with retries={_needed(again.infinite_rate)}; or mend the model"
    )


def _lost(again: Recheck, cured: int, rejected: int) -> float:
    """Return about the part of the density that is lost where the target fails by chance."""
    if not rejected or _fail_for_a_reason(again, cured, rejected):
        return 0.0
    return _rate(again, cured, rejected) ** (again.retries + 1)


def _rate(again: Recheck, cured: int, rejected: int) -> float:
    """Return about the part of the calls that fail, where the target fails by chance.

    Of positions that fail at first, retries fail at the rate's power. It is less where some
    positions are rejected for a reason.
    """
    if not cured:
        return again.rate
    return float((rejected / (cured + rejected)) ** (1.0 / max(again.retries, 1)))


def _fail_for_a_reason(again: Recheck, cured: int, rejected: int) -> bool:
    """Return whether positions that were rejected after retries would fail time and again."""
    if again.worked or not again.tried:
        return False
    all_again = _rate(again, cured, rejected) ** again.tried
    return again.tried >= SURE or all_again < UNLIKELY


def _needed(rate: float) -> int:
    """Return the retries by which far less is lost than draws can show."""
    return max(1, math.ceil(math.log(0.1 * LITTLE) / math.log(rate)) - 1)
