"""Table 1 as it is printed."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class PrintedLine:
    """A line of the paper's table.

    Parameters
    ----------
    acceptance
        AP.
    ess
        Least, median and largest effective draws of 5000.
    seconds
        For one iteration.
    rate
        min(ESS) a second.
    speed_up
        Over HMC.
    """

    acceptance: float
    ess: tuple[int, int, int]
    seconds: float
    rate: float
    speed_up: float


def _line(
    acceptance: float, ess: tuple[int, int, int], seconds: float, rate: float, speed_up: float
) -> PrintedLine:
    return PrintedLine(
        acceptance=acceptance, ess=ess, seconds=seconds, rate=rate, speed_up=speed_up
    )


PRINTED: Mapping[tuple[str, str], PrintedLine] = {
    ("simulated", "hmc"): _line(0.76, (4351, 5000, 5000), 0.061, 14.17, 1),
    ("simulated", "rmhmc"): _line(0.80, (1182, 1496, 1655), 3.794, 0.06, 0.004),
    ("simulated", "rns-hmc"): _line(0.76, (4449, 4999, 5000), 0.007, 123.56, 8.72),
    ("simulated", "rns-rmhmc"): _line(0.82, (1116, 1471, 1662), 0.103, 2.17, 0.15),
    ("bank", "hmc"): _line(0.70, (2005, 2454, 3368), 0.061, 6.52, 1),
    ("bank", "rmhmc"): _line(0.92, (1769, 2128, 2428), 0.631, 0.56, 0.09),
    ("bank", "rns-hmc"): _line(0.70, (1761, 2358, 3378), 0.007, 52.22, 8.01),
    ("bank", "rns-rmhmc"): _line(0.90, (1974, 2254, 2457), 0.027, 14.41, 2.21),
    ("a9a", "hmc"): _line(0.72, (1996, 2959, 3564), 0.033, 11.96, 1),
    ("a9a", "rmhmc"): _line(0.82, (5000, 5000, 5000), 3.492, 0.29, 0.02),
    ("a9a", "rns-hmc"): _line(0.68, (1835, 2650, 3203), 0.005, 81.80, 6.84),
    ("a9a", "rns-rmhmc"): _line(0.79, (4957, 5000, 5000), 0.370, 2.68, 0.22),
    ("pde", "hmc"): _line(0.91, (4533, 5000, 5000), 0.775, 1.17, 1),
    ("pde", "rmhmc"): _line(0.80, (5000, 5000, 5000), 4.388, 0.23, 0.20),
    ("pde", "rns-hmc"): _line(0.75, (2306, 3034, 3516), 0.066, 7.10, 6.07),
    ("pde", "rns-rmhmc"): _line(0.66, (2126, 4052, 5000), 0.097, 4.38, 3.74),
}
"""By the names of problem and method."""
PAPER_DRAWS = 5000
"""Kept draws of each line."""
