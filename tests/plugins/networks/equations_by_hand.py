"""Rows of a regression written out from columns and their Jacobians alone."""

import numpy as np


def rows_of(basis, equations):
    """sqrt(w) [1, columns] and sqrt(w) targets of values, then of components of gradients."""
    roots = np.sqrt(equations.value_weights)[:, None]
    features = np.hstack([np.ones((len(equations), 1)), basis.features(equations.whitened)])
    left, right = [roots * features], [roots * equations.targets]
    if equations.gradients is not None:
        jacobian = basis.jacobian(equations.whitened)
        roots = np.sqrt(equations.gradient_weights)[:, None]
        for k in range(equations.whitened.shape[1]):
            slopes = np.hstack([np.zeros((len(equations), 1)), jacobian[:, k]])
            left.append(roots * slopes)
            right.append(roots * equations.gradients[:, :, k])
    first = 0 if equations.trains_level else 1
    return np.vstack(left)[:, first:], np.vstack(right)
