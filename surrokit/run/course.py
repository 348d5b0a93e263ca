"""How far a run has come."""

from __future__ import annotations

from collections.abc import Callable

from surrokit.contracts.schedule import Moment, Stage
from surrokit.plan.recipe import ending
from surrokit.run.recorder import Recorder


class Course:
    """When a run's exploration ended, and when its warm-up will end.

    Parameters
    ----------
    recorder
        Counts iterations.
    warmup
        Iterations of warm-up, as far as is known before the run.
    is_late
        Whether the warm-up must come to its end, if its length is open.

    Attributes
    ----------
    warmup_ends
        The last iteration of the warm-up, as far as is known.
    """

    def __init__(self, recorder: Recorder, warmup: int, is_late: Callable[[], bool]) -> None:
        self.warmup_ends = warmup
        self._explored_at: int | None = None
        self._recorder = recorder
        self._is_late = is_late

    @property
    def room(self) -> int:
        """Iterations that are left of the warm-up."""
        return self.warmup_ends - self._recorder.iteration

    @property
    def since_explored(self) -> int:
        """Iterations since the exploration ended, or since the run began if there was none."""
        return self._recorder.iteration - (self._explored_at or 0)

    def warm_up_for(self, iterations: int) -> None:
        """Let the warm-up go on for so many iterations from here on."""
        self.warmup_ends = self._recorder.iteration + iterations

    def moment(self, stage: Stage, *, explored: bool) -> Moment:
        """Return the moment after an iteration that was written down.

        Parameters
        ----------
        stage
            Where it lay.
        explored
            Whether it ended the exploration.
        """
        now = self._recorder.iteration
        if explored:
            self._explored_at = now
        if stage == "warmup" and self._is_late():
            self.warmup_ends = min(self.warmup_ends, ending(now))
        return Moment(
            stage=stage,
            iteration=now,
            explored=explored,
            since_explored=-1 if self._explored_at is None else now - self._explored_at,
            draws_follow=stage == "warmup" and now >= self.warmup_ends,
        )
