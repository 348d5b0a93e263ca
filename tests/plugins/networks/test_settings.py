"""Settings that make no sense, and defaults."""

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit_networks.additive import Additive
from surrokit_networks.quadratic import Quadratic
from surrokit_networks.rbf import Rbf


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_nodes": 0}, "n_nodes must be a whole number of at least 1"),
        ({"n_nodes": 2.5}, "n_nodes must be a whole number of at least 1"),
        ({"weight_scale": 0.0}, "weight_scale must be a positive finite number, .* got 0.0"),
        ({"bias_scale": -1.0}, "bias_scale must be a positive finite number, got -1.0"),
        ({"ridge": -1.0}, "ridge must be a finite number that is not negative, or None, got -1.0"),
        ({"level": "mean"}, "level must be one of 'trained', 'minimum', got 'mean'"),
        ({"tail": "cut"}, "tail must be one of 'down-weighted', 'full', got 'cut'"),
        ({"activation": "relu"}, "activation must be one of softplus, tanh, cosine, or an Act"),
        ({"draws": "data"}, "draws must be one of 'gaussian', .*'quasi-random', got 'data'"),
        ({"learns": "all"}, "learns must be one of 'auto', 'potential', 'outputs', got 'all'"),
        ({"hold_out": 0.7}, "hold_out must be a share between 0 and 0.5, got 0.7"),
    ],
)
def test_impossible_settings_of_the_additive_network(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.make("surrogate", "additive", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width_scale": 0.0}, "width_scale must be a positive finite number, .* got 0.0"),
        ({"centre_scale": np.inf}, "centre_scale must be a positive finite number, got inf"),
        ({"widths": "wide"}, "widths must be one of 'dimension', 'chi-square', got 'wide'"),
        ({"draws": "grid"}, "draws must be one of 'gaussian', .*'data', got 'grid'"),
    ],
)
def test_impossible_settings_of_the_radial_network(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.make("surrogate", "rbf", **settings)


def test_factories_have_the_defaults_of_the_classes():
    assert sk.make("surrogate", "additive") == Additive()
    assert sk.make("surrogate", "rbf") == Rbf()
    assert sk.make("surrogate", "quadratic") == Quadratic()
    assert sk.make("surrogate", "additive-paper") == Additive.paper()
    assert sk.make("surrogate", "rbf-paper") == Rbf.paper()
