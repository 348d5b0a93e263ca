"""surrokit: exact posterior draws from expensive models, driven by cheap learned surrogates.

Importing this package reads no entry points and loads no plugin; that happens when a part is first
looked up.
"""

from importlib.metadata import PackageNotFoundError, version

from surrokit.batch_surrogate import batch_surrogate
from surrokit.bounds import BoundedPotential
from surrokit.components import Component, Part
from surrokit.compose import make, sample
from surrokit.diagnostics import effective_sample_size, r_hat, relative_error_of_mean
from surrokit.forward import forward_potential
from surrokit.gaussian_energy import gaussian_prior
from surrokit.gradient_check import check_gradient
from surrokit.markers import hookimpl
from surrokit.parameters import Parameter, Parameters, vector
from surrokit.potentials import potential
from surrokit.records import Evaluations
from surrokit.result import Run
from surrokit.safety import Safety

try:
    __version__ = version("surrokit")
except PackageNotFoundError:  # a bare checkout on the path
    __version__ = "0+unknown"

__all__ = [
    # targets
    "potential",
    "forward_potential",
    "gaussian_prior",
    "vector",
    "Parameter",
    "Parameters",
    "BoundedPotential",
    "check_gradient",
    # sampling
    "sample",
    "make",
    "Run",
    "Safety",
    "Evaluations",
    # diagnostics
    "effective_sample_size",
    "r_hat",
    "relative_error_of_mean",
    # plugins
    "batch_surrogate",
    "Component",
    "Part",
    "hookimpl",
]
