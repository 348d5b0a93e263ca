"""Models that httpstan compiles, with BridgeStan's face.

httpstan reads the data again at each call and draws the same random numbers at each, so that it
serves for tests alone.
"""

from __future__ import annotations

import asyncio
import warnings

import numpy as np


class ServedStan:
    """A compiled model with its data.

    Parameters
    ----------
    program
        In Stan.
    data
        By name.
    unconstrained
        Names of the numbers of a position.
    """

    def __init__(self, program, data, unconstrained):
        from httpstan.models import calculate_model_name, import_services_extension_module

        self.program, self.data, self.unconstrained = program, data, unconstrained
        self.name = calculate_model_name(program)
        try:
            self.module = import_services_extension_module(self.name)
        except KeyError:
            from httpstan.models import build_services_extension_module

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what it builds with goes out of use
                asyncio.run(build_services_extension_module(program))
            self.module = import_services_extension_module(self.name)

    def __reduce__(self):
        return ServedStan, (self.program, self.data, self.unconstrained)

    def param_unc_num(self):
        return len(self.unconstrained)

    def param_unc_names(self):
        return self.unconstrained

    def param_names(self, *, include_tp=False, include_gq=False):
        origin = [0.0] * self.param_unc_num()
        kept = len(self.module.write_array(self.data, origin, include_tp, include_gq))
        return self.module.constrained_param_names(self.data)[:kept]

    def param_constrain(self, theta_unc, *, include_tp=False, include_gq=False, rng=None):
        return self.module.write_array(self.data, theta_unc.tolist(), include_tp, include_gq)

    def param_unconstrain(self, theta):
        names = self.module.get_param_names(self.data)
        shapes = self.module.get_dims(self.data)
        arrays, start = {}, 0
        for name, shape in zip(names, shapes, strict=True):
            stop = start + int(np.prod(shape, dtype=int))
            if stop > len(theta):
                break
            array = np.reshape(theta[start:stop], shape, order="F")
            arrays[name], start = array if shape else float(array), stop
        return np.array(self.module.transform_inits(self.data, arrays))

    def new_rng(self, seed):
        return seed

    def log_density(self, theta_unc, *, propto=True, jacobian=True):
        return self.module.log_prob(self.data, np.asarray(theta_unc).tolist(), jacobian)

    def log_density_gradient(self, theta_unc, *, propto=True, jacobian=True):
        position = np.asarray(theta_unc).tolist()
        slope = self.module.log_prob_grad(self.data, position, jacobian)
        return self.module.log_prob(self.data, position, jacobian), np.array(slope)
