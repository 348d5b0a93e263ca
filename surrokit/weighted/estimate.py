"""An estimate with its Monte Carlo error."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Estimate:
    """What draws say about an expectation.

    Parameters
    ----------
    value : ndarray
        The estimate, of any shape; the other arrays have the same.
    error : ndarray
        Its standard error.
    effective : ndarray
        Independent exact draws that would be as good.
    degrees : ndarray
        Degrees of freedom that the error has.
    calls : float
        Exact calls of the whole run.
    unnormalized
        What of the target may lack its normalising constant, of a logarithm of the evidence: then
        that is known up to these constants alone.
    """

    value: FloatArray
    error: FloatArray
    effective: FloatArray
    degrees: FloatArray
    calls: float
    unnormalized: tuple[str, ...] = ()

    def interval(self, probability: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return both ends of an interval that holds the truth with a probability."""
        # imported late, so that importing the package stays fast
        from scipy.stats import t as student

        half = student.ppf(0.5 + 0.5 * probability, self.degrees) * self.error
        return self.value - half, self.value + half

    def __repr__(self) -> str:
        if np.ndim(self.value) == 0:
            about = f"{self.value:.6g} +- {self.error:.2g}"
        else:
            about = f"{np.array2string(self.value)} +- {np.array2string(self.error, precision=2)}"
        told = f"{about}; {np.min(self.effective):.0f} effective draws"
        if self.unnormalized:
            told += f"; up to what {' and '.join(self.unnormalized)} may lack of a constant"
        return f"<Estimate {told}>"
