"""What every target of this plugin must do besides the contract of potentials."""

from __future__ import annotations

import numpy as np
import pytest

from surrokit_problems.plugin import surrokit_components

CASES = [
    pytest.param(component, component.examples[0], id=component.name)
    for component in surrokit_components()
    if component.examples
]


@pytest.mark.parametrize(("component", "settings"), CASES)
def test_no_rows(component, settings):
    potential = component.make(settings)
    value, gradient = potential.value_and_gradient(np.empty((0, potential.dim)))
    assert value.shape == (0,)
    assert gradient.shape == (0, potential.dim)
