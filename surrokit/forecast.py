"""What a run would cost, said without running it."""

from __future__ import annotations

import copy
from typing import Any

import attrs

from surrokit.arguments import read_seed
from surrokit.cost.measuring import measure_starts
from surrokit.cost.recording import RecordingPotential
from surrokit.mode.starts import given_positions
from surrokit.potentials import Potential, check_target
from surrokit.progress import Estimate, RunInfo
from surrokit.registry.catalogue import Composer, Spec, default_catalogue


def estimate(target: Potential | Spec, **options: Any) -> Estimate:
    """Return what a run would cost, by a few timed calls at the starts of its chains.

    Parameters
    ----------
    target
        As for :func:`surrokit.sample`.
    **options
        What :func:`surrokit.sample` would be given. No file is written, and nothing is shown.

    Returns
    -------
    Estimate
        Seconds of a call, expected calls, and seconds of all of them; ``str`` says it in one
        sentence. The number of calls is a rule of thumb, which no surrogate has been tried for.

    Raises
    ------
    ConfigurationError, CapabilityError, UnknownComponentError
        As :func:`surrokit.sample`.
    TargetError
        If the target cannot be evaluated where chains start.
    """
    from surrokit.compose import sample  # late: importing the package stays fast

    left_out = ("path", "progress", "observers")
    given = {name: value for name, value in options.items() if name not in left_out}
    if "seed" in given:
        given["seed"] = copy.deepcopy(given["seed"])
    try:
        sample(target, **given, progress=False, observers=[_AtStart()])
    except _Started as started:
        expected = started.estimate
    if expected.seconds_a_call is not None:
        return expected
    # parts were named, so that no call was timed
    composer = Composer(default_catalogue())
    exact, chains = check_target(composer.make("potential", target)), given.get("chains", 4)
    initial = given.get("initial")
    starts = None if initial is None else given_positions(initial, exact, chains)
    recorded = RecordingPotential(exact, keep=False)
    _, costs = measure_starts(recorded, starts, chains, read_seed(given.get("seed")))
    value, gradient = costs.a_position(chains, 1)
    seconds = gradient if expected.kind == "gradient" else value
    return attrs.evolve(expected, seconds_a_call=seconds)


class _Started(BaseException):
    """Ends a run when all that comes before its exploration is done."""

    def __init__(self, expected: Estimate) -> None:
        super().__init__(expected)
        self.estimate = expected


class _AtStart:
    """An observer that ends a run at its start."""

    def surrokit_run_started(self, run: RunInfo) -> None:
        assert run.estimate is not None
        raise _Started(run.estimate)
