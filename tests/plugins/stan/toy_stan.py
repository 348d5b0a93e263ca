"""A model with BridgeStan's face that needs no Stan: a rate, a matrix, and what follows from them.

The numbers of the matrix come column by column, as in Stan.
"""

from __future__ import annotations

import numpy as np

M = [f"m.{i}.{j}" for j in (1, 2, 3) for i in (1, 2)]
CONSTANT = 1.5  # of terms without parameters


def exp(x):
    with np.errstate(over="ignore"):
        return np.exp(x)


class Generator:
    def __init__(self, seed):
        self.numpy = np.random.default_rng(seed)


class ToyStan:
    """rate ~ exponential(1), m ~ normal(0, 1), with second derivatives."""

    def __init__(self, information="STAN_THREADS=false", broken=0.0):
        self.information = information
        self.broken = broken  # the part of positions at which generated quantities fail

    def model_info(self):
        return self.information

    def param_unc_num(self):
        return 7

    def param_unc_names(self):
        return ["rate", *M]

    def param_names(self, *, include_tp=False, include_gq=False):
        transformed = ["twice.1", "twice.2", "one"] if include_tp else []
        return ["rate", *M, *transformed, *(["noise", "pair:2.1"] if include_gq else [])]

    def param_constrain(self, theta_unc, *, include_tp=False, include_gq=False, rng=None):
        rate, m = exp(theta_unc[0]), theta_unc[1:]
        transformed = [2.0 * rate, 2.0 * m[0], 1.0] if include_tp else []
        if not include_gq:
            return np.array([rate, *m, *transformed])
        assert rng is not None
        if abs(np.sin(1e6 * theta_unc[0])) < self.broken:
            raise RuntimeError("normal_rng: Scale parameter is nan")
        return np.array([rate, *m, *transformed, rng.numpy.normal(), 7.0])

    def param_unconstrain(self, theta):
        if theta[0] <= 0.0:
            raise RuntimeError("lub_free: Lower bounded variable is -1, but must be above 0")
        return np.concatenate([[np.log(theta[0])], theta[1:]])

    def new_rng(self, seed):
        return Generator(seed)

    def log_density(self, theta_unc, *, propto=True, jacobian=True):
        assert jacobian
        t = np.asarray(theta_unc)
        if t[1] > 1000.0:
            raise RuntimeError("normal_lpdf: Random variable is too large")
        return float(t[0] - exp(t[0]) - 0.5 * t[1:] @ t[1:] + (0.0 if propto else CONSTANT))

    def log_density_gradient(self, theta_unc, *, propto=True, jacobian=True):
        t = np.asarray(theta_unc)
        value = self.log_density(t, propto=propto, jacobian=jacobian)
        return value, np.concatenate([[1.0 - exp(t[0])], -t[1:]])

    def log_density_hessian(self, theta_unc, *, propto=True, jacobian=True):
        t = np.asarray(theta_unc)
        hessian = -np.diag([exp(t[0]), *np.ones(6)])
        return *self.log_density_gradient(t, propto=propto, jacobian=jacobian), hessian

    def log_density_hessian_vector_product(self, theta_unc, v, *, propto=True, jacobian=True):
        value, _, hessian = self.log_density_hessian(theta_unc, propto=propto, jacobian=jacobian)
        return value, hessian @ v
