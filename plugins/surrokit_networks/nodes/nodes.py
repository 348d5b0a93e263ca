"""Nodes: the features of a network whose output is linear in its weights."""

from __future__ import annotations

from typing import TypeAlias

from surrokit_networks.nodes.additive import AdditiveNodes, WeightedAdditive
from surrokit_networks.nodes.rbf import RbfNodes, WeightedRbf

Nodes: TypeAlias = AdditiveNodes | RbfNodes
"""Nodes a_i of whitened positions, before they have weights."""

WeightedNodes: TypeAlias = WeightedAdditive | WeightedRbf
"""The sum z(q) = sum_i v_i a_i(q), equation (10) without b, as a function of raw positions.

Every array returned is new, and no argument is changed. The shapes of arguments are not checked.
"""
