"""The learner of outputs in warped coordinates."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit_networks.learner.learner import NetworkLearner
from surrokit_networks.outputs.emulator import FittedEmulator
from surrokit_networks.outputs.network import OutputNetwork
from surrokit_networks.outputs.scales import output_scales
from surrokit_networks.outputs.warp import Warp
from surrokit_networks.outputs.warped import WarpedEnergy, WarpedNetwork, warp_evaluations


@attrs.define(kw_only=True, eq=False)
class WarpedLearner(NetworkLearner):
    """Fits a network to outputs as functions of warped coordinates, found anew at every fit."""

    def fit(self) -> FittedEmulator:
        """Return the emulator fitted to everything observed.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value, or they cannot be fitted.
        """
        assert self.energy is not None
        warp = self.find_warp()
        if not warp.warps:
            return NetworkLearner.fit(self)  # type: ignore[return-value]
        energy = WarpedEnergy(energy=self.energy, warp=warp)
        rows = warp_evaluations(warp, self.join_observed())
        plain = NetworkLearner(
            dim=self.dim,
            seed=self.seed,
            n_nodes=self.n_nodes,
            draws=self.draws,
            training=self.training,
            energy=energy,
            most_nodes=self.most_nodes,
        )
        fitted = plain.of_rows(rows).fit()
        assert isinstance(fitted, FittedEmulator)
        assert isinstance(fitted.network, OutputNetwork)
        network = WarpedNetwork(network=fitted.network, warp=warp)
        return attrs.evolve(fitted, network=network, energy=self.energy)

    def find_warp(self) -> Warp:
        """Return the warp that the Jacobians of all rows tell.

        Raises
        ------
        SurrogateFitError
            If there are too few points with a finite value.
        """
        assert self.energy is not None
        rows = self.rows()
        rows = rows.take(rows.with_jacobian)
        if not len(rows):
            return Warp.none(self.dim)
        assert rows.outputs is not None
        assert rows.jacobians is not None
        scales = output_scales(self.energy, rows.outputs, rows.positions, rows.weights)
        strengths = np.sqrt(np.square(rows.jacobians / scales[:, None]).sum(axis=1))
        return Warp.of(rows.positions, strengths, rows.weights)
