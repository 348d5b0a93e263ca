"""Checks of surrogates, their learners and their fitted potentials."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, Learner
from surrokit.testing.checks.learning.training import (
    LOOSE,
    TARGET,
    demand_finite,
    demand_same,
    evaluate,
    fit_to,
    learner_of,
    places,
    relative_error,
    training,
)
from surrokit.testing.checks.targets import forward, matrices, potential
from surrokit.testing.measures import evaluating
from surrokit.testing.measures.demands import demand, demand_close, demand_equal
from surrokit.testing.measures.plain import write_and_read
from surrokit.testing.results import Check, Factory
from surrokit.testing.targets.target import seal

FEW, MANY = 30, 400
"""Evaluations between which the error must fall."""

LEVEL = 50.0
"""Constant that is added to U."""

VOCABULARY = frozenset({"value", "gradient", "outputs", "jacobian"})
"""Names of the data that a learner can need or use."""


def check_learner(make: Factory) -> None:
    """A learner is made from a problem alone, and declares needs and uses by known names."""
    learner = learner_of(make)
    for name in ("needs", "uses"):
        words = getattr(learner, name)
        demand(
            isinstance(words, frozenset) and words <= VOCABULARY,
            f"{name} must be a frozenset of {sorted(VOCABULARY)}, got {words!r}",
        )
    demand(
        bool(learner.needs),
        "needs is empty; a learner that needs no value, gradient or output learns nothing",
    )
    demand(
        isinstance(learner.provides, frozenset) and learner.provides <= can.KNOWN,
        f"provides must be a frozenset of capability names {sorted(can.KNOWN)}, got "
        f"{learner.provides!r}",
    )


def check_provides(make: Factory) -> None:
    """A fitted potential has exactly the capabilities that the learner provides."""
    learner = learner_of(make, training())
    fitted = learner.fit()
    demand(fitted.dim == TARGET.dim, f"the fitted potential has dim {fitted.dim}, not {TARGET.dim}")
    demand(
        fitted.capabilities == learner.provides,
        f"the learner provides {sorted(learner.provides)}, but its fitted potential has "
        f"{sorted(fitted.capabilities)}",
    )


@functools.lru_cache(maxsize=1)
def _fitted(make: Factory) -> Any:
    """Return one fitted potential for all checks that only read it: fits take most of the time."""
    return fit_to(make, training())


def _on_fitted(check: Check) -> Check:
    """Return a check of potentials as a check of surrogates, on their fitted potential."""

    def on_fitted(make: Factory) -> None:
        fitted = _fitted(make)
        if check.applies(fitted):
            with seal():
                check.function(lambda: fitted)

    on_fitted.__name__ = check.name.replace("check_", "check_fitted_", 1)
    on_fitted.__doc__ = f"Of a fitted potential: {check.function.__doc__}"
    return attrs.evolve(check, function=on_fitted, applies=lambda _: True)


def check_no_exact_call(make: Factory) -> None:
    """Learning, fitting and the fitted potential make no exact call."""
    learner = learner_of(make, training())
    more, where = training(20, seed=3), places()
    with seal():
        learner.observe(more)
        fitted = learner.fit()
        evaluating.answers(fitted, where)
        learner.restore(learner.state()).fit()


def check_least_data(make: Factory) -> None:
    """A learner can fit to what it needs alone; all else may be missing or NaN."""
    full = training()
    needs = learner_of(make).needs
    missing: dict[str, Any] = {
        name: None
        for word, name in (
            ("gradient", "gradients"),
            ("jacobian", "jacobians"),
            ("outputs", "outputs"),
        )
        if word not in needs
    }
    if "outputs" in missing:
        missing["jacobians"] = None
    least = attrs.evolve(full, **missing)
    demand_finite(fit_to(make, least), f"fitted to {sorted(needs)} alone")
    demand_finite(
        fit_to(make, full, least), "fitted to some rows with all there is and some without"
    )


def check_snapshot_frozen(make: Factory) -> None:
    """A fitted potential does not change when its learner observes more and fits again."""
    learner = learner_of(make, training(60))
    first = learner.fit()
    before = {name: a.copy() for name, a in evaluating.answers(first, places()).items()}
    shifted = training(60, seed=5)
    learner.observe(attrs.evolve(shifted, values=shifted.values + LEVEL))
    after = evaluating.answers(first, places())
    second = learner.fit()
    last = evaluating.answers(first, places())
    for name, array in before.items():
        for later, when in ((after, "observed more"), (last, "fitted again")):
            demand_equal(
                later[name], array, f"{name} of a snapshot before and after its learner {when}"
            )
    demand(
        not np.array_equal(second.value(places()), before["value"]),
        "a learner that observed sixty more points, at another level, fits the same as before",
    )


def check_same_fit(make: Factory) -> None:
    """The same data and generator give the same fit; fitting twice changes nothing."""
    learner = learner_of(make, training())
    first, second = learner.fit(), learner.fit()
    demand_same(first, second, "two fits by one learner")
    again = fit_to(make, training())
    demand_same(first, again, "fits by two learners to the same data", exactly=True)


def check_row_order(make: Factory) -> None:
    """The order of the rows, and how they come in blocks, do not matter."""
    rows = training()
    turned = rows.take(np.arange(len(rows))[::-1])
    first = fit_to(make, rows)
    demand_same(first, fit_to(make, turned), "fits to rows in two orders")
    blocks = [rows.take(slice(i, i + 40)) for i in range(0, len(rows), 40)]
    demand_same(first, fit_to(make, *blocks), "fits to one block and to three")


def check_level(make: Factory) -> None:
    """A constant added to U shifts the values by it and leaves the gradients."""
    rows = training()
    if "outputs" in learner_of(make).needs:
        return  # U is the energy of what is learnt, and follows no shift of its values
    higher = attrs.evolve(rows, values=rows.values + LEVEL)
    first, second = fit_to(make, rows), fit_to(make, higher)
    where = places()
    before, after = evaluating.answers(first, where), evaluating.answers(second, where)
    for name, array in before.items():
        shift = LEVEL if name in ("value", "value_and_gradient[0]") else 0.0
        room = LOOSE * max(float(np.abs(array).max()), LEVEL)
        demand_close(
            after[name] - shift,
            array,
            f"{name} fitted to U + {LEVEL:g}, less the shift",
            rtol=0,
            atol=room,
        )


def check_repeated_points(make: Factory) -> None:
    """Points that are observed twice, or many times, do no harm."""
    rows = training(60)
    repeated = Evaluations.join([rows, rows, *[rows.take(slice(0, 1))] * 10], 2)
    fitted = fit_to(make, repeated)
    demand_finite(fitted, "fitted to repeated points")
    error, clean = relative_error(fitted), relative_error(fit_to(make, rows))
    demand(
        error < max(2.0 * clean, 0.5),
        f"with repeated points the relative error is {error:.3g}, without {clean:.3g}",
    )


def check_failed_rows(make: Factory) -> None:
    """Rows where the target failed, or that ran away, do not spoil the fit to the others."""
    rows = training()
    far = np.array([[50.0, 0.0], [1e8, -1e8], [1e150, 1e150], [3.0, -4.0]])
    nothing = np.full((4, 2), np.nan)
    failed = Evaluations(
        positions=far,
        values=np.array([np.inf, np.inf, np.inf, np.inf]),
        gradients=nothing,
        outputs=nothing,
        jacobians=np.full((4, 2, 2), np.nan),
    )
    # U grows about as fast as it can without overflow
    away = evaluate(TARGET, np.array([[1e4, 0.0], [0.0, -1e9], [1e30, 1.0]]))
    clean = relative_error(fit_to(make, rows))
    for block, what in ((failed, "with U = inf"), (away, "of paths that ran away")):
        fitted = fit_to(make, rows, block)
        demand_finite(fitted, f"fitted beside rows {what}")
        error = relative_error(fitted)
        demand(
            error < max(2.0 * clean, 0.5),
            f"beside rows {what} the relative error is {error:.3g}, without them {clean:.3g}; "
            "leave out, or weigh down, rows far above the least U",
        )


def check_error_falls(make: Factory) -> None:
    """The error on a smooth target falls as points grow, and is less than a constant's."""
    few, many = (
        float(np.median([relative_error(fit_to(make, training(n, s), seed=s)) for s in range(3)]))
        for n in (FEW, MANY)
    )
    demand(
        many < 0.9,
        f"with {MANY} points in two dimensions Var(V - U) is {many:.3g} of Var(U); a constant has "
        "1",
    )
    demand(
        many <= few or many < 1e-6,
        f"Var(V - U) / Var(U) is {few:.3g} with {FEW} points and {many:.3g} with {MANY}; more "
        "points must not make a smooth fit worse",
    )


def check_empty_learner(make: Factory) -> None:
    """A learner without usable rows raises SurrogateFitError, and recovers."""
    unusable = Evaluations(positions=np.zeros((3, 2)), values=np.full(3, np.inf))
    cases: tuple[tuple[str, Callable[[], Learner]], ...] = (
        ("no evaluations", lambda: learner_of(make)),
        ("an empty block", lambda: learner_of(make, Evaluations.empty(2))),
        ("only rows with U = inf", lambda: learner_of(make, unusable)),
    )
    for what, prepared in cases:
        learner = prepared()
        try:
            learner.fit()
        except SurrogateFitError as error:
            demand(bool(str(error).strip()), "SurrogateFitError must say what would help")
        else:
            raise AssertionError(f"fit must raise SurrogateFitError after {what}")
        learner.observe(training())
        demand_finite(learner.fit(), f"fitted to good rows that came after {what}")


def check_learner_survives(make: Factory) -> None:
    """A learner goes on unchanged from its state, written and read again."""
    learner = learner_of(make, training())
    first = learner.fit()
    other = learner_of(make, seed=99).restore(write_and_read(learner.state()))
    demand_same(first, other.fit(), "fits before and after a state was written and read")
    more = training(60, seed=7)
    learner.observe(more)
    other.observe(more)
    demand_same(learner.fit(), other.fit(), "fits of a learner and its restored twin")


CHECKS: tuple[Check, ...] = (
    Check(check_learner),
    Check(check_provides),
    *(_on_fitted(check) for check in potential.CHECKS + matrices.CHECKS + forward.CHECKS),
    Check(check_no_exact_call),
    Check(check_least_data),
    Check(check_snapshot_frozen),
    Check(check_same_fit),
    Check(check_row_order),
    Check(check_level),
    Check(check_repeated_points),
    Check(check_failed_rows),
    Check(check_error_falls),
    Check(check_empty_learner),
    Check(check_learner_survives),
)
"""For every surrogate."""
