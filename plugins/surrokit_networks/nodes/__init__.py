"""Nodes of random networks, their activations, and how they are drawn."""
