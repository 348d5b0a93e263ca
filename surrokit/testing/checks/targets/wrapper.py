"""Checks of wrappers of potentials; the factory makes a function that wraps."""

from __future__ import annotations

import numpy as np

from surrokit import capabilities as can
from surrokit.testing.checks.targets import forward, matrices, potential, rows
from surrokit.testing.measures.demands import demand
from surrokit.testing.measures.evaluating import arguments, evaluations_of
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.counting import CountingPotential, Limited
from surrokit.testing.targets.densities import AdjointBanana, Banana, Gaussian, Mixture
from surrokit.testing.targets.summed import Summed
from surrokit.types import Capabilities

_GRADIENTS: Capabilities = frozenset({can.GRADIENT, can.GRADIENT_ALONE})

SUBSETS: tuple[Capabilities, ...] = (
    frozenset(),
    frozenset({can.GRADIENT}),
    _GRADIENTS,
    _GRADIENTS | {can.HESSIAN},
    _GRADIENTS | {can.HESSIAN, can.HESSIAN_DERIVATIVE},
    _GRADIENTS | {can.HESSIAN_PRODUCT},
    _GRADIENTS | {can.HESSIAN, can.HESSIAN_DIAGONAL},
    _GRADIENTS | {can.HESSIAN_PRODUCT, can.HESSIAN_DIAGONAL},
    frozenset({can.GRADIENT, can.METRIC, can.INITIAL}),
    frozenset({can.GRADIENT, can.METRIC, can.METRIC_DERIVATIVE}),
    frozenset({can.FORWARD}),
    frozenset({can.FORWARD, can.JACOBIAN, can.GRADIENT}),
    frozenset({can.FORWARD, can.VJP, can.GRADIENT}),
    Banana().capabilities,
    AdjointBanana().capabilities,
)
"""Capabilities of the potentials to wrap."""


_LIMITED = tuple(Limited(AdjointBanana(), offered) for offered in SUBSETS)


def check_capabilities_kept(make: Factory) -> None:
    """A wrapped potential has the capabilities of the one inside, no more and no less.

    A wrapper that changes coordinates may lose ``convex``, ``gaussian`` and ``rows``; no potential
    here has them.
    """
    for offered in SUBSETS:
        wrapped = make()(Limited(AdjointBanana(), offered)).capabilities
        lost, invented = sorted(offered - wrapped), sorted(wrapped - offered)
        demand(
            not lost and not invented,
            f"around a potential that offers {sorted(offered) or 'values only'} the wrapper "
            f"loses {lost} and invents {invented}; pass capabilities on unchanged",
        )


def check_wrapped_potential(make: Factory) -> None:
    """A wrapped potential passes all checks of potentials, whatever its capabilities."""
    inner = [Gaussian(), Mixture(), Summed(), *_LIMITED]
    for one in inner:
        wrapped = make()(one)
        for check in potential.CHECKS + matrices.CHECKS + forward.CHECKS + rows.CHECKS:
            if check.applies(wrapped):
                _run(check, make, one)


def _run(check: Check, make: Factory, inner: object) -> None:
    try:
        check.function(lambda: make()(inner))
    except AssertionError as error:
        raise AssertionError(
            f"{check.name} fails around {type(inner).__name__}: {error}"
        ) from error


def check_wrapped_calls(make: Factory) -> None:
    """An evaluation of the wrapped potential costs each position once, in one batch."""
    target = AdjointBanana()
    wrapped = make()(counting := CountingPotential(target))
    positions = target.sample(np.random.default_rng(21), 5)
    for name in sorted(evaluations_of(wrapped)):
        given = arguments(wrapped, name, positions)
        counting.positions.clear()
        counting.batches.clear()
        getattr(wrapped, name)(*given)
        most_positions = max(counting.positions.values(), default=0)
        most_batches = max(counting.batches.values(), default=0)
        demand(
            (most_positions, most_batches) == (5, 1),
            f"{name} at 5 positions cost {dict(counting.positions)} positions in "
            f"{dict(counting.batches)} batches of the potential inside; expected 5 in 1",
        )


CHECKS: tuple[Check, ...] = (
    Check(check_capabilities_kept),
    Check(check_wrapped_potential),
    Check(check_wrapped_calls),
)
"""For every wrapper of potentials."""
