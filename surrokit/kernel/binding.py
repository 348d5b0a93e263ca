"""A sampler on a potential, with its tuning."""

from __future__ import annotations

from typing import Any, cast

import attrs

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Kernel, Sampler, StepInfo, Tuning
from surrokit.kernel.tuner import Tuner, tuning_of
from surrokit.kernel.tuner_state import TunerState
from surrokit.types import Cache, FloatArray


class Binding:
    """Binds a sampler anew whenever its potential or its tuning changes.

    Parameters
    ----------
    sampler, potential
        The sampler, and the potential that it moves on.
    chains
        Number of chains.

    Attributes
    ----------
    bound : Kernel or None
        The kernel bound last; None before one is needed.
    """

    def __init__(self, sampler: Sampler, potential: Potential, chains: int) -> None:
        self.sampler = sampler
        self.potential = potential
        self.bound: Kernel | None = None
        self._chains = chains
        self._tuner = Tuner.of(sampler, 0)
        self._tuned: TunerState = self._tuner.start(chains, potential.dim)
        self.tuning = self._tuner.tuning(self._tuned)
        self._stale = False

    @property
    def kernel(self) -> Kernel:
        """The kernel that moves the chains now."""
        if self.bound is None:
            self.bound = self.sampler.bind(self.potential, self.tuning)
        return self.bound

    @property
    def identity(self) -> tuple[object, ...]:
        """The objects that make up the kernel; whenever it changes, one of them is another."""
        return self.sampler, self.potential, self.tuning

    @property
    def tuned_sampler(self) -> Sampler:
        """The sampler, with its tuning if that was ever used."""
        if self.bound is None or not self.sampler.tunes or self.tuning is tuning_of(self.sampler):
            return self.sampler
        settings = self.sampler
        if isinstance(settings, TunedSampler):
            settings = settings.sampler
        return cast("Sampler", TunedSampler(sampler=settings, tuning=self.tuning))

    def bind_to(self, potential: Potential) -> None:
        """Move on another potential from here on; earlier caches belong to the old one."""
        self.potential = potential
        self._bind()

    # --- tuning ---

    @property
    def is_settled(self) -> bool:
        """Whether the last two windows of a warm-up agree about the covariance."""
        return self._tuned.settled

    def tune(
        self,
        n_iterations: int,
        *,
        covariance: FloatArray | None,
        step_size: float | None,
        tuning: Tuning | None = None,
        arrived: bool = False,
    ) -> None:
        """Begin a warm-up; see :class:`surrokit.kernel.tuner.Tuner`, and its method ``start``."""
        self._tuner = Tuner.of(self.sampler, n_iterations, arrived=arrived)
        state = self._tuner.start(
            self._chains,
            self.potential.dim,
            covariance=covariance,
            step_size=step_size,
            tuning=tuning,
        )
        self._use(state)

    def update(self, state: ChainState, info: StepInfo) -> None:
        """Tune by a transition, after which the chains are in ``state``."""
        gradients = state.cache.get("gradient")
        self._use(self._tuner.update(self._tuned, state.positions, info, gradients))

    def skip(self, positions: FloatArray) -> None:
        """Tune by ``positions (n, dim)`` to which another kernel took the chains."""
        self._use(self._tuner.skip(self._tuned, positions))

    def learn(self, covariance: FloatArray | None) -> None:
        """Use a covariance (dim, dim) that was estimated elsewhere, if there is one."""
        if covariance is not None:
            self._use(attrs.evolve(self._tuned, covariance=covariance))

    def tune_afresh(self) -> None:
        """Go on tuning, on a very different potential."""
        self._use(self._tuner.restart(self._tuned))

    def settle(self) -> None:
        """Keep the tuning from here on, though the warm-up may have ended early."""
        self._use(self._tuner.settle(self._tuned))

    def freeze(self) -> None:
        """Keep the tuning as it is from here on."""
        self._use(self._tuner.end(self._tuned))

    # --- caches ---

    def cache(self, positions: FloatArray) -> Cache:
        """Return the kernel's cache for chains at ``positions (n, dim)``."""
        self._stale = False
        return self.kernel.cache(positions)

    def look_up(self, state: ChainState) -> ChainState:
        """Return a state with a new cache of this kernel."""
        return attrs.evolve(state, cache=self.cache(state.positions))

    def renew(self, state: ChainState) -> ChainState:
        """Return a state that has a cache of this kernel, with the cache brought up to date.

        A metric that takes its units from the covariance keeps its factors in the cache. They are
        remade after retuning, since a kernel that mixed two metrics would have no invariant
        density.
        """
        return self.look_up(state) if self._stale else state

    def _use(self, state: TunerState) -> None:
        tuning = self._tuner.tuning(state)
        changed = tuning.covariance is not self.tuning.covariance
        self._stale |= changed and caches_metric(self.sampler)
        self._tuned, self.tuning = state, tuning
        self._bind()

    def _bind(self) -> None:
        self.bound = self.sampler.bind(self.potential, self.tuning)


def caches_metric(sampler: Sampler) -> bool:
    """Return whether a sampler's caches depend on the tuned covariance."""
    return bool(getattr(sampler, "caches_metric", False))


@attrs.frozen(kw_only=True, eq=False)
class TunedSampler:
    """A tuned sampler, for use without a warm-up; a warm-up tunes it afresh.

    All other attributes, ``bind`` included, are those of the sampler.

    Parameters
    ----------
    sampler
        The sampler.
    tuning
        Tuning that a run found for it.
    """

    sampler: Sampler
    tuning: Tuning

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sampler, name)
        # a sampler inside is tuned as well
        return attrs.evolve(self, sampler=found) if name == "kernel" else found
