"""Checks of surrogates, their learners and their fitted potentials."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, Learner, LearningProblem
from surrokit.potentials import Potential, SummedTerms
from surrokit.testing import must
from surrokit.testing.checks import CHECKS, Factory, answers, check
from surrokit.testing.rows import BananaRows
from surrokit.testing.targets import Banana, Target
from surrokit.types import FloatArray

VOCABULARY = frozenset({"value", "gradient", "outputs", "jacobian"})
"""Names of the data that a learner can need or use."""

TARGET = Banana()
"""The target of surrogates: smooth, curved, and a forward potential."""


def problem_of(target: Target) -> LearningProblem:
    """Return what a surrogate may know of a target."""
    energy, terms = None, None
    if isinstance(target, Banana):
        energy, terms = target.energy, SummedTerms(BananaRows(sd=target.sd))
    return LearningProblem(
        dim=target.dim, capabilities=target.capabilities, energy=energy, terms=terms
    )


def evaluate(target: Target, positions: FloatArray) -> Evaluations:
    """Return all evaluations of a target at positions of shape (n, 2)."""
    values, gradients = target.value_and_gradient(positions)
    known = {"positions": positions, "values": values, "gradients": gradients}
    if isinstance(target, Banana):
        known["outputs"], known["jacobians"] = target.forward_and_jacobian(positions)
    return Evaluations(**known)


def _training(n: int = 120, seed: int = 0) -> Evaluations:
    return evaluate(TARGET, TARGET.sample(np.random.default_rng([1604, seed]), n))


def _learner(make: Factory, *blocks: Evaluations, seed: int = 0) -> Learner:
    """Return a learner that has observed some blocks."""
    learner: Learner = make().learner(problem_of(TARGET), np.random.default_rng(seed))
    for block in blocks:
        learner.observe(block)
    return learner


def _fit(make: Factory, *blocks: Evaluations, seed: int = 0) -> Any:
    return _learner(make, *blocks, seed=seed).fit()


def _places(n: int = 40, spread: float = 0.6) -> FloatArray:
    """Return where fits are compared: nearer to the middle than draws, as rounding rules beyond."""
    return TARGET.from_normals(spread * np.random.default_rng(1605).standard_normal((n, 2)))


def _answers(fitted: Any) -> dict[str, FloatArray]:
    return answers(fitted, _places())


def _demand_same(first: Any, second: Any, what: str) -> None:
    """Demand that two fitted potentials give the same answers, but for rounding.

    Fits that are ill-conditioned differ by 1e-4, and by what does not matter below their error.
    """
    one, two, exact = _answers(first), _answers(second), _answers(TARGET)
    for name, array in one.items():
        room = 1e-4 * max(float(np.abs(array).max()), 1.0)
        if name in exact and exact[name].shape == array.shape:
            room = max(room, 0.05 * float(np.std(array - exact[name])))
        must.close(two[name], array, f"{name} of {what}", rtol=0, atol=room)


def _demand_finite(fitted: Any, what: str) -> None:
    for name, array in _answers(fitted).items():
        must.hold(np.isfinite(array).all(), f"{name} of a potential {what} is not finite")


def _error(fitted: Potential) -> float:
    """Return Var(V - U) over Var(U), where there are data."""
    where = _places(500, 0.8)
    exact = TARGET.value(where)
    return float(np.var(fitted.value(where) - exact) / np.var(exact))


@check("surrogate")
def check_learner(make: Factory) -> None:
    """A learner is made from a problem alone, and declares what it needs, uses and provides."""
    learner = _learner(make)
    for name, known in (("needs", VOCABULARY), ("uses", VOCABULARY), ("provides", can.KNOWN)):
        words = getattr(learner, name)
        right = isinstance(words, frozenset) and words <= known
        must.hold(right, f"{name} must be a frozenset of {sorted(known)}, got {words!r}")
    must.hold(learner.needs, "needs is empty; a learner that needs nothing learns nothing")
    learner = _learner(make, _training())
    fitted, dim = learner.fit(), TARGET.dim
    must.hold(fitted.dim == dim, f"the fitted potential has dim {fitted.dim}, not {dim}")
    has, provides = sorted(fitted.capabilities), sorted(learner.provides)
    must.hold(has == provides, f"a learner provides {provides}, but its fitted potential has {has}")


@check("surrogate")
def check_fitted(make: Factory) -> None:
    """The fitted potential passes all checks of potentials."""
    fitted = _fit(make, _training())
    for each in CHECKS["potential"]:
        if each.applies(fitted):
            each(lambda: fitted)


@check("surrogate")
def check_least_data(make: Factory) -> None:
    """A learner can fit to what it needs alone; all else may be missing or NaN."""
    full, needs = _training(), _learner(make).needs
    fields = (("gradient", "gradients"), ("outputs", "outputs"), ("jacobian", "jacobians"))
    missing: dict[str, Any] = {name: None for word, name in fields if word not in needs}
    if "outputs" in missing:
        missing["jacobians"] = None
    least = attrs.evolve(full, **missing)
    _demand_finite(_fit(make, least), f"fitted to {sorted(needs)} alone")
    _demand_finite(
        _fit(make, full, least), "fitted to some rows with all there is and some without"
    )


@check("surrogate")
def check_snapshot_frozen(make: Factory) -> None:
    """A fitted potential does not change when its learner observes more and fits again."""
    learner = _learner(make, _training(60))
    first = learner.fit()
    before = {name: array.copy() for name, array in _answers(first).items()}
    shifted = _training(60, seed=5)
    learner.observe(attrs.evolve(shifted, values=shifted.values + 50.0))
    observed = _answers(first)
    second = learner.fit()
    for later, when in ((observed, "observed more"), (_answers(first), "fitted again")):
        for name, array in before.items():
            must.equal(
                later[name], array, f"{name} of a snapshot before its learner {when}, and after"
            )
    same = np.array_equal(second.value(_places()), before["value[0]"])
    must.hold(not same, "a learner that observed sixty points at another level fits the same")


@check("surrogate")
def check_same_fit(make: Factory) -> None:
    """The same data and generator give the same fit; fitting twice changes nothing.

    The order of the rows, and how they come in blocks, do not matter.
    """
    rows = _training()
    learner = _learner(make, rows)
    first = learner.fit()
    _demand_same(first, learner.fit(), "two fits by one learner")
    again = _answers(_fit(make, _training()))
    for name, array in _answers(first).items():
        must.equal(again[name], array, f"{name} of fits by two learners to the same data")
    turned = rows.take(np.arange(len(rows))[::-1])
    _demand_same(first, _fit(make, turned), "fits to rows in two orders")
    blocks = [rows.take(slice(i, i + 40)) for i in range(0, len(rows), 40)]
    _demand_same(first, _fit(make, *blocks), "fits to one block and to three")


@check("surrogate")
def check_failed_rows(make: Factory) -> None:
    """Rows where the target failed, or that ran away, do not spoil the fit."""
    rows, nothing = _training(), np.full((4, 2), np.nan)
    failed = Evaluations(
        positions=np.array([[50.0, 0.0], [1e8, -1e8], [1e150, 1e150], [3.0, -4.0]]),
        values=np.full(4, np.inf),
        gradients=nothing,
        outputs=nothing,
        jacobians=np.full((4, 2, 2), np.nan),
    )
    # U grows about as fast as it can without overflow
    away = evaluate(TARGET, np.array([[1e4, 0.0], [0.0, -1e9], [1e30, 1.0]]))
    without = _error(_fit(make, rows))
    for more, what in (
        (failed, "beside rows with U = inf"),
        (away, "beside rows of paths that ran away"),
    ):
        fitted = _fit(make, rows, more)
        _demand_finite(fitted, f"fitted {what}")
        error = _error(fitted)
        what = f"{what} the relative error is {error:.3g}, without {without:.3g}"
        good = error < max(2.0 * without, 0.5)
        must.hold(good, f"{what}; leave out, or weigh down, rows far above the least U")


@check("surrogate")
def check_error_falls(make: Factory) -> None:
    """The error on a smooth target falls as points grow, and is less than a constant's."""
    few, many = (
        float(np.median([_error(_fit(make, _training(n, s), seed=s)) for s in range(3)]))
        for n in (30, 400)
    )
    what = f"Var(V - U) / Var(U) is {many:.3g} with 400 points"
    must.hold(many < 0.9, f"{what}; that of a constant is 1")
    must.hold(many <= few or many < 1e-6, f"{what} and {few:.3g} with 30; it must not grow")


@check("surrogate")
def check_empty_learner(make: Factory) -> None:
    """A learner without usable rows raises SurrogateFitError, and recovers."""
    unusable = Evaluations(positions=np.zeros((3, 2)), values=np.full(3, np.inf))
    for what, blocks in (("no evaluations", ()), ("only rows with U = inf", (unusable,))):
        learner = _learner(make, *blocks)
        try:
            learner.fit()
        except SurrogateFitError as error:
            must.hold(str(error).strip(), "SurrogateFitError must say what would help")
        else:
            raise AssertionError(f"fit must raise SurrogateFitError after {what}")
        learner.observe(_training())
        _demand_finite(learner.fit(), f"fitted to good rows that came after {what}")


@check("surrogate")
def check_learner_survives(make: Factory) -> None:
    """A learner goes on unchanged from a copy of its state."""
    learner = _learner(make, _training())
    first = learner.fit()
    other = _learner(make, seed=99).restore(copy.deepcopy(learner.state()))
    _demand_same(first, other.fit(), "fits before and after a state was restored")
    for one in (learner, other):
        one.observe(_training(60, seed=7))
    _demand_same(learner.fit(), other.fit(), "fits of a learner and its restored twin")
