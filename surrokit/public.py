"""The public names of :mod:`surrokit`, which imports this module when one is first asked for."""

from importlib.metadata import PackageNotFoundError, version

from surrokit.calibration import calibrate
from surrokit.compose import make, sample
from surrokit.compute import Compute
from surrokit.coordinates.parameters import (
    Parameter,
    Parameters,
    circular,
    correlation,
    interval,
    ordered,
    positive,
    real,
    simplex,
    unit_vector,
)
from surrokit.cost.budget import Budget
from surrokit.diagnostics import effective_sample_size, r_hat, relative_error_of_mean
from surrokit.forecast import estimate
from surrokit.interfaces import Evaluations
from surrokit.ledger.reader import Ledger
from surrokit.model.model import one_by_one
from surrokit.plan.repair import Safety
from surrokit.programs.potential import command_potential
from surrokit.registry.components import Component, Part
from surrokit.registry.hooks import hookimpl
from surrokit.result.run import Run
from surrokit.sessions import open_run, resume
from surrokit.shared import model
from surrokit.sharpening import sharpen
from surrokit.studies.study import study
from surrokit.surrogate.batch import batch_surrogate
from surrokit.tables.glm import glm
from surrokit.tables.rows import rows_potential
from surrokit.targets.bounds import BoundedPotential
from surrokit.targets.cheap import with_cheap
from surrokit.targets.check import check_gradient
from surrokit.targets.forward import forward_potential
from surrokit.targets.functions import potential
from surrokit.targets.gaussian import gaussian_prior
from surrokit.targets.noise import estimated, observed

try:
    __version__ = version("surrokit")
except PackageNotFoundError:  # a bare checkout on the path
    __version__ = "0+unknown"

# targets
__all__ = ["potential", "forward_potential", "command_potential", "gaussian_prior", "observed"]
__all__ += ["estimated", "rows_potential", "glm", "with_cheap"]
# parameters
__all__ += ["real", "positive", "interval", "simplex", "ordered", "unit_vector"]
__all__ += ["circular", "correlation", "Parameter", "Parameters", "BoundedPotential"]
__all__ += ["model", "one_by_one", "check_gradient"]
# sampling
__all__ += ["sample", "estimate", "resume", "open_run", "sharpen", "study", "Ledger", "make", "Run"]
__all__ += ["Safety", "Budget", "Compute", "Evaluations"]
# diagnostics
__all__ += ["calibrate", "effective_sample_size", "r_hat", "relative_error_of_mean"]
# plugins
__all__ += ["batch_surrogate", "Component", "Part", "hookimpl"]
